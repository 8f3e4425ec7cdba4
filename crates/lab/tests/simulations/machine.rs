//! A simulated machine whose speed changes from slice to slice, and the panels that it measures.

use fullview_lab::stats::ControlSlice;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A source of random numbers.
pub struct Random(ChaCha8Rng);

impl Random {
    pub fn seeded(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn happens(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }

    /// A sample of the standard normal distribution (G. E. P. Box, M. E. Muller, Ann. Math. Statist. 29, 1958).
    pub fn normal(&mut self) -> f64 {
        let (u, v): (f64, f64) = (self.0.random(), self.0.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// A sample of Student's t distribution with four degrees of freedom, which has heavy tails on both sides
    /// (W. T. Shaw, J. Comput. Finance 9, 2006).
    pub fn heavy(&mut self) -> f64 {
        let u: f64 = self.0.random();
        let root = (4.0 * u * (1.0 - u)).sqrt().max(1e-9);
        (u - 0.5).signum() * 2.0 * ((root.acos() / 3.0).cos() / root - 1.0).sqrt()
    }

    /// A number from 0 to 1.
    pub fn share(&mut self) -> f64 {
        self.0.random()
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    /// An exponentially distributed time with this mean.
    pub fn waiting(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }

    pub fn shuffled<const N: usize>(&mut self) -> [usize; N] {
        let mut order = std::array::from_fn(|index| index);
        (1..N).rev().for_each(|last| order.swap(last, self.0.random_range(0..=last)));
        order
    }
}

/// What disturbs the machine.
#[derive(Clone, Copy)]
pub struct Disturbances {
    /// Correlation of the speeds of neighbouring slices, and the standard deviation of their logarithms.
    pub correlation: f64,
    pub wander: f64,
    /// Logarithm of the second speed, and the probability that a slice changes the speed.
    pub second_speed: f64,
    pub changes: f64,
    /// Spread of the noise of single slices, with heavy tails.
    pub noise: f64,
    /// Probability that a burst of a few slices begins, in which the machine has a third of its speed.
    pub bursts: f64,
    /// Change of the logarithm of the speed with each slice.
    pub drift: f64,
}

/// A machine between two slices.
pub struct Machine<'a> {
    pub random: &'a mut Random,
    is: Disturbances,
    wandered: f64,
    second: bool,
    burst: bool,
    drifted: f64,
}

impl<'a> Machine<'a> {
    pub fn new(random: &'a mut Random, is: Disturbances) -> Machine<'a> {
        let (wandered, second) = (is.wander * random.normal(), random.happens(0.5));
        Machine { random, is, wandered, second, burst: false, drifted: 0.0 }
    }

    /// The logarithm of the speed in the next slice.
    fn slice(&mut self) -> f64 {
        let is = self.is;
        let step = is.wander * (1.0 - is.correlation.powi(2)).sqrt();
        self.wandered = is.correlation * self.wandered + step * self.random.normal();
        self.second ^= self.random.happens(is.changes);
        // A burst lasts three slices on average.
        self.burst = if self.burst { self.random.happens(2.0 / 3.0) } else { self.random.happens(is.bursts) };
        self.drifted += is.drift;
        let speed = if self.second { is.second_speed } else { 0.0 };
        let burst = if self.burst { -3_f64.ln() } else { 0.0 };
        self.wandered + speed + burst + self.drifted + is.noise * self.random.heavy()
    }
}

/// The rounds of a block with a control and two members of the same speed.
#[derive(Default)]
pub struct Block {
    pub control: Vec<ControlSlice>,
    pub members: [Vec<f64>; 2],
}

impl Block {
    pub fn measured(machine: &mut Machine<'_>, rounds: usize) -> Block {
        let mut block = Block::default();
        for _ in 0..rounds {
            let mut round = [0.0; 3];
            for arm in machine.random.shuffled::<3>() {
                round[arm] = machine.slice();
            }
            block.control.push(ControlSlice { log_rate: round[0], lost_core: 0.0 });
            block.members.iter_mut().zip(&round[1..]).for_each(|(member, rate)| member.push(*rate));
        }
        block
    }
}
