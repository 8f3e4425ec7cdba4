//! The block observations of simulated campaigns.

use super::machine::Random;
use fullview_lab::stats::{Looks, Observed, Rules};

/// The looks of a campaign of at most 40 blocks.
pub const LOOKS: [u32; 7] = [5, 7, 10, 14, 20, 28, 40];
pub const RULES: Rules = Rules { margin: 0.01, alpha: 0.05, looks: Looks::starting_at(5) };

/// What the blocks observe.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// The true log ratio of the whole loops.
    pub truth: f64,
    /// The true log ratio of the shares.
    pub share: Option<f64>,
    /// Standard deviation of one arm's observations if they are normal.
    pub spread: f64,
    pub noise: fn(&mut Random) -> f64,
}

impl Blocks {
    pub const NORMAL: Blocks = Blocks { truth: 0.0, share: None, spread: 0.01, noise: Random::normal };
    pub const HEAVY: Blocks = Blocks { noise: Random::heavy, ..Blocks::NORMAL };

    /// One comparison whose ratios have the standard deviation `spread`.
    pub fn observed(&self, random: &mut Random, blocks: usize) -> Observed {
        let mut ratio = |truth: f64| truth + self.spread * (self.noise)(random);
        let mut ratios = |truth: f64| (0..blocks).map(|_| ratio(truth)).collect();
        Observed { whole: ratios(self.truth), share: self.share.map(ratios) }
    }

    /// Comparisons of as many variants with the same baseline: its noise is in all of them.
    pub fn against_one_baseline(&self, random: &mut Random, variants: usize, blocks: usize) -> Vec<Observed> {
        let baseline =
            Blocks { truth: 0.0, share: self.share.map(|_| 0.0), ..*self }.observed(random, blocks);
        let against = |random: &mut Random| less(&self.observed(random, blocks), &baseline);
        (0..variants).map(|_| against(random)).collect()
    }
}

fn less(one: &Observed, other: &Observed) -> Observed {
    let less = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one - other).collect();
    let share = one.share.as_ref().zip(other.share.as_ref()).map(|(one, other)| less(one, other));
    Observed { whole: less(&one.whole, &other.whole), share }
}
