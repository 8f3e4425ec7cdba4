//! The stacks of everything on a core while a piece of work runs, sampled by perf-record(1).

use std::path::{Path, PathBuf};

use crate::attached::{Attached, Observed};
use crate::core_quality::CoreQuality;
use crate::core_tasks::CoreTasks;
use crate::error::ProfileError;
use crate::event::{Event, FREQUENCY};
use crate::recorder::{STACK, script};
use crate::script::{lost, samples};
use crate::stacks::Stacks;
use crate::symbols::Symbols;

/// perf has room for the samples of several seconds, so that it need not run beside the device and the generator.
const ROOM: &str = "-m64M";

/// What a device did on its core.
pub struct CoreProfile {
    /// Its stacks, below the names of its threads.
    pub stacks: Stacks,
    /// Whether they can be trusted.
    pub quality: CoreQuality,
}

/// Makes profiles of one core.
pub struct CoreRecorder {
    event: Event,
    core: usize,
    /// Where perf's files are until they are read.
    folder: PathBuf,
}

impl CoreRecorder {
    /// Observes this core; perf's files are in a folder below `folder` until they are read.
    pub fn new(core: usize, folder: &Path) -> CoreRecorder {
        CoreRecorder { event: Event::best(), core, folder: folder.into() }
    }

    /// What is sampled.
    pub fn event(&self) -> Event {
        self.event
    }

    /// Samples the core while `work` runs on another one. The second value is what `work` returned.
    ///
    /// # Errors
    /// Fails if perf does, or took no sample.
    pub fn record<T>(
        &self,
        tasks: &CoreTasks,
        work: impl FnOnce() -> T,
    ) -> Result<(CoreProfile, T), ProfileError> {
        let symbols = Symbols::of_one(&tasks.processes)?;
        let (frequency, graph) = (FREQUENCY.to_string(), format!("--call-graph=dwarf,{STACK}"));
        let options = ["-e", &self.event.name(), "-F", &frequency, &graph, ROOM];
        let mut perf = Attached::start("record", Observed::Core(self.core), &options, &self.folder)?;
        let (done, took) = perf.during(work)?;
        let (samples, lost) = perf.end(|data| {
            let text = script(data)?;
            Ok((samples(&text)?, lost(&text)))
        })?;
        if samples.is_empty() {
            return Err(ProfileError::NoSamples(10.0 / f64::from(FREQUENCY)));
        }
        let stacks = Stacks::rooted(&samples, &symbols, |sample| tasks.device_thread(sample));
        let quality = CoreQuality::of(&samples, tasks, &stacks, took, lost);
        Ok((CoreProfile { stacks, quality }, done))
    }
}
