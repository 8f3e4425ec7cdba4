//! When something that failed is tried again: soon at first, then less and less often.

use std::time::Duration;

/// The first failure is often that of an interface which is just going, and which netlink reports a moment later.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);
/// What fails for so long is worth a line.
const WORTH_A_LINE: Duration = Duration::from_millis(800);

/// A series of failures; none at first.
#[derive(Default)]
pub struct Retry {
    delay: Duration,
    at: Duration,
}

impl Retry {
    /// Whether the next attempt has to wait.
    pub fn waits(&self, now: Duration) -> bool {
        now < self.at
    }

    /// Ends the series: the next attempt need not wait.
    pub fn reset(&mut self) {
        *self = Retry::default();
    }

    /// An attempt failed. Returns whether this is the failure of the series that is to be reported.
    pub fn fail(&mut self, now: Duration) -> bool {
        let before = self.delay;
        self.delay = (2 * before).clamp(SHORTEST, LONGEST);
        self.at = now + self.delay;
        before < WORTH_A_LINE && WORTH_A_LINE <= self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries every 10 ms for this time, and always fails. Returns the attempts and the reports.
    fn attempts(retry: &mut Retry, from: Duration, time: Duration) -> (usize, usize) {
        let (mut attempts, mut reports) = (0, 0);
        let mut now = from;
        while now < from + time {
            if !retry.waits(now) {
                attempts += 1;
                reports += usize::from(retry.fail(now));
            }
            now += Duration::from_millis(10);
        }
        (attempts, reports)
    }

    #[test]
    fn what_fails_for_ever_is_tried_less_and_less_often_and_reported_once() {
        let mut retry = Retry::default();
        assert!(!retry.waits(Duration::ZERO));
        assert_eq!(attempts(&mut retry, Duration::ZERO, Duration::from_millis(650)), (3, 0));
        let (tried, reported) = attempts(&mut retry, Duration::from_millis(650), Duration::from_secs(100));
        assert!((10..20).contains(&tried), "{tried} attempts in 100 s");
        assert_eq!(reported, 1);
    }

    #[test]
    fn after_a_success_a_new_series_begins() {
        let mut retry = Retry::default();
        let minute = Duration::from_secs(60);
        attempts(&mut retry, Duration::ZERO, minute);
        retry.reset();
        assert!(!retry.waits(minute));
        assert_eq!(attempts(&mut retry, minute, Duration::from_secs(1)), (4, 1));
    }
}
