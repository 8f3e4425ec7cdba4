//! What the router says while it runs, each line once: the framework's log, and what the kernel has.

use std::collections::BTreeMap;
use std::iter::repeat;
use std::sync::Arc;
use std::time::Duration;

use crate::follow::Statistics;
use crate::mirror::{Mirror, Report};
use fullview_table::fib::framework::{Event, RebuildReason, TableEvent};

use super::show::Counting;
use crate::log;
use crate::operations::inspect::{is_rebuild, total};
use crate::telemetry::events::{Events, Kind};

pub struct Story {
    events: Arc<Events>,
    /// Interfaces, and whether they were up.
    links: BTreeMap<String, bool>,
    /// Lines of the framework said so far: up to this moment, and how many of it.
    last: Duration,
    of_last: usize,
    /// Links that rules of policy routing concern.
    ruled: Vec<String>,
    statistics: Statistics,
    /// Frames that found no room, by interface, as said last, and when they were looked at.
    overruns: Vec<u64>,
    overruns_at: Duration,
}

/// It is said at most so often that frames found no room.
const OVERRUNS_EVERY: Duration = Duration::from_secs(10);

impl Story {
    pub fn new(events: Arc<Events>) -> Story {
        Story {
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

    pub fn begun(&self, now: Duration, report: &Report) {
        let Report { inet, inet6, .. } = report;
        let text = format!("the kernel has routes to {inet} IPv4 and {inet6} IPv6 prefixes; forwarding");
        self.line(now, Kind::Router, &text);
    }

    /// As the framework writes its own; remembered too.
    pub fn line(&self, now: Duration, kind: Kind, text: &str) {
        log::line(&format!("[{:.6}] {text}", now.as_secs_f64()));
        self.events.note(kind, text);
    }

    /// What came, went, or changed its state.
    fn links(&mut self, mirror: &Mirror) {
        let view = mirror.views().current();
        let now =
            view.parts().interfaces.iter().map(|interface| (interface.name.clone(), interface.up)).collect();
        let before = std::mem::replace(&mut self.links, now);
        for (name, up) in self.links.iter().filter(|(name, up)| before.get(*name) != Some(up)) {
            self.events.note(Kind::Link, format!("{name} is {}", if *up { "up" } else { "down" }));
        }
    }

    pub fn tell(&mut self, now: Duration, mirror: &mut Mirror) {
        self.framework(mirror);
        self.links(mirror);
        mirror.take_notes().iter().for_each(|note| self.line(now, Kind::Warning, note));
    }

    /// Says by which interfaces frames came in that found no room.
    pub fn tell_overruns(
        &mut self,
        now: Duration,
        mirror: &Mirror,
        counting: &dyn Counting,
    ) -> anyhow::Result<()> {
        if now.saturating_sub(self.overruns_at) < OVERRUNS_EVERY {
            return Ok(());
        }
        self.overruns_at = now;
        let counted = total(&counting.snapshots()?);
        let overruns = counted.interfaces.iter().map(|interface| interface.overruns).collect();
        let before = std::mem::replace(&mut self.overruns, overruns).into_iter().chain(repeat(0));
        let view = mirror.views().current();
        let since = self.overruns.iter().zip(before).map(|(after, before)| after.saturating_sub(before));
        for (interface, since) in view.parts().interfaces.iter().zip(since).filter(|(_, since)| *since > 0) {
            self.line(now, Kind::Warning, &format!("{}: no room for {since} frames", interface.name));
        }
        Ok(())
    }

    /// What is to be said of how the kernel is followed.
    pub fn tell_followed(&mut self, now: Duration, mirror: &Mirror, statistics: Statistics) {
        self.rules(now, mirror.report().ruled);
        if statistics.overflows > self.statistics.overflows {
            self.line(
                now,
                Kind::Resync,
                "the kernel dropped messages: everything is compared again, forwarding goes on; --netlink-buffer makes more room",
            );
        }
        if statistics.malformed > self.statistics.malformed {
            self.line(now, Kind::Warning, "a netlink message was not understood and is passed over");
        }
        self.statistics = statistics;
    }

    /// Said when other links are concerned than before.
    fn rules(&mut self, now: Duration, ruled: Vec<String>) {
        let but = if super::share::KERNEL_FORWARDS {
            "they are not followed: what comes in by these is left to the kernel"
        } else {
            "they are not followed: packets go by the main table or their VRF's"
        };
        if ruled == self.ruled {
            return;
        }
        let text = match &ruled[..] {
            [] => "rules of `ip rule` concern no packets any more".to_owned(),
            links => format!("rules of `ip rule` may concern packets of {}; {but}", links.join(", ")),
        };
        self.line(now, Kind::Warning, &text);
        self.ruled = ruled;
    }

    fn framework(&mut self, mirror: &Mirror) {
        let log = mirror.log();
        let said = |at: Duration| log.iter().filter(|entry| entry.at == at).count();
        let new = log.iter().filter(|entry| entry.at >= self.last);
        for entry in new.skip(self.of_last) {
            log::line(&entry.to_string());
            kind_of(&entry.event)
                .into_iter()
                .for_each(|kind| self.events.note(kind, entry.event.to_string()));
        }
        if let Some(last) = log.last() {
            (self.last, self.of_last) = (last.at, said(last.at));
        }
    }

    pub fn farewell(&self, statistics: Statistics) {
        let Statistics { events, overflows, interrupted, mended, .. } = statistics;
        log::line(&format!(
            "netlink: {events} messages, {overflows} overflows, {interrupted} disturbed dumps, {mended} mended"
        ));
    }
}

/// Which of the framework's events operators see: tables compiled, and algorithms that failed. A rebuild that an
/// algorithm's failure caused counts as that failure.
fn kind_of(event: &Event) -> Option<Kind> {
    let Event::Table { what, .. } = event else { return None };
    match what {
        TableEvent::RebuildScheduled(RebuildReason::BatchFailed | RebuildReason::AlgorithmError)
        | TableEvent::CompileFailed { .. }
        | TableEvent::SetupFailed { .. }
        | TableEvent::Banned { .. } => Some(Kind::Ban),
        _ if is_rebuild(event) => Some(Kind::Rebuild),
        _ => None,
    }
}
