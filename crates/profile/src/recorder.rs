//! The stacks of a piece of work, sampled by perf-record(1).

use std::path::Path;
use std::process::{Command, Stdio};

use crate::attached::{Attached, Observed};
use crate::error::ProfileError;
use crate::event::{Event, FREQUENCY};
use crate::quality::Quality;
use crate::script::{lost, samples};
use crate::stacks::Stacks;
use crate::symbols::Symbols;

/// Bytes of the stack that come with a sample, from which callers are found. The stacks of the work are not deep, but without
/// optimization functions that use vectors have frames of kilobytes.
pub const STACK: u32 = 16_384;

/// Stacks of the work, and what speaks for and against them.
pub struct Profile {
    /// The stacks.
    pub stacks: Stacks,
    /// Whether they can be trusted.
    pub quality: Quality,
}

/// Makes profiles of this program.
pub struct Recorder {
    event: Event,
    symbols: Symbols,
}

impl Recorder {
    /// Reads the symbols of this program, for all profiles that follow.
    ///
    /// # Errors
    /// Fails if the program's file cannot be read.
    pub fn new(event: Event) -> Result<Recorder, ProfileError> {
        Ok(Recorder { event, symbols: Symbols::of_this_program()? })
    }

    /// What is sampled.
    pub fn event(&self) -> Event {
        self.event
    }

    /// Samples while `work` runs on this thread, and makes the profile. The second value is what `work` returned.
    ///
    /// # Errors
    /// Fails if perf does, or took no sample.
    pub fn record<T>(&self, work: impl FnOnce() -> T) -> Result<(Profile, T), ProfileError> {
        let (frequency, graph) = (FREQUENCY.to_string(), format!("--call-graph=dwarf,{STACK}"));
        // perf notes the core of a sample by itself only where it observes cores, and `script` asks for it.
        let options = ["-e", &self.event.name(), "-F", &frequency, &graph, "--sample-cpu"];
        let mut perf = Attached::start("record", Observed::ThisProcess, &options, &std::env::temp_dir())?;
        let (done, took) = perf.during(work)?;
        let (samples, lost) = perf.end(|data| {
            let text = script(data)?;
            Ok((samples(&text)?, lost(&text)))
        })?;
        let stacks = Stacks::of(&samples, &self.symbols);
        if samples.is_empty() {
            return Err(ProfileError::NoSamples(10.0 / f64::from(FREQUENCY)));
        }
        let lost = lost.iter().map(|lost| lost.samples).sum();
        let quality = Quality::of(&samples, &stacks, took, lost);
        Ok((Profile { stacks, quality }, done))
    }
}

/// perf's text of the samples. Inlined functions are found here, by a library that keeps the symbols in memory.
pub fn script(data: &Path) -> Result<String, ProfileError> {
    let output = Command::new("perf")
        .args(["script", "--no-inline", "--no-demangle", "--show-lost-events"])
        .args(["-F", "comm,pid,tid,cpu,ip,sym,dso", "-i"])
        .arg(data)
        .stdin(Stdio::null())
        .output()
        .map_err(ProfileError::NoPerf)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ProfileError::Perf { command: "script", said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
