//! An axis that begins at zero and has marks at round values.

/// Mean Ethernet bits per packet in simple IMIX: seven packets of 40 bytes, four of 576 and one of 1500, each with 14
/// bytes of header. The value is 2834.667, the factor of the published graphs.
pub(super) const IMIX_BITS: f64 = (7.0 * 54.0 + 4.0 * 590.0 + 1514.0) / 12.0 * 8.0;

/// The end of an axis that begins at zero, and the distance of its marks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) top: f64,
    step: f64,
}

impl Axis {
    /// Returns an axis to the first mark above `largest`, in five to ten steps of 1, 2, 2.5 or 5 times a power of ten.
    pub(super) fn reaching(largest: f64) -> Self {
        // If nothing was measured, the axis ends at the first mark above 1.
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let step = nice_step(largest / 5.0);
        Self { top: ((largest / step).floor() + 1.0) * step, step }
    }

    /// Returns an axis to exactly `top`; its last mark may be below the end.
    pub(super) fn ending(top: f64) -> Self {
        Self { top, step: nice_step(top / 5.0) }
    }

    pub(super) fn marks(&self) -> Vec<f64> {
        // The tolerance keeps a last mark that rounding puts slightly above the end.
        let count = (self.top / self.step * (1.0 + 1e-9)).floor() as u32;
        (0..=count).map(|mark| f64::from(mark) * self.step).collect()
    }
}

/// Returns the largest of 1, 2, 2.5, 5 × 10ⁿ that is not above `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [5.0, 2.5, 2.0, 1.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step <= rough).unwrap_or(power)
}

/// Formats the value of a mark with a suffix for its thousands and at most two decimals: 22.5M.
pub(super) fn mark(value: f64) -> String {
    let (figure, suffix) = scaled(value);
    format!("{}{suffix}", figure.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a whole number: with a suffix if that is exact, else with all its digits.
pub(super) fn whole(number: u64) -> String {
    let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let exact = units.into_iter().find(|(unit, _)| number >= *unit && number.is_multiple_of(unit / 100));
    exact.map_or_else(|| number.to_string(), |_| mark(number as f64))
}

/// Formats a measured value with a suffix for its thousands and two decimals: 22.60M.
pub(super) fn measured(value: f64) -> String {
    let (figure, suffix) = scaled(value);
    format!("{figure}{suffix}")
}

fn scaled(value: f64) -> (String, &'static str) {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    // 999.995 of a unit would be formatted as 1000.00 of it, so the next unit is used.
    let reaches = |unit: f64| value >= unit * 0.999_995;
    let (unit, suffix) = units.into_iter().find(|(unit, _)| reaches(*unit)).unwrap_or((1.0, ""));
    (format!("{:.2}", value / unit), suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_the_last_is_above_the_largest_value() {
        assert_eq!(Axis::reaching(28e6).marks(), [0.0, 5e6, 10e6, 15e6, 20e6, 25e6, 30e6]);
        assert_eq!(Axis::ending(29e6).marks(), [0.0, 5e6, 10e6, 15e6, 20e6, 25e6]);
    }

    #[test]
    fn every_axis_has_a_readable_number_of_marks() {
        for exponent in -2..40 {
            let largest = 1.3f64.powi(exponent) * 7.0;
            let axis = Axis::reaching(largest);
            assert!(axis.top > largest, "{largest}");
            assert!((6..=12).contains(&axis.marks().len()), "{largest}: {:?}", axis.marks());
            assert!(Axis::ending(axis.top).marks().len() <= 12);
        }
    }

    #[test]
    fn an_axis_of_nothing_still_has_an_end() {
        assert_eq!(Axis::reaching(0.0), Axis::reaching(1.0));
    }

    #[test]
    fn suffixes() {
        let cases = [
            (0.0, "0"),
            (999.0, "999"),
            (2_500.0, "2.5k"),
            (5e6, "5M"),
            (1.5e9, "1.5G"),
            (0.25, "0.25"),
            (999_999.0, "1M"),
        ];
        for (value, text) in cases {
            assert_eq!(mark(value), text);
        }
        let places = [64, 1_000, 1_001, 1_514, 1_500, 65_536, 1_048_576, 2_500_000];
        let texts = ["64", "1k", "1001", "1514", "1.5k", "65536", "1048576", "2.5M"];
        assert_eq!(places.map(whole), texts);
        assert_eq!(measured(22_598_881.0), "22.60M");
        assert_eq!(measured(999_999.0), "1.00M");
    }
}
