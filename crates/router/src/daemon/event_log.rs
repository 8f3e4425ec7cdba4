//! The log of a running router: each change of links, tables and rules is logged once, and recent events are kept for
//! `fullview show events`.

use std::collections::BTreeMap;
use std::iter::repeat;
use std::sync::Arc;
use std::time::Duration;

use fullview_table::fib::framework::{Event, RebuildReason, TableEvent};

use crate::follow::Statistics;
use crate::mirror::Mirror;

use super::counts::{PathCounts, total};
use super::error::DaemonError;
use crate::events::{EventKind, RecentEvents};
use crate::log::{self, LogLevel};

/// Remembers what was logged, so that only changes are.
pub struct EventLog {
    events: Arc<RecentEvents>,
    /// Whether each interface was up, by name.
    links: BTreeMap<String, bool>,
    /// The time of the framework's last entry that was logged, and how many entries of that time were.
    last: Duration,
    of_last: usize,
    /// The names of links with packets that rules of policy routing leave to the kernel.
    ruled: Vec<String>,
    statistics: Statistics,
    /// Overruns of each interface when they were last looked at, and the time of that look.
    overruns: Vec<u64>,
    overruns_at: Duration,
}

/// Overruns are logged at most this often.
const OVERRUN_INTERVAL: Duration = Duration::from_secs(10);

impl EventLog {
    pub fn new(events: Arc<RecentEvents>) -> EventLog {
        EventLog {
            events,
            links: BTreeMap::new(),
            last: Duration::ZERO,
            of_last: 0,
            ruled: Vec::new(),
            statistics: Statistics::default(),
            overruns: Vec::new(),
            overruns_at: Duration::ZERO,
        }
    }

    /// Logs a line with its time, as the framework's lines have it, and keeps it as an event.
    pub fn line(&self, now: Duration, kind: EventKind, text: &str) {
        let level = if kind == EventKind::Warning { LogLevel::Warning } else { LogLevel::Notice };
        log::at(level, &format!("[{:.6}] {text}", now.as_secs_f64()));
        self.events.record(kind, text);
    }

    /// Keeps an event for each interface that is new, or went up or down.
    fn record_links(&mut self, mirror: &Mirror) {
        let view = mirror.views().current();
        let now =
            view.parts().interfaces.iter().map(|interface| (interface.name.clone(), interface.up)).collect();
        let before = std::mem::replace(&mut self.links, now);
        for (name, up) in self.links.iter().filter(|(name, up)| before.get(*name) != Some(up)) {
            self.events.record(EventKind::Link, format!("{name} is {}", if *up { "up" } else { "down" }));
        }
    }

    /// Records what changed in the mirror since the last call.
    pub fn record(&mut self, now: Duration, mirror: &mut Mirror) {
        self.record_framework(mirror);
        self.record_links(mirror);
        mirror.take_warnings().iter().for_each(|note| self.line(now, EventKind::Warning, note));
    }

    /// Logs, every ten seconds at most, the interfaces whose receive ring had no room for frames.
    pub fn record_overruns(
        &mut self,
        now: Duration,
        mirror: &Mirror,
        counts: &dyn PathCounts,
    ) -> Result<(), DaemonError> {
        if now.saturating_sub(self.overruns_at) < OVERRUN_INTERVAL {
            return Ok(());
        }
        self.overruns_at = now;
        let counted = total(&counts.snapshots()?);
        let overruns = counted.interfaces.iter().map(|interface| interface.overruns).collect();
        let before = std::mem::replace(&mut self.overruns, overruns).into_iter().chain(repeat(0));
        let view = mirror.views().current();
        let since = self.overruns.iter().zip(before).map(|(after, before)| after.saturating_sub(before));
        for (interface, since) in view.parts().interfaces.iter().zip(since).filter(|(_, since)| *since > 0) {
            self.line(now, EventKind::Warning, &format!("{}: no room for {since} frames", interface.name));
        }
        Ok(())
    }

    /// Records rules of policy routing, and messages that the kernel dropped or that were malformed.
    pub fn record_following(&mut self, now: Duration, mirror: &Mirror, statistics: Statistics) {
        self.record_rules(now, mirror.report().ruled);
        if statistics.overflows > self.statistics.overflows {
            self.line(
                now,
                EventKind::Resync,
                "the kernel dropped messages: everything is compared again, and forwarding goes on; --netlink-buffer gives more room",
            );
        }
        if statistics.malformed > self.statistics.malformed {
            self.line(now, EventKind::Warning, "a netlink message is malformed and was ignored");
        }
        self.statistics = statistics;
    }

    /// Logs the links with packets that rules leave to the kernel, if they are others than before.
    fn record_rules(&mut self, now: Duration, ruled: Vec<String>) {
        let consequence = if super::kernel_split::KERNEL_FORWARDS {
            "the router does not apply them: it leaves those packets to the kernel"
        } else {
            "the router does not apply them: it looks packets up in the main table, or in their VRF's"
        };
        if ruled == self.ruled {
            return;
        }
        let text = match &ruled[..] {
            [] => "the router applies all rules of `ip rule` that concern its packets".to_owned(),
            links => {
                format!("some rules of `ip rule` may concern packets of {}; {consequence}", links.join(", "))
            }
        };
        self.line(now, EventKind::Warning, &text);
        self.ruled = ruled;
    }

    /// Logs the entries that the framework added to its log.
    fn record_framework(&mut self, mirror: &Mirror) {
        let log = mirror.log();
        let count_at = |at: Duration| log.iter().filter(|entry| entry.at == at).count();
        let new = log.iter().filter(|entry| entry.at >= self.last);
        for entry in new.skip(self.of_last) {
            let kind = kind_of(&entry.event);
            let level = if kind == Some(EventKind::Ban) { LogLevel::Warning } else { LogLevel::Debug };
            log::at(level, &entry.to_string());
            kind.into_iter().for_each(|kind| self.events.record(kind, entry.event.to_string()));
        }
        if let Some(last) = log.last() {
            (self.last, self.of_last) = (last.at, count_at(last.at));
        }
    }

    /// Logs what netlink carried, as the router ends.
    pub fn summary(&self, statistics: Statistics) {
        let Statistics { events, overflows, interrupted, repaired, .. } = statistics;
        log::line(&format!(
            "netlink: {events} messages, {overflows} overflows, {interrupted} disturbed dumps, {repaired} corrections"
        ));
    }
}

/// The kind of event that operators see for an event of the framework: a table that another algorithm serves, or an algorithm
/// that failed. A rebuild that an algorithm's failure caused counts as that failure.
fn kind_of(event: &Event) -> Option<EventKind> {
    let Event::Table { what, .. } = event else { return None };
    match what {
        TableEvent::RebuildScheduled(RebuildReason::BatchFailed | RebuildReason::AlgorithmError)
        | TableEvent::CompileFailed { .. }
        | TableEvent::SetupFailed { .. }
        | TableEvent::Banned { .. } => Some(EventKind::Ban),
        TableEvent::Switched { .. } => Some(EventKind::Rebuild),
        _ => None,
    }
}

/// Whether an event of the framework concerns a table that is compiled again.
pub fn is_rebuild(event: &Event) -> bool {
    let Event::Table { what, .. } = event else { return false };
    matches!(
        what,
        TableEvent::RebuildScheduled(_)
            | TableEvent::SyncRebuild
            | TableEvent::Switched { .. }
            | TableEvent::Stale { .. }
    )
}
