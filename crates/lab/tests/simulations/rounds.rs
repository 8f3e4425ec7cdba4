//! The rounds of a block: what is left out, and that this does not favour a member.

use super::binomial::Proportion;
use super::machine::{Block, Disturbances, Machine, Random};
use fullview_lab::stats::{
    ControlWarning, NOTABLE_ONE_SIDED, control_warnings, kept_rounds, midmean, one_sided,
};

const QUIET: Disturbances = Disturbances {
    correlation: 0.0,
    wander: 0.0,
    second_speed: 0.0,
    changes: 0.0,
    noise: 0.005,
    bursts: 0.0,
    drift: 0.0,
};

/// The machines of the tests: independent slices, correlated ones, two speeds, bursts, and all of it.
const MACHINES: [(&str, Disturbances); 5] = [
    ("heavy tails", Disturbances { noise: 0.1, ..QUIET }),
    ("correlated", Disturbances { correlation: 0.95, wander: 0.2, noise: 0.02, ..QUIET }),
    ("two speeds", Disturbances { second_speed: -0.35, changes: 0.01, noise: 0.02, ..QUIET }),
    ("bursts", Disturbances { bursts: 0.01, noise: 0.02, ..QUIET }),
    (
        "all",
        Disturbances {
            correlation: 0.9,
            wander: 0.1,
            second_speed: -0.35,
            changes: 0.005,
            noise: 0.05,
            bursts: 0.01,
            drift: -0.0002,
        },
    ),
];

const ROUNDS: usize = 100;

/// The observation of a block whose rounds are chosen by `kept`: first member over second.
fn observation(block: &Block, kept: &[bool]) -> f64 {
    let [first, second] = &block.members;
    let ratios = first.iter().zip(second).map(|(first, second)| first - second);
    let kept: Vec<f64> = ratios.zip(kept).filter(|(_, kept)| **kept).map(|(ratio, _)| ratio).collect();
    midmean(&kept).expect("rounds are kept")
}

/// How often the first of two members with the same speed looks faster, of 600 blocks.
fn first_is_ahead(is: Disturbances, seed: u64, kept: impl Fn(&Block) -> Vec<bool>) -> Proportion {
    let mut random = Random::seeded(seed);
    Proportion::of(600, || {
        let block = Block::measured(&mut Machine::new(&mut random, is), ROUNDS);
        observation(&block, &kept(&block)) > 0.0
    })
}

#[test]
fn leaving_rounds_out_by_the_control_favours_no_member() {
    for (_, is) in MACHINES {
        let ahead = first_is_ahead(is, 2001, |block| kept_rounds(&block.control));
        ahead.may_be(0.5);
    }
}

/// The check above would find a rule that looks at a member: this one leaves out the tenth in which the first is slowest.
#[test]
fn leaving_rounds_out_by_a_member_favours_it() {
    for (_, is) in MACHINES {
        let ahead = first_is_ahead(is, 2002, |block| {
            let mut sorted = block.members[0].clone();
            sorted.sort_by(f64::total_cmp);
            block.members[0].iter().map(|rate| *rate >= sorted[ROUNDS / 10]).collect()
        });
        ahead.is_at_least(0.51);
    }
}

/// Share of all rounds of 100 blocks that are left out.
fn left_out(is: Disturbances) -> f64 {
    let mut random = Random::seeded(2003);
    let left_out = |random: &mut Random| {
        let block = Block::measured(&mut Machine::new(random, is), ROUNDS);
        kept_rounds(&block.control).iter().filter(|kept| !**kept).count()
    };
    (0..100).map(|_| left_out(&mut random)).sum::<usize>() as f64 / (100 * ROUNDS) as f64
}

#[test]
fn only_what_is_far_is_left_out() {
    assert!(left_out(QUIET) < 0.001, "{}", left_out(QUIET));
    let [heavy, correlated, two_speeds, bursts, _] = MACHINES.map(|(_, is)| left_out(is));
    assert!((0.001..0.01).contains(&heavy), "{heavy}");
    assert!(correlated < 0.001, "{correlated}");
    // Some blocks have the second speed for less than a tenth of their rounds.
    assert!(two_speeds < 0.01, "{two_speeds}");
    assert!((0.015..0.035).contains(&bursts), "bursts have 3 % of the slices: {bursts}");
}

/// Share of 100 panels with a warning of this kind.
fn warned(is: Disturbances, kind: impl Fn(&ControlWarning) -> bool) -> f64 {
    let mut random = Random::seeded(2004);
    let warned = |random: &mut Random| {
        let block = Block::measured(&mut Machine::new(random, is), 3 * ROUNDS);
        control_warnings(&block.control).iter().any(&kind)
    };
    (0..100).filter(|_| warned(&mut random)).count() as f64 / 100.0
}

#[test]
fn two_speeds_are_found_where_there_are_two() {
    let two = |is| warned(is, |warning| matches!(warning, ControlWarning::TwoSpeeds { .. }));
    let [heavy, correlated, two_speeds, bursts, _] = MACHINES.map(|(_, is)| two(is));
    assert_eq!((two(QUIET), heavy, correlated), (0.0, 0.0, 0.0));
    // In a few panels more than a tenth of the rounds is in bursts.
    assert!(bursts < 0.1, "{bursts}");
    assert!(two_speeds > 0.9, "{two_speeds}");
}

#[test]
fn a_drift_is_found_where_there_is_one() {
    let drift = |is| warned(is, |warning| matches!(warning, ControlWarning::Drift { .. }));
    let drifting = Disturbances { drift: -0.0002, noise: 0.05, ..QUIET };
    assert_eq!((drift(QUIET), drift(MACHINES[0].1), drift(MACHINES[3].1)), (0.0, 0.0, 0.0));
    assert!(drift(drifting) > 0.95, "{}", drift(drifting));
    // A speed that wanders for long looks like a drift in some of the panels.
    assert!(drift(MACHINES[1].1) < 0.2, "{}", drift(MACHINES[1].1));
}

#[test]
fn interference_in_one_arm_is_found_and_that_in_all_arms_is_not() {
    for (name, is) in MACHINES {
        let mut random = Random::seeded(2005);
        let mut block = Block::measured(&mut Machine::new(&mut random, is), 10 * ROUNDS);
        let control: Vec<f64> = block.control.iter().map(|slice| slice.log_rate).collect();
        let before = one_sided(&block.members[0], &control);
        assert!(before < NOTABLE_ONE_SIDED, "{name}: {before}");
        block.members[0].iter_mut().step_by(10).for_each(|rate| *rate -= 1.5);
        let after = one_sided(&block.members[0], &control);
        assert!((0.08..0.12).contains(&after), "{name}: {after}");
    }
}
