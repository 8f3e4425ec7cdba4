//! When packets are due.

use std::time::Duration;

/// Packets that are sent at once at most: half of the ring of a veth device. What a late generator could only make up for by
/// a longer burst, which would overflow that ring, is not sent at all.
pub const LONGEST_BURST: u64 = 128;

/// The schedule of one trial.
#[derive(Debug)]
pub struct SendSchedule {
    load: f64,
    sent: u64,
    skipped: u64,
}

impl SendSchedule {
    /// So many packets a second.
    pub fn new(load: f64) -> SendSchedule {
        SendSchedule { load, sent: 0, skipped: 0 }
    }

    /// The packets that are due so many seconds after the start.
    pub fn due(&mut self, seconds: f64) -> u64 {
        let late = ((seconds * self.load) as u64).saturating_sub(self.sent + self.skipped);
        let skipped = late.saturating_sub(LONGEST_BURST);
        self.skipped += skipped;
        late - skipped
    }

    /// Records packets that were sent.
    pub fn sent(&mut self, packets: u64) {
        self.sent += packets;
    }

    /// When the packet after the next `ahead` ones is due, since the start.
    pub fn due_time(&self, ahead: u64) -> Duration {
        Duration::from_secs_f64((self.sent + self.skipped + ahead + 1) as f64 / self.load)
    }

    /// The number of the next packet.
    pub fn next(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_generator_skips_what_would_be_a_long_burst() {
        let mut schedule = SendSchedule::new(1e6);
        assert_eq!(schedule.due(5e-6), 5);
        schedule.sent(5);
        assert_eq!(schedule.due(5e-6), 0);
        assert_eq!(schedule.due(1005e-6), LONGEST_BURST, "1000 packets late");
        schedule.sent(LONGEST_BURST);
        assert_eq!(schedule.due(1005e-6), 0, "the others are never sent");
        assert_eq!(schedule.next(), 5 + LONGEST_BURST);
        assert_eq!(schedule.due_time(0), Duration::from_micros(1006));
    }

    #[test]
    fn a_packet_is_due_when_the_schedule_says_however_late_it_is_sent() {
        let mut schedule = SendSchedule::new(1e6);
        assert_eq!(schedule.due_time(0), Duration::from_micros(1));
        assert_eq!(schedule.due(1005e-6), LONGEST_BURST);
        assert_eq!(schedule.due_time(0), Duration::from_micros(1006 - LONGEST_BURST));
        schedule.sent(28);
        assert_eq!(schedule.due_time(99), Duration::from_micros(1005));
    }
}
