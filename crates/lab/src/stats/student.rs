//! Student's t distribution with any positive number of degrees of freedom (with infinitely many it is the normal one), and
//! the chi-square distribution of its spread.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// Returns the value that a variate is below with this probability, which is strictly between 0 and 1.
pub(crate) fn quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    if degrees_of_freedom.is_infinite() {
        return Normal::standard().inverse_cdf(probability);
    }
    distribution(degrees_of_freedom).map_or(f64::NAN, |t| t.inverse_cdf(probability))
}

/// Returns the probability that a variate is above this value.
pub(crate) fn upper_tail(value: f64, degrees_of_freedom: f64) -> f64 {
    match distribution(degrees_of_freedom) {
        // The formula of `sf` squares the value, which overflows to a NaN.
        Some(_) if value.is_infinite() => f64::from(value < 0.0),
        Some(t) => t.sf(value),
        None => f64::NAN,
    }
}

/// Returns the value that a chi-square variate is below with this probability, strictly between 0 and 1.
pub(super) fn chi_square_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    ChiSquared::new(degrees_of_freedom).map_or(f64::NAN, |chi_square| chi_square.inverse_cdf(probability))
}

fn distribution(degrees_of_freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()
}

#[cfg(test)]
mod tests {
    use super::{quantile, upper_tail};

    #[test]
    fn quantile_and_tail_are_inverse() {
        for degrees in [1.0, 1.7, 2.3, 4.0, 8.0, 37.5, 400.0] {
            for tail in [0.4, 0.1, 0.025, 0.005, 0.0005, 1e-6] {
                let back = upper_tail(quantile(1.0 - tail, degrees), degrees);
                assert!(
                    (back / tail - 1.0).abs() < 1e-6,
                    "{tail} with {degrees} degrees came back as {back}"
                );
            }
        }
    }

    #[test]
    fn the_tails_of_infinite_values_are_zero_and_one() {
        assert_eq!(upper_tail(f64::INFINITY, 8.0), 0.0);
        assert_eq!(upper_tail(f64::NEG_INFINITY, 8.0), 1.0);
    }
}
