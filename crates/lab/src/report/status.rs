//! The status of a campaign.

use super::results::Results;
use crate::stats::Verdict;

/// The status of a campaign, for exit codes. Each fact stands for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportStatus {
    /// The baseline and its copy have two rates, so that no other figure can be trusted.
    pub untrusted: bool,
    /// Comparisons are judged in a family in which the copy of the baseline is not: whether their figures can be trusted is
    /// not known.
    pub trust_unknown: bool,
    /// The output of a variant was wrong in at least one panel, whether or not others count.
    pub misrouted: bool,
    /// At least one cell has no valid run, or at least one declared comparison has too few to be judged.
    pub incomplete: bool,
    /// At least one variant is worse than the one it was compared with.
    pub worse: bool,
}

impl ReportStatus {
    pub(super) fn of(results: &Results) -> Self {
        let is_empty = |values: &[f64]| values.is_empty();
        let unjudged = results.verdicts().any(|verdict| verdict.is_none());
        Self {
            untrusted: results.judged.copies.iter().any(|copy| copy.judgement.differs),
            trust_unknown: !results.judged.unjudged_copies.is_empty(),
            misrouted: !results.misrouted().is_empty(),
            incomplete: unjudged || results.judged.cells.all().iter().any(|cell| is_empty(&cell.values)),
            worse: results.verdicts().any(|verdict| verdict == Some(Verdict::Worse)),
        }
    }
}
