//! Warnings about the machine during a panel, judged by its control.

use super::description::{Description, median, sorted};
use super::rounds::ControlSlice;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the control says about the machine during a panel. Its `Display` is the text of the report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlWarning {
    /// The machine became steadily faster or slower.
    Drift {
        /// Change from the first round to the last along the fitted line.
        relative: f64,
    },
    /// The machine had two speeds.
    TwoSpeeds {
        /// The faster speed over the slower, less 1.
        relative: f64,
        /// Share of the rounds at the slower speed.
        slower: f64,
    },
    /// The thread did not have its core all the time.
    LostCore {
        /// Share of the control's time.
        share: f64,
    },
}

impl fmt::Display for ControlWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ControlWarning::Drift { relative } => {
                let percent = 100.0 * relative;
                write!(
                    f,
                    "the machine's speed changed by {percent:+.1} % from the first round to the last: check for CPU \
                     throttling"
                )
            }
            ControlWarning::TwoSpeeds { relative, slower } => {
                let (percent, rounds) = (100.0 * relative, 100.0 * slower);
                write!(
                    f,
                    "the machine had two speeds, {percent:.0} % apart, the slower one in {rounds:.0} % of the rounds: \
                     the ratios are those of both together"
                )
            }
            ControlWarning::LostCore { share } => {
                let percent = 100.0 * share;
                write!(
                    f,
                    "the control did not have its core for {percent:.1} % of its time: stop other programs, or use a \
                     core that they do not use"
                )
            }
        }
    }
}

/// A smaller drift than this has no warning: every round compares arms at the same time, so that drift cancels.
const DRIFT: f64 = 0.05;
/// The drift is that of the medians of so many consecutive parts, because neighbouring rounds are correlated.
const PARTS: usize = 20;
/// The slope of a drift exceeds this many standard errors. Parts are correlated, so the limit is higher than independent
/// ones would need.
const DRIFT_ERRORS: f64 = 5.0;
/// Two speeds differ by more than this, and are farther apart …
const APART: f64 = 0.05;
/// … than this multiple of the sum of the deviations that three quarters of either stay within. Two normal distributions
/// of equal spread are so when they are 4.6 standard deviations apart; the halves of one uniform distribution reach 1.3,
/// of one normal distribution 1.1.
const APART_DEVIATIONS: f64 = 2.0;
/// Each of two speeds has at least a tenth of the rounds, and no fewer than two rounds.
const FEWEST_ROUNDS: usize = 20;
/// A smaller part of the time without the core has no warning.
const LOST_CORE: f64 = 0.01;

/// Returns the warnings about the control of one panel, given its slices in the order of the rounds.
pub fn control_warnings(control: &[ControlSlice]) -> Vec<ControlWarning> {
    let rates: Vec<f64> =
        control.iter().map(|slice| slice.log_rate).filter(|rate| rate.is_finite()).collect();
    let lost = control.iter().map(|slice| slice.lost_core).sum::<f64>() / control.len() as f64;
    let lost = (lost > LOST_CORE).then_some(ControlWarning::LostCore { share: lost });
    drift_of_parts(&rates).into_iter().chain(two_speeds(&rates)).chain(lost).collect()
}

fn drift_of_parts(log_rates: &[f64]) -> Option<ControlWarning> {
    let parts = log_rates.chunks(log_rates.len().div_ceil(PARTS).max(1));
    let parts: Vec<f64> = parts.filter_map(median).collect();
    let drift = drift(&parts).filter(|relative| relative.abs() > DRIFT);
    drift.map(|relative| ControlWarning::Drift { relative })
}

/// Returns the change of the rates along the line of least squares through their logarithms, over the rate at its
/// beginning, if its slope is significant.
fn drift(log_rates: &[f64]) -> Option<f64> {
    let samples = Description::of(log_rates).filter(|samples| samples.n > 2)?;
    let centre = (samples.n as f64 - 1.0) / 2.0;
    let offsets = || (0..samples.n).map(|sample| sample as f64 - centre);
    let across: f64 = offsets().map(|offset| offset * offset).sum();
    let slope =
        offsets().zip(log_rates).map(|(offset, rate)| offset * (rate - samples.mean)).sum::<f64>() / across;
    let scatter = offsets()
        .zip(log_rates)
        .map(|(offset, rate)| (rate - samples.mean - slope * offset).powi(2))
        .sum::<f64>();
    let error = (scatter / (samples.n as f64 - 2.0) / across).sqrt();
    (slope.abs() > DRIFT_ERRORS * error).then(|| (slope * 2.0 * centre).exp_m1())
}

/// Splits the rates where the means of both sides explain most of the variance (N. Otsu, IEEE Trans. SMC 9, 1979), and
/// tells whether the sides are groups of their own.
fn two_speeds(log_rates: &[f64]) -> Option<ControlWarning> {
    let sorted = sorted(log_rates);
    if sorted.len() < FEWEST_ROUNDS {
        return None;
    }
    let (slower, faster) = sorted.split_at(widest_split(&sorted)?);
    let (low, high) = (median(slower)?, median(faster)?);
    let apart = APART.max(APART_DEVIATIONS * (deviation(slower, low)? + deviation(faster, high)?));
    let slower = slower.len() as f64 / sorted.len() as f64;
    (high - low > apart).then(|| ControlWarning::TwoSpeeds { relative: (high - low).exp_m1(), slower })
}

fn widest_split(sorted: &[f64]) -> Option<usize> {
    let (n, total) = (sorted.len(), sorted.iter().sum::<f64>());
    let mut below = 0.0;
    let explained = sorted.iter().enumerate().map(|(index, value)| {
        let here = (index, index as f64, below);
        below += value;
        here
    });
    let fewest = n.div_ceil(10);
    let possible = explained.filter(|(split, ..)| (fewest..=n - fewest).contains(split));
    let variance = possible.map(|(split, count, below)| {
        let rest = n as f64 - count;
        (split, count * rest * ((total - below) / rest - below / count).powi(2))
    });
    variance.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(split, _)| split)
}

/// The deviation from the middle that three quarters of the values stay within.
fn deviation(values: &[f64], middle: f64) -> Option<f64> {
    let deviations = sorted(&values.iter().map(|value| (value - middle).abs()).collect::<Vec<_>>());
    deviations.get(3 * deviations.len() / 4).copied()
}

#[cfg(test)]
mod tests {
    use super::{ControlSlice, ControlWarning, control_warnings, drift};

    /// A few per cent of scatter without an order.
    fn scatter(round: usize) -> f64 {
        ((round * 7 % 11) as f64 - 5.0) / 200.0
    }

    fn warnings(log_rate: impl Fn(usize) -> f64) -> Vec<ControlWarning> {
        let slice = |round| ControlSlice { log_rate: log_rate(round), lost_core: 0.002 };
        control_warnings(&(0..300).map(slice).collect::<Vec<_>>())
    }

    #[test]
    fn a_steady_machine_has_no_warning() {
        assert_eq!(warnings(|round| 14.0 + scatter(round)), []);
        assert_eq!(control_warnings(&[]), []);
        assert_eq!(control_warnings(&[ControlSlice { log_rate: 1.0, lost_core: 0.0 }]), []);
    }

    #[test]
    fn a_machine_that_becomes_slower_drifts() {
        let found = warnings(|round| 14.0 + scatter(round) - 0.12 * round as f64 / 300.0);
        let [ControlWarning::Drift { relative }] = found[..] else { panic!("{found:?}") };
        assert!((-0.125..-0.1).contains(&relative), "{relative}");
    }

    #[test]
    fn a_machine_cannot_lose_more_than_its_speed() {
        let found = warnings(|round| 14.0 - 10f64.ln() * round as f64 / 299.0);
        let Some(ControlWarning::Drift { relative }) = found.first() else { panic!("{found:?}") };
        assert!((-0.9..-0.88).contains(relative), "{relative}");
        let found = warnings(|round| 14.0 + 10f64.ln() * round as f64 / 299.0);
        let Some(ControlWarning::Drift { relative }) = found.first() else { panic!("{found:?}") };
        assert!((7.5..9.0).contains(relative), "{relative}");
    }

    #[test]
    fn a_falling_series_is_a_drift() {
        let noise = [0.0, 300.0, -200.0, 100.0, -250.0];
        let falling: Vec<f64> =
            (0..54).map(|second| (396e3 - 430.0 * second as f64 + noise[second % 5]).ln()).collect();
        let relative = drift(&falling).expect("a drift");
        assert!((-0.062..-0.056).contains(&relative), "{relative}");
    }

    #[test]
    fn a_scattered_series_is_no_drift() {
        let scatter: Vec<f64> = (0..60).map(|second| (1e6 + 3e4 * f64::from(second * 7 % 11)).ln()).collect();
        assert_eq!(drift(&scatter), None);
        assert_eq!(drift(&[1.0, 2.0]), None);
    }

    #[test]
    fn two_speeds_have_their_distance_and_share() {
        for slower in [40, 150, 250] {
            let found = warnings(|round| {
                let slow = round * 97 % 300 < slower;
                14.0 + scatter(round) - if slow { 0.3 } else { 0.0 }
            });
            let [ControlWarning::TwoSpeeds { relative, slower: share }] = found[..] else {
                panic!("{found:?}")
            };
            assert!((0.33..0.37).contains(&relative), "{relative}");
            assert!((share - slower as f64 / 300.0).abs() < 1e-12, "{share}");
        }
    }

    #[test]
    fn a_few_slow_rounds_are_no_second_speed() {
        assert_eq!(warnings(|round| 14.0 + scatter(round) - f64::from(u8::from(round % 20 == 7))), []);
        assert_eq!(
            warnings(|round| if round % 50 == 0 { f64::NEG_INFINITY } else { 14.0 + scatter(round) }),
            []
        );
    }

    #[test]
    fn lost_core_time_is_that_of_all_rounds() {
        let slice = |round| ControlSlice { log_rate: 1.0, lost_core: if round % 4 == 0 { 0.1 } else { 0.0 } };
        let found = control_warnings(&(0..40).map(slice).collect::<Vec<_>>());
        assert!(matches!(found[..], [ControlWarning::LostCore { share }] if (share - 0.025).abs() < 1e-12));
    }

    #[test]
    fn a_warning_contains_advice() {
        assert_eq!(
            ControlWarning::TwoSpeeds { relative: 0.349, slower: 0.44 }.to_string(),
            "the machine had two speeds, 35 % apart, the slower one in 44 % of the rounds: the ratios are those of both \
             together"
        );
        assert!(ControlWarning::Drift { relative: -0.071 }.to_string().contains("-7.1 %"));
        assert!(ControlWarning::LostCore { share: 0.025 }.to_string().contains("2.5 %"));
    }
}
