//! Observations: what the statistics are made from. Each valid panel gives one for each pair of its arms.
//!
//! The slices of a round are neighbours in time, so what slows the machine down slows all of them, and the logarithm of
//! the ratio of two arms varies far less than either rate. The observation of a panel is the midmean of these logarithms
//! over the rounds that the control shows to be undisturbed; the unit of the tests is the panel.

use std::path::Path;

use crate::archive::{MeasuredPanel, PANELS};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::panel::Slice;
use crate::record::PanelRecord;
use crate::slices::Slices;
use crate::stats::{ControlSlice, kept_rounds, midmean};

/// A panel is noisy if its control hardly worked in this share of the rounds or more.
const MOST_DISTURBED: f64 = 0.5;
/// It hardly works if it does not have its core for more than this share of its slice.
const MOST_LOST: f64 = 0.5;
/// So many of the rounds may say nothing about a ratio, because nothing came out of either side.
const MOST_EMPTY: f64 = 0.25;

/// The valid panels of a campaign by family, in the order in which they were made. A look judges the first ones, and this
/// order keeps them the same for ever: in the order of the blocks, a panel that is repeated late would be put among them.
#[derive(Debug)]
pub(crate) struct Observations {
    families: Vec<Vec<PanelObservation>>,
}

/// What one valid panel shows.
#[derive(Debug)]
pub(crate) struct PanelObservation {
    pub(crate) block: u32,
    /// Rounds that were measured.
    pub(crate) rounds: usize,
    /// Rounds that the control shows to be undisturbed, and in which every arm had its core for some time.
    pub(crate) kept: usize,
    controls: Vec<ArmRates>,
    members: Vec<MemberRates>,
    /// The control that judges the machine.
    machine: usize,
    subtracts: bool,
    paced: bool,
}

/// The logarithms of an arm's rates in the rounds that are kept; empty if it took no turns.
#[derive(Debug, Default)]
pub(crate) struct ArmRates {
    /// What the metric counts, per second.
    pub(crate) counted: Vec<f64>,
    /// What was handed to the arm, per second.
    pub(crate) offered: Vec<f64>,
}

#[derive(Debug)]
struct MemberRates {
    control: usize,
    rates: ArmRates,
}

impl Observations {
    /// Makes the observations of the valid panels.
    pub(crate) fn of<S>(
        experiment: &Experiment<S>,
        panels: &[MeasuredPanel],
        folder: &Path,
    ) -> Result<Self, LabError> {
        let mut families: Vec<Vec<PanelObservation>> =
            experiment.families.iter().map(|_| Vec::new()).collect();
        for panel in panels {
            let family = family_of(experiment, &panel.record).ok_or_else(|| LabError::UnknownPanel {
                path: folder.join(PANELS),
                block: panel.record.block,
                family: panel.record.family.clone(),
            })?;
            if panel.record.is_valid() {
                families[family].push(PanelObservation::of(panel, experiment.baseline()));
            }
        }
        Ok(Self { families })
    }

    /// The valid panels of a family in the order in which they were made.
    pub(crate) fn family(&self, family: usize) -> &[PanelObservation] {
        &self.families[family]
    }
}

/// The position of a panel's family, if the panel has the variants and the families of the experiment.
fn family_of<S>(experiment: &Experiment<S>, record: &PanelRecord) -> Option<usize> {
    let variants = experiment.variants.iter().map(|variant| &variant.name);
    let copy = &experiment.variants[experiment.baseline()].name;
    let fits = record.members.iter().map(|member| &member.variant).eq(variants.chain([copy]));
    let controls = record.members.iter().all(|member| member.control < record.controls);
    let family = experiment.families.iter().position(|family| family.name == record.family);
    family.filter(|_| fits && controls)
}

impl PanelObservation {
    fn of(panel: &MeasuredPanel, baseline: usize) -> Self {
        let MeasuredPanel { record, slices } = panel;
        let machine = record.members[baseline].control;
        let undisturbed = kept_rounds(&control_slices(slices, machine));
        let kept: Vec<bool> =
            undisturbed.iter().zip(complete(slices)).map(|(&kept, all)| kept && all).collect();
        let members = record.members.iter().enumerate().map(|(member, of)| MemberRates {
            control: of.control,
            rates: ArmRates::of(slices, record.arm_of(member), &kept),
        });
        Self {
            block: record.block,
            rounds: kept.len(),
            kept: kept.iter().filter(|kept| **kept).count(),
            controls: (0..record.controls).map(|control| ArmRates::of(slices, control, &kept)).collect(),
            members: members.collect(),
            machine,
            subtracts: record.subtracts,
            paced: record.paced,
        }
    }

    /// The rate of the baseline's control, which says how fast the machine was: what it counts per second. The bench makes
    /// members, and so their controls, in an order that differs from panel to panel: only the baseline's is always the same.
    pub(crate) fn machine_rate(&self) -> Option<f64> {
        self.machine().rate()
    }

    /// The rates of the baseline's control, round by round.
    pub(crate) fn machine(&self) -> &ArmRates {
        &self.controls[self.machine]
    }

    /// The rates of a member, round by round.
    pub(crate) fn member(&self, member: usize) -> &ArmRates {
        &self.members[member].rates
    }

    /// Whether a member took turns.
    pub(crate) fn has(&self, member: usize) -> bool {
        !self.member(member).counted.is_empty()
    }

    /// The observation of two members: the logarithm of the ratio of their rates, `member` over `against`.
    pub(crate) fn ratio(&self, member: usize, against: usize) -> Option<f64> {
        difference(&self.member(member).counted, &self.member(against).counted)
    }

    /// The logarithm of the ratio of the rates of two members' controls; `None` if they have one control.
    pub(crate) fn control_ratio(&self, member: usize, against: usize) -> Option<f64> {
        let [member, against] = self.controls_of(member, against);
        let of = |control: usize| &self.controls[control].counted;
        (member != against).then(|| difference(of(member), of(against))).flatten()
    }

    /// The numbers of two members' controls in this panel.
    pub(crate) fn controls_of(&self, member: usize, against: usize) -> [usize; 2] {
        [member, against].map(|member| self.members[member].control)
    }

    /// The logarithm of the ratio of a member's rate to that of the baseline's control.
    pub(crate) fn over_machine(&self, member: usize) -> Option<f64> {
        difference(&self.member(member).counted, &self.machine().counted)
    }

    /// The rate of a member's own control: what it counts per second.
    pub(crate) fn control_rate(&self, member: usize) -> Option<f64> {
        self.control(member).rate()
    }

    /// The logarithm of the ratio of a member's rate to that of its own control.
    pub(crate) fn over_control(&self, member: usize) -> Option<f64> {
        difference(&self.member(member).counted, &self.control(member).counted)
    }

    fn control(&self, member: usize) -> &ArmRates {
        &self.controls[self.members[member].control]
    }

    /// Whether the time of a member contains that of its control.
    pub(crate) fn subtracts(&self) -> bool {
        self.subtracts
    }

    /// Whether a schedule offered the load, so that rates do not follow the speed of the machine.
    pub(crate) fn is_paced(&self) -> bool {
        self.paced
    }

    /// The logarithm of the rate that a member has in its own share of the time, over the rate of the baseline's control: what
    /// is counted, divided by the time that remains when its control has had its time for all that was handed to it.
    /// `None` if nothing remains, that is if the member costs less than the measurement can show.
    pub(crate) fn share_over_machine(&self, member: usize) -> Option<f64> {
        self.share_over(member, self.machine())
    }

    /// The same over the rate of the member's own control.
    pub(crate) fn share_over_control(&self, member: usize) -> Option<f64> {
        self.share_over(member, self.control(member))
    }

    fn share_over(&self, member: usize, unit: &ArmRates) -> Option<f64> {
        let (rates, control) = (self.member(member), self.control(member));
        let rounds = rates.offered.iter().zip(&control.offered).zip(&unit.offered);
        // Time for each packet handed over, in units of one of the controls. It is subtracted round by round, because a
        // mean of sums of noisy times is not the sum of their geometric means.
        let rest = |((of_member, of_control), unit): ((&f64, &f64), &f64)| {
            (unit - of_member).exp() - (unit - of_control).exp()
        };
        let rest = finite_midmean(&rounds.map(rest).collect::<Vec<_>>())?;
        let passed = difference(&rates.counted, &rates.offered)?;
        (self.subtracts && rest > 0.0).then(|| passed - rest.ln())
    }

    /// The logarithm of the ratio of two members' rates in their own shares of the time.
    pub(crate) fn share_ratio(&self, member: usize, against: usize) -> Option<f64> {
        Some(self.share_over_machine(member)? - self.share_over_machine(against)?)
    }
}

/// Whether every arm of a round had its core for some time: without it there is no rate.
fn complete(slices: &Slices) -> Vec<bool> {
    let mut complete = vec![true; slices.rounds()];
    for arm in 0..slices.arms() {
        for (round, slice) in complete.iter_mut().zip(slices.of(arm)) {
            *round &= slice.is_none_or(|slice| slice.time > slice.lost_core);
        }
    }
    complete
}

impl ArmRates {
    fn of(slices: &Slices, arm: usize, kept: &[bool]) -> Self {
        let slices: Option<Vec<Slice>> =
            slices.of(arm).zip(kept).filter(|(_, kept)| **kept).map(|(slice, _)| slice).collect();
        let slices = slices.unwrap_or_default();
        Self {
            counted: slices.iter().map(|slice| slice.per_second(slice.counted).ln()).collect(),
            offered: slices.iter().map(|slice| slice.per_second(slice.offered).ln()).collect(),
        }
    }

    /// The midmean of the logarithms, as a rate per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        finite_midmean(&self.counted).map(f64::exp)
    }
}

/// The midmean of the differences of two lists of logarithms; `None` if they do not have the same rounds.
fn difference(these: &[f64], those: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = these.iter().zip(those).map(|(one, other)| one - other).collect();
    (these.len() == those.len()).then(|| finite_midmean(&differences)).flatten()
}

/// A slice in which nothing came out has the logarithm −∞: more than a quarter of them leave no finite midmean. A round in
/// which nothing came out of either side has no ratio, so it says nothing about it.
fn finite_midmean(values: &[f64]) -> Option<f64> {
    let told: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let empty = (values.len() - told.len()) as f64;
    let middle = midmean(&told).filter(|middle| middle.is_finite());
    middle.filter(|_| empty <= MOST_EMPTY * values.len() as f64)
}

/// Whether the control hardly worked in too many rounds of a panel. What disturbs all of its rounds alike disturbs the
/// members too, and cancels in their ratios; but where little is counted, little is known.
pub(crate) fn is_noisy(slices: &Slices, control: usize) -> bool {
    let rounds = control_slices(slices, control);
    let hardly_works = |round: &&ControlSlice| !round.log_rate.is_finite() || round.lost_core > MOST_LOST;
    rounds.iter().filter(hardly_works).count() as f64 >= MOST_DISTURBED * rounds.len() as f64
}

/// The slices of a control.
pub(crate) fn control_slices(slices: &Slices, control: usize) -> Vec<ControlSlice> {
    let of = |slice: Slice| ControlSlice {
        log_rate: slice.per_second(slice.counted).ln(),
        lost_core: slice.lost_core.as_secs_f64() / slice.time.as_secs_f64(),
    };
    slices.of(control).map(|slice| of(slice.unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_round_without_a_rate_is_left_out_and_one_with_the_rate_zero_is_not() {
        let slice = |counted, lost_core| Slice {
            counted,
            offered: 9,
            time: Duration::from_millis(1),
            lost_core: Duration::from_micros(lost_core),
        };
        let mut slices = Slices::new(2);
        for of_member in [slice(9, 0), slice(9, 999), slice(0, 1000), slice(0, 0), slice(9, 2000)] {
            slices.push(0, &slice(9, 0));
            slices.push(1, &of_member);
        }
        assert_eq!(complete(&slices), [true, true, false, true, false]);
    }

    #[test]
    fn rounds_in_which_nothing_came_out_of_either_side_say_nothing_about_their_ratio() {
        let none = f64::NEG_INFINITY;
        let ratio = |empty: usize| {
            let mut sides = [[2.0; 8], [1.0; 8]];
            sides.iter_mut().for_each(|side| side[..empty].fill(none));
            difference(&sides[0], &sides[1])
        };
        assert_eq!([0, 1, 2, 3].map(ratio), [Some(1.0), Some(1.0), Some(1.0), None]);
        assert_eq!(difference(&[none, 2.0, 2.0, none], &[1.0; 4]), None, "the rate of one side is zero");
    }

    #[test]
    fn a_panel_is_noisy_if_its_control_hardly_worked() {
        let noisy = |lost_core: u64, counted: u64| {
            let mut slices = Slices::new(2);
            let slice = |counted, lost_core| Slice {
                counted,
                offered: counted,
                time: Duration::from_millis(1),
                lost_core: Duration::from_micros(lost_core),
            };
            for _ in 0..8 {
                slices.push(0, &slice(9, 0));
                slices.push(1, &slice(counted, lost_core));
            }
            [is_noisy(&slices, 0), is_noisy(&slices, 1)]
        };
        assert_eq!(noisy(300, 9), [false, false]);
        assert_eq!(noisy(600, 9), [false, true]);
        assert_eq!(noisy(0, 0), [false, true]);
    }

    #[test]
    fn a_panel_is_noisy_if_nothing_is_known_of_half_of_its_rounds() {
        let noisy = |empty: u64| {
            let mut slices = Slices::new(1);
            for round in 0..8 {
                let counted = if round < empty { 0 } else { 9 };
                let time = Duration::from_millis(1);
                slices.push(0, &Slice { counted, offered: counted, time, lost_core: Duration::ZERO });
            }
            (is_noisy(&slices, 0), kept_rounds(&control_slices(&slices, 0)).contains(&true))
        };
        assert_eq!([3, 4].map(noisy), [(false, true), (true, false)]);
    }
}
