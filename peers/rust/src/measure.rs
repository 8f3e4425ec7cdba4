//! One family's structures and streams: building, verifying, timing.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::contestants::{Contested, Library, Lookups};
use crate::heap;
use crate::inputs::{self, Route, Stream};

/// Keys between two readings of the clock, as in the other peers.
const SEGMENT: usize = 65_536;
/// Answers are written to a buffer that stays in the first-level cache.
const ROOM: usize = 256;

/// Each call looks up one key.
const BATCH: &str = ":1";

/// A library whose structure has been built from the table.
struct Entry<A> {
    name: String,
    lookups: Box<dyn Lookups<A>>,
}

/// The match of one family.
pub struct Match<A> {
    entries: Vec<Entry<A>>,
    streams: Vec<Stream<A>>,
    report: Report,
}

/// What the ready line says about a family.
#[derive(Default)]
pub struct Report {
    pub contestants: Vec<Value>,
    pub streams: Vec<Value>,
    pub facts: Vec<Value>,
    pub bad: Vec<Value>,
    pub refused: Vec<Value>,
}

impl<A: Contested> Match<A> {
    /// Builds the contestants that are `wanted` for the streams in the folder, and verifies every answer.
    pub fn prepare(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let mut prepared =
            Match { entries: Vec::new(), streams: inputs::streams::<A>(folder)?, report: Report::default() };
        if prepared.streams.is_empty() {
            return Ok(prepared);
        }
        let routes = inputs::routes::<A>(folder)?;
        for library in A::LIBRARIES.iter().filter(|(name, _)| wanted(&format!("{name}{BATCH}"))) {
            prepared.build(library, &routes);
        }
        prepared.verify();
        Ok(prepared)
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    fn build(&mut self, (name, build): &Library<A>, routes: &[Route<A>]) {
        let name = format!("{name}{BATCH}");
        let (before, started) = (heap::live(), Instant::now());
        match build(routes) {
            Ok(lookups) => {
                let seconds = started.elapsed().as_secs_f64();
                let bytes = heap::live().saturating_sub(before);
                self.report.facts.push(json!({"contestant": name, "bytes": bytes, "build_s": seconds}));
                self.report.contestants.push(name.clone().into());
                self.entries.push(Entry { name, lookups });
            }
            Err(why) => self.report.refused.push(json!({"contestant": name, "why": why})),
        }
    }

    fn verify(&mut self) {
        for stream in &self.streams {
            self.report.streams.push(json!({"stream": stream.name, "family": A::FAMILY}));
            for entry in &self.entries {
                self.report.bad.extend(stream.wrong(entry));
            }
        }
    }

    /// Takes a sample: a tenth of its length untimed, because the contestant before filled the caches, then the timed
    /// part. `None` if this family has no such contestant.
    pub fn sample(&self, contestant: &str, stream: &str, seconds: f64) -> Option<Result<Value>> {
        let entry = self.entries.iter().find(|entry| entry.name == contestant)?;
        Some(self.sample_of(entry, stream, seconds))
    }

    fn sample_of(&self, entry: &Entry<A>, stream: &str, seconds: f64) -> Result<Value> {
        let stream = self.streams.iter().find(|known| known.name == stream);
        let stream =
            stream.context("no such stream of this contestant's family; the ready line lists them")?;
        let is_bad = |bad: &Value| bad["contestant"] == *entry.name && bad["stream"] == *stream.name;
        anyhow::ensure!(
            !self.report.bad.iter().any(is_bad),
            "this contestant answers wrongly and is not timed"
        );
        stream.timed(&*entry.lookups, seconds / 10.0);
        let (mlps, on_cpu) = stream.timed(&*entry.lookups, seconds);
        Ok(
            json!({"peer": entry.name.trim_end_matches(BATCH), "family": A::FAMILY, "stream": stream.name, "batch": 1,
            "mlps": mlps, "bad": 0, "on_cpu": on_cpu}),
        )
    }
}

impl<A: Contested> Stream<A> {
    /// Returns how many answers are wrong, if any.
    fn wrong(&self, entry: &Entry<A>) -> Option<Value> {
        let mut answers = vec![u16::MAX; self.keys.len()];
        entry.lookups.look_up(&self.keys, &mut answers);
        let wrong = answers.iter().zip(&self.answers).map(|(answer, expected)| answer != expected);
        let wrong: Vec<usize> = wrong.enumerate().filter_map(|(key, wrong)| wrong.then_some(key)).collect();
        let first = *wrong.first()?;
        let example =
            format!("{}: expected {}, answered {}", self.keys[first], self.answers[first], answers[first]);
        Some(json!({"contestant": entry.name, "family": A::FAMILY, "stream": self.name, "bad": wrong.len(),
            "of": self.keys.len(), "first": example}))
    }

    /// Million lookups per second, and the share of the time during which this thread had the core.
    fn timed(&self, lookups: &dyn Lookups<A>, seconds: f64) -> (f64, f64) {
        let length = Duration::from_secs_f64(seconds);
        let mut answers = [0; ROOM];
        let (ran, started, mut done) = (on_core(), Instant::now(), 0);
        for segment in self.keys.chunks(SEGMENT).cycle() {
            for keys in segment.chunks(ROOM) {
                lookups.look_up(keys, &mut answers);
                black_box(&mut answers);
            }
            done += segment.len();
            if started.elapsed() >= length {
                break;
            }
        }
        let elapsed = started.elapsed().as_secs_f64();
        (done as f64 / elapsed * 1e-6, ((on_core() - ran) / elapsed).min(1.0))
    }
}

/// The seconds during which this thread has had a core.
fn on_core() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
