//! Neighbours that we send to stay known: the kernel, which does not see that traffic, is told of those in use.
//!
//! Nobody is asked about a neighbour that is fresh. When the kernel begins to doubt some, ports look at what they send
//! and note its destinations; a neighbour in doubt that was sent to is verified by the kernel, others are left alone.

use std::hash::{Hash, Hasher};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::follow::Follower;
use crate::mirror::{Mirror, StaleNeighbor};
use crate::netlink::socket::SocketError;
use fullview_plane::burst::{Burst, Packet, Slot};
use fullview_plane::port::{Port, PortError};

use super::ports::AnyPort;
use super::thread::WorkerPort;

/// Places for notes. Two neighbours that share one are verified together, which does no harm.
const PLACES: usize = 4096;

/// How often neighbours in doubt are looked for; the kernel leaves them usable meanwhile.
const EVERY: Duration = Duration::from_secs(1);

/// What ports and control thread share.
pub struct Notes {
    /// Whether there is anything to note.
    wanted: AtomicBool,
    used: Vec<AtomicBool>,
    /// Whether a port has lost its interface.
    lost: AtomicBool,
}

impl Default for Notes {
    fn default() -> Self {
        let used = (0..PLACES).map(|_| AtomicBool::new(false)).collect();
        Notes { wanted: AtomicBool::new(false), used, lost: AtomicBool::new(false) }
    }
}

impl Notes {
    fn note_loss(&self, error: &PortError) {
        if matches!(error, PortError::Removed { .. }) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a port has lost its interface.
    pub fn has_loss(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// There are other ports now.
    pub fn forget_loss(&self) {
        self.lost.store(false, Ordering::Relaxed);
    }

    fn place(&self, interface: u16, mac: [u8; 6]) -> &AtomicBool {
        let mut hasher = rustc_hash::FxHasher::default();
        (interface, mac).hash(&mut hasher);
        &self.used[hasher.finish() as usize % PLACES]
    }

    fn note(&self, packet: &Slot) {
        let Some(mac) = packet.frame().first_chunk::<6>() else { return };
        let place = self.place(packet.interface, *mac);
        // Mostly noted already: looked at first, so that workers do not take the line from each other.
        if !place.load(Ordering::Relaxed) {
            place.store(true, Ordering::Relaxed);
        }
    }
}

/// The control thread's end.
#[derive(Default)]
pub struct Freshness {
    notes: Arc<Notes>,
    last: Duration,
}

impl Freshness {
    /// For the ports.
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes)
    }

    /// Has all neighbours verified that are in doubt: where a program in the kernel sends, nobody notes to whom.
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    pub fn refresh_all(
        &mut self,
        now: Duration,
        mirror: &Mirror,
        follower: &Follower,
    ) -> Result<(), SocketError> {
        let mut doubtful = self.doubtful(now, mirror).into_iter().flatten();
        doubtful.try_for_each(|neighbor| follower.keep_fresh(neighbor.link, neighbor.address))
    }

    /// The neighbours in doubt, if it is time to look for them.
    fn doubtful(&mut self, now: Duration, mirror: &Mirror) -> Option<Vec<StaleNeighbor>> {
        if now.saturating_sub(self.last) < EVERY {
            return None;
        }
        self.last = now;
        Some(mirror.stale_neighbors())
    }

    /// Has neighbours verified that are in doubt and in use.
    pub fn refresh(
        &mut self,
        now: Duration,
        mirror: &Mirror,
        follower: &Follower,
    ) -> Result<(), SocketError> {
        let Some(doubtful) = self.doubtful(now, mirror) else { return Ok(()) };
        for neighbor in &doubtful {
            if self.notes.place(neighbor.interface, neighbor.mac.0).load(Ordering::Relaxed) {
                follower.keep_fresh(neighbor.link, neighbor.address)?;
            }
        }
        self.notes.used.iter().for_each(|place| place.store(false, Ordering::Relaxed));
        self.notes.wanted.store(!doubtful.is_empty(), Ordering::Relaxed);
        Ok(())
    }
}

/// A port that notes whom it sends to, when that is wanted.
pub struct NotingPort {
    pub port: AnyPort,
    pub notes: Arc<Notes>,
}

impl Port<'static> for NotingPort {
    fn receive(&mut self, burst: &mut Burst<'static>, limit: usize) -> Result<usize, PortError> {
        self.port.receive(burst, limit).inspect_err(|error| self.notes.note_loss(error))
    }

    fn transmit(&mut self, burst: &mut Burst<'static>) -> Result<usize, PortError> {
        if self.notes.wanted.load(Ordering::Relaxed) {
            burst.iter().for_each(|packet| self.notes.note(packet));
        }
        self.port.transmit(burst).inspect_err(|error| self.notes.note_loss(error))
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

    fn has_unsent(&mut self) -> bool {
        self.port.has_unsent()
    }
}

impl WorkerPort for NotingPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }

    fn close(self) -> Vec<Packet<'static>> {
        self.port.close()
    }
}
