//! Which rounds of a block count, judged by the control alone.

use super::description::{median, sorted};

/// The control's slice of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControlSlice {
    /// Logarithm of its rate.
    pub log_rate: f64,
    /// Share of the slice in which the thread did not have its core.
    pub lost_core: f64,
}

/// A slice is far from the median beyond this difference of logarithms, about 10 % …
const FAR: f64 = 0.1;
/// … and beyond this multiple of the deviation that nine tenths of the slices stay within. For normally distributed
/// slices that is 4.9 standard deviations.
const FAR_DEVIATIONS: f64 = 3.0;
/// A slice that lost more of its core than this, and more than nine tenths of the slices did, is left out.
const LOST_CORE: f64 = 0.1;

/// Returns for each round whether it counts, for all arms alike: not if the control's slice shows that something
/// interfered.
///
/// The limits have to leave the machine's ordinary states in. A second speed of the machine is one of them, and the
/// members may run differently at it; so "far" is measured by the deviation that nine tenths of the rounds stay within.
/// A state that has more than a tenth of the rounds belongs to these nine tenths and is never left out, and at most a
/// tenth of the rounds is, however the rates are distributed. The same holds for lost core time, so that at least four
/// fifths of the rounds are kept, apart from slices that counted nothing. What the rule leaves in, and one-sided
/// interference that the control cannot see, is up to the midmean.
///
/// The ratio of two members keeps its expectation, whatever the rounds' correlation: the order within a round is random,
/// so that given the control's slices of the whole block two members of equal speed are interchangeable.
pub fn kept_rounds(control: &[ControlSlice]) -> Vec<bool> {
    let rates: Vec<f64> = control.iter().map(|slice| slice.log_rate).collect();
    let middle = median(&rates).unwrap_or(f64::NAN);
    let deviations: Vec<f64> = rates.iter().map(|rate| (rate - middle).abs()).collect();
    let lost: Vec<f64> = control.iter().map(|slice| slice.lost_core).collect();
    let far = FAR.max(FAR_DEVIATIONS * of_nine_tenths(&deviations));
    let most = LOST_CORE.max(of_nine_tenths(&lost));
    let kept = |(deviation, lost): (&f64, &f64)| deviation.is_finite() && *deviation <= far && *lost <= most;
    deviations.iter().zip(&lost).map(kept).collect()
}

/// The value that at most a tenth of the values exceed; 0 without any.
fn of_nine_tenths(values: &[f64]) -> f64 {
    let tenth = values.len() / 10;
    sorted(values).into_iter().rev().nth(tenth).unwrap_or(0.0)
}

/// A member's slice is disturbed if its ratio to the control's is below the median by more than this many robust
/// standard deviations, and by more than [`FAR`].
const DISTURBED_DEVIATIONS: f64 = 5.0;
/// Ratio of the standard deviation to the median absolute deviation, for the normal distribution.
const MAD_TO_STDDEV: f64 = 1.4826;

/// More rounds than this in which only one member was disturbed deserve a warning. If a share e of the ratios is far too
/// low, their midmean falls by about 1.4 e standard deviations of single rounds; noise with three degrees of freedom has
/// a share of 0.005 on its own.
pub const NOTABLE_ONE_SIDED: f64 = 0.02;

/// Returns the share of the kept rounds in which only this member was disturbed, given the logarithms of its rate and of
/// its control's: it ran below its own median, and its ratio to the control is far below that ratio's median. Nothing is
/// left out by this; it is for a warning.
pub fn one_sided(member: &[f64], control: &[f64]) -> f64 {
    let ratios: Vec<f64> = member.iter().zip(control).map(|(member, control)| member - control).collect();
    let (Some(usual_rate), Some(usual)) = (median(member), median(&ratios)) else { return 0.0 };
    let deviations: Vec<f64> = ratios.iter().map(|ratio| (ratio - usual).abs()).collect();
    let robust = MAD_TO_STDDEV * median(&deviations).unwrap_or(0.0);
    let least = usual - FAR.max(DISTURBED_DEVIATIONS * robust);
    let disturbed = |(ratio, rate): &(&f64, &f64)| **ratio < least && **rate < usual_rate;
    ratios.iter().zip(member).filter(disturbed).count() as f64 / ratios.len() as f64
}

#[cfg(test)]
mod tests {
    use super::{ControlSlice, kept_rounds, one_sided};
    use proptest::prelude::*;

    fn control(log_rates: impl IntoIterator<Item = f64>) -> Vec<ControlSlice> {
        log_rates.into_iter().map(|log_rate| ControlSlice { log_rate, lost_core: 0.0 }).collect()
    }

    fn left_out(control: &[ControlSlice]) -> Vec<usize> {
        kept_rounds(control).iter().enumerate().filter(|(_, kept)| !**kept).map(|(round, _)| round).collect()
    }

    /// Rates that alternate around 0 by 1 %.
    fn steady(rounds: usize) -> Vec<f64> {
        (0..rounds).map(|round| if round % 2 == 0 { 0.01 } else { -0.01 }).collect()
    }

    #[test]
    fn a_burst_is_left_out_and_its_neighbours_are_kept() {
        let mut rates = steady(100);
        rates[17] = -0.7;
        rates[60] = 0.3;
        rates[61] = -0.09;
        assert_eq!(left_out(&control(rates)), [17, 60]);
    }

    #[test]
    fn two_speeds_are_no_disturbance_unless_one_has_less_than_a_tenth() {
        for slower in [10, 20, 30, 50, 80, 90] {
            let rates = steady(100).into_iter().enumerate();
            let rates = rates.map(|(round, rate)| if round * 37 % 100 < slower { rate - 0.4 } else { rate });
            let expected = if slower > 10 && slower < 90 { 0 } else { 10 };
            assert_eq!(left_out(&control(rates)).len(), expected, "{slower} of 100 rounds");
        }
    }

    #[test]
    fn a_slice_that_lost_its_core_is_left_out() {
        let mut slices = control(steady(40));
        slices[3].lost_core = 0.3;
        slices[4].lost_core = 0.09;
        assert_eq!(left_out(&slices), [3]);
        slices.iter_mut().for_each(|slice| slice.lost_core = 0.3);
        assert_eq!(left_out(&slices), [0; 0]);
    }

    #[test]
    fn a_slice_that_counted_nothing_is_left_out_wherever_the_others_are() {
        let nothing = f64::NEG_INFINITY;
        assert_eq!(left_out(&control([nothing, 0.0, 0.0])), [0]);
        assert_eq!(left_out(&control([nothing; 3])), [0, 1, 2]);
        assert_eq!(left_out(&control([f64::NAN, 1.0, 1.0])), [0]);
        assert_eq!(left_out(&[]), [0; 0]);
    }

    proptest! {
        #[test]
        fn four_fifths_of_the_rounds_are_kept(
            slices in proptest::collection::vec((-5.0..5.0_f64, 0.0..1.0_f64), 0..200),
            power in 1..6,
        ) {
            // High powers have heavy tails.
            let slices: Vec<_> = slices
                .iter()
                .map(|(log_rate, lost_core)| ControlSlice { log_rate: log_rate.powi(power), lost_core: lost_core.powi(power) })
                .collect();
            prop_assert!(5 * left_out(&slices).len() <= slices.len());
        }

        #[test]
        fn the_speed_of_the_machine_does_not_matter(
            rates in proptest::collection::vec(-0.5..0.5_f64, 1..100),
            machine in -30.0..30.0_f64,
        ) {
            let faster = control(rates.iter().map(|rate| rate + machine));
            // Sums are rounded, so a rate on the limit itself may fall on either side.
            let differing = left_out(&faster).len().abs_diff(left_out(&control(rates)).len());
            prop_assert!(differing <= 1);
        }
    }

    #[test]
    fn only_what_the_control_does_not_show_is_one_sided() {
        let (mut member, mut control) = (steady(100), steady(100));
        member[5] -= 0.5;
        member[6] -= 0.5;
        control[6] -= 0.5;
        control[7] += 0.5;
        assert_eq!(one_sided(&member, &control), 0.01);
        member[8..20].iter_mut().for_each(|rate| *rate -= 0.3);
        assert_eq!(one_sided(&member, &control), 0.13);
    }

    #[test]
    fn a_slice_of_the_member_that_counted_nothing_is_disturbed() {
        assert_eq!(one_sided(&[0.0, f64::NEG_INFINITY, 0.01, -0.01], &[0.0; 4]), 0.25);
        assert_eq!(one_sided(&[], &[]), 0.0);
    }
}
