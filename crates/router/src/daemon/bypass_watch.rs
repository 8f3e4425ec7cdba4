//! Warns when the kernel gets rules that forwarded packets would not meet.

use std::time::Duration;

use super::event_log::EventLog;
use crate::bypass::{Bypassed, TakenOver};
use crate::events::EventKind;

const INTERVAL: Duration = Duration::from_secs(5);

/// Looks at the kernel's rules again and again; each is reported once while it is there.
pub struct BypassWatch {
    taken_over: TakenOver,
    known: Bypassed,
    /// When it looks next.
    at: Duration,
}

impl BypassWatch {
    pub fn new(taken_over: TakenOver) -> BypassWatch {
        BypassWatch { taken_over, known: Bypassed::new(), at: Duration::ZERO }
    }

    /// Sets whether packets leave without the queueing disciplines of interfaces.
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    pub fn leave_unqueued(&mut self, leave: bool) {
        self.taken_over.leaves_unqueued = leave;
    }

    /// Logs rules that are new, if it is time to look. Where the kernel does not list them, what is known stays.
    pub fn look(&mut self, now: Duration, log: &EventLog) {
        if now < self.at {
            return;
        }
        self.at = now + INTERVAL;
        let Ok(found) = self.taken_over.bypassed() else { return };
        for rule in found.iter().filter(|rule| !self.known.contains(rule)) {
            log.line(now, EventKind::Warning, &format!("forwarded packets do not meet these rules: {rule}"));
        }
        self.known = found;
    }
}
