//! The host behind a [`Worker`](fullview_plane::worker::Worker): it answers what the worker's loop rejects.
//!
//! Such a host belongs to one worker. Several workers of one router would each have a cache of neighbours and limits of
//! their own, and would answer each other's ARP: they have one host for all of them, by [`super::channel`].

use std::time::Duration;

use super::HostStack;
use super::tx_queue::TxQueue;
use fullview_plane::worker::{Rejected, SlowPath};

/// A host with a clock: a function of the time since whenever, which never goes back.
pub struct HostDriver<C> {
    host: HostStack,
    clock: C,
    tx_queue: TxQueue,
}

impl<C: FnMut() -> Duration> HostDriver<C> {
    /// A host that begins by saying whose addresses these are now. The clock has to be the one it was made by.
    pub fn new(host: HostStack, clock: C) -> HostDriver<C> {
        let mut tx_queue = TxQueue::default();
        host.announce(&mut tx_queue.output);
        HostDriver { host, clock, tx_queue }
    }

    /// The host.
    pub fn host(&self) -> &HostStack {
        &self.host
    }

    /// Frames that found no room, too long ones among them.
    pub fn frames_dropped(&self) -> u64 {
        self.tx_queue.frames_dropped()
    }
}

impl<C: FnMut() -> Duration> SlowPath for HostDriver<C> {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let now = (self.clock)();
        let Rejected { packets, redirects, out, free, .. } = rejected;
        packets.iter().for_each(|packet| self.host.handle(now, packet, &mut self.tx_queue.output));
        redirects.iter().for_each(|detour| self.host.redirect(now, detour, &mut self.tx_queue.output));
        self.host.tick(now, &mut self.tx_queue.output);
        self.tx_queue.send(out, packets);
        self.tx_queue.send(out, free);
    }
}
