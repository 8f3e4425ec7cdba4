//! Whether runs drift in the order in which they were made: Kendall's test, exact for few runs.

/// Returns the two-sided probability that runs without a trend are as ordered as these. Equal runs count neither as rising
/// nor as falling, which makes the probability larger.
pub fn trend(values: &[f64]) -> Option<f64> {
    let n = values.len();
    let pairs = n * n.saturating_sub(1) / 2;
    if !(3..=30).contains(&n) || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let later = |at: usize| values[at + 1..].iter().map(move |later| later - values[at]);
    let score: i64 = (0..n).flat_map(later).map(|step| i64::from(step > 0.0) - i64::from(step < 0.0)).sum();
    let fewest = (pairs - usize::try_from(score.unsigned_abs()).ok()?) / 2;
    let tail: f64 = inversions(n)[..=fewest].iter().sum();
    Some((2.0 * tail).min(1.0))
}

/// The probability of each number of inversions in a random order of `n` values.
fn inversions(n: usize) -> Vec<f64> {
    let mut chances = vec![1.0];
    for size in 2..=n {
        let mut next = vec![0.0; chances.len() + size - 1];
        for (at, chance) in chances.iter().enumerate() {
            next[at..at + size].iter_mut().for_each(|sum| *sum += chance / size as f64);
        }
        chances = next;
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::trend;

    /// Of the 120 orders of five values, two are as ordered as a rising one.
    #[test]
    fn the_probabilities_are_those_of_counting_orders() {
        let near = |values: &[f64], expected: f64| {
            let found = trend(values).expect("enough values");
            assert!((found - expected).abs() < 1e-12, "{values:?}: {found}");
        };
        near(&[1.0, 2.0, 3.0, 4.0, 5.0], 2.0 / 120.0);
        near(&[5.0, 4.0, 3.0, 1.0, 2.0], 10.0 / 120.0);
        near(&[7.0; 5], 1.0);
        assert_eq!(trend(&[1.0, 2.0]), None);
    }
}
