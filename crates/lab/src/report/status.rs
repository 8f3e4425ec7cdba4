//! The status of a campaign.

use super::results::Results;
use crate::stats::Verdict;

/// The status of a campaign, for exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportStatus {
    /// Every cell was measured, and no variant is worse than the one it was compared with.
    Ok,
    /// At least one variant is worse.
    Worse,
    /// At least one cell has no valid run, or at least one declared comparison has too few to be judged.
    Incomplete,
    /// The baseline and its copy have two rates, so that no other figure can be trusted.
    Untrusted,
}

impl ReportStatus {
    pub(super) fn of(results: &Results) -> Self {
        if results.judged.copies.iter().any(|copy| copy.judgement.differs) {
            return Self::Untrusted;
        }
        let unjudged = results.verdicts().any(|verdict| verdict.is_none());
        if unjudged || results.judged.cells.all().iter().any(|cell| cell.values.is_empty()) {
            Self::Incomplete
        } else if results.verdicts().any(|verdict| verdict == Some(Verdict::Worse)) {
            Self::Worse
        } else {
            Self::Ok
        }
    }
}
