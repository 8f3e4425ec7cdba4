//! A whole router without a kernel: the forwarding path of one worker and the host stack, driven burst by burst.

use std::time::Duration;

use super::config::{HostConfig, HostConfigError};
use super::stack::HostStack;
use super::tx_queue::TxQueue;
use fullview_plane::burst::Burst;
use fullview_plane::forward::{Egress, Forwarder};

pub struct StandaloneRouter {
    forwarder: Forwarder,
    host: HostStack,
    tx_queue: TxQueue,
}

impl StandaloneRouter {
    /// # Errors
    /// A [`HostConfigError`] that says which parts of the configuration contradict each other.
    pub fn new(now: Duration, config: &HostConfig) -> Result<StandaloneRouter, HostConfigError> {
        let host = HostStack::new(now, config)?;
        let forwarder = Forwarder::new(host.reader());
        Ok(StandaloneRouter { forwarder, host, tx_queue: TxQueue::default() })
    }

    /// Queues the announcements of the router's addresses: see [`HostStack::announce`].
    pub fn announce(&mut self) {
        self.host.announce(&mut self.tx_queue.output);
    }

    /// Forwards the packets in `burst`, and answers those that cannot be forwarded. Slots that become free are added to
    /// `free`. The router's own frames take their slots from `free`, and wait if it has none. The router takes as many
    /// packets from `burst` as `free` has room for.
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
        for candidate in self.forwarder.redirect_candidates() {
            self.host.redirect(now, candidate, &mut self.tx_queue.output);
        }
        self.host.tick(now, &mut self.tx_queue.output);
        self.tx_queue.send(egress, free);
    }

    /// Whether none of the router's own frames waits for a slot.
    pub fn has_sent_all(&self) -> bool {
        self.tx_queue.is_empty()
    }

    /// When [`StandaloneRouter::process`] has work to do even if no packets arrive: at once, if frames wait for slots.
    pub fn next_deadline(&self) -> Option<Duration> {
        if self.has_sent_all() { self.host.next_deadline() } else { Some(Duration::ZERO) }
    }

    /// The router's own frames dropped because a queue was full, or because they were longer than a slot.
    pub fn frames_dropped(&self) -> u64 {
        self.tx_queue.frames_dropped()
    }

    pub fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    pub fn host(&self) -> &HostStack {
        &self.host
    }
}
