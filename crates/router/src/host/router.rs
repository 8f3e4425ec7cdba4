//! A whole router without a kernel, driven burst by burst: the forwarding path of one worker, and the host behind it.

use std::time::Duration;

use super::Host;
use super::config::{Config, ConfigError};
use super::outbox::Outbox;
use fullview_plane::burst::Burst;
use fullview_plane::forward::{Egress, Forwarder};

/// A router of one worker.
pub struct Router {
    forwarder: Forwarder,
    host: Host,
    outbox: Outbox,
}

impl Router {
    /// A router as it is configured.
    ///
    /// # Errors
    /// A [`ConfigError`] that says what does not fit together.
    pub fn new(now: Duration, config: &Config) -> Result<Router, ConfigError> {
        let host = Host::new(now, config)?;
        let forwarder = Forwarder::new(host.reader());
        Ok(Router { forwarder, host, outbox: Outbox::default() })
    }

    /// Says what has to be said first, when there are slots for it: see [`Host::announce`].
    pub fn announce(&mut self) {
        self.host.announce(&mut self.outbox.output);
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
            self.host.handle(now, packet, &mut self.outbox.output);
        }
        for detour in self.forwarder.redirect_candidates() {
            self.host.redirect(now, detour, &mut self.outbox.output);
        }
        self.host.tick(now, &mut self.outbox.output);
        self.outbox.send(egress, free);
    }

    /// Whether none of the router's own frames waits for a slot.
    pub fn has_said_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// When [`Router::process`] has something to do next, whether packets come or not: at once, if frames wait for
    /// slots.
    pub fn next_deadline(&self) -> Option<Duration> {
        if self.has_said_all() { self.host.next_deadline() } else { Some(Duration::ZERO) }
    }

    /// Frames of the host that found no room, too long ones among them.
    pub fn lost(&self) -> u64 {
        self.outbox.lost()
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
