//! Notices workers that hang.

use std::mem;

use fullview_plane::report_time::ReportTime;

use super::control_plane::ControlPlane;
use crate::events::EventKind;

const SILENT: &str = "a worker has begun no round for a second: it hangs, or has no core";
const GOES_ON: &str = "all workers begin rounds again";

/// Watches the rounds of workers. One that sleeps for lack of packets begins rounds too.
#[derive(Default)]
pub struct Watchdog {
    is_silent: bool,
}

impl Watchdog {
    /// Logs when a worker falls silent, and when all go on. `oldest_round` is when the last round of the most silent one began.
    pub fn end_turn(&mut self, oldest_round: Option<ReportTime>, plane: &ControlPlane) {
        let is_silent = oldest_round.is_some_and(|began| began.is_silence_until(ReportTime::coarse()));
        if is_silent != mem::replace(&mut self.is_silent, is_silent) {
            let (kind, text) =
                if is_silent { (EventKind::Warning, SILENT) } else { (EventKind::Router, GOES_ON) };
            plane.log.line(plane.now(), kind, text);
        }
    }
}
