//! How many blocks it takes: for an experiment that is planned, and for one that has not decided yet.

use super::contrast::Contrast;
use super::description::Description;
use super::difference::Effect;
use super::judge::{Judgement, Observed, Rules, possible};
use super::looks::Look;
use super::student::{chi_square_quantile, quantile};

/// What more blocks would do for a comparison that is undecided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advice {
    /// Blocks to add to those that were made; `None` if that would be more than any campaign has: then reduce the noise
    /// or raise the margin.
    pub blocks: Option<u32>,
    /// The relative difference that they tell apart from the margin, in either direction.
    pub difference: f64,
}

/// No campaign has more blocks than this.
const MOST_BLOCKS: u32 = 1000;
/// Confidence with which the spread is at most the one that the advice assumes.
const CONFIDENCE: f64 = 0.8;

/// Returns for each comparison the smallest further look at which its interval reaches no farther than the margin to
/// either side, so that a difference of twice the margin is told apart from the margin. Where the last look is already as
/// narrow, the advice is the next look and the smaller difference that it tells apart.
///
/// The advice follows from the spread alone, never from the distance between the estimate and the margin: while a
/// comparison is undecided that distance is mostly noise. The spread of a few blocks is uncertain too (among five, it is
/// less than two thirds of the true one in a fifth of all campaigns), so its upper confidence limit at 80 % stands for
/// it. It is the comparison's own and not pooled over comparisons, whose spreads differ: a table that fits a cache varies
/// less than one that does not.
///
/// `None` for a comparison with fewer than two blocks or a ratio that is not finite, and for impossible rules.
pub fn advise(comparisons: &[Observed], rules: &Rules) -> Vec<Option<Advice>> {
    let advise_one = |observed: &Observed| {
        let whole = upper_spread(&observed.whole)?;
        // A share that a block could not tell has no spread, so that no number of blocks is enough.
        let of_share = |share: &Vec<f64>| upper_spread(share).unwrap_or(f64::INFINITY);
        let spread = observed.share.as_ref().map_or(whole, |share| of_share(share).max(whole));
        let made = u32::try_from(observed.whole.len()).ok()?;
        rules.possible().then(|| Plan { spread, comparisons: comparisons.len(), rules }.advice(made))
    };
    comparisons.iter().map(advise_one).collect()
}

/// Returns the smallest relative difference that one of `comparisons` tells apart from the margin with a probability of
/// `power` at the last look within `blocks`, if its block observations have the standard deviation `spread` (of
/// logarithms). A campaign may find it at an earlier look already.
pub fn smallest_difference(
    blocks: u32,
    spread: f64,
    comparisons: usize,
    rules: &Rules,
    power: f64,
) -> Option<f64> {
    let possible = rules.possible() && spread >= 0.0 && spread.is_finite() && power > 0.0 && power < 1.0;
    let look = rules.looks.last(blocks).filter(|_| possible)?;
    let plan = Plan { spread, comparisons, rules };
    let distance = detected(plan.critical(look), degrees(look), power) * plan.standard_error(look);
    Some((rules.margin.ln_1p() + distance).exp_m1())
}

/// Returns how far the interval of one of `comparisons` reaches from its estimate at the last look within `blocks`, as a
/// relative difference, if its block observations have the standard deviation `spread` (of logarithms). `None` before the
/// first look.
pub fn interval_reach(blocks: u32, spread: f64, comparisons: usize, rules: &Rules) -> Option<f64> {
    let possible = rules.possible() && spread >= 0.0 && spread.is_finite();
    let look = rules.looks.last(blocks).filter(|_| possible)?;
    Some(Plan { spread, comparisons, rules }.half_width(look).exp_m1())
}

impl Judgement {
    /// The smallest relative difference that a judgement with these spreads tells apart from the margin with a probability
    /// of `power`, in the whole loop and in the share.
    pub fn smallest_difference(&self, margin: f64, power: f64) -> f64 {
        let distance = |effect: &Effect| {
            let critical = quantile(1.0 - self.level / 2.0, effect.degrees_of_freedom);
            let reach = (effect.high.ln_1p() - effect.low.ln_1p()) / 2.0;
            detected(critical, effect.degrees_of_freedom, power) * reach / critical
        };
        let share = self.share.as_ref().map_or(0.0, distance);
        (margin.ln_1p() + distance(&self.whole).max(share)).exp_m1()
    }
}

/// Intervals that are still to come, of a comparison whose observations have this standard deviation.
struct Plan<'a> {
    spread: f64,
    comparisons: usize,
    rules: &'a Rules,
}

impl Plan<'_> {
    fn advice(&self, made: u32) -> Advice {
        let Rules { margin, looks, .. } = self.rules;
        let narrow = |look: &Look| self.half_width(*look) <= margin.ln_1p();
        let mut further = looks.after(made).take_while(|look| look.blocks <= MOST_BLOCKS);
        let (look, beyond) = match looks.last(made).filter(narrow) {
            None => (further.find(narrow), *margin),
            Some(_) => {
                let next = further.next();
                (next, next.map_or(*margin, |look| self.half_width(look).exp_m1()))
            }
        };
        Advice { blocks: look.map(|look| look.blocks - made), difference: margin + beyond }
    }

    /// How far the interval reaches from its estimate, in logarithms.
    fn half_width(&self, look: Look) -> f64 {
        self.critical(look) * self.standard_error(look)
    }

    fn standard_error(&self, look: Look) -> f64 {
        self.spread / f64::from(look.blocks).sqrt()
    }

    fn critical(&self, look: Look) -> f64 {
        quantile(1.0 - look.level(self.rules.alpha, self.comparisons) / 2.0, degrees(look))
    }
}

fn degrees(look: Look) -> f64 {
    f64::from(look.blocks - 1)
}

/// How far a difference has to be beyond a limit, in standard errors, for Student's t to exceed `critical` there with a
/// probability of `power`. This is the normal approximation of the non-central t distribution (M. Abramowitz and
/// I. Stegun, Handbook of Mathematical Functions, 26.7.10). At the levels and looks of twelve comparisons its error is at
/// most 1.1 %; the sum of two quantiles of Student's t would be up to 18 % too small at five blocks.
fn detected(critical: f64, degrees: f64, power: f64) -> f64 {
    let spread = (1.0 + critical * critical / (2.0 * degrees)).sqrt();
    critical * (1.0 - 0.25 / degrees) + quantile(power, f64::INFINITY) * spread
}

/// Returns how many runs of each of two unmatched sets it takes until the interval of one of `comparisons` reaches no farther
/// than the margin, at one look. As in [`advise`], the upper confidence limit stands for the spread. `None` if no campaign
/// has as many, or if the runs have no spread.
pub fn runs_needed(contrast: &Contrast<'_>, margin: f64, alpha: f64, comparisons: usize) -> Option<u32> {
    let difference = contrast.difference().filter(|_| possible(margin, alpha) && margin > 0.0)?;
    let runs = contrast.runs() as f64;
    let spread = spread_at_most(difference.standard_error * runs.sqrt(), difference.degrees_of_freedom);
    let level = alpha / comparisons.max(1) as f64;
    let reach = |runs: u32| {
        let degrees = f64::from(2 * runs - 2);
        quantile(1.0 - level / 2.0, degrees) * spread / f64::from(runs).sqrt()
    };
    (2..=MOST_BLOCKS).find(|runs| reach(*runs) <= margin.ln_1p())
}

/// The upper confidence limit of the standard deviation of these ratios.
fn upper_spread(ratios: &[f64]) -> Option<f64> {
    let usable = ratios.len() >= 2 && ratios.iter().all(|ratio| ratio.is_finite());
    let described = Description::of(ratios).filter(|_| usable)?;
    Some(spread_at_most(described.stddev, described.n as f64 - 1.0))
}

/// Returns what the standard deviation of a population is at most, with a confidence of 80 %, if that of a sample with
/// this many degrees of freedom is `stddev`.
pub fn spread_at_most(stddev: f64, degrees_of_freedom: f64) -> f64 {
    stddev * (degrees_of_freedom / chi_square_quantile(1.0 - CONFIDENCE, degrees_of_freedom)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::judge::judge;
    use super::super::looks::Looks;
    use super::super::student::quantile;
    use super::{Observed, Rules, advise, detected, interval_reach, smallest_difference, spread_at_most};

    const RULES: Rules = Rules { margin: 0.01, alpha: 0.05, looks: Looks::starting_at(5) };

    /// Five blocks with this mean whose standard deviation is `spread`.
    fn observed(mean: f64, spread: f64) -> Observed {
        let steps = [-1.264_911, -0.632_456, 0.0, 0.632_456, 1.264_911];
        Observed { whole: steps.map(|step| mean + spread * step).to_vec(), share: None }
    }

    fn blocks(observed: Observed) -> Option<u32> {
        advise(&[observed], &RULES)[0].expect("five blocks have a spread").blocks
    }

    /// The roots of `nct.sf(t, n - 1, root) - power`: non-central t, integrated numerically.
    #[test]
    fn the_error_of_the_detected_difference_is_as_documented() {
        for (n, level, power, exact) in [
            (5.0, 0.025, 0.8, 4.584),
            (5.0, 0.025 / 12.0, 0.8, 8.848),
            (5.0, 0.025 / 12.0, 0.95, 11.217),
            (10.0, 0.05 / 12.0 / 6.0, 0.95, 7.490),
            (40.0, 0.05 / 56.0 / 6.0, 0.95, 5.999),
            (3.0, 0.05, 0.8, 5.653),
        ] {
            let critical = quantile(1.0 - level / 2.0, n - 1.0);
            let ours = detected(critical, n - 1.0, power);
            let error = if n == 3.0 { 0.02 } else { 0.011 };
            assert!((ours / exact - 1.0).abs() < error, "{n} {level} {power}: {ours}");
        }
    }

    /// By hand: with a spread of 1 %, the upper limit is 1.558 %, and t at the levels of looks 5 and 6 gives half-widths of
    /// 1.27 %, 1.07 % and 0.89 % at 20, 28 and 40 blocks.
    #[test]
    fn the_advice_is_the_first_look_that_is_narrow_enough() {
        assert_eq!(blocks(observed(0.012, 0.01)), Some(40 - 5));
        let two = advise(&[observed(0.012, 0.01), Observed::default()], &RULES);
        assert_eq!(two[0].and_then(|advice| advice.blocks), Some(40 - 5));
        assert_eq!(two[0].map(|advice| advice.difference), Some(0.02));
        assert_eq!(two[1], None);
    }

    #[test]
    fn the_advice_does_not_depend_on_the_estimate() {
        for spread in [0.001, 0.004, 0.01, 0.03] {
            let advised = [-0.5, 0.0, 0.0099, 0.011, 2.0].map(|mean| blocks(observed(mean, spread)));
            assert!(advised.iter().all(|&other| other == advised[0]), "{spread}: {advised:?}");
        }
    }

    #[test]
    fn where_the_last_look_is_narrow_the_next_one_tells_smaller_differences_apart() {
        let advice = advise(&[observed(0.01, 0.001)], &RULES)[0].expect("five blocks have a spread");
        assert_eq!(advice.blocks, Some(2));
        assert!((0.011..0.013).contains(&advice.difference), "{advice:?}");
    }

    #[test]
    fn blocks_out_of_reach_are_not_advised() {
        assert_eq!(blocks(observed(0.0, 0.3)), None);
        let no_margin = Rules { margin: 0.0, ..RULES };
        assert_eq!(advise(&[observed(0.0, 0.01)], &no_margin)[0].map(|advice| advice.blocks), Some(None));
        let share = Some(vec![f64::NAN; 5]);
        assert_eq!(blocks(Observed { share, ..observed(0.0, 0.001) }), None);
        assert_eq!(advise(&[observed(0.0, f64::NAN)], &RULES), [None]);
    }

    #[test]
    fn a_share_that_varies_more_needs_more_blocks() {
        let share = Some(observed(0.0, 0.01).whole);
        assert_eq!(blocks(Observed { share, ..observed(0.0, 0.001) }), blocks(observed(0.0, 0.01)));
    }

    #[test]
    fn a_plan_with_more_blocks_sees_smaller_differences() {
        let plan = |blocks| smallest_difference(blocks, 0.01, 6, &RULES, 0.95);
        let seen: Vec<f64> =
            [5, 7, 10, 14, 20, 28, 40, 56].iter().filter_map(|&blocks| plan(blocks)).collect();
        assert!(seen.len() == 8 && seen.is_sorted_by(|fewer, more| fewer > more), "{seen:?}");
        assert_eq!(plan(13), plan(10));
        assert!(seen.iter().all(|seen| *seen > RULES.margin), "{seen:?}");
    }

    /// The known upper limits of the standard deviation are those of chi-square tables: 1.649 is the lower fifth with four
    /// degrees of freedom, 13.716 with nineteen.
    #[test]
    fn the_spread_is_at_most_its_confidence_limit() {
        for (degrees, lower_fifth) in [(4.0_f64, 1.649_f64), (19.0, 13.716)] {
            let limit = spread_at_most(0.01, degrees);
            assert!((limit / 0.01 / (degrees / lower_fifth).sqrt() - 1.0).abs() < 1e-3, "{limit}");
        }
    }

    #[test]
    fn the_interval_of_a_judgement_reaches_as_far_as_planned() {
        let judged = judge(&[observed(0.2, 0.01), Observed::default()], &RULES)[0].expect("five blocks");
        let half_width = (judged.whole.high.ln_1p() - judged.whole.low.ln_1p()) / 2.0;
        let reach = interval_reach(6, 0.01, 2, &RULES).expect("a look");
        assert!((reach.ln_1p() / half_width - 1.0).abs() < 1e-4, "{reach}");
        assert_eq!(interval_reach(4, 0.01, 2, &RULES), None);
        assert_eq!(interval_reach(5, f64::INFINITY, 2, &RULES), None);
    }

    #[test]
    fn impossible_plans_see_nothing() {
        let plan =
            |blocks, spread, rules: Rules, power| smallest_difference(blocks, spread, 1, &rules, power);
        assert_eq!(plan(4, 0.01, RULES, 0.8), None);
        assert_eq!(plan(5, -0.01, RULES, 0.8), None);
        assert_eq!(plan(5, f64::NAN, RULES, 0.8), None);
        assert_eq!(plan(5, 0.01, Rules { alpha: 0.0, ..RULES }, 0.8), None);
        assert_eq!(plan(5, 0.01, Rules { margin: -0.01, ..RULES }, 0.8), None);
        assert_eq!(plan(5, 0.01, RULES, 1.0), None);
    }

    #[test]
    fn a_judgement_sees_what_a_plan_with_its_spread_sees() {
        let judged = judge(&[observed(0.2, 0.01)], &RULES)[0].expect("five blocks");
        let plan = smallest_difference(5, 0.01, 1, &RULES, 0.8).expect("a plan");
        assert!((judged.smallest_difference(0.01, 0.8) / plan - 1.0).abs() < 1e-4, "{judged:?}: {plan}");
    }
}
