//! Yuen's interval of a trimmed mean.

use super::student::quantile;

/// The share of values cut off at either end.
const TRIM: f64 = 0.2;

/// Returns the interval of the 20 % trimmed mean at this confidence: Student's t with the winsorized variance (K. K. Yuen,
/// Biometrika 61, 1974). Values far out, which slices on a shared machine have, hardly widen it. `None` for fewer than
/// eight values.
pub fn trimmed_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let cut = (values.len() as f64 * TRIM) as usize;
    if values.len() < 8 || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let kept = &sorted[cut..sorted.len() - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    let error = (winsorized_squares(kept, cut) / (kept.len() * (kept.len() - 1)) as f64).sqrt();
    let reach = quantile(0.5 + confidence / 2.0, kept.len() as f64 - 1.0) * error;
    Some((mean - reach, mean + reach))
}

/// The sum of squares about the mean when each value that was cut off is replaced by the nearest one that was not.
fn winsorized_squares(kept: &[f64], cut: usize) -> f64 {
    let ends = [kept[0], kept[kept.len() - 1]];
    let count = (kept.len() + 2 * cut) as f64;
    let mean = (kept.iter().sum::<f64>() + cut as f64 * ends.iter().sum::<f64>()) / count;
    let square = |value: f64| (value - mean).powi(2);
    kept.iter().copied().map(square).sum::<f64>() + cut as f64 * ends.map(square).iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The values of R. R. Wilcox (Introduction to Robust Estimation, 2022, section 4.3): 13 of 19 are left, their mean is
    /// 282.69, and the winsorized standard deviation is 146.80, so that Yuen's standard error is
    /// √(18 · 146.80² / (13 · 12)) = 49.87. t is 2.179 with 12 degrees of freedom.
    #[test]
    fn a_known_answer() {
        let values = [
            77.0, 87.0, 88.0, 114.0, 151.0, 210.0, 219.0, 246.0, 253.0, 262.0, 296.0, 299.0, 306.0, 376.0,
            428.0, 515.0, 666.0, 1310.0, 2611.0,
        ];
        let (low, high) = trimmed_interval(&values, 0.95).unwrap();
        assert!(((low + high) / 2.0 - 282.69).abs() < 0.01, "{low} {high}");
        assert!(((high - low) / 2.0 / 2.1788 - 49.867).abs() < 0.01, "{low} {high}");
    }

    #[test]
    fn the_interval_has_its_coverage_with_heavy_tails() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut covered = 0;
        for _ in 0..2_000 {
            let value = || {
                let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                if random.random::<f64>() < 0.05 { normal * 10.0 } else { normal }
            };
            let values: Vec<f64> = std::iter::repeat_with(value).take(64).collect();
            let (low, high) = trimmed_interval(&values, 0.95).unwrap();
            covered += u32::from(low < 0.0 && 0.0 < high);
        }
        assert!((1_870..=1_930).contains(&covered), "{covered} of 2000");
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(trimmed_interval(&[1.0; 7], 0.95), None);
        assert_eq!(trimmed_interval(&[1.0; 8], 0.95), Some((1.0, 1.0)));
    }
}
