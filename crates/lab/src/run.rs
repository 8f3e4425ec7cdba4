//! Runs a campaign: panel after panel, until the experiment's number of blocks is made or every comparison is decided.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::archive::Archive;
use crate::decision::{Decision, looks};
use crate::error::LabError;
use crate::experiment::{Experiment, Runs, Settings};
use crate::host::Provenance;
use crate::observations::Observations;
use crate::panel::Bench;
use crate::panel_run::PanelRun;
use crate::progress::{PanelStart, Progress};
use crate::schedule::{NextPanel, Schedule, repeats};
use crate::stats::Looks;

/// How a campaign ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every panel of the plan was made, or every comparison is decided, or a limit of the experiment was reached.
    Complete,
    /// The campaign was stopped. The panels made are in the archive, and resuming continues after them.
    Interrupted,
}

/// Makes the panels that the archive does not contain yet.
///
/// Invalid panels are kept and repeated at the end of their block, up to [`crate::Analysis::retries`] times each and
/// [`Experiment::max_repeats`] times in total. When `stop` becomes true, the panel in progress ends and is kept as
/// interrupted, and the campaign ends.
pub fn run<S: Settings>(
    experiment: &Experiment<S>,
    archive: &mut Archive,
    bench: &mut dyn Bench<S>,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    experiment.check()?;
    archive.record_provenance(&Provenance::observe(bench.conditions()))?;
    let mut campaign = CampaignRun {
        experiment,
        schedule: Schedule::of(experiment),
        looks: looks(archive.first_look()),
        began: Instant::now(),
        made: 0,
    };
    let mut blocks = campaign.first_goal(archive);
    loop {
        if campaign.make(blocks, archive, bench, progress, stop)? == Outcome::Interrupted {
            return Ok(Outcome::Interrupted);
        }
        match campaign.next_goal(blocks, archive)? {
            Some(more) => blocks = more,
            None => return Ok(Outcome::Complete),
        }
    }
}

/// A campaign in progress.
struct CampaignRun<'a, S> {
    experiment: &'a Experiment<S>,
    schedule: Schedule<'a>,
    looks: Looks,
    began: Instant,
    /// Panels made since it began.
    made: u32,
}

impl<S: Settings> CampaignRun<'_, S> {
    /// The number of blocks after which the results are looked at next.
    fn first_goal(&self, archive: &Archive) -> u32 {
        match self.experiment.runs {
            Runs::Blocks(blocks) => blocks,
            Runs::UntilDecided => {
                let made = archive.panels().iter().map(|panel| panel.record.block + 1).max().unwrap_or(0);
                let goal = self.looks.next_after(made.saturating_sub(1));
                self.with_repeats(goal, repeats(archive.panels())).min(self.experiment.most_blocks())
            }
        }
    }

    /// The first goal from this one on that allows so many repeats. A campaign that has made more of them than a goal
    /// allows was stopped on the way to a later one, and judging it at the earlier one would be a look of its own.
    fn with_repeats(&self, goal: u32, repeats: usize) -> u32 {
        let most = self.experiment.most_blocks();
        let enough = |goal: &u32| *goal >= most || self.experiment.max_repeats(*goal) >= repeats;
        let mut goals = std::iter::successors(Some(goal), |goal| Some(self.looks.next_after(*goal)));
        goals.find(enough).unwrap_or(most)
    }

    /// The number of blocks of the next look, if the campaign goes on after `blocks`.
    fn next_goal(&self, blocks: u32, archive: &Archive) -> Result<Option<u32>, LabError> {
        let next = self.looks.next_after(blocks);
        let ends = matches!(self.experiment.runs, Runs::Blocks(_)) || next > self.experiment.most_blocks();
        if ends || !self.is_time_for(next.saturating_sub(blocks)) {
            return Ok(None);
        }
        let observations = Observations::of(self.experiment, archive.panels(), archive.folder())?;
        let decision = Decision::of(self.experiment, archive.first_look(), &observations);
        Ok((!decision.is_complete()).then_some(next))
    }

    /// Whether so many more blocks, at the mean time of those made, end before the time that the experiment allows.
    fn is_time_for(&self, blocks: u32) -> bool {
        let panels = blocks.saturating_mul(self.experiment.families.len() as u32);
        let most = Duration::from_secs_f64(self.experiment.analysis.max_minutes * 60.0);
        self.began.elapsed() + self.each().saturating_mul(panels) <= most
    }

    /// The time of one panel: first by its window, then the mean of those made.
    fn each(&self) -> Duration {
        let window = &self.experiment.window;
        let arms = self.experiment.variants.len() as u32 + 2;
        match self.made {
            0 => window.warmup() + window.measure() * arms * 3 / 2,
            made => self.began.elapsed() / made,
        }
    }

    fn make(
        &mut self,
        blocks: u32,
        archive: &mut Archive,
        bench: &mut dyn Bench<S>,
        progress: &mut dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Outcome, LabError> {
        let max_repeats = self.experiment.max_repeats(blocks);
        let left = |archive: &Archive| self.schedule.left(archive.panels(), blocks, max_repeats);
        progress.started(left(archive), self.each().saturating_mul(left(archive) as u32));
        while let Some(next) = self.schedule.next(archive.panels(), blocks, max_repeats) {
            if stop.load(Ordering::Relaxed) {
                return Ok(Outcome::Interrupted);
            }
            progress.panel_started(&self.starting(&next, blocks));
            let panel = PanelRun { experiment: self.experiment, next, stop };
            let measured = panel.make(archive.panels(), bench, progress)?;
            let record = measured.record.clone();
            archive.append(measured)?;
            self.made += 1;
            let remaining = self.schedule.left(archive.panels(), blocks, max_repeats) as u32;
            progress.panel_finished(&record, self.each().saturating_mul(remaining));
            if record.is_interrupted() {
                return Ok(Outcome::Interrupted);
            }
        }
        Ok(Outcome::Complete)
    }

    fn starting(&self, next: &NextPanel, blocks: u32) -> PanelStart<'_> {
        PanelStart {
            block: next.planned.block,
            blocks,
            attempt: next.attempt,
            family: &self.experiment.families[next.planned.family].title,
        }
    }
}
