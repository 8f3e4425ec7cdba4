//! The stacks of everything on a core while a piece of work runs, sampled by perf-record(1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::attached::{Attached, Observed};
use crate::core_quality::CoreQuality;
use crate::core_tasks::CoreTasks;
use crate::error::ProfileError;
use crate::event::{Event, FREQUENCY};
use crate::recorder::{STACK, script};
use crate::script::{Lost, Sample, lost, samples};
use crate::stacks::Stacks;
use crate::symbols::Symbols;

/// perf has room for the samples of several seconds, so that it need not run beside the device and the generator. On all
/// cores of a machine there is one for each.
const ROOM: &str = "-m64M";
const ROOM_OF_EACH: &str = "-m16M";

/// What a device did on its core.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CoreProfile {
    pub core: usize,
    /// What was sampled.
    pub event: Event,
    /// Its stacks, below the names of its threads.
    pub stacks: Stacks,
    /// Whether they can be trusted.
    pub quality: CoreQuality,
}

/// Which core a profile shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfiledCore {
    /// This one.
    One(usize),
    /// The one on which the device is seen most, of all that the machine has.
    Busiest,
}

/// Makes profiles of one core.
pub struct CoreRecorder {
    event: Event,
    core: ProfiledCore,
    /// Where perf's files are until they are read.
    folder: PathBuf,
}

impl CoreRecorder {
    /// Observes this core; perf's files are in a folder below `folder` until they are read.
    pub fn new(core: ProfiledCore, folder: &Path) -> CoreRecorder {
        CoreRecorder { event: Event::best(), core, folder: folder.into() }
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
        let (observed, room) = match self.core {
            ProfiledCore::One(core) => (Observed::Core(core), ROOM),
            ProfiledCore::Busiest => (Observed::AllCores, ROOM_OF_EACH),
        };
        let options = ["-e", &self.event.name(), "-F", &frequency, &graph, room];
        let mut perf = Attached::start("record", observed, &options, &self.folder)?;
        let (done, took) = perf.during(work)?;
        let (mut samples, lost) = perf.end(|data| {
            let text = script(data)?;
            Ok((samples(&text)?, lost(&text)))
        })?;
        let core = self.shown(&samples, tasks);
        samples.retain(|sample| sample.core.is_none_or(|place| place == core));
        if samples.is_empty() {
            return Err(ProfileError::NoSamples(10.0 / f64::from(FREQUENCY)));
        }
        let stacks = Stacks::rooted(&samples, &symbols, |sample| tasks.device_thread(sample));
        let quality = CoreQuality::of(&samples, tasks, &stacks, took, lost_on(core, &lost));
        Ok((CoreProfile { core, event: self.event, stacks, quality }, done))
    }

    fn shown(&self, samples: &[Sample], tasks: &CoreTasks) -> usize {
        match self.core {
            ProfiledCore::One(core) => core,
            ProfiledCore::Busiest => busiest(samples, tasks),
        }
    }
}

/// The samples that were lost on this core, or perf does not say where.
fn lost_on(core: usize, lost: &[Lost]) -> u64 {
    lost.iter().filter(|lost| lost.core.is_none_or(|place| place == core)).map(|lost| lost.samples).sum()
}

/// The core with the most samples of the device; the first one if there are none.
fn busiest(samples: &[Sample], tasks: &CoreTasks) -> usize {
    let mut counts = BTreeMap::<usize, u64>::new();
    for sample in samples.iter().filter(|sample| tasks.device_thread(sample).is_some()) {
        *counts.entry(sample.core.unwrap_or(0)).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(core, count)| (*count, std::cmp::Reverse(*core)))
        .map_or(0, |(core, _)| core)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_core_is_that_of_the_device_and_not_of_others() {
        let tasks = CoreTasks { processes: vec![7], ..CoreTasks::default() };
        let sample =
            |process, core| Sample { name: "a".into(), process, thread: 1, core: Some(core), frames: vec![] };
        let samples = [sample(5, 0), sample(5, 0), sample(7, 2), sample(7, 1), sample(7, 2), sample(0, 0)];
        assert_eq!(busiest(&samples, &tasks), 2);
        assert_eq!(busiest(&samples[..2], &tasks), 0);
    }

    #[test]
    fn what_other_cores_lost_is_not_lost_on_this_one() {
        let lost = [(Some(0), 400), (Some(2), 20), (None, 1)];
        let lost = lost.map(|(core, samples)| Lost { core, samples });
        assert_eq!(lost_on(2, &lost), 21);
    }
}
