//! The host behind a [`Worker`](fullview_plane::worker::Worker): it answers what the worker's loop rejects.
//!
//! Such a host belongs to one worker. Several workers of one router would each have a cache of neighbours and limits of
//! their own, and would answer each other's ARP: they have one host for all of them, by [`super::relay`].

use std::time::Duration;

use super::Host;
use super::outbox::Outbox;
use fullview_plane::worker::{Rejected, SlowPath};

/// A host with a clock: a function of the time since whenever, which never goes back.
pub struct Answers<C> {
    host: Host,
    clock: C,
    outbox: Outbox,
}

impl<C: FnMut() -> Duration> Answers<C> {
    /// A host that begins by saying whose addresses these are now. The clock has to be the one it was made by.
    pub fn new(host: Host, clock: C) -> Answers<C> {
        let mut outbox = Outbox::default();
        host.announce(&mut outbox.output);
        Answers { host, clock, outbox }
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Frames that found no room, too long ones among them.
    pub fn lost(&self) -> u64 {
        self.outbox.lost()
    }
}

impl<C: FnMut() -> Duration> SlowPath for Answers<C> {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let now = (self.clock)();
        let Rejected { packets, redirects, out, free, .. } = rejected;
        packets.iter().for_each(|packet| self.host.handle(now, packet, &mut self.outbox.output));
        redirects.iter().for_each(|detour| self.host.redirect(now, detour, &mut self.outbox.output));
        self.host.tick(now, &mut self.outbox.output);
        self.outbox.send(out, packets);
        self.outbox.send(out, free);
    }
}
