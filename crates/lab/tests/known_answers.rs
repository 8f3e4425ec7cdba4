//! The statistics against textbook figures, other programs' figures, and simulated runs.
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use fullview_lab::stats::{
    Contrast, Effect, Verdict, Warning, holm, judge, smallest_effect, warnings_of_runs,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A sample of the standard normal distribution (G. E. P. Box, M. E. Muller, Ann. Math. Statist. 29, 1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

fn runs(rng: &mut ChaCha8Rng, n: usize, mean: f64, cv: f64) -> Vec<f64> {
    (0..n).map(|_| mean * (cv * normal(rng)).exp()).collect()
}

fn log_ratio(baseline: &[f64], variant: &[f64], confidence: f64) -> Option<Effect> {
    Contrast::independent(baseline, variant).log_ratio(confidence)
}

/// The share of `trials` in which `happens` returns true.
fn share(trials: usize, mut happens: impl FnMut() -> bool) -> f64 {
    (0..trials).filter(|_| happens()).count() as f64 / trials as f64
}

/// A family of six comparisons of five runs each.
type Family = Vec<(Vec<f64>, Vec<f64>)>;

fn family(rng: &mut ChaCha8Rng, effect: f64) -> Family {
    (0..6).map(|_| (runs(rng, 5, 1e6, 0.008), runs(rng, 5, 1e6 * (1.0 + effect), 0.008))).collect()
}

fn verdicts(family: &Family, margin: f64) -> Vec<Verdict> {
    let pairs: Vec<_> =
        family.iter().map(|(baseline, variant)| Contrast::independent(baseline, variant)).collect();
    judge(&pairs, margin, 0.05)
        .into_iter()
        .map(|judged| judged.expect("five runs can be judged").verdict)
        .collect()
}

/// Without a correction, the false alarm rate of six comparisons would be 26 %.
#[test]
fn six_comparisons_without_a_difference_rarely_alarm() {
    let mut rng = ChaCha8Rng::seed_from_u64(1979);
    let alarms = share(1500, || {
        let verdicts = verdicts(&family(&mut rng, 0.0), 0.0);
        verdicts.iter().any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse))
    });
    assert!((0.02..0.065).contains(&alarms), "{alarms}");
}

/// The margin is as large as the true difference, so that every `Equivalent` is a false alarm.
#[test]
fn six_differences_at_the_margin_are_rarely_called_equivalent() {
    let mut rng = ChaCha8Rng::seed_from_u64(1987);
    let alarms = share(1500, || verdicts(&family(&mut rng, 0.02), 0.02).contains(&Verdict::Equivalent));
    assert!(alarms < 0.035, "{alarms}");
}

/// Verdict, interval and margin are consistent.
#[test]
fn the_verdict_follows_from_the_interval() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let margin = 0.01;
    for effect in [-0.03, -0.012, -0.008, 0.0, 0.009, 0.011, 0.02] {
        for _ in 0..60 {
            let family = family(&mut rng, effect);
            let pairs: Vec<_> =
                family.iter().map(|(baseline, variant)| Contrast::independent(baseline, variant)).collect();
            for judged in judge(&pairs, margin, 0.05).into_iter().flatten() {
                let (low, high) = (judged.effect.low, judged.effect.high);
                let read = match judged.effect.estimate {
                    estimate if estimate.abs() < margin && -margin < low && high < margin => "equivalent",
                    estimate if estimate >= margin && low > 0.0 => "better",
                    estimate if estimate <= -margin && high < 0.0 => "worse",
                    _ => "inconclusive",
                };
                assert!(judged.verdict.to_string().starts_with(read), "{judged:?}");
                let alarm = matches!(judged.verdict, Verdict::Better | Verdict::Worse);
                assert!(!alarm || judged.adjusted_p <= 0.05, "{judged:?}");
            }
        }
    }
}

/// The coverage of the interval is its confidence level, even if one spread is four times the other.
#[test]
fn the_interval_covers_the_truth() {
    let mut rng = ChaCha8Rng::seed_from_u64(1947);
    let misses = share(3000, || {
        let (baseline, variant) = (runs(&mut rng, 5, 1e6, 0.01), runs(&mut rng, 5, 1.1e6, 0.04));
        let effect = log_ratio(&baseline, &variant, 0.95).expect("an effect");
        !(effect.low..effect.high).contains(&0.1)
    });
    assert!((0.035..0.065).contains(&misses), "{misses}");
}

/// The smallest effect of a two-sided t test at 5 % with power 0.8, in coefficients of variation.
#[test]
fn the_smallest_effect_agrees_with_the_reference_figures() {
    for (n, expected) in [(5, 2.03), (10, 1.31), (20, 0.91)] {
        let effect = smallest_effect(n, 1.0, 0.05, 0.8).expect("a plan");
        assert!((effect - expected).abs() < 0.02, "{n} runs detect {effect}");
    }
}

#[test]
fn the_smallest_effect_is_detected_with_its_power() {
    let mut rng = ChaCha8Rng::seed_from_u64(80);
    for n in [5, 10] {
        let effect = smallest_effect(n, 0.01, 0.05, 0.8).expect("a plan");
        let found = share(2000, || {
            let (baseline, variant) = (runs(&mut rng, n, 1.0, 0.01), runs(&mut rng, n, effect.exp(), 0.01));
            log_ratio(&baseline, &variant, 0.95).expect("an effect").p < 0.05
        });
        assert!((0.76..0.83).contains(&found), "{n} runs detect it in {found} of the trials");
    }
}

/// With the number of runs that an inconclusive verdict asks for, most comparisons have a verdict.
#[test]
fn the_runs_that_a_verdict_asks_for_decide_most_comparisons() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let truth = 1.012;
    let (mut inconclusive, mut settled) = (0, 0);
    while inconclusive < 200 {
        let (mut baseline, mut variant) = (runs(&mut rng, 5, 1.0, 0.01), runs(&mut rng, 5, truth, 0.01));
        let verdict = verdicts(&vec![(baseline.clone(), variant.clone())], 0.0)[0];
        let Verdict::Inconclusive { runs_needed: Some(more) } = verdict else { continue };
        inconclusive += 1;
        baseline.extend(runs(&mut rng, more, 1.0, 0.01));
        variant.extend(runs(&mut rng, more, truth, 0.01));
        settled += usize::from(verdicts(&vec![(baseline, variant)], 0.0)[0] == Verdict::Better);
    }
    assert!(settled > 140, "{settled} of {inconclusive} were decided");
}

/// The expected figures come from numerical integration of the density of Student's t.
#[test]
fn the_interval_is_that_of_the_t_density() {
    let effect =
        log_ratio(&[20.1, 19.8, 20.4, 20.0, 19.9], &[21.5, 22.3, 20.9, 21.8], 0.95).expect("an effect");
    let ours = [effect.estimate, effect.low, effect.high, effect.p, effect.degrees_of_freedom];
    for (ours, integrated) in
        ours.into_iter().zip([0.078_851_397, 0.035_689_120, 0.123_812_459, 0.007_017_475, 3.857_715_948])
    {
        assert!((ours - integrated).abs() < 1e-7, "{effect:?}");
    }
}

const BEFORE: [f64; 5] = [713_234.0, 715_001.0, 712_870.0, 714_410.0, 713_900.0];
const AFTER: [f64; 5] = [729_800.0, 730_100.0, 727_950.0, 731_020.0, 727_400.0];

fn agrees(effect: Effect, [low, high, p, degrees]: [f64; 4]) {
    let ours = [effect.low, effect.high, effect.p, effect.degrees_of_freedom];
    for (ours, known) in ours.into_iter().zip([low, high, p, degrees]) {
        assert!((ours / known - 1.0).abs() < 1e-9, "{effect:?}: {known}");
    }
}

/// SciPy 1.17.1, `b` and `v` the two sets as arrays:
/// `r = ttest_rel(log(v), log(b)); ci = r.confidence_interval(0.95)`, and
/// `print(expm1(ci.low), expm1(ci.high), r.pvalue, r.df)`
#[test]
fn paired_runs_have_the_figures_of_scipy() {
    let effect = Contrast::paired(&BEFORE, &AFTER).log_ratio(0.95).expect("an effect");
    agrees(effect, [0.019_292_677_774_867_054, 0.023_772_944_102_799_78, 1.123_684_673_257_562_6e-5, 4.0]);
    assert!((effect.estimate - 0.021_530_354_726_672_56).abs() < 1e-12);
}

/// The same with `r = ttest_ind(log(v), log(b), equal_var=False)`.
#[test]
fn independent_sets_have_the_figures_of_scipy() {
    let effect = log_ratio(&BEFORE, &AFTER, 0.95).expect("an effect");
    agrees(
        effect,
        [
            0.018_878_397_383_580_714,
            0.024_189_214_638_092_65,
            5.556_474_000_984_729e-7,
            6.408_254_506_915_447,
        ],
    );
}

/// The additional hours of sleep of Student's paper of 1908, as logarithms: t = 4.0621 with 9 degrees of freedom,
/// p = 0.002833, interval 0.7001 to 2.4599 (`scipy.stats.ttest_rel(y, x)`).
#[test]
fn the_example_of_students_paper_has_its_figures() {
    let x = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0_f64].map(f64::exp);
    let y = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4_f64].map(f64::exp);
    let effect = Contrast::paired(&x, &y).log_ratio(0.95).expect("an effect");
    let interval = [0.700_114_236_723_017_5_f64, 2.459_885_763_276_983].map(f64::exp_m1);
    agrees(effect, [interval[0], interval[1], 0.002_832_890_197_384_273, 9.0]);
}

/// The coverage of the paired interval is its confidence level, even with drift from block to block.
#[test]
fn the_interval_of_pairs_covers_the_truth() {
    let mut rng = ChaCha8Rng::seed_from_u64(1908);
    let misses = share(3000, || {
        let (baseline, drift) = (runs(&mut rng, 5, 1e6, 0.01), runs(&mut rng, 5, 1.0, 0.2));
        let variant = runs(&mut rng, 5, 1.1e6, 0.01);
        let drifting =
            |runs: Vec<f64>| -> Vec<f64> { runs.iter().zip(&drift).map(|(run, by)| run * by).collect() };
        let (baseline, variant) = (drifting(baseline), drifting(variant));
        let effect = Contrast::paired(&baseline, &variant).log_ratio(0.95).expect("an effect");
        !(effect.low..effect.high).contains(&0.1)
    });
    assert!((0.035..0.065).contains(&misses), "{misses}");
}

/// The smallest effect of a paired test at 5 % with power 0.8, in standard deviations of the differences, from SciPy's
/// non-central t: the root `e` of `nct.sf(t.ppf(.975, n - 1), n - 1, e * sqrt(n)) - .8`.
#[test]
fn the_error_of_the_smallest_effect_of_pairs_is_as_documented() {
    for (n, exact, error) in [(3, 3.264_044, 0.052), (5, 1.681_997, 0.012), (10, 0.996_002, 0.002)] {
        let spread: Vec<f64> = (0..n).map(|run| (0.01 * f64::from(run)).exp()).collect();
        let ones = vec![1.0; spread.len()];
        let deviation = 0.01 * (f64::from(n) * (f64::from(n) + 1.0) / 12.0).sqrt();
        let effect = Contrast::paired(&ones, &spread).smallest_effect(0.05, 0.8).expect("a plan");
        assert!((effect / deviation / exact - 1.0).abs() < error, "{n} blocks detect {effect}");
    }
}

/// A common example of Welch's test, in logarithms: p = 0.021 with 25 degrees of freedom.
#[test]
fn a_textbook_example_has_its_figures() {
    let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4_f64];
    let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4_f64];
    let effect = log_ratio(&a.map(f64::exp), &b.map(f64::exp), 0.95).expect("an effect");
    assert!((effect.p - 0.0214).abs() < 1e-4, "{effect:?}");
    assert!((effect.degrees_of_freedom - 25.0).abs() < 0.05, "{effect:?}");
}

/// Computed by hand: the ordered values times 4, 3, 2 and 1, made non-decreasing.
#[test]
fn holm_adjusts_step_by_step() {
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (ours, by_hand) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((ours - by_hand).abs() < 1e-12, "{adjusted:?}");
    }
}

/// Normally distributed runs rarely have a warning about two groups; two distant groups have one.
#[test]
fn two_groups_are_found_only_where_there_are_two() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let bimodal = |runs: &[f64]| {
        warnings_of_runs(runs).iter().any(|warning| matches!(warning, Warning::Bimodal { .. }))
    };
    for n in [10, 12, 20] {
        let alarms = share(4000, || bimodal(&runs(&mut rng, n, 1e6, 0.05)));
        assert!(alarms < 0.008, "{n} runs: {alarms}");
    }
    let found = share(500, || {
        let mut both = runs(&mut rng, 5, 1e6, 0.005);
        both.extend(runs(&mut rng, 5, 1.1e6, 0.005));
        bimodal(&both)
    });
    assert!(found > 0.95, "{found}");
}
