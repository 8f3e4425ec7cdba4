//! What the router says while it runs, each line once: the framework's log, and what the kernel has.

use std::time::Duration;

use fullview_plane::kernel::follow::Statistics;
use fullview_plane::kernel::mirror::{Mirror, Report};

use crate::command::say;

#[derive(Default)]
pub struct Story {
    /// Lines of the framework said so far: up to this moment, and how many of it.
    last: Duration,
    of_last: usize,
    warned_of_rules: bool,
    statistics: Statistics,
}

impl Story {
    pub fn begun(&self, now: Duration, report: &Report) {
        let Report { inet, inet6, .. } = report;
        line(now, &format!("the kernel has routes to {inet} IPv4 and {inet6} IPv6 prefixes; forwarding"));
    }

    pub fn tell(&mut self, now: Duration, mirror: &mut Mirror, statistics: Statistics) {
        self.framework(mirror);
        mirror.take_notes().iter().for_each(|note| line(now, note));
        if mirror.report().has_rules && !self.warned_of_rules {
            self.warned_of_rules = true;
            line(
                now,
                "`ip rule` has rules of its own: they are not followed, packets go by the main table or their VRF's",
            );
        }
        if statistics.overflows > self.statistics.overflows {
            line(
                now,
                "the kernel dropped messages: everything is compared again, forwarding goes on; --netlink-buffer makes more room",
            );
        }
        if statistics.malformed > self.statistics.malformed {
            line(now, "a netlink message was not understood and is passed over");
        }
        self.statistics = statistics;
    }

    fn framework(&mut self, mirror: &Mirror) {
        let log = mirror.log();
        let said = |at: Duration| log.iter().filter(|entry| entry.at == at).count();
        let new = log.iter().filter(|entry| entry.at >= self.last);
        new.skip(self.of_last).for_each(|entry| say(&entry.to_string()));
        if let Some(last) = log.last() {
            (self.last, self.of_last) = (last.at, said(last.at));
        }
    }

    pub fn farewell(&self, statistics: Statistics) {
        let Statistics { events, overflows, interrupted, mended, .. } = statistics;
        say(&format!(
            "netlink: {events} messages, {overflows} overflows, {interrupted} disturbed dumps, {mended} mended"
        ));
    }
}

/// As the framework writes its own.
fn line(now: Duration, text: &str) {
    say(&format!("[{:.6}] {text}", now.as_secs_f64()));
}
