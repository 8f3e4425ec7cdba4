//! Exact bounds of a probability that was estimated by trials.

use statrs::distribution::{Beta, ContinuousCDF};

/// Probability that a bound is wrong, on either side.
const DOUBT: f64 = 0.025;

/// How often something happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Proportion {
    pub happened: u32,
    pub trials: u32,
}

impl Proportion {
    pub fn of(trials: u32, mut happens: impl FnMut() -> bool) -> Proportion {
        Proportion { happened: (0..trials).map(|_| u32::from(happens())).sum(), trials }
    }

    /// With one more trial.
    pub fn and(self, happened: bool) -> Proportion {
        Proportion { happened: self.happened + u32::from(happened), trials: self.trials + 1 }
    }

    /// The trials of both.
    pub fn with(self, other: Proportion) -> Proportion {
        Proportion { happened: self.happened + other.happened, trials: self.trials + other.trials }
    }

    /// How often it did not happen.
    pub fn without(self) -> Proportion {
        Proportion { happened: self.trials - self.happened, ..self }
    }

    /// The bounds of the probability (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934).
    pub fn bounds(&self) -> (f64, f64) {
        let (happened, trials) = (f64::from(self.happened), f64::from(self.trials));
        let quantile = |p, a, b| Beta::new(a, b).expect("positive shapes").inverse_cdf(p);
        let low = if self.happened == 0 { 0.0 } else { quantile(DOUBT, happened, trials - happened + 1.0) };
        let none = self.happened == self.trials;
        let high = if none { 1.0 } else { quantile(1.0 - DOUBT, happened + 1.0, trials - happened) };
        (low, high)
    }

    /// The probability is shown to be at most `limit`.
    pub fn is_at_most(&self, limit: f64) {
        assert!(self.bounds().1 <= limit, "{self:?}: {:?}, not at most {limit}", self.bounds());
    }

    /// The probability is shown to be at most `limit`, if there are enough trials to show it for one of half of it; else
    /// nothing speaks against it.
    pub fn is_hardly_above(&self, limit: f64) {
        if limit * f64::from(self.trials) >= 50.0 {
            return self.is_at_most(limit);
        }
        self.is_not_shown_above(limit);
    }

    /// Nothing speaks against a probability of at most `limit`.
    pub fn is_not_shown_above(&self, limit: f64) {
        assert!(self.bounds().0 <= limit, "{self:?}: {:?}, above {limit}", self.bounds());
    }

    /// The probability is shown to be at least `limit`.
    pub fn is_at_least(&self, limit: f64) {
        assert!(self.bounds().0 >= limit, "{self:?}: {:?}, not at least {limit}", self.bounds());
    }

    /// Nothing speaks against this probability.
    pub fn may_be(&self, probability: f64) {
        let (low, high) = self.bounds();
        assert!((low..=high).contains(&probability), "{self:?}: {low} to {high}, not {probability}");
    }
}

/// By hand: without a single one among n, the upper bound u fulfils (1 − u)^n = 0.025. At the bounds for seven, the
/// binomial tails are 0.025.
#[test]
fn the_bounds_are_exact() {
    let none = Proportion { happened: 0, trials: 100 };
    assert!((none.bounds().1 - (1.0 - 0.025_f64.powf(0.01))).abs() < 1e-9, "{:?}", none.bounds());
    let all = Proportion { happened: 100, trials: 100 };
    assert!((all.bounds().0 - 0.025_f64.powf(0.01)).abs() < 1e-9, "{:?}", all.bounds());
    let some = Proportion { happened: 7, trials: 100 };
    let tail = |probability: f64, counts: std::ops::RangeInclusive<u32>| -> f64 {
        counts
            .map(|count| {
                choose(100, count)
                    * probability.powi(count as i32)
                    * (1.0 - probability).powi(100 - count as i32)
            })
            .sum()
    };
    let (low, high) = some.bounds();
    assert!(
        (tail(low, 7..=100) - 0.025).abs() < 1e-8 && (tail(high, 0..=7) - 0.025).abs() < 1e-8,
        "{some:?}"
    );
}

fn choose(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product()
}
