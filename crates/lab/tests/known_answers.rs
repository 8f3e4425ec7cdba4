//! The statistics against textbook figures, other programs' figures, and simulated runs. The folder `simulations` has the
//! properties of whole campaigns.
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use fullview_lab::stats::{
    Contrast, Effect, Looks, Observed, Rules, Verdict, Warning, judge, judge_runs, midmean,
    smallest_difference, warnings_of_runs,
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
    judge_runs(&pairs, margin, 0.05)
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

/// The margin is as large as the true difference, so that every verdict is a false alarm.
#[test]
fn six_differences_at_the_margin_rarely_have_a_verdict() {
    let mut rng = ChaCha8Rng::seed_from_u64(1987);
    let alarms = share(1500, || {
        verdicts(&family(&mut rng, 0.02), 0.02).iter().any(|verdict| *verdict != Verdict::Undecided)
    });
    assert!(alarms < 0.065, "{alarms}");
}

/// Verdict, interval and margin are consistent.
#[test]
fn the_verdict_follows_from_the_interval() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let margin = 0.01;
    let mut seen = std::collections::BTreeMap::new();
    for effect in [-0.05, -0.012, -0.008, 0.0, 0.009, 0.011, 0.04] {
        for _ in 0..60 {
            let family = family(&mut rng, effect);
            let pairs: Vec<_> =
                family.iter().map(|(baseline, variant)| Contrast::independent(baseline, variant)).collect();
            for judged in judge_runs(&pairs, margin, 0.05).into_iter().flatten() {
                let read = match (judged.whole.low, judged.whole.high) {
                    (low, _) if low > margin => Verdict::Better,
                    (_, high) if high < -margin => Verdict::Worse,
                    (low, high) if -margin < low && high < margin => Verdict::Equivalent,
                    _ => Verdict::Undecided,
                };
                assert_eq!(
                    (judged.verdict, judged.settled),
                    (read, read != Verdict::Undecided),
                    "{judged:?}"
                );
                let excludes = judged.whole.low > 0.0 || judged.whole.high < 0.0;
                assert_eq!(excludes, judged.adjusted_p < 0.05, "{judged:?}");
                *seen.entry(read.to_string()).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
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

/// One comparison of `blocks` blocks with the whole alpha: the first look spends half of it.
fn one_look(blocks: u32, margin: f64) -> Rules {
    Rules { margin, alpha: 0.1, looks: Looks::starting_at(blocks) }
}

/// The smallest difference of a paired test at 5 % with power 0.8, in standard deviations of the differences, from SciPy's
/// non-central t: the root `e` of `nct.sf(t.ppf(.975, n - 1), n - 1, e * sqrt(n)) - .8`.
#[test]
fn the_smallest_difference_agrees_with_the_reference_figures() {
    for (n, exact, error) in [(3, 3.264_044, 0.02), (5, 1.681_997, 0.006), (10, 0.996_002, 0.0012)] {
        let seen = smallest_difference(n, 1e-3, 1, &one_look(n, 0.0), 0.8).expect("a plan").ln_1p() / 1e-3;
        assert!((seen / exact - 1.0).abs() < error, "{n} blocks detect {seen}");
    }
}

#[test]
fn the_smallest_difference_is_found_with_its_power() {
    let mut rng = ChaCha8Rng::seed_from_u64(80);
    for n in [5, 10] {
        for power in [0.8, 0.95] {
            let rules = one_look(n, 0.01);
            let truth = smallest_difference(n, 0.01, 1, &rules, power).expect("a plan").ln_1p();
            let found = share(2000, || {
                let whole = (0..n).map(|_| truth + 0.01 * normal(&mut rng)).collect();
                let judged = judge(&[Observed { whole, share: None }], &rules)[0].expect("enough blocks");
                judged.verdict == Verdict::Better
            });
            assert!(
                (found - power).abs() < 0.025,
                "{n} blocks find it in {found} of the trials, not {power}"
            );
        }
    }
}

/// Mean square of `location` over 3,000 blocks of 200 rounds with this noise around 0.
fn mean_square(noise: fn(&mut ChaCha8Rng) -> f64, location: impl Fn(&[f64]) -> Option<f64>) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(1973);
    let mut block = || location(&(0..200).map(|_| noise(&mut rng)).collect::<Vec<_>>()).expect("rounds");
    (0..3000).map(|_| block().powi(2)).sum::<f64>() / 3000.0
}

fn laplace(rng: &mut ChaCha8Rng) -> f64 {
    let exponential = -(1.0 - rng.random::<f64>()).ln();
    if rng.random() { exponential } else { -exponential }
}

/// The efficiency of the midmean, the variance of the mean over its own, is 1 / 1.195 and 2 / 1.227 for many rounds.
#[test]
fn the_midmean_has_its_efficiency() {
    let mean = |rounds: &[f64]| Some(rounds.iter().sum::<f64>() / rounds.len() as f64);
    let efficiency = |noise| mean_square(noise, mean) / mean_square(noise, midmean);
    let (normal, laplace) = (efficiency(normal), efficiency(laplace));
    assert!((normal - 0.837).abs() < 0.02, "{normal}");
    assert!((laplace - 1.63).abs() < 0.06, "{laplace}");
}

/// Of a hundred rounds, 24 are slower by any factor: the mean follows them, the midmean stays within the others.
#[test]
fn the_midmean_bears_a_quarter_of_disturbed_rounds() {
    let usual: Vec<f64> = (0..76).map(|round| f64::from(round) / 1000.0).collect();
    for slower in [1.0, 10.0, 1e9] {
        let rounds: Vec<f64> = usual.iter().copied().chain((0..24).map(|_| -slower)).collect();
        let location = midmean(&rounds).expect("rounds");
        assert!((0.0..0.04).contains(&location), "{location}");
    }
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

/// A common example of Welch's test, in logarithms: p = 0.021 with 25 degrees of freedom.
#[test]
fn a_textbook_example_has_its_figures() {
    let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4_f64];
    let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4_f64];
    let effect = log_ratio(&a.map(f64::exp), &b.map(f64::exp), 0.95).expect("an effect");
    assert!((effect.p - 0.0214).abs() < 1e-4, "{effect:?}");
    assert!((effect.degrees_of_freedom - 25.0).abs() < 0.05, "{effect:?}");
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
