//! A whole router without a kernel, driven burst by burst: the forwarding path of one worker, and the host behind it.

use std::time::Duration;

use super::HostStack;
use super::config::{HostConfig, HostConfigError};
use super::tx_queue::TxQueue;
use fullview_plane::burst::Burst;
use fullview_plane::forward::{Egress, Forwarder};

/// A router of one worker.
pub struct StandaloneRouter {
    forwarder: Forwarder,
    host: HostStack,
    tx_queue: TxQueue,
}

impl StandaloneRouter {
    /// A router as it is configured.
    ///
    /// # Errors
    /// A [`HostConfigError`] that says what does not fit together.
    pub fn new(now: Duration, config: &HostConfig) -> Result<StandaloneRouter, HostConfigError> {
        let host = HostStack::new(now, config)?;
        let forwarder = Forwarder::new(host.reader());
        Ok(StandaloneRouter { forwarder, host, tx_queue: TxQueue::default() })
    }

    /// Says what has to be said first, when there are slots for it: see [`HostStack::announce`].
    pub fn announce(&mut self) {
        self.host.announce(&mut self.tx_queue.output);
    }

    /// Forwards what is in `burst`, and answers what cannot be forwarded. Slots that are free afterwards are added to
    /// `free`; the router's own frames take theirs from there, and wait where there are none. As many packets are taken
    /// from `burst` as `free` has room for.
    pub fn process<'a>(
        &mut self,
        now: Duration,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        free: &mut Burst<'a>,
    ) {
        let before = free.len();
        self.forwarder.process(burst, egress, free);
        for packet in &free[before..] {
            self.host.handle(now, packet, &mut self.tx_queue.output);
        }
        for detour in self.forwarder.redirect_candidates() {
            self.host.redirect(now, detour, &mut self.tx_queue.output);
        }
        self.host.tick(now, &mut self.tx_queue.output);
        self.tx_queue.send(egress, free);
    }

    /// Whether none of the router's own frames waits for a slot.
    pub fn has_sent_all(&self) -> bool {
        self.tx_queue.is_empty()
    }

    /// When [`StandaloneRouter::process`] has something to do next, whether packets come or not: at once, if frames wait for
    /// slots.
    pub fn next_deadline(&self) -> Option<Duration> {
        if self.has_sent_all() { self.host.next_deadline() } else { Some(Duration::ZERO) }
    }

    /// Frames of the host that found no room, too long ones among them.
    pub fn frames_dropped(&self) -> u64 {
        self.tx_queue.frames_dropped()
    }

    /// The forwarding path.
    pub fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    /// The host behind it.
    pub fn host(&self) -> &HostStack {
        &self.host
    }
}
