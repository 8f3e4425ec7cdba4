//! A logarithmic axis for ratios: a half is as far from 1 as the double.

use super::forest::RatioInterval;

/// Intervals lengthen the axis on each side by as much as the ratios need, or at least by this factor; what is beyond is
/// cut.
const LEAST_REACH: f64 = 1.5;
/// Up to this factor between its ends an axis has marks at equal steps, and marks of 1, 2, 5 beyond.
const EQUAL_STEPS: f64 = 5.0;
/// How many equal steps fit an axis.
const STEPS: f64 = 8.0;
/// The part of the axis that remains free at each end.
const FREE: f64 = 0.03;
/// From this factor between its ends on, an axis has marks at powers of ten only.
const POWERS_OF_TEN: f64 = 1000.0;

/// The axis from its least to its largest ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RatioAxis {
    /// Logarithms of the ends.
    low: f64,
    high: f64,
}

impl RatioAxis {
    /// The axis that shows 1, the margin and all these ratios, and of their intervals what is not too far from them.
    pub(super) fn of(margin: f64, intervals: &[RatioInterval]) -> Self {
        let zone = [(1.0 - margin).max(1.0 / LEAST_REACH), (1.0 + margin).min(LEAST_REACH)];
        let points =
            || zone.into_iter().chain(intervals.iter().map(|interval| interval.estimate)).map(f64::ln);
        let (first, last) = (points().fold(0.0, f64::min), points().fold(0.0, f64::max));
        let reach = (last - first).max(LEAST_REACH.ln());
        let low = intervals.iter().map(|interval| interval.low.ln()).fold(first, f64::min).max(first - reach);
        let high = intervals.iter().map(|interval| interval.high.ln()).fold(last, f64::max).min(last + reach);
        let free = FREE * (high - low).max(1e-3);
        Self { low: low - free, high: high + free }
    }

    /// The place of a ratio as a share of the axis, which is below 0 or above 1 if the ratio is beyond an end.
    pub(super) fn place(&self, ratio: f64) -> f64 {
        (ratio.ln() - self.low) / (self.high - self.low)
    }

    /// The ratios that have a mark, and their figures.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let factor = (self.high - self.low).exp();
        let marks = match factor {
            _ if factor <= EQUAL_STEPS => equal_steps(self.low.exp(), self.high.exp()),
            _ if factor < POWERS_OF_TEN => self.steps_of_powers(&[1.0, 2.0, 5.0]),
            _ => self.steps_of_powers(&[1.0]),
        };
        marks.into_iter().filter(|(ratio, _)| (0.0..=1.0).contains(&self.place(*ratio))).collect()
    }

    fn steps_of_powers(&self, factors: &[f64]) -> Vec<(f64, String)> {
        let power = |end: f64| (end / std::f64::consts::LN_10).floor() as i32;
        let of_power = |power: i32| {
            let decimals = (-power).max(0) as usize;
            factors.iter().map(move |factor| labelled(factor * 10f64.powi(power), decimals))
        };
        (power(self.low)..=power(self.high)).flat_map(of_power).collect()
    }
}

/// Marks at steps of 1, 2 or 5 times a power of ten, one of them at 1.
fn equal_steps(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / STEPS;
    let power = rough.log10().floor() as i32;
    let step =
        [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)).into_iter().find(|step| *step >= rough);
    let (step, power) = step.map_or((10f64.powi(power + 1), power + 1), |step| (step, power));
    let decimals = (-power).max(0) as usize;
    let count = |end: f64| (end / step).round() as i64;
    (count(low)..=count(high)).map(|mark| labelled(mark as f64 * step, decimals)).collect()
}

fn labelled(ratio: f64, decimals: usize) -> (f64, String) {
    (ratio, format!("{ratio:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(margin: f64, intervals: &[[f64; 3]]) -> RatioAxis {
        let interval = |[low, estimate, high]: [f64; 3]| RatioInterval { estimate, low, high };
        RatioAxis::of(margin, &Vec::from_iter(intervals.iter().copied().map(interval)))
    }

    fn figures(margin: f64, intervals: &[[f64; 3]]) -> Vec<String> {
        axis(margin, intervals).marks().into_iter().map(|(_, figure)| figure).collect()
    }

    #[test]
    fn a_small_range_has_steps_of_a_per_cent() {
        let figures = figures(0.01, &[[0.985, 0.99, 0.995], [1.01, 1.02, 1.03]]);
        assert_eq!(figures, ["0.99", "1.00", "1.01", "1.02", "1.03"]);
        let tiny = axis(0.0, &[[1.001, 1.001, 1.003]]);
        assert!(tiny.marks().len() >= 4, "{:?}", tiny.marks());
    }

    #[test]
    fn a_large_range_has_steps_of_1_2_5() {
        let figures = figures(0.01, &[[0.98, 0.99, 1.0], [33.0, 34.0, 35.0]]);
        assert_eq!(figures, ["1", "2", "5", "10", "20"]);
        let tenths = axis(0.01, &[[0.001, 0.001, 0.001], [0.2, 0.2, 0.2]]);
        assert_eq!(tenths.marks().len(), 4, "powers of ten: {:?}", tenths.marks());
    }

    #[test]
    fn a_half_is_as_far_from_1_as_the_double() {
        let axis = axis(0.01, &[[0.5, 0.5, 0.5], [2.0, 2.0, 2.0]]);
        let [half, one, double] = [0.5, 1.0, 2.0].map(|ratio| axis.place(ratio));
        assert!((one - half - (double - one)).abs() < 1e-12 && one > half);
        assert!(half > 0.0 && double < 1.0);
    }

    #[test]
    fn an_axis_shows_1_and_every_mark_is_on_it() {
        for exponent in -30..30 {
            let ratio = 1.3f64.powi(exponent) * 1.01;
            let axis = axis(0.0025, &[[ratio * 0.999, ratio, ratio * 1.001]]);
            let marks = axis.marks();
            assert!(marks.iter().any(|(mark, _)| (mark - 1.0).abs() < 1e-9), "{ratio}: {marks:?}");
            assert!((3..=12).contains(&marks.len()), "{ratio}: {marks:?}");
        }
    }

    #[test]
    fn an_interval_without_an_end_does_not_stretch_the_axis() {
        let axis = axis(0.01, &[[0.0, 1.1, f64::INFINITY]]);
        assert!(axis.place(0.0) < 0.0 && axis.place(f64::INFINITY) > 1.0);
        assert!(axis.place(1.2) < 1.0 && axis.place(0.9) > 0.0);
    }
}
