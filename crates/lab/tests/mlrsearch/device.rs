//! Simulated devices. Their losses follow from the load, the number of the trial and a seed alone.

use std::convert::Infallible;

use fullview_lab::search::{Measurer, TrialRequest, TrialResult};
use serde::Serialize;

/// How a device loses packets. The driver of the published search has the same kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Everything above its capacity.
    Sharp,
    /// Some already from half of its capacity.
    Soft,
    /// A capacity that varies from trial to trial, and bursts of losses at any load.
    Noisy,
    /// Sharp, but some ranges of loads lose 2 %, lower than others that lose nothing.
    Inverted,
    /// One packet now and then, the more often the higher the load.
    Single,
    /// Slower in the first trials.
    Settling,
    /// Slower from trial to trial.
    Ageing,
    /// Nothing at any load.
    Unlimited,
    /// 3 % at every load.
    Broken,
    /// Everything.
    Dead,
}

pub const KINDS: [Kind; 10] = [
    Kind::Sharp,
    Kind::Soft,
    Kind::Noisy,
    Kind::Inverted,
    Kind::Single,
    Kind::Settling,
    Kind::Ageing,
    Kind::Unlimited,
    Kind::Broken,
    Kind::Dead,
];

/// A device.
#[derive(Debug, Clone, Serialize)]
pub struct Device {
    pub kind: Kind,
    pub capacity: f64,
    /// Width of the range of a noisy device's capacity, relative to it.
    pub noise: f64,
    /// Seconds that a trial takes beyond its duration, at most.
    pub overhead: f64,
    pub seed: u64,
}

/// A device with the number of its next trial.
pub struct Simulation<'d> {
    device: &'d Device,
    number: u64,
}

impl<'d> Simulation<'d> {
    pub fn of(device: &'d Device) -> Simulation<'d> {
        Simulation { device, number: 0 }
    }
}

impl Measurer for Simulation<'_> {
    type Error = Infallible;

    fn measure(&mut self, request: TrialRequest) -> Result<TrialResult, Infallible> {
        let (device, number) = (self.device, self.number);
        self.number += 1;
        let offered = (request.load * request.duration) as u64;
        let lost = (device.ratio(request.load, number) * offered as f64) as u64;
        let lost = offered.min(lost + device.burst(request.load, number));
        let loss_ratio = if offered == 0 { 0.0 } else { lost as f64 / offered as f64 };
        let effective_duration = request.duration + device.overhead * device.chance(6, number);
        Ok(TrialResult { loss_ratio, effective_duration })
    }
}

impl Device {
    /// A number from 0 to 1, the same for the same salt and number.
    fn chance(&self, salt: u64, number: u64) -> f64 {
        let hashed = scramble(scramble(self.seed ^ salt) ^ number);
        (hashed >> 11) as f64 / 9_007_199_254_740_992.0
    }

    fn capacity(&self, number: u64) -> f64 {
        match self.kind {
            Kind::Noisy => self.capacity * (1.0 + self.noise * (self.chance(1, number) - 0.5)),
            Kind::Settling => self.capacity * (1.0 - 0.5 / (1.0 + number as f64)),
            Kind::Ageing => self.capacity / (1.0 + number as f64 * 0.01),
            _ => self.capacity,
        }
    }

    fn ratio(&self, load: f64, number: u64) -> f64 {
        let capacity = self.capacity(number);
        let over = if load > capacity { (load - capacity) / load } else { 0.0 };
        match self.kind {
            Kind::Unlimited => 0.0,
            Kind::Broken => 0.03,
            Kind::Dead => 1.0,
            Kind::Soft if load > capacity * 0.5 => {
                let slope = (load - capacity * 0.5) / capacity;
                (over + 0.05 * slope * slope).min(1.0)
            }
            Kind::Inverted if self.chance(2, (load * 16.0 / capacity) as u64) < 0.2 => (over + 0.02).min(1.0),
            _ => over,
        }
    }

    /// Packets lost beside the ratio.
    fn burst(&self, load: f64, number: u64) -> u64 {
        match self.kind {
            Kind::Noisy if self.chance(3, number) < 0.1 => 1 + (self.chance(4, number) * 20.0) as u64,
            Kind::Single => u64::from(self.chance(5, number) < load / self.capacity * 0.5),
            _ => 0,
        }
    }
}

/// A hash of good quality (splitmix64).
fn scramble(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}
