//! One run of pkt-gen on a node: what it sent, and when it began.

use std::time::Instant;

use super::error::RemoteError;
use super::pkt_gen::{CLOCK_SECONDS, PktGenLine, PktGenSum, clock};
use super::ssh::SshHost;
use super::timed_command::TimedCommand;

/// With a limited rate it begins with the second after the next one, by the clock of its host.
const BEGINS_AFTER: f64 = 2.0;

/// A line that is about to run.
pub struct CommandRun<'b> {
    pub host: &'b SshHost,
    /// With all values.
    pub line: String,
    /// What it may take.
    pub seconds: u64,
    /// From when moments are counted.
    pub origin: Instant,
}

/// What a run did.
pub struct FinishedRun {
    pub sum: PktGenSum,
    /// When the first packet was sent with a limited rate, in seconds by the clock here; nothing if it did not say when it was ready.
    pub began: Option<f64>,
}

/// How far the clock here is ahead of that of a host, modulo 1000 seconds. A line takes some time to come, so the least difference
/// is the best.
#[derive(Default)]
struct HostClock {
    ahead: Option<f64>,
}

impl CommandRun<'_> {
    pub fn run(self) -> Result<FinishedRun, RemoteError> {
        let (mut host_clock, mut ready) = (HostClock::default(), None);
        let end = TimedCommand::start(self.host, &self.line, self.seconds)?.wait_watching(&mut |line| {
            let here = self.origin.elapsed().as_secs_f64();
            clock(line).into_iter().for_each(|there| host_clock.add(here, there));
            if let PktGenLine::Ready(there) = PktGenLine::of(line) {
                ready = Some(there);
            }
        })?;
        let sum = PktGenSum::of(&end.text).filter(|sum| sum.packets > 0 && sum.seconds > 0.0);
        let failure = end.failure().or_else(|| sum.is_none().then(|| end.without("what pkt-gen sent")));
        match (sum, failure) {
            (Some(sum), None) => {
                Ok(FinishedRun { sum, began: ready.and_then(|ready| host_clock.began(ready)) })
            }
            (_, failure) => {
                let (node, failure) = (self.host.node.clone(), failure.unwrap_or_default());
                Err(RemoteError::TrafficCommand { node, command: self.line, failure })
            }
        }
    }
}

impl HostClock {
    fn add(&mut self, here: f64, there: f64) {
        let found = here - there;
        // The clock starts again at 0 after 1000 seconds.
        let near = |ahead: f64| found + ((ahead - found) / CLOCK_SECONDS).round() * CLOCK_SECONDS;
        self.ahead = Some(self.ahead.map_or(found, |ahead| ahead.min(near(ahead))));
    }

    fn began(&self, ready: f64) -> Option<f64> {
        Some(ready.floor() + BEGINS_AFTER + self.ahead?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_came_fastest_tells_the_clock() {
        let mut clock = HostClock::default();
        for (here, there) in [(10.050, 998.0), (11.001, 999.0), (12.500, 0.0), (13.200, 1.0)] {
            clock.add(here, there);
        }
        let began = clock.began(998.7).unwrap();
        assert!((began - 12.001).abs() < 1e-9, "{began}");
    }
}
