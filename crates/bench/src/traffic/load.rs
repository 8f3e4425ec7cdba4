//! A load run: its configuration and its result.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::placement::{Placement, PlacementError, Role};
use fullview_plane::burst::{BURST, Burst};
use fullview_plane::forward::{Forwarder, Stage};

use super::check::{Departure, Passage};
use super::frame::{FrameSize, Frames, Headers, Macs, SizeError};
use super::pace::{Pace, RateError};
use super::sink::Tally;

/// Bursts between two readings of the clock in unpaced runs, so that the readings do not show in the rate.
pub(super) const BURSTS_PER_CLOCK_READING: usize = 16;

/// What stands between generator and receiver.
pub trait Router {
    /// Whether packets leave changed, as [`Passage::Routed`] describes it.
    const CHANGES_PACKETS: bool = true;

    /// Takes every packet out of `burst`, into the burst of its egress port, with [`fullview_plane::burst::Slot::port`] set to
    /// that, or into `dropped`. Each has room for the whole burst. Packets kept anywhere else count as lost.
    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], dropped: &mut Burst<'a>);
}

/// No router: every packet goes on unchanged. It measures what the loop costs by itself.
pub struct Unrouted;

impl Router for Unrouted {
    const CHANGES_PACKETS: bool = false;

    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], _dropped: &mut Burst<'a>) {
        pass_on(burst, forwarded);
    }
}

/// All packets out by one port.
fn pass_on<'a>(burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>]) {
    if let Some(only) = forwarded.last_mut() {
        std::mem::swap(burst, only);
    }
}

impl Router for Forwarder {
    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], dropped: &mut Burst<'a>) {
        self.process(burst, forwarded, dropped);
    }
}

/// A router that takes packets through the loop up to a stage and then sends all of them on: what it costs more than one
/// that ends a stage earlier is what that stage costs. `CHANGED` is whether the last stage is [`Stage::Rewrite`].
pub struct Through<'r, const CHANGED: bool> {
    /// The loop.
    pub forwarder: &'r mut Forwarder,
    /// Its last stage.
    pub last: Stage,
}

impl<const CHANGED: bool> Router for Through<'_, CHANGED> {
    const CHANGES_PACKETS: bool = CHANGED;

    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], _dropped: &mut Burst<'a>) {
        self.forwarder.process_through(self.last, burst);
        pass_on(burst, forwarded);
    }
}

/// What is sent, and how it is received.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Frame sizes.
    pub size: FrameSize,
    /// Ethernet addresses of the frames sent.
    pub macs: Macs,
    /// Index of the router's port that all packets arrive at.
    pub ingress_port: u16,
    /// How packets must leave, by next-hop index; entry 0 is never used.
    pub departures: Vec<Departure>,
    /// Packets in a burst, 1 to [`BURST`].
    pub burst: usize,
    /// Packets in flight at most: slots of the arena. A few thousand stay in the second-level cache.
    pub packets: usize,
    /// One packet in this many is checked, on average.
    pub check_one_in: NonZeroU32,
    /// Packets per second; `None` for as many as the router takes.
    pub pps: Option<f64>,
    /// Which threads run on which cores; `None` leaves it to the system.
    pub placement: Option<Placement>,
}

impl LoadConfig {
    /// 64 packets a burst, 2,048 in flight, one in 64 checked, unpaced, on any core.
    pub fn new(size: FrameSize, macs: Macs, departures: Vec<Departure>) -> Self {
        #[allow(clippy::unwrap_used)] // evaluated by the compiler
        const ONE_IN: NonZeroU32 = NonZeroU32::new(64).unwrap();
        LoadConfig {
            size,
            macs,
            ingress_port: 0,
            departures,
            burst: 64,
            packets: 2048,
            check_one_in: ONE_IN,
            pps: None,
            placement: None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), LoadError> {
        if !(1..=BURST).contains(&self.burst) {
            return Err(LoadError::Burst(self.burst));
        }
        if self.packets < self.burst {
            return Err(LoadError::Packets { packets: self.packets, burst: self.burst });
        }
        Ok(())
    }

    /// The number of ports that packets may leave by, counted from port 0.
    pub fn ports(&self) -> usize {
        self.departures.iter().map(|departure| usize::from(departure.port) + 1).max().unwrap_or(1)
    }

    /// A burst for each egress port, by port number; those of other ports stay empty.
    pub(super) fn egress<'a>(&self) -> Vec<Burst<'a>> {
        (0..self.ports()).map(|_| Burst::new()).collect()
    }

    pub(super) fn pace(&self) -> Result<Option<Pace>, LoadError> {
        Ok(self.pps.map(Pace::new).transpose()?)
    }
}

/// Why a load run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Impossible frame size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Impossible rate.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// Bursts that cannot be.
    #[error("{0} packets a burst are not possible; give 1 to {BURST}")]
    Burst(usize),
    /// Too few slots.
    #[error("{packets} packets in flight do not fill one burst of {burst}; give at least {burst}")]
    Packets {
        /// Slots asked for.
        packets: usize,
        /// Packets a burst.
        burst: usize,
    },
    /// Slices without length.
    #[error("a slice must be longer than nothing")]
    Window,
    /// A thread cannot run where it should.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A thread ended by a panic.
    #[error("a thread of the load run panicked; its message stands above")]
    Panicked,
    /// A thread could not be started.
    #[error("a thread of the load run cannot be started: {0}")]
    Thread(std::io::Error),
}

/// When a run measures, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Window<'s> {
    /// Before the first slice: caches and tables warm up. Not measured, but checked like all else.
    pub warm_up: Duration,
    /// Length of a slice: each gives one rate.
    pub slice: Duration,
    /// Number of slices.
    pub slices: usize,
    /// How long the end of the run waits for packets still in flight.
    pub drain: Duration,
    /// Ends the run early when set.
    pub stop: &'s AtomicBool,
}

impl<'s> Window<'s> {
    /// Slices of equal length after a warm-up; a second for draining.
    pub fn new(warm_up: Duration, slice: Duration, slices: usize, stop: &'s AtomicBool) -> Self {
        Window { warm_up, slice, slices, drain: Duration::from_secs(1), stop }
    }

    pub(super) fn validate(&self) -> Result<(), LoadError> {
        if self.slice.is_zero() {
            return Err(LoadError::Window);
        }
        Ok(())
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The result of a load run.
///
/// Counts cover the whole run, warm-up and draining included, so that they add up; rates cover the slices.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    /// Packets sent to the router.
    pub sent: u64,
    /// Bytes of their frames, without FCS.
    pub sent_bytes: u64,
    /// Packets the router handed back as dropped; its own counters hold the reasons.
    pub dropped: u64,
    /// What the receiver saw behind the router.
    pub received: Tally,
    /// Packets received per second, one value a slice, generator and receiver included.
    pub rates: Vec<f64>,
    /// Time from the first slice to the end of the last.
    pub elapsed: Duration,
    /// Packets the schedule asked for until the last slice ended; `None` if unpaced.
    pub offered: Option<u64>,
    /// The latest any packet was sent after its time; `None` if unpaced.
    pub max_lag: Option<Duration>,
    /// Whether the run was stopped early.
    pub interrupted: bool,
}

impl LoadResult {
    /// Adds the counts of a later run. Its rates and its first wrong packet stay out, unless this run has none.
    pub fn add(&mut self, later: &LoadResult) {
        self.sent += later.sent;
        self.sent_bytes += later.sent_bytes;
        self.dropped += later.dropped;
        self.received.add(&later.received);
        if let Some(offered) = later.offered {
            *self.offered.get_or_insert(0) += offered;
        }
        self.max_lag = self.max_lag.max(later.max_lag);
        self.elapsed += later.elapsed;
    }

    /// Packets sent that neither came out nor were handed back as dropped. Duplicates do not make up for losses as far
    /// as they were recognised, that is among checked packets.
    pub fn lost(&self) -> u64 {
        let came_out = self.received.packets.saturating_sub(self.received.order.duplicates);
        self.sent.saturating_sub(came_out + self.dropped)
    }
}

/// The frames of a configuration.
pub fn frames<A: Headers>(config: &LoadConfig) -> Result<Frames<A>, LoadError> {
    Ok(Frames::new(config.size, config.macs)?)
}

/// Runs the ends of a load run, on their core if there is a placement: then in a thread of their own, because
/// pinning lasts as long as the thread, and the caller's thread must stay free.
pub(super) fn run_ends<T: Send>(
    placement: Option<Placement>,
    work: impl FnOnce() -> Result<T, LoadError> + Send,
) -> Result<T, LoadError> {
    let Some(placement) = placement else { return work() };
    let pinned = || {
        placement.pin(Role::Ends)?;
        work()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("ends".into()).spawn_scoped(scope, pinned);
        thread.map_err(LoadError::Thread)?.join().map_err(|_| LoadError::Panicked)?
    })
}

/// What the receiver expects behind such a router.
pub fn passage<R: Router>(config: &LoadConfig) -> Passage<'_> {
    if R::CHANGES_PACKETS { Passage::Routed(&config.departures) } else { Passage::Direct }
}
