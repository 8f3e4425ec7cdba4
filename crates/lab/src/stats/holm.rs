//! Holm's correction for a family of comparisons.
//!
//! Ten independent comparisons at 5 % give a false alarm in 40 % of all cases. Holm's step-down procedure keeps the
//! probability of at least one false alarm in the family below alpha, under any dependence, and rejects every hypothesis
//! that Bonferroni's would reject (S. Holm, Scand. J. Statist. 6, 1979).

/// Returns Holm's adjusted p of each test of a family, in the order given. A test is rejected at alpha if its adjusted p
/// is at most alpha.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in ascending(p).into_iter().enumerate() {
        largest = largest.max(((p.len() - rank) as f64 * p[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

/// Returns the level at which the procedure decides each test of the family: alpha divided by the number of tests that
/// were still open when the test was rejected or, for a test that was not rejected, when the procedure stopped.
///
/// An interval at this level excludes the null hypothesis exactly when its test rejects it.
pub(super) fn holm_levels(p: &[f64], alpha: f64) -> Vec<f64> {
    let mut levels = vec![alpha; p.len()];
    let mut open = p.len();
    let mut stopped = false;
    for index in ascending(p) {
        levels[index] = alpha / open as f64;
        stopped |= p[index] > levels[index];
        open -= usize::from(!stopped);
    }
    levels
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    order
}

#[cfg(test)]
mod tests {
    use super::{holm, holm_levels};

    #[test]
    fn levels_stay_at_the_step_where_the_procedure_stopped() {
        let levels = holm_levels(&[0.001, 0.04, 0.02, 0.9], 0.05);
        let third = 0.05 / 3.0;
        assert_eq!(levels, [0.0125, third, third, third]);
        assert_eq!(holm_levels(&[0.001, 0.002], 0.05), [0.025, 0.05]);
    }

    #[test]
    fn levels_and_adjusted_p_reject_the_same_tests() {
        for p in [[0.01, 0.02, 0.03], [0.016, 0.025, 0.049], [0.017, 0.001, 0.001], [0.2, 0.0, 1.0]] {
            let by_level: Vec<bool> =
                p.iter().zip(holm_levels(&p, 0.05)).map(|(p, level)| *p <= level).collect();
            let by_p: Vec<bool> = holm(&p).iter().map(|&p| p <= 0.05).collect();
            assert_eq!(by_level, by_p, "{p:?}");
        }
    }

    #[test]
    fn an_empty_family_has_no_adjusted_p() {
        assert!(holm(&[]).is_empty());
    }
}
