//! The host stack of a single [`Worker`](fullview_plane::worker::Worker), driven by the worker itself.
//!
//! Several workers of one router would each have a neighbour cache and limits of their own, and would receive the
//! answers to each other's ARP requests. They share one host stack instead, through [`super::channel`].

use std::time::Duration;

use super::stack::HostStack;
use super::tx_queue::TxQueue;
use fullview_plane::forward::WayOut;
use fullview_plane::worker::{Rejected, SlowPath};

/// A host stack with a clock: a function that returns the time since an arbitrary moment and never goes back.
pub struct LocalHost<C> {
    host: HostStack,
    clock: C,
    tx_queue: TxQueue,
}

impl<C: FnMut() -> Duration> LocalHost<C> {
    /// Starts by announcing the router's addresses. The clock has to be the one that the host stack was made with.
    pub fn new(host: HostStack, clock: C) -> LocalHost<C> {
        let mut tx_queue = TxQueue::default();
        host.announce(&mut tx_queue.output);
        LocalHost { host, clock, tx_queue }
    }

    pub fn host(&self) -> &HostStack {
        &self.host
    }

    /// Frames dropped because too many waited, or because they were longer than a slot.
    pub fn frames_dropped(&self) -> u64 {
        self.tx_queue.frames_dropped()
    }
}

impl<C: FnMut() -> Duration> SlowPath for LocalHost<C> {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let now = (self.clock)();
        let Rejected { packets, filter, redirects, out, free, .. } = rejected;
        for packet in packets.iter() {
            let way = filter.map_or(WayOut::Any, |filter| filter.way_out(packet));
            self.host.handle(now, packet, way, &mut self.tx_queue.output);
        }
        redirects.iter().for_each(|candidate| self.host.redirect(now, candidate, &mut self.tx_queue.output));
        self.host.tick(now, &mut self.tx_queue.output);
        self.tx_queue.send(out, packets);
        self.tx_queue.send(out, free);
    }

    fn has_pending(&self) -> bool {
        self.tx_queue.has_pending()
    }
}
