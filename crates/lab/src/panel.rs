//! The interface of what the lab measures: panels, whose arms take turns on one bed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{LabError, SubjectError};
use crate::validity::Validity;

/// What a bench lends its panel to. An error ends the panel and comes back from [`Bench::panel`].
pub type PanelWork<'w> = &'w mut dyn FnMut(&mut dyn Panel) -> Result<(), PanelError>;

/// Makes panels. The program implements it for the settings `S`.
pub trait Bench<S> {
    /// Makes all `members` ready together, in their order, and lends the panel to `work`, once. `members` are the merged
    /// settings of each variant and those of the baseline once more, in a fresh random order. Everything is built anew in
    /// each call, so that the layout of memory is part of the spread between blocks.
    fn panel(
        &mut self,
        members: &[S],
        family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError>;

    /// Returns lines for the report's list of conditions, known before the first panel: cores, ports, tables, flows, load.
    fn conditions(&mut self) -> Vec<String>;
}

/// Members that are ready together and take turns.
pub trait Panel {
    /// Number of controls: beds that run without a subject. At least one; the baseline's judges the machine.
    fn controls(&self) -> usize;

    /// The control whose bed is the same as this member's.
    fn control_of(&self, member: usize) -> usize;

    /// Whether the time of its control is part of a member's time, so that the rest is the member's own share.
    fn subtracts(&self) -> bool;

    /// Whether a schedule offers the load, so that rates do not follow the speed of the machine.
    fn is_paced(&self) -> bool {
        false
    }

    /// The lengths of slices that are possible here.
    fn slice_limits(&self) -> SliceLimits;

    /// Checks every answer of a member. The lab measures none before this has passed.
    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError>;

    /// Runs one arm for about `lead_in`, which does not count and restores the caches that the turns of the other arms
    /// changed, and then for about `length`, which counts.
    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError>;

    /// What a member counted since the panel was made, and the reasons against counting the panel.
    fn findings(&mut self, member: usize) -> Findings;

    /// The same for what all members share.
    fn bed_findings(&mut self) -> Findings;
}

/// What takes a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arm {
    /// A bed without a subject.
    Control(usize),
    /// A subject.
    Member(usize),
}

/// The shortest and the longest slice that a panel can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceLimits {
    /// A shorter slice would measure its own beginning and end.
    pub shortest: Duration,
    /// A longer slice would make the turns of the panel longer than needed.
    pub longest: Duration,
}

/// Whether a verified member takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// All answers are right.
    Ready,
    /// The member cannot take part, and the panel is measured without it. Its findings have the explanation.
    SetAside(Validity),
}

/// The counted part of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// What the metric counts: packets received, keys looked up.
    pub counted: u64,
    /// What was handed to the arm, including what was dropped or lost.
    pub offered: u64,
    /// The time it took.
    pub time: Duration,
    /// The part of that time in which the thread did not have its core, so that nothing could be counted. Zero where the
    /// load goes on meanwhile, as that of another core or host does.
    pub lost_core: Duration,
}

impl Slice {
    /// So many of this slice, per second that the thread had its core; none if it never had it.
    pub(crate) fn per_second(&self, count: u64) -> f64 {
        let time = self.time.saturating_sub(self.lost_core);
        if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
    }
}

/// What a member, or the bed, reports at the end of a panel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findings {
    /// Counts and secondary rates by name: sent, received, lost and others. Finite and at least 0.
    pub counters: BTreeMap<String, f64>,
    /// Reasons against counting the panel.
    pub reasons: Vec<Validity>,
    /// Log lines for the report, such as the attachment of an algorithm. A line may begin with its time in seconds in
    /// brackets, in the kernel's format: `[0.120000] …`.
    pub events: Vec<String>,
}

/// Why a panel was not measured.
#[derive(Debug, thiserror::Error)]
pub enum PanelError {
    /// A member could not be made.
    #[error("member {member}: {source}")]
    Member {
        /// Its position.
        member: usize,
        /// The error of the subject.
        source: SubjectError,
    },
    /// The bed could not be made, or something that all members share.
    #[error("{0}")]
    Bed(SubjectError),
    /// The lab's own work on the panel failed.
    #[error("{0}")]
    Lab(Box<LabError>),
}
