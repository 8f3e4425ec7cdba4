//! When a FIB that lags behind its RIB is synced: at once in a quiet table, by buckets in a storm (FreeBSD ee2cf2b3).
//!
//! Changes are counted in buckets that begin with the first change that the FIB lacks. A bucket with many changes
//! delays the sync to the end of the next one, as long as that is within the longest delay. FreeBSD always waits for
//! the end of the first bucket; here a table that was not synced within the last bucket's time is synced at once.

use super::settings::{Settings, Time};

/// The delay of one table.
#[derive(Debug, Default)]
pub(super) struct Delay {
    /// When the FIB was synced last.
    synced: Option<Time>,
    lag: Option<Lag>,
}

/// The state while the FIB lacks changes.
#[derive(Debug)]
struct Lag {
    /// When the first of them was made.
    since: Time,
    /// When to sync.
    due: Time,
    /// Whether further changes can no longer delay the sync.
    hurried: bool,
    /// The number of the last bucket, and the changes in it.
    bucket: u128,
    changes: u64,
}

impl Delay {
    /// Counts changes that the FIB lacks.
    pub(super) fn changed(&mut self, now: Time, changes: u64, settings: &Settings) {
        let quiet = self.synced.is_none_or(|synced| now.saturating_sub(synced) >= settings.bucket_time);
        let lag = self.lag.get_or_insert_with(|| Lag::begin(now, quiet, settings));
        lag.count(now, changes, settings);
    }

    /// Makes the sync due at once.
    pub(super) fn hurry(&mut self, now: Time, settings: &Settings) {
        let lag = self.lag.get_or_insert(Lag::begin(now, true, settings));
        (lag.due, lag.hurried) = (lag.due.min(now), true);
    }

    /// Records that the FIB answers like the RIB again.
    pub(super) fn synced(&mut self, now: Time) {
        if self.lag.take().is_some() {
            self.synced = Some(now);
        }
    }

    /// When to sync; `None` if the FIB lacks nothing.
    pub(super) fn due(&self) -> Option<Time> {
        self.lag.as_ref().map(|lag| lag.due)
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.due().is_some_and(|due| due <= now)
    }
}

impl Lag {
    fn begin(now: Time, quiet: bool, settings: &Settings) -> Self {
        let wait = if quiet { Time::ZERO } else { settings.bucket_time.min(settings.max_sync_delay) };
        Lag { since: now, due: now + wait, hurried: false, bucket: 0, changes: 0 }
    }

    fn count(&mut self, now: Time, changes: u64, settings: &Settings) {
        let length = settings.bucket_time.as_nanos();
        let Some(bucket) = now.saturating_sub(self.since).as_nanos().checked_div(length) else { return };
        if bucket != self.bucket {
            (self.bucket, self.changes) = (bucket, 0);
        }
        self.changes += changes;
        if self.changes >= settings.bucket_threshold() {
            self.delay_to(bucket + 2, settings);
        }
    }

    /// Delays the sync to the end of that many buckets, unless this is too long.
    fn delay_to(&mut self, buckets: u128, settings: &Settings) {
        let buckets = u32::try_from(buckets).unwrap_or(u32::MAX);
        let wait = settings.bucket_time.saturating_mul(buckets);
        if wait <= settings.max_sync_delay && !self.hurried {
            self.due = self.due.max(self.since + wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// The policy as a model that counts everything again at every step.
    #[derive(Default)]
    struct Model {
        last_sync: Option<u64>,
        lacking: Vec<(u64, u64)>,
    }

    impl Model {
        /// When to sync, in milliseconds.
        fn due(&self, bucket: u64, threshold: u64, longest: u64) -> Option<u64> {
            let (first, _) = *self.lacking.first()?;
            let in_bucket = |number: u64| -> u64 {
                let here = self.lacking.iter().filter(|(at, _)| (at - first) / bucket == number);
                here.map(|(_, changes)| changes).sum()
            };
            let quiet = self.last_sync.is_none_or(|sync| first - sync >= bucket);
            let least = if quiet { 0 } else { bucket.min(longest) };
            let ends = (0..=longest / bucket).filter(|number| in_bucket(*number) >= threshold);
            let ends = ends.map(|number| (number + 2) * bucket).filter(|end| *end <= longest);
            Some(first + ends.max().unwrap_or(0).max(least))
        }
    }

    proptest! {
        /// Compares both at every millisecond, with few changes and in storms.
        #[test]
        fn buckets_behave_as_the_model(
            steps in prop::collection::vec((0u64..40, 1u64..12), 1..400),
            storm in 0usize..3,
            bucket in prop::sample::select(vec![10u64, 50, 70]),
            longest in prop::sample::select(vec![30u64, 200, 1_000]),
        ) {
            let settings = Settings { bucket_time: ms(bucket), max_sync_delay: ms(longest), ..Settings::default() };
            let threshold = settings.bucket_threshold();
            let (mut delay, mut model, mut now) = (Delay::default(), Model::default(), 0u64);
            for (pause, changes) in steps {
                for _ in 0..pause / [1, 8, 40][storm] {
                    now += 1;
                    let due = model.due(bucket, threshold, longest).is_some_and(|due| due <= now);
                    prop_assert_eq!(delay.is_due(ms(now)), due);
                    if due {
                        let (first, _) = model.lacking[0];
                        prop_assert!(now <= first + longest);
                        delay.synced(ms(now));
                        model = Model { last_sync: Some(now), lacking: Vec::new() };
                    }
                }
                delay.changed(ms(now), changes, &settings);
                model.lacking.push((now, changes));
                prop_assert_eq!(delay.due(), model.due(bucket, threshold, longest).map(ms));
            }
        }
    }

    #[test]
    fn a_quiet_table_does_not_wait_and_a_busy_one_waits_for_its_bucket() {
        let (mut delay, settings) = (Delay::default(), Settings::default());
        delay.changed(ms(0), 1, &settings);
        assert_eq!(delay.due(), Some(ms(0)));
        delay.synced(ms(0));
        delay.changed(ms(10), 1, &settings);
        assert_eq!(delay.due(), Some(ms(60)), "one sync a bucket");
        delay.synced(ms(60));
        delay.changed(ms(110), 1, &settings);
        assert_eq!(delay.due(), Some(ms(110)));
    }

    #[test]
    fn a_storm_is_synced_after_the_longest_delay() {
        let (mut delay, settings) = (Delay::default(), Settings::default());
        assert_eq!(settings.bucket_threshold(), 25);
        delay.changed(ms(0), 1, &settings);
        delay.synced(ms(0));
        let mut now = ms(7);
        delay.changed(now, 1, &settings);
        while !delay.is_due(now) {
            delay.changed(now, 1, &settings);
            now += ms(1);
        }
        assert_eq!(now, ms(1_007));
    }

    #[test]
    fn without_buckets_nothing_waits() {
        let (mut delay, settings) =
            (Delay::default(), Settings { bucket_time: Time::ZERO, ..Settings::default() });
        for now in [0, 1, 1] {
            delay.changed(ms(now), 1_000, &settings);
            assert_eq!(delay.due(), Some(ms(now)));
            delay.synced(ms(now));
        }
    }
}
