//! A whole router without a kernel: the forwarding path of one worker, and the host behind it.

use std::collections::VecDeque;
use std::time::Duration;

use super::Host;
use super::config::{Config, ConfigError};
use super::output::{OutFrame, Output};
use crate::burst::Burst;
use crate::forward::{Egress, Forwarder};
use crate::verdict::Verdict;

/// Frames of the host that wait for a free slot, at most: more than that are lost, as on a full link.
const PENDING: usize = 4096;

/// A router of one worker.
pub struct Router {
    forwarder: Forwarder,
    host: Host,
    output: Output,
    pending: VecDeque<OutFrame>,
    lost: u64,
}

impl Router {
    /// A router as it is configured.
    ///
    /// # Errors
    /// A [`ConfigError`] that says what does not fit together.
    pub fn new(now: Duration, config: &Config) -> Result<Router, ConfigError> {
        let host = Host::new(now, config)?;
        let forwarder = Forwarder::new(host.reader());
        Ok(Router { forwarder, host, output: Output::default(), pending: VecDeque::new(), lost: 0 })
    }

    /// Says what has to be said first, when there are slots for it: see [`Host::announce`].
    pub fn announce(&mut self) {
        self.host.announce(&mut self.output);
        self.queue();
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
            self.host.handle(now, packet, &mut self.output);
        }
        for detour in self.forwarder.detours() {
            self.host.redirect(now, detour, &mut self.output);
        }
        self.tick(now, egress, free);
    }

    /// Does what is due, and sends what waits for slots.
    pub fn tick<'a>(&mut self, now: Duration, egress: &mut (impl Egress<'a> + ?Sized), free: &mut Burst<'a>) {
        self.host.tick(now, &mut self.output);
        self.queue();
        while !self.pending.is_empty() {
            let Some(slot) = free.pop() else { return };
            let Some(frame) = self.pending.pop_front() else { return };
            slot.port = frame.port;
            slot.verdict = Verdict::Forward;
            let refused =
                if slot.set_frame(&frame.bytes) { egress.send(frame.port, slot).err() } else { Some(slot) };
            if let Some(slot) = refused {
                self.lost += 1;
                free.fill([slot].into_iter());
            }
        }
    }

    fn queue(&mut self) {
        let room = PENDING - self.pending.len();
        self.lost += self.output.frames.len().saturating_sub(room) as u64;
        self.pending.extend(self.output.frames.drain(..).take(room));
    }

    /// When [`Router::tick`] has something to do next; at once, if frames wait for slots.
    pub fn next_deadline(&self) -> Option<Duration> {
        if self.pending.is_empty() { self.host.next_deadline() } else { Some(Duration::ZERO) }
    }

    /// Frames of the host that found no room, too long ones among them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The forwarding path.
    pub fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    /// The host behind it.
    pub fn host(&self) -> &Host {
        &self.host
    }
}
