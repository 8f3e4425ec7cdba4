//! A bench in virtual time: each slice takes as long as the lab asks for, and what it counts follows from a machine whose
//! speed changes meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use fullview_lab::{
    Arm, Bench, Findings, Panel, PanelError, PanelWork, Settings, Slice, SliceLimits, SubjectError, Validity,
    Verified,
};
use serde::{Deserialize, Serialize};

use super::machine::Random;

/// Seconds of a packet in the control, and in the baseline.
pub const OF_CONTROL: f64 = 10e-9;
pub const OF_BASELINE: f64 = 40e-9;
/// The arms that one-sided interference can hit: the control, three variants and the copy.
const ARMS: usize = 5;

/// What happens on the machine.
#[derive(Debug, Clone, Copy)]
pub struct Happenings {
    /// Logarithm of the second speed, and the mean seconds that the machine stays at either.
    pub second_speed: f64,
    pub dwell_s: f64,
    /// Change of the logarithm of the speed in a second.
    pub drift: f64,
    /// Standard deviation and correlation time of a speed that wanders.
    pub wander: f64,
    pub wander_s: f64,
    /// Scale of what every slice adds, with heavy tails, and the share of slices that have half the speed besides.
    pub noise: f64,
    pub stalls: f64,
    /// Share of the panels in which one arm alone has two thirds of its speed, in an eighth of its slices.
    pub one_sided: f64,
    /// Share of the slices that lose a part of their core.
    pub lost_core: f64,
    /// Probabilities that a panel is invalid, that it fails, and that it is stopped.
    pub invalid: f64,
    pub fails: f64,
    pub stopped: f64,
    /// Standard deviation of what the layout of memory does to a member in a whole panel.
    pub layout: f64,
}

/// The settings of a simulated variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedSettings {
    /// Relative difference of its rate from the baseline's.
    pub difference: Option<f64>,
}

impl Settings for SimulatedSettings {
    fn over(self, base: &Self) -> Self {
        Self { difference: self.difference.or(base.difference) }
    }
}

/// Makes panels on a machine.
pub struct VirtualBench {
    pub happens: Happenings,
    /// Whether a share of the loop is subtracted.
    pub subtracts: bool,
    /// How much faster the member is that is verified last, the copy of the baseline, in logarithms.
    pub copy: f64,
    /// Panels of each seed that did not fail.
    made: BTreeMap<u64, u32>,
    random: Random,
}

impl VirtualBench {
    pub fn new(happens: Happenings, subtracts: bool, seed: u64) -> VirtualBench {
        VirtualBench { happens, subtracts, copy: 0.0, made: BTreeMap::new(), random: Random::seeded(seed) }
    }

    fn times(&self, members: &[SimulatedSettings], random: &mut Random) -> Vec<f64> {
        let time = |settings: &SimulatedSettings| {
            let faster = settings.difference.unwrap_or(0.0).ln_1p();
            OF_BASELINE * (self.happens.layout * random.normal() - faster).exp()
        };
        members.iter().map(time).collect()
    }
}

impl Bench<SimulatedSettings> for VirtualBench {
    fn panel(
        &mut self,
        members: &[SimulatedSettings],
        _family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        if self.random.happens(self.happens.fails) {
            return Err(PanelError::Bed("the machine went away".into()));
        }
        let made = self.made.entry(seed).or_insert(0);
        *made += 1;
        // Each panel of the same seed has the same fate whatever was made before it, in an interrupted campaign too.
        let mut random = Random::seeded(seed.wrapping_add(u64::from(*made)));
        let invalid = random.happens(self.happens.invalid);
        let mut times = self.times(members, &mut random);
        // What an invalid panel measures must not count.
        times[0] *= if invalid { 1.3 } else { 1.0 };
        let disturbed = random.happens(self.happens.one_sided).then(|| random.below(ARMS));
        let machine = VirtualMachine::new(random, self.happens);
        let VirtualBench { subtracts, copy, .. } = *self;
        work(&mut VirtualPanel { machine, times, disturbed, invalid, subtracts, copy, last_verified: 0 })
    }

    fn conditions(&mut self) -> Vec<String> {
        vec!["a simulated machine".into()]
    }
}

/// A machine between two slices.
struct VirtualMachine {
    random: Random,
    is: Happenings,
    now_s: f64,
    second: bool,
    second_until_s: f64,
    wandered: f64,
}

impl VirtualMachine {
    fn new(mut random: Random, is: Happenings) -> VirtualMachine {
        let (second, wandered) = (random.happens(0.5), is.wander * random.normal());
        let second_until_s = random.waiting(is.dwell_s);
        VirtualMachine { random, is, now_s: 0.0, second, second_until_s, wandered }
    }

    /// Lets time pass.
    fn pass(&mut self, seconds: f64) {
        self.now_s += seconds;
        while self.second_until_s < self.now_s {
            self.second = !self.second;
            self.second_until_s += self.random.waiting(self.is.dwell_s);
        }
        let kept = (-seconds / self.is.wander_s).exp();
        self.wandered =
            kept * self.wandered + self.is.wander * (1.0 - kept * kept).sqrt() * self.random.normal();
    }

    /// The logarithm of the speed in one slice.
    fn log_speed(&mut self) -> f64 {
        let second = if self.second { self.is.second_speed } else { 0.0 };
        let stall = if self.random.happens(self.is.stalls) { -2.0_f64.ln() } else { 0.0 };
        second + stall + self.wandered + self.is.drift * self.now_s + self.is.noise * self.random.heavy()
    }

    /// The part of a slice in which the thread does not have its core.
    fn lost_core(&mut self) -> f64 {
        if self.random.happens(self.is.lost_core) { 0.8 * self.random.share() } else { 0.0 }
    }
}

struct VirtualPanel {
    machine: VirtualMachine,
    /// Seconds of a packet of each member.
    times: Vec<f64>,
    /// The arm that alone is disturbed: the control, then the members.
    disturbed: Option<usize>,
    invalid: bool,
    subtracts: bool,
    copy: f64,
    last_verified: usize,
}

impl Panel for VirtualPanel {
    fn controls(&self) -> usize {
        1
    }

    fn control_of(&self, _member: usize) -> usize {
        0
    }

    fn subtracts(&self) -> bool {
        self.subtracts
    }

    fn slice_limits(&self) -> SliceLimits {
        SliceLimits { shortest: Duration::from_millis(1), longest: Duration::from_millis(1) }
    }

    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError> {
        self.last_verified = member;
        Ok(Verified::Ready)
    }

    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let (index, packet) = match arm {
            Arm::Control(_) => (0, OF_CONTROL),
            Arm::Member(member) if member == self.last_verified => {
                (member + 1, self.times[member] * (-self.copy).exp())
            }
            Arm::Member(member) => (member + 1, self.times[member]),
        };
        self.machine.pass(lead_in.as_secs_f64());
        let alone = self.disturbed == Some(index) && self.machine.random.happens(0.125);
        let speed = self.machine.log_speed().exp() * if alone { 2.0 / 3.0 } else { 1.0 };
        let lost = self.machine.lost_core();
        self.machine.pass(length.as_secs_f64());
        let counted = (length.as_secs_f64() * (1.0 - lost) / packet * speed) as u64;
        Ok(Slice { counted, offered: counted, time: length, lost_core: length.mul_f64(lost) })
    }

    fn findings(&mut self, _member: usize) -> Findings {
        Findings::default()
    }

    fn bed_findings(&mut self) -> Findings {
        let reasons = self.invalid.then_some(Validity::LinkEvent).into_iter().collect();
        Findings { reasons, ..Findings::default() }
    }
}
