//! One panel: its members are made, verified and measured in turns, and the record is written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::archive::{MeasuredPanel, SLICES_EXTENSION};
use crate::calibration::{Calibration, Effort, calibrate, turn_of};
use crate::error::{LabError, RunStep, SubjectError};
use crate::experiment::{Experiment, Settings, Variant};
use crate::host;
use crate::observations::is_noisy;
use crate::panel::{Arm, Bench, Findings, Panel, PanelError, SliceLimits, Verified};
use crate::progress::Progress;
use crate::record::{MemberRecord, PanelRecord, SCHEMA, Turns};
use crate::schedule::NextPanel;
use crate::shuffled::{Positions, Shuffled};
use crate::slices::Slices;
use crate::turns::{Arms, FailedTurn, TurnLength, rounds};
use crate::validity::{Reasons, Validity};

/// Fewer rounds than this have no robust mean.
const FEWEST_ROUNDS: usize = 8;
/// How often the progress of a panel is reported.
const REPORTS: usize = 50;
/// A quarter of the margin: what short slices may cost an arm.
const CALIBRATED_SHARE: f64 = 0.25;
/// The margin that a calibration assumes for an experiment with a smaller one.
const SMALLEST_MARGIN: f64 = 0.002;

/// The kinds of random choices: the order of the turns, and the order of making the members.
const TURNS: u64 = 0;
const MAKING: u64 = 1;

/// A panel that is about to be made.
pub(crate) struct PanelRun<'a, S> {
    pub(crate) experiment: &'a Experiment<S>,
    pub(crate) next: NextPanel,
    pub(crate) stop: &'a AtomicBool,
}

/// What is known of a panel when its turns have ended.
struct Measured {
    arms: Arms,
    turns: Turns,
    calibration: Option<Calibration>,
    slices: Slices,
}

impl<S: Settings> PanelRun<'_, S> {
    /// Makes the panel. `earlier` are the panels of the campaign, from which the length of the turns is taken.
    pub(crate) fn make(
        &self,
        earlier: &[MeasuredPanel],
        bench: &mut dyn Bench<S>,
        progress: &mut dyn Progress,
    ) -> Result<MeasuredPanel, LabError> {
        let (started, clock) = (host::now(), Instant::now());
        let members = self.members();
        let positions = Positions::random(members.len(), &mut self.random(MAKING));
        let mut made = None;
        let mut work = |panel: &mut dyn Panel| {
            let mut panel = Shuffled { panel, positions: &positions };
            let measured = self.measure(&mut panel, earlier, progress);
            made = Some(measured.map_err(|error| PanelError::Lab(error.into()))?);
            Ok(())
        };
        let members = positions.arrange(&members);
        bench
            .panel(&members, self.family(), self.next.planned.seed, &mut work)
            .map_err(|error| self.lab_error(error, &positions))?;
        let mut panel =
            made.ok_or_else(|| self.bed_failed(RunStep::Prepare, "the bench made no panel".into()))?;
        (panel.record.started, panel.record.seconds) = (started, clock.elapsed().as_secs_f64());
        Ok(panel)
    }

    /// The settings of every variant, and those of the baseline once more.
    fn members(&self) -> Vec<S> {
        let Experiment { variants, subject, .. } = self.experiment;
        let in_force = |variant: &Variant<S>| variant.set.clone().over(subject);
        let copy = in_force(&variants[self.experiment.baseline()]).of_copy();
        variants.iter().map(in_force).chain([copy]).collect()
    }

    fn measure(
        &self,
        panel: &mut dyn Panel,
        earlier: &[MeasuredPanel],
        progress: &mut dyn Progress,
    ) -> Result<MeasuredPanel, LabError> {
        let SliceLimits { shortest, longest } = panel.slice_limits();
        self.experiment.check_slice([shortest, longest])?;
        let verified = self.verify(panel)?;
        let measured = self.turns(panel, &verified, earlier, progress);
        let measured = measured.map_err(|FailedTurn { arm, source }| match arm {
            Arm::Control(_) => self.bed_failed(RunStep::Measure, source),
            Arm::Member(member) => self.failed(member, RunStep::Measure, source),
        })?;
        let record = self.record(panel, &verified, &measured)?;
        Ok(MeasuredPanel { record, slices: measured.slices })
    }

    /// The random choices of one kind in this attempt.
    fn random(&self, kind: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.next.planned.seed);
        random.set_stream(2 * u64::from(self.next.attempt) + kind);
        random
    }

    fn verify(&self, panel: &mut dyn Panel) -> Result<Vec<Verified>, LabError> {
        let members = 0..=self.experiment.variants.len();
        let verify =
            |member| panel.verify(member).map_err(|error| self.failed(member, RunStep::Verify, error));
        members.map(verify).collect()
    }

    fn turns(
        &self,
        panel: &mut dyn Panel,
        verified: &[Verified],
        earlier: &[MeasuredPanel],
        progress: &mut dyn Progress,
    ) -> Result<Measured, FailedTurn> {
        let arms = Arms::of(panel, verified);
        let mut random = self.random(TURNS);
        let warm_up = turn_of(panel.slice_limits().shortest);
        let rounds_of = |time: Duration, turn: TurnLength| {
            (time.as_secs_f64() / turn.total().as_secs_f64() / arms.active().len() as f64).ceil() as usize
        };
        let warm_up_rounds = rounds_of(self.experiment.window.warmup(), warm_up);
        rounds(panel, &arms, warm_up_rounds, warm_up, &mut random, self.stop)?;
        let (turn, calibration) = self.turn_length(panel, &arms, earlier, &mut random)?;
        let measure = self.experiment.window.measure().as_secs_f64();
        let count = ((measure / turn.slice.as_secs_f64()).ceil() as usize).max(FEWEST_ROUNDS);
        let mut slices = Slices::new(arms.active().len());
        for part in parts(count) {
            slices.append(rounds(panel, &arms, part, turn, &mut random, self.stop)?);
            progress.panel_advanced(slices.rounds() as f64 / count as f64);
        }
        Ok(Measured { arms, turns: turns(turn, warm_up_rounds), calibration, slices })
    }

    /// The length of the turns: as the experiment sets it, as an earlier panel of the family found it, or calibrated.
    fn turn_length(
        &self,
        panel: &mut dyn Panel,
        arms: &Arms,
        earlier: &[MeasuredPanel],
        random: &mut ChaCha8Rng,
    ) -> Result<(TurnLength, Option<Calibration>), FailedTurn> {
        if let Some(slice) = self.experiment.window.slice() {
            return Ok((turn_of(slice), None));
        }
        let family = self.family();
        let mut records = earlier.iter().map(|panel| &panel.record);
        if let Some(found) = records.find(|record| record.family == family && record.calibration.is_some()) {
            let [lead_in, slice] = [found.turns.lead_in_us, found.turns.slice_us]
                .map(|microseconds| Duration::from_secs_f64(microseconds / 1e6));
            return Ok((TurnLength { lead_in, slice }, None));
        }
        let limit = CALIBRATED_SHARE * self.experiment.analysis.margin.max(SMALLEST_MARGIN);
        let each = self.experiment.window.measure() * arms.active().len() as u32;
        let (turn, found) = calibrate(panel, arms, &Effort { limit, each, stop: self.stop }, random)?;
        // A calibration that was stopped is made again when the campaign goes on.
        let calibration = (!self.stop.load(Ordering::Relaxed)).then_some(found);
        Ok((turn, calibration))
    }

    fn record(
        &self,
        panel: &mut dyn Panel,
        verified: &[Verified],
        measured: &Measured,
    ) -> Result<PanelRecord, LabError> {
        let NextPanel { planned, attempt } = self.next;
        let members: Vec<MemberRecord> =
            (0..verified.len()).map(|member| self.member(panel, member, verified[member])).collect();
        let bed = panel.bed_findings();
        members.iter().try_for_each(|member| self.usable(&member.variant, &member.findings))?;
        self.usable("the bed", &bed)?;
        let mut record = PanelRecord {
            schema: SCHEMA,
            block: planned.block,
            family: self.family().into(),
            attempt,
            seed: planned.seed,
            started: String::new(),
            seconds: 0.0,
            turns: measured.turns,
            calibration: measured.calibration.clone(),
            controls: measured.arms.all() - verified.len(),
            subtracts: panel.subtracts(),
            paced: panel.is_paced(),
            members,
            bed,
            slices: format!("{}-{}-{attempt}.{SLICES_EXTENSION}", planned.block, self.family()),
            rounds: measured.slices.rounds(),
            validity: Reasons::from_iter([]),
        };
        record.validity = self.validity(&record, &measured.slices);
        Ok(record)
    }

    fn member(&self, panel: &mut dyn Panel, member: usize, verified: Verified) -> MemberRecord {
        let variants = &self.experiment.variants;
        let variant = variants.get(member).unwrap_or(&variants[self.experiment.baseline()]);
        let set_aside = match verified {
            Verified::Ready => None,
            Verified::SetAside(reason) => Some(reason),
        };
        let (control, findings) = (panel.control_of(member), panel.findings(member));
        MemberRecord { variant: variant.name.clone(), control, set_aside, findings }
    }

    /// The validity of a panel: an invalid member makes the whole panel invalid, but one that took no turns does not.
    fn validity(&self, record: &PanelRecord, slices: &Slices) -> Reasons {
        let interrupted = self.stop.load(Ordering::Relaxed).then_some(Validity::Interrupted);
        let control = record.members[self.experiment.baseline()].control;
        let noisy = (interrupted.is_none() && is_noisy(slices, control)).then_some(Validity::NoisyCores);
        let taking_part = record.members.iter().filter(|member| member.set_aside.is_none());
        let of_members = taking_part.flat_map(|member| member.findings.reasons.iter().copied());
        of_members.chain(record.bed.reasons.iter().copied()).chain(interrupted).chain(noisy).collect()
    }

    /// Refuses a figure that is not finite, because the journal cannot store it.
    fn usable(&self, variant: &str, findings: &Findings) -> Result<(), LabError> {
        let mut counters = findings.counters.iter();
        match counters.find(|(_, figure)| !(figure.is_finite() && **figure >= 0.0)) {
            None => Ok(()),
            Some((what, value)) => Err(LabError::Figure {
                variant: variant.into(),
                family: self.family().into(),
                what: what.clone(),
                value: *value,
            }),
        }
    }

    fn family(&self) -> &str {
        &self.experiment.families[self.next.planned.family].name
    }

    fn lab_error(&self, error: PanelError, positions: &Positions) -> LabError {
        match error {
            PanelError::Lab(error) => *error,
            PanelError::Bed(source) => self.bed_failed(RunStep::Prepare, source),
            PanelError::Member { member, source } => {
                let member = positions.member(member).unwrap_or(member);
                self.failed(member, RunStep::Prepare, source)
            }
        }
    }

    fn bed_failed(&self, step: RunStep, source: SubjectError) -> LabError {
        LabError::Bed { family: self.family().into(), step, source }
    }

    fn failed(&self, member: usize, step: RunStep, source: SubjectError) -> LabError {
        let variants = &self.experiment.variants;
        let variant = &variants.get(member).unwrap_or(&variants[self.experiment.baseline()]).name;
        LabError::Subject { variant: variant.clone(), family: self.family().into(), step, source }
    }
}

/// Splits so many rounds into parts, between which the progress is reported.
fn parts(rounds: usize) -> impl Iterator<Item = usize> {
    let each = rounds.div_ceil(REPORTS).max(1);
    (0..rounds).step_by(each).map(move |begin| each.min(rounds - begin))
}

fn turns(turn: TurnLength, warm_up_rounds: usize) -> Turns {
    let [lead_in_us, slice_us] = [turn.lead_in, turn.slice].map(|time| time.as_secs_f64() * 1e6);
    Turns { lead_in_us, slice_us, warm_up_rounds }
}
