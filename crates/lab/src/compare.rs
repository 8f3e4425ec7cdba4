//! The comparison of two campaigns, each in its own results folder.
//!
//! The campaigns have no round in common. What can be compared is each member's rate over its own control in its panel, in
//! which the speed of the machine at that time cancels as far as it slows both alike; the blocks of the two folders are
//! unmatched sets, judged by Welch's test. That is weaker than a panel, and the comparison lists why.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::campaign::{Campaign, Measurements};
use crate::decision::Decision;
use crate::error::{ArchiveError, LabError};
use crate::experiment::{Experiment, Family};
use crate::host::Build;
use crate::misrouted;
use crate::observations::{Observations, PanelObservation};
use crate::settings::merged;
use crate::stats::{Contrast, CopyJudgement, Effect, Judgement, Verdict, judge_runs, median};

/// Fewer blocks than this in either folder are not judged.
const FEWEST_BLOCKS: usize = 3;

/// Two campaigns compared, the second against the first.
#[derive(Debug, Clone, Serialize)]
pub struct FolderComparison {
    /// The campaign that is compared with.
    pub before: ComparedFolder,
    /// The campaign that is judged.
    pub after: ComparedFolder,
    /// What the rates count.
    pub metric: String,
    /// The relative difference that does not matter.
    pub margin: f64,
    /// The error rate of all comparisons together.
    pub alpha: f64,
    /// Each variant and family that both campaigns have.
    pub cells: Vec<ComparedCell>,
    /// What only one of them has, or what is not compared for another reason.
    pub left_out: Vec<String>,
    /// Why the comparison is weaker than that of two members of a panel, each a sentence.
    pub weaker: Vec<String>,
    /// Why a campaign cannot be trusted, each a sentence; empty if both can.
    pub untrusted: Vec<String>,
    /// Why it is not known whether a campaign can be trusted, each a sentence; empty if it is known of both.
    pub trust_unknown: Vec<String>,
}

/// One of the two campaigns.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedFolder {
    /// The results folder.
    pub folder: PathBuf,
    /// Title of its experiment.
    pub title: String,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// The program that measured.
    pub build: Build,
    /// Whose output was wrong, each a sentence; empty if none was.
    pub misrouted: Vec<String>,
}

/// One variant in one family.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedCell {
    /// Name of the variant.
    pub variant: String,
    /// Its label.
    pub label: String,
    /// Title of the family.
    pub family: String,
    /// Valid blocks before and after.
    pub blocks: [usize; 2],
    /// Relative difference of the controls' rates: how much faster the machine, or the bed of this variant, was after.
    pub control: Option<f64>,
    /// Relative difference of the rates over the controls; `None` if it is not judged.
    pub whole: Option<Effect>,
    /// The same of the shares of the loop.
    pub share: Option<Effect>,
    /// The verdict: that of the rates, if the shares have the same.
    pub verdict: Option<Verdict>,
}

/// Why two folders are not compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One of them cannot be read, or is not a campaign of panels.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// They answer different questions.
    #[error("{} and {} are not comparable: {}", before.display(), after.display(), reasons.join("; "))]
    Different {
        /// The first folder.
        before: PathBuf,
        /// The second folder.
        after: PathBuf,
        /// Each difference, with its values.
        reasons: Vec<String>,
    },
}

/// Compares the campaign in `after` with that in `before`.
pub fn compare(before: &Path, after: &Path) -> Result<FolderComparison, CompareError> {
    let [before, after] = [Side::read(before)?, Side::read(after)?];
    let pair = Pair { before: &before, after: &after };
    let reasons = pair.reasons();
    if !reasons.is_empty() {
        let [before, after] = [before.campaign.folder, after.campaign.folder];
        return Err(CompareError::Different { before, after, reasons });
    }
    Ok(pair.compared())
}

/// A campaign with its observations.
struct Side {
    campaign: Campaign,
    observations: Observations,
    copies: Vec<Option<CopyJudgement>>,
}

impl Side {
    fn read(folder: &Path) -> Result<Self, LabError> {
        let campaign = Campaign::read(folder)?;
        let Measurements::Panels(panels) = &campaign.measured else {
            return Err(ArchiveError::WithoutPanels { folder: folder.into() }.into());
        };
        let experiment = &campaign.experiment;
        let observations = Observations::of(experiment, panels, folder)?;
        let copies = Decision::of(experiment, experiment.first_look(), &observations).copies;
        Ok(Self { campaign, observations, copies })
    }

    fn is_untrusted(&self) -> bool {
        self.copies.iter().flatten().any(|copy| copy.differs)
    }

    /// Says in which of these families the copy could not be judged, if there is one.
    fn trust_unknown(&self, families: &BTreeSet<usize>) -> Option<String> {
        let unjudged = families.iter().filter(|family| self.copies[**family].is_none());
        let titles: Vec<&str> =
            unjudged.map(|family| self.experiment().families[*family].title.as_str()).collect();
        let folder = self.campaign.folder.display();
        (!titles.is_empty()).then(|| {
            format!(
                "{folder}: the hidden copy of the baseline was not judged there in {}, so that it is not known whether its \
                 machine or set-up can be trusted",
                titles.join(" and ")
            )
        })
    }

    fn experiment(&self) -> &Experiment<toml::Table> {
        &self.campaign.experiment
    }

    fn summary(&self) -> ComparedFolder {
        let Campaign { folder, experiment, provenance, .. } = &self.campaign;
        ComparedFolder {
            folder: folder.clone(),
            title: experiment.title.clone(),
            started: provenance.started.clone(),
            build: provenance.build.clone(),
            misrouted: misrouted::sentences(&self.campaign),
        }
    }

    /// Microseconds of the slices of a family's last panel. All panels of a campaign have those that its first one found.
    fn slice_us(&self, family: usize) -> Option<f64> {
        self.campaign.records_of(family).last().map(|record| record.turns.slice_us)
    }

    fn family(&self, name: &str) -> Option<usize> {
        self.experiment().families.iter().position(|family| family.name == name)
    }

    /// What one of the figures is in each block of a cell, as a factor; empty if a block could not tell it.
    fn blocks(&self, cell: Position, of: Figure) -> Vec<f64> {
        let panels = self.observations.family(cell.family).iter();
        let measured = panels.filter(|panel| panel.has(cell.variant));
        let figures: Option<Vec<f64>> = measured.map(|panel| of(panel, cell.variant).map(f64::exp)).collect();
        figures.unwrap_or_default()
    }

    fn control(&self, cell: Position) -> Option<f64> {
        let panels = self.observations.family(cell.family).iter();
        median(&panels.filter_map(|panel| panel.control_rate(cell.variant)).collect::<Vec<f64>>())
    }
}

/// A logarithm that a panel shows of one of its members.
type Figure = fn(&PanelObservation, usize) -> Option<f64>;

/// Where a cell is in one of the campaigns.
#[derive(Clone, Copy)]
struct Position {
    variant: usize,
    family: usize,
}

/// The two campaigns.
struct Pair<'a> {
    before: &'a Side,
    after: &'a Side,
}

impl Pair<'_> {
    /// Why the campaigns cannot be compared; empty if they can.
    fn reasons(&self) -> Vec<String> {
        let [before, after] = [self.before.experiment(), self.after.experiment()];
        let metric = self.positions().iter().find_map(|(was, is)| {
            let [counted, counted_now] = [before.metric(was.family), after.metric(is.family)];
            (counted != counted_now)
                .then(|| format!("they count different things, \"{counted}\" and \"{counted_now}\""))
        });
        let kinds = [self.before, self.after].map(|side| side.campaign.provenance.build.debug);
        let build = (kinds[0] != kinds[1])
            .then(|| "one was measured by a debug build and the other by a release build".to_owned());
        let none = self.positions().is_empty().then(|| {
            "they have no variant and family of the same names: folders are compared variant by variant"
                .into()
        });
        metric.into_iter().chain(build).chain(none).chain(self.settings()).collect()
    }

    /// The settings in which a variant of both campaigns differs.
    fn settings(&self) -> Vec<String> {
        let [before, after] = [self.before.experiment(), self.after.experiment()];
        let of_variant = |name: &str| {
            let [set, now] = [before, after].map(|experiment| {
                let index = experiment.variant_index(name)?;
                Some(merged(&experiment.subject, &experiment.variants[index].set))
            });
            let differences = set.zip(now).map_or_else(Vec::new, |(set, now)| set.differences(&now, &[]));
            (!differences.is_empty())
                .then(|| format!("{name} has other settings, {}", differences.join(", ")))
        };
        before.variants.iter().filter_map(|variant| of_variant(&variant.name)).collect()
    }

    /// The cells that both campaigns have, family by family: where they are before, and after.
    fn positions(&self) -> Vec<(Position, Position)> {
        let [before, after] = [self.before.experiment(), self.after.experiment()];
        let in_family = |(family, of): (usize, &Family)| {
            let now = self.after.family(&of.name);
            let both = before.variants.iter().enumerate().filter_map(move |(variant, of)| {
                let now = Position { variant: after.variant_index(&of.name)?, family: now? };
                Some((Position { variant, family }, now))
            });
            both.collect::<Vec<_>>()
        };
        before.families.iter().enumerate().flat_map(in_family).collect()
    }

    fn compared(&self) -> FolderComparison {
        let cells = self.cells();
        FolderComparison {
            before: self.before.summary(),
            after: self.after.summary(),
            metric: self.metric(),
            margin: self.margin(),
            alpha: self.alpha(),
            trust_unknown: self.trust_unknown(&cells),
            cells,
            left_out: self.left_out(),
            weaker: self.weaker(),
            untrusted: self.untrusted(),
        }
    }

    fn metric(&self) -> String {
        let after = self.after.experiment();
        let each =
            || (0..after.families.len()).map(|family| after.metric(family)).collect::<Vec<_>>().join(", ");
        after.only_metric().map_or_else(each, str::to_owned)
    }

    fn cells(&self) -> Vec<ComparedCell> {
        let positions = self.positions();
        let whole = self.judged(&positions, PanelObservation::over_control);
        let share = self.judged(&positions, PanelObservation::share_over_control);
        let judged = whole.into_iter().zip(share);
        positions.iter().zip(judged).map(|(at, (whole, share))| self.cell(*at, whole, share)).collect()
    }

    /// Judges one of the figures of all cells, as one family of comparisons.
    fn judged(&self, positions: &[(Position, Position)], of: Figure) -> Vec<Option<Judgement>> {
        let enough = |set: Vec<f64>| if set.len() < FEWEST_BLOCKS { Vec::new() } else { set };
        let sets = |(was, now): &(Position, Position)| {
            [self.before.blocks(*was, of), self.after.blocks(*now, of)].map(enough)
        };
        let sets: Vec<[Vec<f64>; 2]> = positions.iter().map(sets).collect();
        let contrasts: Vec<Contrast<'_>> =
            sets.iter().map(|[before, after]| Contrast::independent(before, after)).collect();
        judge_runs(&contrasts, self.margin(), self.alpha())
    }

    /// The larger margin of the two.
    fn margin(&self) -> f64 {
        self.before.experiment().analysis.margin.max(self.after.experiment().analysis.margin)
    }

    /// The smaller error rate of the two.
    fn alpha(&self) -> f64 {
        self.before.experiment().analysis.alpha.min(self.after.experiment().analysis.alpha)
    }

    fn cell(
        &self,
        (was, now): (Position, Position),
        whole: Option<Judgement>,
        share: Option<Judgement>,
    ) -> ComparedCell {
        let variant = &self.after.experiment().variants[now.variant];
        let controls = self.before.control(was).zip(self.after.control(now));
        let blocks = [(self.before, was), (self.after, now)]
            .map(|(side, at)| side.blocks(at, PanelObservation::over_control).len());
        ComparedCell {
            variant: variant.name.clone(),
            label: variant.label.clone(),
            family: self.after.experiment().families[now.family].title.clone(),
            blocks,
            control: controls.map(|(before, after)| after / before - 1.0),
            whole: whole.map(|judgement| judgement.whole),
            share: share.map(|judgement| judgement.whole),
            verdict: whole.map(|judgement| self.verdict((was, now), &judgement, share.as_ref())),
        }
    }

    /// The verdict of the rates, if the shares have the same. Where the metric has a share it has to be known.
    fn verdict(
        &self,
        (was, now): (Position, Position),
        whole: &Judgement,
        share: Option<&Judgement>,
    ) -> Verdict {
        let subtracts = [(self.before, was), (self.after, now)]
            .iter()
            .any(|(side, at)| side.observations.family(at.family).iter().any(PanelObservation::subtracts));
        let same = share.map_or(!subtracts, |share| share.verdict == whole.verdict);
        if same { whole.verdict } else { Verdict::Undecided }
    }

    fn left_out(&self) -> Vec<String> {
        let lacks = |this: &Side, other: &Side| {
            let variants = this
                .experiment()
                .variants
                .iter()
                .filter(|variant| other.experiment().variant_index(&variant.name).is_none());
            let families =
                this.experiment().families.iter().filter(|family| other.family(&family.name).is_none());
            let names = variants.map(|variant| &variant.label).chain(families.map(|family| &family.title));
            let folder = this.campaign.folder.display();
            names.map(|name| format!("{name}: only in {folder}")).collect::<Vec<String>>()
        };
        [lacks(self.before, self.after), lacks(self.after, self.before)].concat()
    }

    fn weaker(&self) -> Vec<String> {
        let [before, after] = [&self.before.campaign, &self.after.campaign];
        let [then, now] = [before, after].map(|campaign| &campaign.provenance.started);
        let always = [
            format!(
                "they were measured at different times ({then} and {now}): what changed on the machine between them and \
                 does not slow its control alike counts as a difference of the program, and no interval contains it"
            ),
            "they have no round in common: each rate is compared with its control in its own folder, and the blocks are \
             two unmatched sets (Welch's t), not pairs"
                .to_owned(),
            format!(
                "every comparison of folders is a look of its own with the whole error rate, alpha = {}: repeated while a \
                 campaign grows, it finds false differences more often",
                self.alpha()
            ),
        ];
        let conditions = condition_differences(&before.provenance.conditions, &after.provenance.conditions);
        let differences = before.provenance.differences(&after.provenance);
        let differs = differences.iter().filter(|line| !line.starts_with("conditions:"));
        let machine = differs.map(|line| format!("not the same: {line}"));
        let debug = before
            .provenance
            .build
            .debug
            .then(|| "both are debug builds: their rates mean nothing".to_owned());
        let longer = (before.experiment.window != after.experiment.window)
            .then(|| "their panels have other windows: [window] differs".to_owned());
        let windows = longer.into_iter().chain(self.turns());
        always.into_iter().chain(machine).chain(conditions).chain(windows).chain(debug).collect()
    }

    /// The families whose turns have other lengths, each a sentence. A calibration may find another length each time.
    fn turns(&self) -> Vec<String> {
        let families: BTreeSet<(usize, usize)> =
            self.positions().iter().map(|(was, now)| (was.family, now.family)).collect();
        let differs = |(was, now): (usize, usize)| {
            let [then, now_found] = [self.before.slice_us(was)?, self.after.slice_us(now)?];
            let title = &self.after.experiment().families[now].title;
            (then != now_found).then(|| {
                format!(
                    "{title}: the turns of one campaign are longer, with slices of {then:.0} µs before and \
                     {now_found:.0} µs after: what the turns of the others cost a variant beyond its control counts as a \
                     difference. Measure both with one window.slice_ms"
                )
            })
        };
        families.into_iter().filter_map(differs).collect()
    }

    /// Says of which campaign it is not known whether it can be trusted, in the families of the cells that are judged.
    fn trust_unknown(&self, cells: &[ComparedCell]) -> Vec<String> {
        let positions = self.positions();
        let judged = || positions.iter().zip(cells).filter(|(_, cell)| cell.verdict.is_some());
        let before = self.before.trust_unknown(&judged().map(|((was, _), _)| was.family).collect());
        let after = self.after.trust_unknown(&judged().map(|((_, now), _)| now.family).collect());
        before.into_iter().chain(after).collect()
    }

    fn untrusted(&self) -> Vec<String> {
        let untrusted = [self.before, self.after].into_iter().filter(|side| side.is_untrusted());
        let sentence = |side: &Side| {
            let folder = side.campaign.folder.display();
            format!(
                "{folder}: the baseline and its copy differ there, so that its machine or set-up cannot be trusted"
            )
        };
        untrusted.map(sentence).collect()
    }
}

/// The conditions that only one campaign has, each a sentence: tables of the same name may have other routes, and what a
/// program does unless it is set may differ from build to build. Files count by their names.
fn condition_differences(before: &[String], after: &[String]) -> Vec<String> {
    let [then, now] =
        [before, after].map(|lines| lines.iter().map(|line| without_folders(line)).collect::<BTreeSet<_>>());
    let only = |these: &BTreeSet<String>, those: &BTreeSet<String>, when: &str| {
        these.difference(those).map(|line| format!("not the same: only {when}: {line}")).collect::<Vec<_>>()
    };
    [only(&then, &now, "before"), only(&now, &then, "after")].concat()
}

/// A line in which absolute paths are replaced by the names of their files.
fn without_folders(line: &str) -> String {
    let name = |word: &str| match word.strip_prefix('/').and_then(|path| path.rsplit_once('/')) {
        Some((_, name)) => name.to_owned(),
        None => word.to_owned(),
    };
    line.split(' ').map(name).collect::<Vec<_>>().join(" ")
}
