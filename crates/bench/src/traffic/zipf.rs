//! Zipf's law: rank r is drawn with probability proportional to 1 / r^exponent.

use rand::{Rng, RngExt};

/// Draws ranks by inverting the cumulative distribution, which is kept whole: exact for every exponent, eight bytes a
/// rank, one binary search a draw. Draws happen before a measurement, never in it.
pub struct Zipf {
    /// The probability of this rank or a better one, not yet divided by the last entry.
    cumulative: Vec<f64>,
}

impl Zipf {
    /// Ranks 0 to `ranks - 1`; `exponent` must be finite and above 0. `None` without ranks or with another exponent.
    pub fn new(ranks: usize, exponent: f64) -> Option<Self> {
        if ranks == 0 || !exponent.is_finite() || exponent <= 0.0 {
            return None;
        }
        let mut sum = 0.0;
        let weights = (1..=ranks).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Some(Zipf { cumulative: weights.collect() })
    }

    /// A rank, from 0 for the most popular.
    pub fn draw(&self, rng: &mut impl Rng) -> usize {
        let last = self.cumulative.len() - 1;
        let point = rng.random::<f64>() * self.cumulative[last];
        // The product may round up to the whole sum: the last rank then.
        self.cumulative.partition_point(|sum| *sum <= point).min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Pearson's chi-square of 200,000 draws against the law; 99.9 % quantile for 99 degrees of freedom is 148.23.
    fn chi_square(exponent: f64) -> f64 {
        const DRAWS: usize = 200_000;
        let zipf = Zipf::new(100, exponent).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut seen = [0u32; 100];
        (0..DRAWS).for_each(|_| seen[zipf.draw(&mut rng)] += 1);
        let weight = |rank: usize| (rank as f64 + 1.0).powf(-exponent);
        let sum: f64 = (0..100).map(weight).sum();
        let deviation = |rank: usize| {
            let expected = DRAWS as f64 * weight(rank) / sum;
            (f64::from(seen[rank]) - expected).powi(2) / expected
        };
        (0..100).map(deviation).sum()
    }

    #[test]
    fn ranks_follow_the_law() {
        for exponent in [0.5, 1.0, 1.4] {
            let statistic = chi_square(exponent);
            assert!(statistic < 148.23, "exponent {exponent}: {statistic}");
        }
    }

    #[test]
    fn impossible_laws_are_refused() {
        assert!(Zipf::new(0, 1.0).is_none());
        for exponent in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Zipf::new(10, exponent).is_none(), "{exponent}");
        }
    }
}
