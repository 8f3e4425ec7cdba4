//! A trial in parts, between which the generator's core is free.
//!
//! The kernel leaves a core to threads in real time for 95 % of each second (`sched_rt_runtime_us`). If others wait for the
//! core, it takes the rest at once, and the generator stands still for 50 ms. After pauses of 8 % there is nothing to take.

use std::time::Duration;

/// Two of them with their pauses are shorter than the second of that rule.
pub const LONGEST: Duration = Duration::from_millis(450);
/// The pause after a part, as a share of the part.
const PAUSE: f64 = 0.09;

/// Equal parts of a trial.
pub fn parts(trial: Duration) -> impl Iterator<Item = Duration> {
    let count = trial.as_nanos().div_ceil(LONGEST.as_nanos()).max(1) as u32;
    (0..count).map(move |_| trial / count)
}

/// How long other threads have the core after a part.
pub fn pause(part: Duration) -> Duration {
    part.mul_f64(PAUSE)
}

/// How long a trial takes with its pauses.
pub fn with_pauses(trial: Duration) -> Duration {
    trial + pause(trial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_short() {
        let of = |millis| parts(Duration::from_millis(millis)).collect::<Vec<_>>();
        assert_eq!(of(200), [Duration::from_millis(200)]);
        assert_eq!(of(900), [Duration::from_millis(450); 2]);
        assert_eq!(of(1000).len(), 3);
        assert_eq!(of(0), [Duration::ZERO]);
    }

    #[test]
    fn the_kernel_has_its_share_of_every_part() {
        let part = Duration::from_millis(450);
        assert!(part.as_secs_f64() / (part + pause(part)).as_secs_f64() < 0.95);
    }

    #[test]
    fn a_trial_with_its_pauses_takes_as_long_as_its_parts_with_theirs() {
        let trial = Duration::from_secs(1000);
        let taken: Duration = parts(trial).map(|part| part + pause(part)).sum();
        assert!(taken.abs_diff(with_pauses(trial)) < Duration::from_millis(1), "{taken:?}");
        assert_eq!(with_pauses(trial), Duration::from_secs(1090));
    }
}
