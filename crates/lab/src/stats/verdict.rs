//! The verdict of a comparison: better, worse, equivalent or inconclusive.
//!
//! There are two families of tests, one for difference and one for equivalence. Each is corrected by Holm's procedure,
//! so that with the given alpha
//! - the probability of at least one `Better` or `Worse` where there is no difference is at most alpha, and
//! - the probability of at least one `Equivalent` where the difference reaches the margin is at most alpha / 2.
//!
//! An estimate beyond the margin is only tested for difference, an estimate inside it only for equivalence. Each
//! comparison therefore has one interval, at the level of its family of tests, and the verdict follows from it: `Better`
//! and `Worse` mean that the estimate is beyond the margin and the interval excludes 0; `Equivalent` means that the
//! interval is within the margin. A small difference close to the margin stays inconclusive until more runs decide it.

use super::contrast::{Contrast, Design, Effect, LogDifference};
use super::holm::{holm, holm_levels};
use super::power::detectable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The result of a comparison for its variant. A higher value of the metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The variant has the higher value: the estimate exceeds the margin and the interval excludes 0. The interval may
    /// include the margin.
    Better,
    /// The variant has the lower value, under the same conditions.
    Worse,
    /// The whole interval is within the margin.
    Equivalent,
    /// None of the other verdicts is proven.
    Inconclusive {
        /// Runs to add to each variant for a verdict with probability 0.8, if the estimate and the spread stay the same.
        /// `None` if that takes more than a thousand runs: then reduce the noise or raise the margin.
        runs_needed: Option<usize>,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Better => f.write_str("better"),
            Verdict::Worse => f.write_str("worse"),
            Verdict::Equivalent => f.write_str("equivalent"),
            Verdict::Inconclusive { runs_needed: Some(1) } => f.write_str("inconclusive (1 more run)"),
            Verdict::Inconclusive { runs_needed: Some(runs) } => write!(f, "inconclusive ({runs} more runs)"),
            Verdict::Inconclusive { runs_needed: None } => f.write_str("inconclusive (too noisy)"),
        }
    }
}

/// A verdict and the figures it follows from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The difference. Its interval is at the corrected level; its `p` is uncorrected.
    pub effect: Effect,
    /// p of the hypothesis of no difference, corrected for the family by Holm's procedure.
    pub adjusted_p: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Which test was made.
    pub design: Design,
}

/// Judges a declared family of comparisons (see [`Contrast::log_ratio`]).
///
/// `margin` is the relative difference that does not matter (0.01 = 1 %; 0 if every difference matters), `alpha` the
/// error rate of the whole family. A pair that cannot be compared yields `None` and still counts as a member of the
/// family. All results are `None` if `alpha` is not strictly between 0 and 1, or `margin` is negative or not a number.
pub fn judge(contrasts: &[Contrast<'_>], margin: f64, alpha: f64) -> Vec<Option<Judgement>> {
    if !(alpha > 0.0 && alpha < 1.0 && margin >= 0.0) {
        return vec![None; contrasts.len()];
    }
    let margin = Margin::of(margin);
    let differences: Vec<_> = contrasts.iter().map(LogDifference::of).collect();
    // A pair that cannot be tested gets p = 1, so it is never rejected.
    let p_of = |test: &dyn Fn(&LogDifference) -> f64| -> Vec<f64> {
        differences.iter().map(|difference| difference.as_ref().map_or(1.0, test)).collect()
    };
    let p = p_of(&LogDifference::p);
    let different = holm_levels(&p, alpha);
    // Half of alpha, so that the one-sided tests of a single comparison match its two-sided interval at alpha.
    let equivalent = holm_levels(&p_of(&|d| d.p_outside(margin.lowest, margin.highest)), alpha / 2.0);
    let judge_one = |(index, adjusted_p): (usize, f64)| {
        let difference = differences[index].as_ref()?;
        let inside = margin.contains(difference.mean);
        let alpha = if inside { 2.0 * equivalent[index] } else { different[index] };
        let effect = difference.effect(alpha);
        let contrast = &contrasts[index];
        let missing = || runs_needed(difference, margin.distance(difference.mean), alpha, contrast);
        let verdict = margin
            .proven(&effect, inside)
            .unwrap_or_else(|| Verdict::Inconclusive { runs_needed: missing() });
        Some(Judgement { effect, adjusted_p, verdict, design: contrast.design })
    };
    holm(&p).into_iter().enumerate().map(judge_one).collect()
}

/// The range of differences that do not matter, relative and as logarithms.
struct Margin {
    relative: f64,
    lowest: f64,
    highest: f64,
}

impl Margin {
    fn of(relative: f64) -> Margin {
        Margin { relative, lowest: (-relative.min(1.0)).ln_1p(), highest: relative.ln_1p() }
    }

    fn contains(&self, log: f64) -> bool {
        self.lowest < log && log < self.highest
    }

    /// How far an interval may reach from this estimate, a logarithm, and still prove a verdict.
    fn distance(&self, log: f64) -> f64 {
        if self.contains(log) { (log - self.lowest).min(self.highest - log) } else { log.abs() }
    }

    fn proven(&self, effect: &Effect, inside: bool) -> Option<Verdict> {
        match inside {
            true if -self.relative < effect.low && effect.high < self.relative => Some(Verdict::Equivalent),
            false if effect.low > 0.0 => Some(Verdict::Better),
            false if effect.high < 0.0 => Some(Verdict::Worse),
            _ => None,
        }
    }
}

/// Probability of a verdict after the number of runs that an inconclusive verdict asks for.
const POWER: f64 = 0.8;
/// Verdicts that need more runs than this are reported as out of reach: no campaign is that long.
pub(crate) const MOST_RUNS: usize = 1000;

/// Returns how many runs to add to each variant of `contrast` until the interval reaches no farther than `distance` (a
/// logarithm) from its estimate.
fn runs_needed(
    difference: &LogDifference,
    distance: f64,
    alpha: f64,
    contrast: &Contrast<'_>,
) -> Option<usize> {
    let runs = contrast.baseline.len().min(contrast.variant.len());
    let variance = difference.variance;
    let enough =
        |n: usize, degrees: f64| detectable(degrees, alpha, POWER) * (variance / n as f64).sqrt() <= distance;
    if !enough(MOST_RUNS, f64::INFINITY) {
        return None;
    }
    // Student's quantiles need only a few runs more than the normal distribution, so the search from there is short.
    let normal = variance * (detectable(f64::INFINITY, alpha, POWER) / distance).powi(2);
    let needed = (normal as usize).max(runs + 1)..=MOST_RUNS;
    let degrees = |n: usize| contrast.design.degrees_of_freedom(n as f64);
    needed.into_iter().find(|&n| enough(n, degrees(n))).map(|n| n - runs)
}

#[cfg(test)]
mod tests {
    use super::{Contrast, Design, Verdict, judge};

    /// Five runs around `mean` whose logarithms have a standard deviation of about `cv`.
    fn runs(mean: f64, cv: f64) -> [f64; 5] {
        [-1.3, -0.6, 0.1, 0.5, 1.3].map(|z| mean * (1.0 + cv * z))
    }

    fn verdict(baseline: &[f64], variant: &[f64], margin: f64) -> Verdict {
        judge(&[Contrast::independent(baseline, variant)], margin, 0.05)[0]
            .as_ref()
            .expect("a pair that can be judged")
            .verdict
    }

    #[test]
    fn each_verdict_has_its_case() {
        let base = runs(1e6, 0.002);
        assert_eq!(verdict(&base, &runs(1.05e6, 0.002), 0.01), Verdict::Better);
        assert_eq!(verdict(&base, &runs(0.95e6, 0.002), 0.01), Verdict::Worse);
        assert_eq!(verdict(&base, &runs(1.001e6, 0.002), 0.01), Verdict::Equivalent);
        assert!(matches!(verdict(&base, &runs(1.009e6, 0.02), 0.01), Verdict::Inconclusive { .. }));
    }

    #[test]
    fn a_proven_difference_within_the_margin_is_no_improvement() {
        let (base, variant) = (runs(1e6, 0.0001), runs(1.002e6, 0.0001));
        assert_eq!(verdict(&base, &variant, 0.01), Verdict::Equivalent);
        assert_eq!(verdict(&base, &variant, 0.0), Verdict::Better);
    }

    #[test]
    fn the_runs_asked_for_detect_the_difference() {
        let Verdict::Inconclusive { runs_needed: Some(more) } =
            verdict(&runs(1e6, 0.02), &runs(1.02e6, 0.02), 0.01)
        else {
            panic!("five runs with 2 % of noise cannot decide a difference of 2 %")
        };
        let smallest = crate::stats::power::smallest_effect(5 + more, 0.02, 0.05, 0.8).expect("a plan");
        assert!((0.018..0.0205).contains(&smallest), "{more} more runs detect {smallest}");
    }

    #[test]
    fn noise_that_needs_too_many_runs_asks_for_none() {
        let (base, variant) = (runs(1e6, 0.3), runs(1.009e6, 0.3));
        assert_eq!(verdict(&base, &variant, 0.01), Verdict::Inconclusive { runs_needed: None });
        assert_eq!(verdict(&base, &base, 0.0), Verdict::Inconclusive { runs_needed: None });
    }

    #[test]
    fn a_pair_that_cannot_be_compared_is_not_judged_and_still_counts() {
        let (base, variant) = (runs(1e6, 0.01), runs(1.03e6, 0.01));
        let alone = judge(&[Contrast::independent(&base, &variant)], 0.01, 0.05);
        let beside = judge(
            &[Contrast::independent(&base, &variant), Contrast::independent(&[], &variant)],
            0.01,
            0.05,
        );
        assert!(beside[1].is_none());
        let adjusted = |judged: &[Option<super::Judgement>]| judged[0].as_ref().expect("judged").adjusted_p;
        assert!((adjusted(&beside) - 2.0 * adjusted(&alone)).abs() < 1e-12);
        assert!(judge(&[Contrast::independent(&base, &variant)], -0.01, 0.05)[0].is_none());
        assert!(judge(&[Contrast::independent(&base, &variant)], 0.01, 1.0)[0].is_none());
    }

    /// The values drift by 3 % from block to block; within the blocks the variant is about 2 % faster.
    #[test]
    fn pairs_are_judged_by_the_paired_test() {
        let base: Vec<f64> = (0..5).map(|block| 1e6 * 1.03f64.powi(block)).collect();
        let variant: Vec<f64> =
            base.iter().zip([1.02, 1.021, 1.019, 1.02, 1.022]).map(|(run, by)| run * by).collect();
        let judged = |contrast| judge(&[contrast], 0.01, 0.05)[0].expect("a pair that can be judged");
        let (pairs, sets) =
            (judged(Contrast::paired(&base, &variant)), judged(Contrast::independent(&base, &variant)));
        assert_eq!((pairs.design, pairs.verdict), (Design::Paired, Verdict::Better));
        assert_eq!(sets.design, Design::Independent);
        assert!(
            matches!(sets.verdict, Verdict::Inconclusive { runs_needed: Some(more) } if more > 20),
            "{sets:?}"
        );
    }

    /// `report.json` contains verdicts in this form.
    #[test]
    fn verdicts_are_stored_by_name() {
        for (verdict, json) in [
            (Verdict::Better, r#""better""#),
            (Verdict::Inconclusive { runs_needed: Some(7) }, r#"{"inconclusive":{"runs_needed":7}}"#),
            (Verdict::Inconclusive { runs_needed: None }, r#"{"inconclusive":{"runs_needed":null}}"#),
        ] {
            assert_eq!(serde_json::to_string(&verdict).expect("serializable"), json);
            assert_eq!(serde_json::from_str::<Verdict>(json).expect("deserializable"), verdict);
        }
    }

    #[test]
    fn verdicts_are_displayed_as_words() {
        assert_eq!(Verdict::Equivalent.to_string(), "equivalent");
        assert_eq!(Verdict::Inconclusive { runs_needed: Some(7) }.to_string(), "inconclusive (7 more runs)");
    }
}
