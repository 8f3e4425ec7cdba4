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
const SEGMENT: usize = 4096;
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

    /// Runs a lead-in that does not count and a slice that does. `None` if this family has no such contestant.
    pub fn slice(&self, contestant: &str, stream: &str, times: [Duration; 2]) -> Option<Result<Value>> {
        let entry = self.entries.iter().find(|entry| entry.name == contestant)?;
        Some(self.slice_of(entry, stream, times))
    }

    fn slice_of(&self, entry: &Entry<A>, stream: &str, [lead_in, length]: [Duration; 2]) -> Result<Value> {
        let stream = self.streams.iter().find(|known| known.name == stream);
        let stream =
            stream.context("no such stream of this contestant's family; the ready line lists them")?;
        let is_bad = |bad: &Value| bad["contestant"] == *entry.name && bad["stream"] == *stream.name;
        anyhow::ensure!(
            !self.report.bad.iter().any(is_bad),
            "this contestant answers wrongly and is not timed"
        );
        if !lead_in.is_zero() {
            stream.timed(&*entry.lookups, lead_in);
        }
        Ok(stream.timed(&*entry.lookups, length))
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

    /// Looks keys up from where the stream was left, for at least that long.
    fn timed(&self, lookups: &dyn Lookups<A>, length: Duration) -> Value {
        let mut answers = [0; ROOM];
        let (ran, started, mut done) = (on_core(), Instant::now(), 0);
        let time = loop {
            let at = self.at.get();
            let segment = &self.keys[at..self.keys.len().min(at + SEGMENT)];
            for keys in segment.chunks(ROOM) {
                lookups.look_up(keys, &mut answers);
                black_box(&mut answers);
            }
            done += segment.len();
            self.at.set(if at + segment.len() == self.keys.len() { 0 } else { at + segment.len() });
            if started.elapsed() >= length {
                break started.elapsed();
            }
        };
        let lost = time.saturating_sub(on_core().saturating_sub(ran));
        json!({"counted": done, "offered": done, "time_ns": time.as_nanos() as u64,
            "lost_core_ns": lost.as_nanos() as u64})
    }
}

/// The time during which this thread has had a core.
fn on_core() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
