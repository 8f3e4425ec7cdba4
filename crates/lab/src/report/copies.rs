//! The hidden copy of the baseline: what the same program, measured twice, seems to differ by.

use crate::decision::Decision;
use crate::stats::student::quantile;
use crate::stats::{COPY_ALPHA, CopyJudgement, Effect};

/// The copy of the baseline in one family.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyResult {
    pub(super) family: usize,
    pub(super) judgement: CopyJudgement,
    /// Error rate of the interval.
    pub(super) level: f64,
}

/// Gathers the judgements that there are; a family before its first look has none.
pub(super) fn copies(judgements: &[Option<CopyJudgement>]) -> Vec<CopyResult> {
    let level = |judgement: &CopyJudgement| COPY_ALPHA * judgement.look.spends / judgements.len() as f64;
    let result = |(family, judgement): (usize, CopyJudgement)| CopyResult {
        family,
        judgement,
        level: level(&judgement),
    };
    let judged = judgements.iter().enumerate();
    judged.filter_map(|(family, judgement)| Some(result((family, (*judgement)?)))).collect()
}

/// The families in which a comparison is judged and the copy is not, because too few of its panels are valid or because
/// nothing came out of it in one of them.
pub(super) fn unjudged_copies(decision: &Decision) -> Vec<usize> {
    let judges = |family: usize| {
        decision.comparisons.iter().any(|one| one.family == family && one.judgement.is_some())
    };
    let copies = decision.copies.iter().enumerate();
    copies.filter(|(family, copy)| copy.is_none() && judges(*family)).map(|(family, _)| family).collect()
}

impl CopyResult {
    /// Half the width of the 95 % interval: the noise floor of the campaign.
    pub(super) fn noise_floor(&self) -> f64 {
        let Effect { low, high, degrees_of_freedom, .. } = self.judgement.effect;
        let half = (high.ln_1p() - low.ln_1p()) / 2.0;
        let reach = |level: f64| quantile(1.0 - level / 2.0, degrees_of_freedom);
        (half * reach(0.05) / reach(self.level)).exp_m1()
    }
}
