//! The judgement of the hidden copy of the baseline (A/A).

use super::difference::{Effect, LogDifference};
use super::looks::{Look, Looks};
use serde::{Deserialize, Serialize};

/// Error rate of the judgement of the copy, of all families and looks of a campaign together. It is smaller than that of
/// the comparisons, because its alarm discards the whole campaign.
pub const COPY_ALPHA: f64 = 0.01;

/// The difference between the baseline and its copy in one family.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CopyJudgement {
    /// The look that was judged.
    pub look: Look,
    /// The difference. Its interval is simultaneous with those of the other families and looks.
    pub effect: Effect,
    /// Whether the interval excludes zero: the same program twice has two rates, so that the machine or the set-up
    /// cannot be trusted.
    pub differs: bool,
}

/// Judges the log ratios of the copy over the baseline, block by block, of each family of measurements, at the last look
/// that the blocks allow. A family that cannot be judged yields `None` and still counts.
pub fn judge_copy(families: &[Vec<f64>], looks: &Looks) -> Vec<Option<CopyJudgement>> {
    let judge_one = |ratios: &Vec<f64>| {
        let look = looks.last(u32::try_from(ratios.len()).unwrap_or(u32::MAX))?;
        let first = LogDifference::of_pairs(ratios.get(..look.blocks as usize)?)?;
        let effect = first.effect(look.level(COPY_ALPHA, families.len()));
        Some(CopyJudgement { look, effect, differs: effect.low > 0.0 || effect.high < 0.0 })
    };
    families.iter().map(judge_one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::contrast::Contrast;
    use super::{Looks, judge_copy};

    const LOOKS: Looks = Looks::starting_at(5);

    fn blocks(mean: f64) -> Vec<f64> {
        [-0.013, -0.006, 0.001, 0.005, 0.013].map(|step| mean + step).to_vec()
    }

    #[test]
    fn a_copy_that_differs_is_found() {
        let judged = judge_copy(&[blocks(0.0), blocks(0.2), blocks(-0.2), vec![0.0; 4]], &LOOKS);
        let differs: Vec<_> = judged.iter().map(|family| family.map(|family| family.differs)).collect();
        assert_eq!(differs, [Some(false), Some(true), Some(true), None]);
    }

    #[test]
    fn the_interval_is_at_the_level_of_the_look_and_the_family() {
        let judged = judge_copy(&[blocks(0.01), blocks(0.0)], &LOOKS)[0].expect("five blocks");
        let runs: Vec<f64> = blocks(0.01).iter().map(|ratio| ratio.exp()).collect();
        let expected = Contrast::paired(&[1.0; 5], &runs).log_ratio(1.0 - 0.01 / 2.0 / 2.0).expect("runs");
        assert!((judged.effect.low / expected.low - 1.0).abs() < 1e-9, "{judged:?}");
        assert!((judged.effect.high / expected.high - 1.0).abs() < 1e-9, "{judged:?}");
    }

    #[test]
    fn copies_without_any_difference_agree() {
        let judged = judge_copy(&[vec![0.0; 5]], &LOOKS)[0].expect("five blocks");
        assert!(!judged.differs, "{judged:?}");
    }
}
