//! Campaigns that are judged at every look: false alarms, coverage, power, advice.

use super::binomial::Proportion;
use super::blocks::{Blocks, LOOKS, RULES};
use super::machine::Random;
use fullview_lab::stats::{
    COPY_ALPHA, Judgement, Observed, Rules, Verdict, advise, judge, judge_copy, smallest_difference,
};

/// The judgements of all looks up to 40 blocks.
fn at_every_look(comparisons: &[Observed], rules: &Rules) -> Vec<Judgement> {
    let at = |blocks: u32| {
        let first = |observed: &Observed| Observed {
            whole: observed.whole[..blocks as usize].to_vec(),
            share: observed.share.as_ref().map(|share| share[..blocks as usize].to_vec()),
        };
        judge(&comparisons.iter().map(first).collect::<Vec<_>>(), rules)
    };
    LOOKS.iter().flat_map(|&blocks| at(blocks)).flatten().collect()
}

/// How often something was wrong at any look of any comparison.
#[derive(Default)]
struct Wrong {
    verdict: Proportion,
    interval: Proportion,
}

impl Wrong {
    /// Campaigns with six comparisons against one baseline, of which every verdict is wrong.
    fn of(campaigns: u32, blocks: Blocks, margin: f64) -> Wrong {
        let (mut random, mut wrong) = (Random::seeded(1), Wrong::default());
        for _ in 0..campaigns {
            let comparisons = blocks.against_one_baseline(&mut random, 6, 40);
            let judged = at_every_look(&comparisons, &Rules { margin, ..RULES });
            let verdict = judged.iter().any(|judged| judged.verdict != Verdict::Undecided);
            let interval = judged.iter().any(|judged| !covers(judged, blocks.truth));
            wrong = Wrong { verdict: wrong.verdict.and(verdict), interval: wrong.interval.and(interval) };
        }
        wrong
    }
}

fn covers(judged: &Judgement, truth: f64) -> bool {
    (judged.whole.low..=judged.whole.high).contains(&truth.exp_m1())
}

/// Without a correction for looks and comparisons, most campaigns would have a false alarm.
#[test]
fn peeking_at_every_look_rarely_finds_a_difference_that_is_not_there() {
    let wrong = Wrong::of(2000, Blocks::NORMAL, 0.0);
    wrong.verdict.is_at_most(0.05);
    // The correction does not waste most of alpha.
    wrong.verdict.is_at_least(0.025);
}

/// The true difference is the margin, so that better, worse and equivalent are wrong.
#[test]
fn peeking_at_a_difference_of_the_margin_rarely_gives_a_verdict() {
    let wrong = Wrong::of(2000, Blocks { truth: 0.01_f64.ln_1p(), spread: 0.004, ..Blocks::NORMAL }, 0.01);
    wrong.verdict.is_at_most(0.05);
    wrong.interval.is_at_most(0.05);
}

#[test]
fn the_intervals_of_all_looks_cover_the_truth_with_heavy_tails_too() {
    Wrong::of(3000, Blocks::HEAVY, 0.0).interval.is_at_most(0.05);
}

/// The whole loop is beyond the margin, the share at it (or the other way round): "better" would be false.
#[test]
fn a_verdict_that_one_part_contradicts_is_rare() {
    let limit = 0.01_f64.ln_1p();
    for (whole, share) in [(0.05, limit), (limit, 0.05)] {
        let blocks = Blocks { truth: whole, share: Some(share), ..Blocks::NORMAL };
        let mut random = Random::seeded(4);
        let better = Proportion::of(600, || {
            let comparisons = blocks.against_one_baseline(&mut random, 3, 40);
            let judged = at_every_look(&comparisons, &RULES);
            judged.iter().any(|judged| judged.verdict == Verdict::Better)
        });
        better.is_at_most(0.05);
    }
}

/// The largest spread with which 40 blocks see a difference of 2 % in each of six comparisons with 95 % probability.
fn largest_spread(rules: &Rules) -> f64 {
    let seen = |spread| smallest_difference(40, spread, 6, rules, 0.95).expect("a plan");
    let (mut enough, mut too_much) = (0.0, 0.1);
    for _ in 0..40 {
        let middle = f64::midpoint(enough, too_much);
        if seen(middle) <= 0.02 { enough = middle } else { too_much = middle }
    }
    enough
}

#[test]
fn a_difference_that_the_plan_sees_is_found_with_its_power() {
    let spread = largest_spread(&RULES);
    assert!((0.009..0.012).contains(&spread), "{spread}");
    let mut random = Random::seeded(5);
    let blocks = Blocks { truth: 0.02_f64.ln_1p(), spread, ..Blocks::NORMAL };
    let (mut at_last, mut at_any) = (Proportion::default(), Proportion::default());
    for _ in 0..1500 {
        let mut comparisons = vec![Observed::default(); 6];
        comparisons[0] = blocks.observed(&mut random, 40);
        let found = |judged: &Option<Judgement>| judged.is_some_and(|one| one.verdict == Verdict::Better);
        let looks = LOOKS.map(|blocks| {
            comparisons[0].whole.truncate(40);
            let first = Observed { whole: comparisons[0].whole[..blocks as usize].to_vec(), share: None };
            let family: Vec<_> = std::iter::once(first).chain(comparisons[1..].iter().cloned()).collect();
            found(&judge(&family, &RULES)[0])
        });
        at_last = at_last.and(looks[looks.len() - 1]);
        at_any = at_any.and(looks.contains(&true));
    }
    at_last.may_be(0.95);
    at_any.is_at_least(0.94);
}

/// With the blocks that the advice names, the interval is as narrow as promised in most campaigns, and a difference of
/// twice the margin is told apart.
#[test]
fn the_advised_blocks_are_enough() {
    let mut random = Random::seeded(6);
    let (mut narrow, mut told_apart) = (Proportion::default(), Proportion::default());
    for spread in [0.002, 0.004, 0.008] {
        let blocks = Blocks { truth: 0.02_f64.ln_1p(), spread, ..Blocks::NORMAL };
        for _ in 0..400 {
            let mut observed = blocks.observed(&mut random, 5);
            let advice = advise(&[observed.clone()], &RULES)[0].expect("five blocks");
            let Some(more) = advice.blocks.filter(|_| advice.difference == 0.02) else { continue };
            observed.whole.extend(blocks.observed(&mut random, more as usize).whole);
            let judged = judge(&[observed], &RULES)[0].expect("more than five blocks");
            let half_width = (judged.whole.high.ln_1p() - judged.whole.low.ln_1p()) / 2.0;
            narrow = narrow.and(half_width <= 0.01_f64.ln_1p());
            told_apart = told_apart.and(judged.verdict == Verdict::Better);
        }
    }
    narrow.is_at_least(0.8);
    told_apart.is_at_least(0.8);
}

/// The copy has the error rate of a family of comparisons without a margin and with an alpha of its own.
#[test]
fn a_copy_is_judged_as_comparisons_are() {
    let mut random = Random::seeded(7);
    let rules = Rules { margin: 0.0, alpha: COPY_ALPHA, ..RULES };
    let mut differ = 0;
    for truth in [0.0, 0.005, 0.01, 0.02, 0.05] {
        for blocks in [4, 5, 9, 40] {
            let families: Vec<Observed> =
                (0..3).map(|_| Blocks { truth, ..Blocks::NORMAL }.observed(&mut random, blocks)).collect();
            let ratios: Vec<Vec<f64>> = families.iter().map(|family| family.whole.clone()).collect();
            for (copy, judged) in judge_copy(&ratios, &rules.looks).iter().zip(judge(&families, &rules)) {
                assert_eq!(
                    copy.map(|copy| (copy.look, copy.effect)),
                    judged.map(|one| (one.look, one.whole))
                );
                let differs = judged.map(|one| one.verdict != Verdict::Undecided);
                assert_eq!(copy.map(|copy| copy.differs), differs);
                differ += u32::from(differs == Some(true));
            }
        }
    }
    assert!((5..40).contains(&differ), "{differ}");
}
