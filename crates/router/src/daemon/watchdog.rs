//! Notices workers that hang, and has the service manager restart a router that hangs.

use std::mem;
use std::time::Duration;

use fullview_plane::report_time::ReportTime;

use super::control_plane::ControlPlane;
use crate::events::EventKind;
use crate::notify::Heartbeat;

const SILENT: &str = "a worker has begun no round for a second: it hangs, or has no core";
const GOES_ON: &str = "all workers begin rounds again";

/// Watches the rounds of workers. One that sleeps for lack of packets begins rounds too.
#[derive(Default)]
pub struct Watchdog {
    is_silent: bool,
    heartbeat: Option<Heartbeat>,
}

impl Watchdog {
    /// Tells a service manager from now on that the router works.
    pub fn tell(&mut self, heartbeat: Heartbeat) {
        self.heartbeat = Some(heartbeat);
    }

    /// After how long the service manager restarts the service, if it does.
    pub fn timeout(&self) -> Option<Duration> {
        self.heartbeat.as_ref().map(Heartbeat::timeout)
    }

    /// Logs when a worker falls silent, and when all go on; the service manager is told only while all do. `oldest_round` is when
    /// the last round of the most silent one began.
    pub fn end_turn(&mut self, oldest_round: Option<ReportTime>, plane: &ControlPlane) {
        let is_silent = oldest_round.is_some_and(|began| began.is_silence_until(ReportTime::coarse()));
        if is_silent != mem::replace(&mut self.is_silent, is_silent) {
            let (kind, text) =
                if is_silent { (EventKind::Warning, SILENT) } else { (EventKind::Router, GOES_ON) };
            plane.log.line(plane.now(), kind, text);
        }
        let beats = self.heartbeat.iter_mut().filter(|_| !is_silent);
        beats.for_each(|heartbeat| heartbeat.beat(plane.now()));
    }
}
