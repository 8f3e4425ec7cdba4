//! Whole campaigns on simulated machines, from the first panel to the report: false alarms, coverage, power, and what
//! looking and interrupting does to them.

use super::bench::Happenings;
use super::binomial::Proportion;
use super::campaign::{Seen, SeenComparison, Simulated};
use fullview_lab::stats::{COPY_ALPHA, Effect, Verdict};

/// A machine on which nothing happens but noise.
const QUIET: Happenings = Happenings {
    second_speed: 0.0,
    dwell_s: 1.0,
    drift: 0.0,
    wander: 0.0,
    wander_s: 1.0,
    noise: 0.01,
    stalls: 0.0,
    one_sided: 0.0,
    lost_core: 0.0,
    invalid: 0.0,
    fails: 0.0,
    stopped: 0.0,
    layout: 0.004,
};

/// A block's ratios vary by 0.7 to 0.9 % on each of them: 40 blocks that vary by 1 % just see a difference of 2 %.
const MACHINES: [(&str, Happenings); 7] = [
    ("two speeds", Happenings { second_speed: -0.35, dwell_s: 0.05, ..QUIET }),
    ("drift", Happenings { drift: -2.0, ..QUIET }),
    ("heavy tails", Happenings { noise: 0.012, stalls: 0.05, ..QUIET }),
    ("one-sided", Happenings { one_sided: 0.2, ..QUIET }),
    ("lost runs", Happenings { lost_core: 0.1, invalid: 0.1, fails: 0.02, stopped: 0.02, ..QUIET }),
    ("correlated", Happenings { wander: 0.05, wander_s: 0.02, ..QUIET }),
    (
        "all",
        Happenings {
            second_speed: -0.2,
            dwell_s: 0.05,
            drift: -1.0,
            wander: 0.03,
            wander_s: 0.02,
            noise: 0.008,
            stalls: 0.02,
            one_sided: 0.1,
            lost_core: 0.05,
            invalid: 0.05,
            fails: 0.01,
            stopped: 0.01,
            layout: 0.003,
        },
    ),
];

/// Both variants differ from the baseline by the margin, so that every verdict is false. They are judged at three looks.
const AT_THE_MARGIN: Simulated = Simulated {
    happens: QUIET,
    difference: 0.01,
    subtracts: false,
    alpha: 0.05,
    max_blocks: 10,
    copy: 0.0,
    interrupted: 0.0,
};

/// Both variants differ from the baseline by 2 %, in campaigns of the default length.
const DIFFERENT: Simulated = Simulated { difference: 0.02, subtracts: true, max_blocks: 40, ..AT_THE_MARGIN };

/// Campaigns of each kind on each machine.
fn campaigns() -> u32 {
    let set = std::env::var("FULLVIEW_CAMPAIGNS").ok();
    set.map_or(150, |text| text.parse().expect("FULLVIEW_CAMPAIGNS is a number"))
}

/// How often each of these happened in a campaign.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// A verdict at any look.
    verdict: Proportion,
    /// An interval of the whole loop, at any look, that does not contain the truth; and one of the share.
    whole_missed: Proportion,
    share_missed: Proportion,
    /// Every verdict at the end is the true one.
    found: Proportion,
    /// The copy of the baseline seemed to differ at any look.
    untrusted: Proportion,
}

impl Counts {
    fn of(simulated: Simulated, campaigns: u32, seed: u64) -> Counts {
        (0..campaigns).fold(Counts::default(), |counts, campaign| {
            let seen = simulated.campaign(seed + u64::from(campaign));
            counts.with(&simulated, &seen)
        })
    }

    fn with(self, simulated: &Simulated, seen: &[Seen]) -> Counts {
        let any = |what: fn(&Simulated, &SeenComparison) -> bool| {
            seen.iter().flat_map(|seen| &seen.comparisons).any(|compared| what(simulated, compared))
        };
        let last = seen.last().expect("every campaign is looked at when it ends");
        assert_eq!(last.comparisons.len(), 4);
        Counts {
            verdict: self.verdict.and(any(|_, compared| is_decided(compared))),
            whole_missed: self.whole_missed.and(any(misses_whole)),
            share_missed: self.share_missed.and(any(misses_share)),
            found: self.found.and(last.comparisons.iter().all(is_found)),
            untrusted: self.untrusted.and(seen.iter().any(|seen| seen.untrusted.is_some())),
        }
    }

    /// The intervals have simultaneous coverage, and the copy of the baseline is seldom taken for another program.
    fn intervals_hold(&self) {
        self.whole_missed.is_hardly_above(0.05);
        self.share_missed.is_hardly_above(0.05);
        self.untrusted.is_hardly_above(COPY_ALPHA);
    }

    /// The same for one machine, whose campaigns are too few to show it: rates close to their limits are meant.
    fn intervals_may_hold(&self) {
        self.whole_missed.is_not_shown_above(0.05);
        self.share_missed.is_not_shown_above(0.05);
        self.untrusted.is_not_shown_above(COPY_ALPHA);
    }

    /// The line of the archived counts.
    fn line(&self, question: &str, machine: &str) -> String {
        let Counts { verdict, whole_missed, share_missed, found, untrusted } = self;
        let counts =
            [verdict, whole_missed, share_missed, found, untrusted].map(|one| one.happened.to_string());
        format!("simulated,{question},{machine},{},{}", verdict.trials, counts.join(","))
    }

    fn and(self, other: Counts) -> Counts {
        Counts {
            verdict: self.verdict.with(other.verdict),
            whole_missed: self.whole_missed.with(other.whole_missed),
            share_missed: self.share_missed.with(other.share_missed),
            found: self.found.with(other.found),
            untrusted: self.untrusted.with(other.untrusted),
        }
    }
}

fn is_decided(compared: &SeenComparison) -> bool {
    compared.verdict.is_some_and(|verdict| verdict != Verdict::Undecided)
}

fn is_found(compared: &SeenComparison) -> bool {
    let truth = if compared.variant == "up" { Verdict::Better } else { Verdict::Worse };
    compared.verdict == Some(truth)
}

fn misses_whole(simulated: &Simulated, compared: &SeenComparison) -> bool {
    misses(compared.whole, simulated.difference_of(&compared.variant))
}

fn misses_share(simulated: &Simulated, compared: &SeenComparison) -> bool {
    misses(compared.share, simulated.share_difference_of(&compared.variant))
}

fn misses(effect: Option<Effect>, truth: f64) -> bool {
    effect.is_some_and(|effect| !(effect.low..=effect.high).contains(&truth))
}

/// Judges the machines one by one with `check` and returns all campaigns together. The machines have seeds of their own. Prints the
/// lines of `docs/measurements/simulated.csv`.
fn on_every_machine((question, simulated): (&str, Simulated), seed: u64, check: impl Fn(Counts)) -> Counts {
    let all = MACHINES.into_iter().zip(1..).map(|((name, happens), machine)| {
        let counts = Counts::of(Simulated { happens, ..simulated }, campaigns(), seed + machine * 1_000_000);
        println!("{}", counts.line(question, name));
        check(counts);
        counts
    });
    all.fold(Counts::default(), Counts::and)
}

#[test]
fn a_difference_of_the_margin_rarely_gives_a_verdict_however_often_one_looks() {
    let all = on_every_machine(("at the margin", AT_THE_MARGIN), 1_000_000_000, |counts| {
        counts.verdict.is_not_shown_above(0.05);
        counts.intervals_may_hold();
    });
    all.verdict.is_hardly_above(0.05);
    all.intervals_hold();
    // The correction does not waste most of alpha.
    all.verdict.is_at_least(0.01);
}

#[test]
fn a_difference_of_two_per_cent_is_found_within_the_default_length() {
    let all = on_every_machine(("different", DIFFERENT), 2_000_000_000, |counts| {
        counts.found.without().is_hardly_above(0.05);
        counts.intervals_may_hold();
    });
    all.found.is_at_least(0.95);
    all.intervals_hold();
}

/// The checks above would find judgements that are too bold: those of ten times the error rate are.
#[test]
fn judgements_at_a_higher_error_rate_are_found_out() {
    let bold = Counts::of(Simulated { alpha: 0.5, ..AT_THE_MARGIN }, 120, 3_000_000_000);
    bold.verdict.is_at_least(0.1);
    bold.whole_missed.is_at_least(0.1);
}

/// Blocks that vary by 1.8 % need more than 40 of them.
#[test]
fn a_difference_below_the_noise_is_not_found() {
    let happens = Happenings { layout: 0.012, ..QUIET };
    let noisy = Counts::of(Simulated { happens, ..DIFFERENT }, 40, 4_000_000_000);
    noisy.found.without().is_at_least(0.5);
    noisy.intervals_hold();
}

#[test]
fn a_copy_that_differs_by_three_per_cent_is_found() {
    let (_, happens) = MACHINES[6];
    let differs = Counts::of(Simulated { happens, copy: 0.03, ..AT_THE_MARGIN }, 60, 5_000_000_000);
    differs.untrusted.is_at_least(0.9);
}

/// What a user sees of one comparison, look after look.
fn judgements(seen: &[Seen], comparison: usize) -> Vec<SeenComparison> {
    let of_comparison = seen.iter().map(|seen| &seen.comparisons[comparison]);
    let judged = of_comparison.filter(|compared| compared.verdict.is_some());
    judged.map(|compared| SeenComparison { ratios: Vec::new(), ..compared.clone() }).collect()
}

/// Whether what a look has judged stays first in its order, so that no look is made twice with other blocks.
fn is_never_judged_anew(seen: &[Seen], comparison: usize) -> bool {
    let ratios = |seen: &Seen| seen.comparisons[comparison].ratios.clone();
    seen.windows(2).all(|two| ratios(&two[1]).starts_with(&ratios(&two[0])))
}

/// Half of the panels are invalid, so that the repeats which a campaign may make run out at some looks and not at others.
#[test]
fn interrupting_looking_and_resuming_change_no_judgement() {
    let (_, happens) = MACHINES[6];
    let happens = Happenings { invalid: 0.5, fails: 0.0, stopped: 0.0, ..happens };
    let whole = Simulated { happens, ..DIFFERENT };
    let happens = Happenings { fails: 0.1, ..happens };
    let interrupted = Simulated { happens, interrupted: 0.3, ..whole };
    for seed in 6_000_000_000..6_000_000_000 + u64::from(campaigns() / 8) {
        let [whole, interrupted] = [whole, interrupted].map(|simulated| simulated.campaign(seed));
        assert!(interrupted.len() > whole.len(), "seed {seed}");
        assert_eq!(whole.last(), interrupted.last(), "seed {seed}");
        for comparison in 0..4 {
            assert!(is_never_judged_anew(&interrupted, comparison), "seed {seed}");
            let mut seen = judgements(&interrupted, comparison).into_iter();
            let mut of_whole = judgements(&whole, comparison).into_iter();
            assert!(of_whole.all(|look| seen.any(|other| other == look)), "seed {seed}");
        }
    }
}
