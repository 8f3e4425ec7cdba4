//! A worker between memif ports. It ends when the other ends are gone.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::forward::Forwarder;
use fullview_plane::port::memif::{MemifAddress, MemifPort};
use fullview_plane::port::{Port, PortError, PortLosses};
use fullview_plane::worker::{Rejected, SlowPath, Worker, Yield};

/// Slots of packet memory for each port.
const SLOTS: usize = 2 * BURST;

/// Sends packets without a route back by port 0, as the bed wants them.
struct SendBack;

impl SlowPath for SendBack {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let Rejected { packets, out, .. } = rejected;
        out[0].fill(std::iter::from_fn(|| packets.pop()));
    }
}

/// A port from which no more packets are received at once.
struct ShortBursts<P> {
    port: P,
    most: usize,
}

impl<'a, P: Port<'a>> Port<'a> for ShortBursts<P> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        self.port.receive(burst, limit.min(self.most))
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        self.port.transmit(burst)
    }

    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        self.port.reclaim(free)
    }

    fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        self.port.recycle(free)
    }

    fn refused(&self) -> u64 {
        self.port.refused()
    }

    fn is_finished(&self) -> bool {
        self.port.is_finished()
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        self.port.overruns()
    }

    fn losses(&mut self) -> PortLosses {
        self.port.losses()
    }

    fn has_unsent(&mut self) -> bool {
        self.port.has_unsent()
    }
}

/// Where the ports are, and how packets are taken from them.
pub struct Ends<'e> {
    /// Beside port 0, where packets arrive.
    pub ports: u16,
    pub socket: &'e str,
    /// The most packets at once.
    pub burst: usize,
    pub core: Option<&'e String>,
}

/// Connects the ports and forwards until the server ends.
pub fn run(forwarder: Forwarder, ends: &Ends<'_>) -> Result<()> {
    let Ends { ports, socket, burst: most, core } = *ends;
    ensure!((1..=BURST).contains(&most), "bursts of {most}: give 1 to {BURST}");
    if let Some(core) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id: core.parse().context("the core")? });
    }
    let connect = |number: u16| {
        let port = MemifPort::connect(number, &MemifAddress { socket, id: number.into(), secret: "" })?;
        Ok(Some(ShortBursts { port, most }))
    };
    let opened = (0..=ports).map(connect).collect::<Result<Vec<_>>>()?;
    let mut arena = Arena::new(SLOTS * opened.len());
    Worker::new(forwarder, opened, arena.packets(), SendBack, Yield).run(&AtomicBool::new(false))?;
    Ok(())
}
