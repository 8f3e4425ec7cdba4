//! The schedule of a paced generator: when each packet is due.
//!
//! Packet k is due k / rate after the start. The time is computed from k for each packet, so a late packet delays no
//! other and the rate never drifts. A generator that fell behind sends what is due at once, but no more than a burst at
//! a time.

use std::time::Duration;

/// The schedule of a stream of constant rate. It reads no clock: the time since the start is handed in.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Thousandths of a packet per second, so that everything is exact in integers.
    millipackets: u64,
    sent: u64,
    max_lag: Duration,
}

/// A number that cannot be a rate.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("rate {0} is not a number of packets per second from 0.001 to 10^12")]
pub struct RateError(pub f64);

const NANOS_TIMES_MILLI: u128 = 1_000_000_000_000;

impl Pace {
    /// A schedule of `pps` packets per second, rounded to thousandths.
    pub fn new(pps: f64) -> Result<Self, RateError> {
        if !(0.001..=1e12).contains(&pps) {
            return Err(RateError(pps));
        }
        Ok(Pace { millipackets: (pps * 1000.0).round() as u64, sent: 0, max_lag: Duration::ZERO })
    }

    /// How many packets to send now, at most `burst`, and notes how late the first of them is.
    pub fn due(&mut self, since_start: Duration, burst: usize) -> usize {
        let scheduled = self.scheduled(since_start);
        let due = scheduled.saturating_sub(self.sent).min(burst as u64);
        if due > 0 {
            let lag = since_start.saturating_sub(self.time_of(self.sent));
            self.max_lag = self.max_lag.max(lag);
        }
        due as usize
    }

    /// Notes that `packets` were sent. Those due but not sent, for want of room, stay due.
    pub fn sent(&mut self, packets: usize) {
        self.sent += packets as u64;
    }

    /// Packets the schedule has asked for up to a time; the first is due at once.
    pub fn scheduled(&self, since_start: Duration) -> u64 {
        (since_start.as_nanos() * u128::from(self.millipackets) / NANOS_TIMES_MILLI) as u64 + 1
    }

    /// When a packet is due, since the start, rounded up to whole nanoseconds.
    pub fn time_of(&self, packet: u64) -> Duration {
        let nanos = (u128::from(packet) * NANOS_TIMES_MILLI).div_ceil(u128::from(self.millipackets));
        Duration::from_nanos(nanos as u64)
    }

    /// What a stretch of the schedule offered, and how long it was, if the last look at the clock was at `looked` and the
    /// last burst ended at `now`. A generator that sent all that was due keeps its rate to the packet: the stretch ends
    /// when the next packet is due. One that is behind had the whole time, and what was due in it is offered.
    pub fn ended(&self, looked: Duration, now: Duration) -> (u64, Duration) {
        match self.sent < self.scheduled(looked) {
            true => (self.scheduled(now), now),
            false => (self.sent, now.min(self.time_of(self.sent))),
        }
    }

    /// The longest any packet was sent after its time: a lag beyond a few bursts means that the rate was not kept.
    pub fn max_lag(&self) -> Duration {
        self.max_lag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends on a simulated clock that ticks irregularly; returns the packets sent up to `end`.
    fn simulate(pace: &mut Pace, end: Duration, ticks: &[u64], burst: usize) -> u64 {
        let (mut now, mut sent) = (Duration::ZERO, 0);
        for tick in ticks.iter().cycle() {
            let due = pace.due(now, burst);
            assert!(due <= burst);
            pace.sent(due);
            sent += due as u64;
            if now >= end {
                return sent;
            }
            now = (now + Duration::from_nanos(*tick)).min(end);
        }
        sent
    }

    #[test]
    fn the_rate_is_kept_exactly_over_irregular_ticks() {
        for pps in [1.0, 999.999, 14_880_952.0, 1e6 / 3.0] {
            let mut pace = Pace::new(pps).unwrap();
            let sent = simulate(&mut pace, Duration::from_secs(2), &[313, 1, 977, 4_096], 256);
            let expected = (2.0 * (pps * 1000.0).round() / 1000.0).floor() as u64 + 1;
            assert_eq!(sent, expected, "{pps} pps");
        }
    }

    #[test]
    fn no_packet_leaves_before_its_time() {
        let mut pace = Pace::new(3.0).unwrap();
        for packet in 0..1000 {
            let time = pace.time_of(packet);
            assert_eq!(pace.due(time, 1), 1, "packet {packet} at its time");
            let before = time.checked_sub(Duration::from_nanos(1));
            assert_eq!(before.map_or(0, |before| pace.due(before, 1)), 0, "packet {packet} before its time");
            pace.sent(1);
        }
        assert_eq!(pace.max_lag(), Duration::from_nanos(0));
    }

    #[test]
    fn a_pause_is_caught_up_in_bursts_and_reported_as_lag() {
        let mut pace = Pace::new(1e6).unwrap();
        assert_eq!(pace.due(Duration::from_millis(1), 64), 64);
        pace.sent(64);
        assert_eq!(pace.max_lag(), Duration::from_millis(1));
        assert_eq!(simulate(&mut pace, Duration::from_millis(2), &[1_000], 64), 2001 - 64);
    }

    #[test]
    fn rates_that_are_none_are_refused() {
        for pps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e13] {
            assert!(Pace::new(pps).is_err(), "{pps}");
        }
    }
}
