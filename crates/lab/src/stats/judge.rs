//! The judgement of a declared family of comparisons.
//!
//! Every comparison of every family of measurements is a member, m in all. At look k each of them has an interval of level
//! alpha / (k (k + 1) m). By the union bound the intervals of all comparisons at all looks hold together with a
//! probability of 1 − alpha, whatever the dependence between arms, looks and comparisons, and those of the shares do so as a
//! set of their own; so a verdict that follows from
//! them is false with a probability of at most alpha, however often one looks.

use super::contrast::{Contrast, Design};
use super::difference::{Effect, LogDifference};
use super::looks::{Look, Looks};
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// What the blocks say about one comparison: log ratios, variant over baseline, one per block, always in the same order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Of the rate of the whole loop. A block without a ratio has a NaN here.
    pub whole: Vec<f64>,
    /// Of the rate of the subject's share of the loop; `None` if the metric has no share. A block whose share cannot be
    /// told, because the subject's time is not above the control's, has a NaN here.
    pub share: Option<Vec<f64>>,
}

/// The rules of a judgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The relative difference that does not matter: 0.01 is 1 %, and with 0 every difference matters.
    pub margin: f64,
    /// The error rate of all comparisons at all looks together.
    pub alpha: f64,
    /// When the comparisons are judged.
    pub looks: Looks,
}

impl Rules {
    pub(super) fn possible(&self) -> bool {
        possible(self.margin, self.alpha)
    }
}

pub(super) fn possible(margin: f64, alpha: f64) -> bool {
    alpha > 0.0 && alpha < 1.0 && margin >= 0.0 && margin.is_finite()
}

/// A verdict and the figures it follows from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The look that was judged.
    pub look: Look,
    /// Error rate of each interval here: the comparison's part of alpha at this look.
    pub level: f64,
    /// Which test was made.
    pub design: Design,
    /// The difference of the whole loop's rates. Its interval is simultaneous with those of the other comparisons and
    /// looks; its `p` is uncorrected.
    pub whole: Effect,
    /// The same of the subject's share of the loop. `None` if there is no share, or if a block could not tell it; then
    /// the verdict is undecided.
    pub share: Option<Effect>,
    /// The verdict: that of the whole loop if the share has the same, else undecided.
    pub verdict: Verdict,
    /// p of the hypothesis that there is no difference in the whole loop or in the share, corrected for the comparisons
    /// and looks. It is at most alpha exactly if the intervals of both exclude 0.
    pub adjusted_p: f64,
    /// Whether the answer is known, so that more blocks are of no use. That is so for every verdict but undecided, and for
    /// an undecided comparison whose whole loop and share have different answers, each proven.
    pub settled: bool,
}

/// Judges the comparisons of a campaign at the last look that their blocks allow.
///
/// `Better` and `Worse` mean that the intervals of the whole loop and of the share both exclude the margin, `Equivalent`
/// that both lie within it. As a verdict needs both, it does not have to divide alpha between them (R. L. Berger,
/// Technometrics 24, 1982): the intervals of the whole loop hold simultaneously, and so do those of the shares.
///
/// A comparison without enough blocks or with a ratio that is not finite yields `None` and still counts in the family.
/// All results are `None` unless alpha lies strictly between 0 and 1 and the margin is finite and not negative.
pub fn judge(comparisons: &[Observed], rules: &Rules) -> Vec<Option<Judgement>> {
    let judge_one = |observed: &Observed| {
        let blocks = u32::try_from(observed.whole.len()).unwrap_or(u32::MAX);
        let look = rules.looks.last(blocks).filter(|_| rules.possible())?;
        let first = |ratios: &[f64]| LogDifference::of_pairs(ratios.get(..look.blocks as usize)?);
        let (whole, share) = (first(&observed.whole)?, observed.share.as_ref().map(|share| first(share)));
        let level = look.level(rules.alpha, comparisons.len());
        let (whole, share) = (whole.effect(level), share.map(|share| share.map(|share| share.effect(level))));
        let effects = Effects { whole, share, margin: rules.margin };
        Some(effects.judgement(look, Design::Paired, level, rules.alpha))
    };
    comparisons.iter().map(judge_one).collect()
}

/// Judges a family of comparisons of complete sets of runs, at one look with the whole alpha: the runs of an archive
/// without panels, or those of two folders. The verdict follows from the interval as in [`judge`]; a pair that cannot be
/// compared (see [`Contrast::log_ratio`]) yields `None` and still counts in the family.
pub fn judge_runs(contrasts: &[Contrast<'_>], margin: f64, alpha: f64) -> Vec<Option<Judgement>> {
    let judge_one = |contrast: &Contrast<'_>| {
        let difference = contrast.difference().filter(|_| possible(margin, alpha))?;
        let look = Look::only(contrast.runs());
        let level = look.level(alpha, contrasts.len());
        let effects = Effects { whole: difference.effect(level), share: None, margin };
        Some(effects.judgement(look, contrast.design, level, alpha))
    };
    contrasts.iter().map(judge_one).collect()
}

/// The intervals of one comparison.
struct Effects {
    whole: Effect,
    /// The inner `None` is a share that a block could not tell.
    share: Option<Option<Effect>>,
    margin: f64,
}

impl Effects {
    fn judgement(&self, look: Look, design: Design, level: f64, alpha: f64) -> Judgement {
        Judgement {
            look,
            level,
            design,
            whole: self.whole,
            share: self.share.flatten(),
            verdict: self.verdict(),
            adjusted_p: (alpha / level * self.p()).min(1.0),
            settled: self.each().all(|verdict| verdict != Verdict::Undecided),
        }
    }

    /// The verdicts of the parts, each from its interval alone.
    fn each(&self) -> impl Iterator<Item = Verdict> {
        let of = |effect: &Effect| Verdict::of(effect, self.margin);
        let share = self.share.as_ref().map(|share| share.as_ref().map_or(Verdict::Undecided, of));
        std::iter::once(of(&self.whole)).chain(share)
    }

    fn verdict(&self) -> Verdict {
        let whole = Verdict::of(&self.whole, self.margin);
        if self.each().all(|part| part == whole) { whole } else { Verdict::Undecided }
    }

    fn p(&self) -> f64 {
        let share = self.share.map_or(0.0, |share| share.map_or(1.0, |share| share.p));
        self.whole.p.max(share)
    }
}

#[cfg(test)]
mod tests {
    use super::{Contrast, Design, Judgement, Looks, Observed, Rules, Verdict, judge, judge_runs};

    const RULES: Rules = Rules { margin: 0.01, alpha: 0.05, looks: Looks::starting_at(5) };

    /// This number of blocks around `mean` that differ by about `spread`.
    fn blocks(count: usize, mean: f64, spread: f64) -> Vec<f64> {
        [-1.3, -0.6, 0.1, 0.5, 1.3].iter().cycle().take(count).map(|step| mean + spread * step).collect()
    }

    fn whole(mean: f64, spread: f64) -> Observed {
        Observed { whole: blocks(5, mean, spread), share: None }
    }

    fn with_share(whole: f64, share: f64) -> Observed {
        Observed { whole: blocks(5, whole, 0.001), share: Some(blocks(5, share, 0.002)) }
    }

    fn judged(observed: Observed) -> Judgement {
        judge(&[observed], &RULES)[0].expect("five blocks can be judged")
    }

    #[test]
    fn each_verdict_has_its_case() {
        assert_eq!(judged(whole(0.05, 0.002)).verdict, Verdict::Better);
        assert_eq!(judged(whole(-0.05, 0.002)).verdict, Verdict::Worse);
        assert_eq!(judged(whole(0.001, 0.002)).verdict, Verdict::Equivalent);
        assert_eq!(judged(whole(0.02, 0.02)).verdict, Verdict::Undecided);
    }

    #[test]
    fn a_proven_difference_that_may_be_within_the_margin_is_no_improvement() {
        let close = judged(whole(0.012, 0.002));
        assert!(close.whole.low > 0.0 && close.adjusted_p < 0.05, "{close:?}");
        assert_eq!((close.verdict, close.settled), (Verdict::Undecided, false));
        assert_eq!(judged(whole(0.002, 0.0001)).verdict, Verdict::Equivalent);
        let every = Rules { margin: 0.0, ..RULES };
        assert_eq!(judge(&[whole(0.002, 0.0001)], &every)[0].map(|one| one.verdict), Some(Verdict::Better));
    }

    #[test]
    fn whole_loop_and_share_have_to_agree() {
        for (whole, share, verdict, settled) in [
            (0.03, 0.08, Verdict::Better, true),
            (-0.03, -0.08, Verdict::Worse, true),
            (0.0, 0.001, Verdict::Equivalent, true),
            (0.0, 0.03, Verdict::Undecided, true),
            (0.03, -0.03, Verdict::Undecided, true),
            (0.03, 0.011, Verdict::Undecided, false),
            (0.011, 0.03, Verdict::Undecided, false),
        ] {
            let both = judged(with_share(whole, share));
            assert_eq!((both.verdict, both.settled), (verdict, settled), "{whole} and {share}: {both:?}");
        }
    }

    #[test]
    fn a_share_that_a_block_could_not_tell_leaves_the_comparison_undecided() {
        let mut observed = with_share(0.05, 0.1);
        observed.share.iter_mut().for_each(|share| share[3] = f64::NAN);
        let without = judged(observed);
        assert_eq!((without.verdict, without.share, without.settled), (Verdict::Undecided, None, false));
        assert_eq!((without.whole, without.adjusted_p), (judged(with_share(0.05, 0.1)).whole, 1.0));
    }

    #[test]
    fn p_is_that_of_the_part_that_shows_less() {
        let both = judged(with_share(0.03, 0.002));
        let share = both.share.expect("a share");
        assert!(share.p > both.whole.p);
        assert!((both.adjusted_p - 2.0 * share.p).abs() < 1e-15, "{both:?}");
    }

    #[test]
    fn blocks_after_the_last_look_do_not_count_yet() {
        let mut observed = whole(0.05, 0.002);
        let at_five = judged(observed.clone());
        observed.whole.push(-3.0);
        assert_eq!(judged(observed.clone()), at_five);
        observed.whole.push(-3.0);
        let at_seven = judged(observed);
        assert_eq!((at_seven.look.number, at_seven.look.blocks), (2, 7));
        assert_eq!(at_seven.verdict, Verdict::Undecided);
    }

    #[test]
    fn a_look_has_its_part_of_alpha() {
        let observed = Observed { whole: blocks(40, 0.05, 0.002), share: None };
        for (blocks, looks) in [(5, 2.0), (7, 6.0), (10, 12.0), (14, 20.0), (40, 56.0)] {
            let first = Observed { whole: observed.whole[..blocks].to_vec(), share: None };
            let level = judge(&[first, Observed::default()], &RULES)[0].map(|one| one.level);
            assert!(level.is_some_and(|level| (level - 0.05 / 2.0 / looks).abs() < 1e-15), "{level:?}");
        }
    }

    #[test]
    fn a_pair_that_cannot_be_compared_is_not_judged_and_still_counts() {
        let alone = judged(whole(0.03, 0.01));
        let without_number = Observed { whole: vec![0.0, f64::NEG_INFINITY, 0.0, 0.0, 0.0], share: None };
        for missing in [Observed::default(), without_number] {
            let beside = judge(&[whole(0.03, 0.01), missing], &RULES);
            assert_eq!(beside[1], None);
            let adjusted = beside[0].map_or(0.0, |one| one.adjusted_p);
            assert!((adjusted - 2.0 * alone.adjusted_p).abs() < 1e-12, "{adjusted}");
        }
    }

    #[test]
    fn impossible_rules_judge_nothing() {
        for (margin, alpha) in
            [(-0.01, 0.05), (f64::NAN, 0.05), (f64::INFINITY, 0.05), (0.01, 0.0), (0.01, 1.0)]
        {
            assert_eq!(judge(&[whole(0.05, 0.002)], &Rules { margin, alpha, ..RULES }), [None]);
            let runs = [1.0, 1.1];
            assert_eq!(judge_runs(&[Contrast::independent(&runs, &runs)], margin, alpha), [None]);
        }
    }

    /// The values drift by 3 % from block to block; within the blocks the variant is about 2 % faster.
    #[test]
    fn pairs_are_judged_by_the_paired_test() {
        let base: Vec<f64> = (0..5).map(|block| 1e6 * 1.03f64.powi(block)).collect();
        let variant: Vec<f64> =
            base.iter().zip([1.02, 1.021, 1.019, 1.02, 1.022]).map(|(run, by)| run * by).collect();
        let judged = |contrast| judge_runs(&[contrast], 0.01, 0.05)[0].expect("a pair that can be judged");
        let (pairs, sets) =
            (judged(Contrast::paired(&base, &variant)), judged(Contrast::independent(&base, &variant)));
        assert_eq!((pairs.design, pairs.verdict), (Design::Paired, Verdict::Better));
        assert_eq!((sets.design, sets.verdict), (Design::Independent, Verdict::Undecided));
    }

    #[test]
    fn complete_sets_of_runs_have_one_look_with_the_whole_alpha() {
        let (five, four) = ([1.0, 1.01, 0.99, 1.0, 1.02], [1.1, 1.09, 1.11, 1.1]);
        let contrast = Contrast::independent(&five, &four);
        let judged = judge_runs(&[contrast, contrast], 0.01, 0.05)[1].expect("two sets");
        assert_eq!((judged.look.blocks, judged.look.spends, judged.level), (4, 1.0, 0.025));
        assert_eq!(contrast.log_ratio(0.975), Some(judged.whole));
        assert!((judged.adjusted_p - 2.0 * judged.whole.p).abs() < 1e-15);
    }

    #[test]
    fn blocks_are_judged_as_their_runs_at_the_same_level() {
        let ratios = blocks(5, 0.03, 0.004);
        let (ones, runs) = (vec![1.0; 5], ratios.iter().map(|ratio| ratio.exp()).collect::<Vec<_>>());
        let of_runs = judge_runs(&[Contrast::paired(&ones, &runs)], 0.01, 0.025)[0].expect("runs");
        let of_blocks = judged(Observed { whole: ratios, share: None });
        assert!((of_runs.whole.low - of_blocks.whole.low).abs() < 1e-12);
        assert!((of_runs.whole.high - of_blocks.whole.high).abs() < 1e-12);
        assert_eq!(of_runs.verdict, of_blocks.verdict);
    }
}
