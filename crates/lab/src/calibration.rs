//! The calibration of a turn's length: the shortest at which no arm is shown to have another rate than in long turns.
//!
//! After the turns of the others an arm finds its caches changed. A turn therefore begins with a lead-in that does not
//! count, and the calibration finds out whether what counts afterwards is still slower than what follows: each pair is the
//! slice of a turn and, in the same turn, a slice at the end of a turn eight times as long. The two are as long as each
//! other, so that the machine's own changes of speed bear on both alike: the logarithm of the rate in a longer slice would
//! be higher for them alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::panel::{Arm, Panel, Slice, SliceLimits};
use crate::stats::trimmed_interval;
use crate::turns::{Arms, FailedTurn, TurnLength};

/// The shortest slice that is tried: a shorter one gains nothing, because the noise is common to all arms already.
const SHORTEST: Duration = Duration::from_micros(500);
/// The longest lead-in. Filling a second-level cache takes a tenth of it.
const LONGEST_LEAD_IN: Duration = Duration::from_millis(1);
/// How many slices long the turn is at whose end the other slice of a pair lies.
const LONG: u32 = 8;
/// Pairs before the first look; each later look has twice as many as the one before.
const PAIRS: usize = 32;
/// Confidence of each interval. A calibration has many arms and some looks, so it is higher than usual.
const CONFIDENCE: f64 = 0.999;

/// How the length of the turns of a family was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The largest relative difference between short and long turns that is accepted: a quarter of the margin.
    pub limit: f64,
    /// The lengths that were tried, the chosen one last.
    pub tried: Vec<TriedLength>,
}

impl Calibration {
    /// Whether the difference of an arm is not shown to be within the limit.
    pub(crate) fn leaves_open(&self, arm: &ArmDifference) -> bool {
        !arm.is_within(self.limit)
    }
}

/// One length and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriedLength {
    /// Microseconds of the slice.
    pub slice_us: f64,
    /// Microseconds of the lead-in.
    pub lead_in_us: f64,
    /// Pairs of each arm.
    pub pairs: usize,
    /// The difference of each arm.
    pub arms: Vec<ArmDifference>,
    /// What they prove together.
    pub agreement: Agreement,
}

/// The relative difference of an arm's rate in short turns from its rate at the end of long ones, with a 99.9 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmDifference {
    /// The arm: the controls first, then the members.
    pub arm: usize,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl ArmDifference {
    fn is_within(&self, limit: f64) -> bool {
        -limit < self.low && self.high < limit
    }
}

/// Whether the rates in short turns agree with those in long ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Every interval is within the limit.
    Proven,
    /// No interval is outside the limit, but the noise is too large to prove more in the time there is.
    Open,
    /// An interval is outside the limit.
    Refuted,
}

/// What a calibration works with.
pub(crate) struct Effort<'a> {
    /// The accepted relative difference.
    pub(crate) limit: f64,
    /// Time for each length.
    pub(crate) each: Duration,
    pub(crate) stop: &'a AtomicBool,
}

/// Finds the length. Where the noise allows no proof, the shortest length that is not refuted is taken, because a longer
/// one would be noisier still; where all are refuted, the longest is.
pub(crate) fn calibrate(
    panel: &mut dyn Panel,
    arms: &Arms,
    effort: &Effort<'_>,
    random: &mut ChaCha8Rng,
) -> Result<(TurnLength, Calibration), FailedTurn> {
    let mut tried = Vec::new();
    let mut chosen = turn_of(panel.slice_limits().shortest);
    for slice in lengths(panel.slice_limits()) {
        chosen = turn_of(slice);
        let found = try_length(panel, arms, chosen, effort, random)?;
        let enough = found.agreement != Agreement::Refuted;
        tried.push(found);
        if enough || effort.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok((chosen, Calibration { limit: effort.limit, tried }))
}

/// The turn whose slice has this length.
pub(crate) fn turn_of(slice: Duration) -> TurnLength {
    TurnLength { lead_in: (slice / 2).min(LONGEST_LEAD_IN), slice }
}

/// The lengths to try, each twice the one before.
fn lengths(limits: SliceLimits) -> impl Iterator<Item = Duration> {
    let first = limits.shortest.max(SHORTEST);
    std::iter::successors(Some(first), |length| Some(*length * 2))
        .take_while(move |length| *length <= limits.longest.max(first))
}

fn try_length(
    panel: &mut dyn Panel,
    arms: &Arms,
    turn: TurnLength,
    effort: &Effort<'_>,
    random: &mut ChaCha8Rng,
) -> Result<TriedLength, FailedTurn> {
    let (mut pairs, started) = (Pairs::new(arms), Instant::now());
    let mut found = pairs.judged(turn, effort.limit);
    while found.agreement == Agreement::Open
        && started.elapsed() < effort.each
        && !effort.stop.load(Ordering::Relaxed)
    {
        for _ in 0..pairs.made.max(PAIRS) {
            pairs.add(panel, turn, random)?;
        }
        found = pairs.judged(turn, effort.limit);
    }
    Ok(found)
}

/// The logarithms of the ratios of early to late slices, arm by arm.
struct Pairs<'a> {
    arms: &'a Arms,
    /// Pairs of each arm, those included that were disturbed.
    made: usize,
    order: Vec<Arm>,
    ratios: Vec<Vec<f64>>,
}

impl<'a> Pairs<'a> {
    fn new(arms: &'a Arms) -> Self {
        Self { arms, made: 0, order: arms.active().to_vec(), ratios: vec![Vec::new(); arms.all()] }
    }

    fn add(
        &mut self,
        panel: &mut dyn Panel,
        turn: TurnLength,
        random: &mut ChaCha8Rng,
    ) -> Result<(), FailedTurn> {
        self.made += 1;
        self.order.shuffle(random);
        for &arm in &self.order {
            let failed = |source| FailedTurn { arm, source };
            let early = panel.slice(arm, turn.lead_in, turn.slice).map_err(failed)?;
            let late = panel.slice(arm, turn.slice * (LONG - 2), turn.slice).map_err(failed)?;
            let ratio = early.per_second(early.counted).ln() - late.per_second(late.counted).ln();
            let undisturbed = ratio.is_finite() && [early, late].iter().all(had_its_core);
            self.ratios[self.arms.index(arm)].extend(undisturbed.then_some(ratio));
        }
        Ok(())
    }

    fn judged(&self, turn: TurnLength, limit: f64) -> TriedLength {
        let intervals = self.order.iter().map(|arm| self.arms.index(*arm)).map(|arm| {
            let (low, high) = trimmed_interval(&self.ratios[arm], CONFIDENCE).unwrap_or((-1.0, f64::MAX));
            ArmDifference { arm, low: low.exp_m1(), high: high.exp_m1().min(f64::MAX) }
        });
        let mut arms: Vec<ArmDifference> = intervals.collect();
        arms.sort_by_key(|difference| difference.arm);
        let agreement = agreement(&arms, limit);
        let pairs = self.ratios.iter().map(Vec::len).max().unwrap_or(0);
        let [slice_us, lead_in_us] = [turn.slice, turn.lead_in].map(|time| time.as_secs_f64() * 1e6);
        TriedLength { slice_us, lead_in_us, pairs, arms, agreement }
    }
}

/// Whether a slice was not interrupted by other work, whose traces in the caches would be taken for those of the turns.
fn had_its_core(slice: &Slice) -> bool {
    slice.lost_core < slice.time / 50
}

fn agreement(arms: &[ArmDifference], limit: f64) -> Agreement {
    let inside = |arm: &ArmDifference| arm.is_within(limit);
    let outside = |arm: &ArmDifference| arm.low > limit || arm.high < -limit;
    if arms.iter().any(outside) {
        Agreement::Refuted
    } else if arms.iter().all(inside) {
        Agreement::Proven
    } else {
        Agreement::Open
    }
}
