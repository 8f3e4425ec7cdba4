//! Token buckets that limit what other stations make the router do.

use std::time::Duration;

/// A sustained rate, and the burst that is allowed after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Per second; 0 allows nothing.
    pub rate: u32,
    pub burst: u32,
}

impl RateLimit {
    /// Practically unlimited.
    pub const NONE: RateLimit = RateLimit { rate: u32::MAX, burst: u32::MAX };

    fn interval(self) -> Option<Duration> {
        Duration::from_secs(1).checked_div(self.rate)
    }
}

/// A bucket that holds `burst` tokens and receives `rate` tokens a second. It stores the time at which it will be full:
/// each token taken delays that by the time in which one token arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    limit: RateLimit,
    full_at: Duration,
}

impl TokenBucket {
    pub fn new(limit: RateLimit) -> TokenBucket {
        TokenBucket { limit, full_at: Duration::ZERO }
    }

    /// Whether there is a token.
    pub fn has(&self, now: Duration) -> bool {
        let Some(interval) = self.limit.interval() else { return false };
        let missing = self.full_at.saturating_sub(now).saturating_add(interval);
        missing <= interval.saturating_mul(self.limit.burst)
    }

    /// Takes a token. Returns whether there was one.
    pub fn take(&mut self, now: Duration) -> bool {
        let had = self.has(now);
        if let Some(interval) = self.limit.interval().filter(|_| had) {
            self.full_at = self.full_at.max(now).saturating_add(interval);
        }
        had
    }
}

/// A limit for each interface, and one over all interfaces.
#[derive(Clone, Debug)]
pub(super) struct InterfaceLimiter {
    each: RateLimit,
    interfaces: Vec<TokenBucket>,
    all: TokenBucket,
}

impl InterfaceLimiter {
    pub fn new(interfaces: usize, each: RateLimit, all: RateLimit) -> InterfaceLimiter {
        InterfaceLimiter {
            each,
            interfaces: vec![TokenBucket::new(each); interfaces],
            all: TokenBucket::new(all),
        }
    }

    /// Makes room for at least this many interfaces.
    pub fn grow(&mut self, interfaces: usize) {
        let interfaces = interfaces.max(self.interfaces.len());
        self.interfaces.resize(interfaces, TokenBucket::new(self.each));
    }

    /// Takes a token of the interface and a shared one. An interface without a token takes no shared one.
    pub fn take(&mut self, now: Duration, interface: u16) -> bool {
        let Some(own) = self.interfaces.get_mut(usize::from(interface)) else { return false };
        own.has(now) && self.all.take(now) && own.take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taken(bucket: &mut TokenBucket, now: Duration, asked: u32) -> u32 {
        (0..asked).filter(|_| bucket.take(now)).count() as u32
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = TokenBucket::new(RateLimit { rate: 10, burst: 3 });
        let at = Duration::from_millis;
        assert_eq!(taken(&mut bucket, at(0), 9), 3);
        assert_eq!(taken(&mut bucket, at(99), 9), 0);
        assert_eq!(taken(&mut bucket, at(100), 9), 1);
        assert_eq!(taken(&mut bucket, at(60_000), 9), 3, "the bucket holds no more than its burst");
        assert_eq!(taken(&mut TokenBucket::new(RateLimit { rate: 0, burst: 9 }), at(0), 9), 0);
        assert_eq!(taken(&mut TokenBucket::new(RateLimit::NONE), at(0), 5000), 5000);
    }

    #[test]
    fn an_interface_beyond_its_limit_takes_no_shared_tokens() {
        let mut limiter =
            InterfaceLimiter::new(2, RateLimit { rate: 1, burst: 2 }, RateLimit { rate: 1, burst: 3 });
        let now = Duration::from_secs(7);
        let mut taken = |interface| (0..9).filter(|_| limiter.take(now, interface)).count();
        assert_eq!([taken(0), taken(1), taken(2)], [2, 1, 0]);
    }

    proptest! {
        /// A bucket never gives more than its burst and the tokens that arrived meanwhile.
        #[test]
        fn no_more_tokens_than_configured(
            rate in 1u32..2000,
            burst in 1u32..50,
            gaps in prop::collection::vec(0u64..20_000, 1..300),
        ) {
            let mut bucket = TokenBucket::new(RateLimit { rate, burst });
            let (mut now, mut taken) = (Duration::from_secs(3), 0u32);
            let began = now;
            for gap in gaps {
                now += Duration::from_micros(gap);
                taken += u32::from(bucket.take(now));
                let most = f64::from(burst) + (now - began).as_secs_f64() * f64::from(rate) * 1.001;
                prop_assert!(f64::from(taken) <= most, "{} tokens taken, {} allowed", taken, most);
            }
        }
    }
}
