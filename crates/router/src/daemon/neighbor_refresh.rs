//! Keeps neighbours in use known to the kernel, which does not see the router's traffic to them.
//!
//! A neighbour that is reachable needs nothing. When the kernel marks some as stale, ports begin to track the destinations
//! they send to, and the kernel is asked to verify each stale neighbour that was sent to. It is not asked about others.

use std::hash::{Hash, Hasher};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_plane::burst::{Burst, Packet, Slot};
use fullview_plane::port::{Port, PortError, PortLosses};

use super::ports::AnyPort;
use super::worker_thread::WorkerPort;
use crate::follow::Follower;
use crate::mirror::{Mirror, StaleNeighbor};
use crate::netlink::socket::SocketError;

/// Places of the hash table. Two neighbours that share one are verified together, which does no harm.
const PLACES: usize = 4096;

/// How often stale neighbours are looked for. The kernel leaves them usable meanwhile.
const INTERVAL: Duration = Duration::from_secs(1);

/// What ports report to the router's thread: the neighbours that they sent to.
pub struct UsedNeighbors {
    /// Whether ports must track neighbours: some are stale.
    is_tracking: AtomicBool,
    used: Vec<AtomicBool>,
}

impl Default for UsedNeighbors {
    fn default() -> Self {
        let used = (0..PLACES).map(|_| AtomicBool::new(false)).collect();
        UsedNeighbors { is_tracking: AtomicBool::new(false), used }
    }
}

impl UsedNeighbors {
    fn place(&self, interface: u16, mac: [u8; 6]) -> &AtomicBool {
        let mut hasher = rustc_hash::FxHasher::default();
        (interface, mac).hash(&mut hasher);
        &self.used[hasher.finish() as usize % PLACES]
    }

    fn record(&self, packet: &Slot) {
        let Some(mac) = packet.frame().first_chunk::<6>() else { return };
        let place = self.place(packet.interface, *mac);
        // The place is mostly set already. Loading it first keeps workers from taking the cache line from each other.
        if !place.load(Ordering::Relaxed) {
            place.store(true, Ordering::Relaxed);
        }
    }
}

/// The end of the router's thread.
#[derive(Default)]
pub struct NeighborRefresh {
    used: Arc<UsedNeighbors>,
    last: Duration,
}

impl NeighborRefresh {
    /// What ports report to.
    pub fn used(&self) -> Arc<UsedNeighbors> {
        Arc::clone(&self.used)
    }

    /// Has the kernel verify all stale neighbours, and resolve the gateways of several next hops: where a program in the kernel
    /// sends, no port tracks the neighbours, and no worker says for which one it has packets.
    pub fn refresh_all(
        &mut self,
        now: Duration,
        mirror: &Mirror,
        follower: &Follower,
    ) -> Result<(), SocketError> {
        let Some(stale) = self.stale(now, mirror) else { return Ok(()) };
        stale.iter().try_for_each(|neighbor| follower.keep_fresh(neighbor.link, neighbor.address))?;
        let missing = mirror.missing_gateways();
        missing.into_iter().try_for_each(|(link, gateway)| follower.resolve(link, gateway))
    }

    /// The stale neighbours. `None` if the interval has not passed since the last call that returned some.
    fn stale(&mut self, now: Duration, mirror: &Mirror) -> Option<Vec<StaleNeighbor>> {
        if now.saturating_sub(self.last) < INTERVAL {
            return None;
        }
        self.last = now;
        Some(mirror.stale_neighbors())
    }

    /// Has the kernel verify the stale neighbours that were sent to.
    pub fn refresh(
        &mut self,
        now: Duration,
        mirror: &Mirror,
        follower: &Follower,
    ) -> Result<(), SocketError> {
        let Some(stale) = self.stale(now, mirror) else { return Ok(()) };
        for neighbor in &stale {
            if self.used.place(neighbor.interface, neighbor.mac.0).load(Ordering::Relaxed) {
                follower.keep_fresh(neighbor.link, neighbor.address)?;
            }
        }
        self.used.used.iter().for_each(|place| place.store(false, Ordering::Relaxed));
        self.used.is_tracking.store(!stale.is_empty(), Ordering::Relaxed);
        Ok(())
    }
}

/// A port that tracks the neighbours it sends to, while that is needed.
pub struct TrackingPort {
    pub port: AnyPort,
    pub used: Arc<UsedNeighbors>,
    /// Whether a port on this interface has lost it.
    pub is_lost: Arc<AtomicBool>,
}

impl TrackingPort {
    fn record_loss(&self, error: &PortError) {
        if matches!(error, PortError::Removed { .. }) {
            self.is_lost.store(true, Ordering::Relaxed);
        }
    }
}

impl Port<'static> for TrackingPort {
    fn receive(&mut self, burst: &mut Burst<'static>, limit: usize) -> Result<usize, PortError> {
        self.port.receive(burst, limit).inspect_err(|error| self.record_loss(error))
    }

    fn transmit(&mut self, burst: &mut Burst<'static>) -> Result<usize, PortError> {
        if self.used.is_tracking.load(Ordering::Relaxed) {
            burst.iter().for_each(|packet| self.used.record(packet));
        }
        self.port.transmit(burst).inspect_err(|error| self.record_loss(error))
    }

    fn reclaim(&mut self, free: &mut Burst<'static>) -> usize {
        self.port.reclaim(free)
    }

    fn recycle(&mut self, free: &mut Burst<'static>) -> usize {
        self.port.recycle(free)
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        self.port.overruns()
    }

    fn refused(&self) -> u64 {
        self.port.refused()
    }

    fn is_finished(&self) -> bool {
        self.port.is_finished()
    }

    fn losses(&mut self) -> PortLosses {
        self.port.losses()
    }

    fn undated(&mut self) -> usize {
        self.port.undated()
    }

    fn has_unsent(&mut self) -> bool {
        self.port.has_unsent()
    }
}

impl WorkerPort for TrackingPort {
    fn may_be_polled(&self) -> bool {
        self.port.may_be_polled()
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }

    fn close(self) -> Vec<Packet<'static>> {
        self.port.close()
    }
}
