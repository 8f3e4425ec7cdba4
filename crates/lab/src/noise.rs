//! The noise of a campaign: how far apart equal members came out, block by block.
//!
//! A campaign of copies ([`copies_of_baseline`]) shows it best, because every pair of its members has the true difference
//! zero. Any other campaign shows it too, by the spread of its comparisons and of the hidden copy.

use std::path::Path;

use serde::Serialize;

use crate::campaign::{Campaign, Measurements};
use crate::decision::{looks, observed};
use crate::error::{ArchiveError, LabError};
use crate::experiment::{Experiment, Runs, Settings, Variant, Window};
use crate::host::Provenance;
use crate::observations::{Observations, PanelObservation};
use crate::record::PanelRecord;
use crate::settings::{MergedSettings, merged};
use crate::stats::{CopyJudgement, Description, judge_copy};

/// What a campaign shows about its machine.
#[derive(Debug, Clone, Serialize)]
pub struct Noise {
    /// Start of the campaign, UTC, RFC 3339.
    pub started: String,
    /// Valid blocks of the family that has fewest.
    pub blocks: usize,
    /// Whether all members were copies of one variant.
    pub of_copies: bool,
    /// The families in the order of the experiment.
    pub families: Vec<FamilyNoise>,
    #[serde(skip)]
    window: Window,
    #[serde(skip)]
    provenance: Provenance,
    #[serde(skip)]
    baseline: MergedSettings,
}

/// The noise of one family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyNoise {
    /// Name of the family.
    pub family: String,
    /// Its title in reports.
    pub title: String,
    /// Valid panels.
    pub blocks: usize,
    /// Panels that were made but do not count.
    pub invalid: usize,
    /// Spread of the comparison of two members, of the whole loop's rate.
    pub whole: Option<Spread>,
    /// The same of the members' shares of the loop. `None` if the metric has no share or if a block could not tell it.
    pub share: Option<Spread>,
    /// Whether the metric has a share.
    pub subtracts: bool,
    /// Share of the rounds that were left out because the control was disturbed.
    pub lost_rounds: f64,
    /// Microseconds of a turn that counted.
    pub slice_us: f64,
    /// Microseconds at the beginning of a turn that did not.
    pub lead_in_us: f64,
    /// Mean seconds of a panel, preparation included.
    pub panel_seconds: f64,
    /// Arms that took turns in a panel.
    pub arms: usize,
    /// The controls among them.
    pub controls: usize,
    /// The members that are equal to the baseline, the hidden copy last.
    pub copies: Vec<EqualMember>,
}

/// A member with the settings of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EqualMember {
    /// Name of the variant, or "hidden copy".
    pub name: String,
    /// Its difference from the baseline, which should be zero. Its interval is simultaneous with those of all other equal
    /// members in all families. `None` if too few of its blocks are valid.
    pub judgement: Option<CopyJudgement>,
}

/// The standard deviation of block observations: logarithms of ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Standard deviation.
    pub stddev: f64,
    /// From how many independent differences it is known.
    pub degrees_of_freedom: f64,
}

/// The experiment that measures the noise of `experiment`: so many copies of its baseline in place of the variants, for so
/// many blocks. The lab adds its hidden copy.
pub fn copies_of_baseline<S: Settings>(
    experiment: &Experiment<S>,
    copies: usize,
    blocks: u32,
) -> Experiment<S> {
    let mut same = experiment.clone();
    let baseline = &experiment.variants[experiment.baseline()];
    let copy = |number: usize| Variant {
        curve: None,
        at: None,
        name: format!("copy-{number}"),
        label: format!("{}, copy {number}", baseline.label),
        model_of: baseline.model_of.clone(),
        set: baseline.set.clone(),
    };
    same.title = format!("Noise floor, equal variants: {}", experiment.title);
    same.variants = (1..=copies).map(copy).collect();
    same.runs = Runs::Blocks(blocks);
    (same.analysis.baseline, same.analysis.comparisons) = (None, None);
    same.analysis.first_look = Some(blocks);
    same.published = None;
    same
}

impl Noise {
    /// Reads the noise of the campaign in `folder`.
    pub fn of(folder: &Path) -> Result<Self, LabError> {
        let campaign = Campaign::read(folder)?;
        let Measurements::Panels(panels) = &campaign.measured else {
            return Err(ArchiveError::WithoutPanels { folder: folder.into() }.into());
        };
        let experiment = &campaign.experiment;
        let observations = Observations::of(experiment, panels, folder)?;
        let copies = equal_members(experiment, &observations);
        let records: Vec<&PanelRecord> = panels.iter().map(|panel| &panel.record).collect();
        let pairs = pairs(experiment);
        let families = experiment.families.iter().enumerate().map(|(index, family)| {
            let records: Vec<&PanelRecord> =
                records.iter().copied().filter(|record| record.family == family.name).collect();
            let mut noise = FamilyNoise::of(&records, observations.family(index), &pairs);
            (noise.family, noise.title) = (family.name.clone(), family.title.clone());
            noise.copies = copies[index].clone();
            noise
        });
        let families: Vec<FamilyNoise> = families.collect();
        Ok(Self {
            started: campaign.provenance.started.clone(),
            blocks: families.iter().map(|family| family.blocks).min().unwrap_or(0),
            of_copies: is_of_copies(experiment),
            families,
            baseline: merged(&experiment.subject, &experiment.variants[experiment.baseline()].set),
            window: experiment.window.clone(),
            provenance: campaign.provenance,
        })
    }

    /// Whether a member that is equal to the baseline differed from it: then the figures are not to be trusted.
    pub fn is_untrusted(&self) -> bool {
        self.differing().next().is_some()
    }

    /// The members that are equal to the baseline and differed from it, each with its family.
    pub fn differing(&self) -> impl Iterator<Item = (&FamilyNoise, &str, CopyJudgement)> {
        let judged = self.families.iter().flat_map(|family| {
            family.copies.iter().filter_map(move |copy| Some((family, &*copy.name, copy.judgement?)))
        });
        judged.filter(|(_, _, judgement)| judgement.differs)
    }

    /// Whether it is known of every equal member if it differed.
    pub fn is_judged(&self) -> bool {
        self.families.iter().flat_map(|family| &family.copies).all(|copy| copy.judgement.is_some())
    }

    /// Why this noise says nothing about an experiment on this machine; empty if it does. The settings `except` may differ.
    pub fn unfit_for<S: Settings>(&self, experiment: &Experiment<S>, except: &[&str]) -> Vec<String> {
        let here = Provenance::observe(self.provenance.conditions.clone());
        let settings = &experiment.variants[experiment.baseline()].set;
        let baseline = MergedSettings::of(settings.clone().over(&experiment.subject));
        let missing = experiment.families.iter().filter(|family| self.family(&family.name).is_none());
        let missing = missing.map(|family| format!("it has no {}", family.title));
        let settings = self.baseline.differences(&baseline, except);
        let window = (self.window != experiment.window).then(|| "another [window]".to_owned());
        self.provenance.differences(&here).into_iter().chain(settings).chain(window).chain(missing).collect()
    }

    /// The family with this name.
    pub fn family(&self, name: &str) -> Option<&FamilyNoise> {
        self.families.iter().find(|family| family.family == name)
    }
}

/// The members of each family that are equal to the baseline: in a campaign of copies all others, else the hidden copy. All
/// of them in all families are judged together.
fn equal_members(experiment: &Experiment<toml::Table>, observations: &Observations) -> Vec<Vec<EqualMember>> {
    let (baseline, hidden) = (experiment.baseline(), experiment.variants.len());
    let first = if is_of_copies(experiment) { 0 } else { hidden };
    let members: Vec<usize> = (first..=hidden).filter(|member| *member != baseline).collect();
    let families = 0..experiment.families.len();
    let ratios = families.flat_map(|family| {
        members.iter().map(move |member| observed(observations.family(family), *member, baseline).whole)
    });
    let ratios: Vec<Vec<f64>> = ratios.collect();
    let judged = judge_copy(&ratios, &looks(only_look(experiment, observations)));
    let name = |member: usize| experiment.variants.get(member).map_or("hidden copy", |variant| &variant.name);
    let of_family = |judged: &[Option<CopyJudgement>]| {
        let each = members.iter().zip(judged);
        each.map(|(member, judgement)| EqualMember { name: name(*member).into(), judgement: *judgement })
            .collect()
    };
    judged.chunks(members.len()).map(of_family).collect()
}

/// When the copies are judged. A campaign of copies has one look: at all of its blocks, of which some may not be valid.
fn only_look(experiment: &Experiment<toml::Table>, observations: &Observations) -> u32 {
    const FEWEST: usize = 2;
    let valid = (0..experiment.families.len()).map(|family| observations.family(family).len());
    match (is_of_copies(experiment), valid.min()) {
        (true, Some(blocks)) => blocks.max(FEWEST) as u32,
        _ => experiment.first_look(),
    }
}

/// Whether every variant has the same settings.
fn is_of_copies(experiment: &Experiment<toml::Table>) -> bool {
    experiment.variants.windows(2).all(|two| two[0].set == two[1].set)
}

/// The pairs of members whose differences show the noise: all of a campaign of copies, else the declared comparisons and
/// the copy.
fn pairs(experiment: &Experiment<toml::Table>) -> Vec<(usize, usize)> {
    let copy = experiment.variants.len();
    if is_of_copies(experiment) {
        return (0..=copy).flat_map(|one| (0..one).map(move |other| (one, other))).collect();
    }
    let declared = experiment.comparisons();
    let declared = declared.iter().map(|comparison| (comparison.variant, comparison.against));
    declared.chain([(copy, experiment.baseline())]).collect()
}

impl FamilyNoise {
    fn of(records: &[&PanelRecord], observed: &[PanelObservation], pairs: &[(usize, usize)]) -> Self {
        let members = records.last().map_or(0, |record| record.members.len());
        let independent = independent(pairs);
        let rounds: usize = observed.iter().map(|panel| panel.rounds).sum();
        let kept: usize = observed.iter().map(|panel| panel.kept).sum();
        let seconds: Vec<f64> = records.iter().map(|record| record.seconds).collect();
        let controls = records.last().map_or(1, |record| record.controls);
        let turns = records.last().map(|record| record.turns);
        let spread = |of: fn(&PanelObservation, usize, usize) -> Option<f64>| {
            let ratios =
                |&(one, other): &(usize, usize)| observed.iter().map(|p| of(p, one, other)).collect();
            Spread::of(&pairs.iter().map(ratios).collect::<Option<Vec<_>>>()?, independent)
        };
        Self {
            family: String::new(),
            title: String::new(),
            blocks: observed.len(),
            invalid: records.iter().filter(|record| !record.is_valid()).count(),
            whole: spread(PanelObservation::ratio),
            share: spread(PanelObservation::share_ratio),
            subtracts: observed.iter().any(PanelObservation::subtracts),
            lost_rounds: (rounds - kept) as f64 / rounds.max(1) as f64,
            slice_us: turns.map_or(0.0, |turns| turns.slice_us),
            lead_in_us: turns.map_or(0.0, |turns| turns.lead_in_us),
            panel_seconds: Description::of(&seconds).map_or(0.0, |seconds| seconds.mean),
            arms: controls + members,
            controls,
            copies: Vec::new(),
        }
    }
}

/// How many independent differences have a pooled variance that is as uncertain as that of these pairs. Two differences of members
/// with equal spreads correlate by 1/2 if they have one member in common, and their sample variances by the square of that.
fn independent(pairs: &[(usize, usize)]) -> f64 {
    let correlation = |(one, other): &(usize, usize), of: &(usize, usize)| {
        let common = [of.0, of.1].iter().filter(|member| [one, other].contains(member)).count();
        [0.0, 0.25, 1.0][common]
    };
    let all: f64 =
        pairs.iter().flat_map(|pair| pairs.iter().map(move |other| correlation(pair, other))).sum();
    (pairs.len() * pairs.len()) as f64 / all
}

impl Spread {
    /// The pooled spread of the differences of some pairs, each with one value for each block, of which so many are independent.
    fn of(pairs: &[Vec<f64>], independent: f64) -> Option<Self> {
        let described: Option<Vec<Description>> = pairs.iter().map(|pair| Description::of(pair)).collect();
        let described = described.filter(|pairs| pairs.iter().all(|pair| pair.n >= 2))?;
        let blocks = described.first()?.n as f64;
        let variances: f64 = described.iter().map(|pair| pair.stddev.powi(2)).sum();
        Some(Self {
            stddev: (variances / described.len() as f64).sqrt(),
            degrees_of_freedom: independent * (blocks - 1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::independent;

    #[test]
    fn differences_from_one_baseline_are_fewer_than_they_seem() {
        let star = |count: usize| (1..=count).map(|other| (other, 0)).collect::<Vec<_>>();
        assert_eq!([1, 2, 5].map(|count| independent(&star(count))), [1.0, 1.6, 2.5]);
        assert!(independent(&star(1000)) < 4.0);
        let all = |members: usize| (0..members).flat_map(|one| (0..one).map(move |other| (one, other)));
        assert_eq!([2, 3, 8].map(|members| independent(&all(members).collect::<Vec<_>>())), [1.0, 2.0, 7.0]);
        assert_eq!(independent(&[(0, 1), (2, 3)]), 2.0);
    }
}
