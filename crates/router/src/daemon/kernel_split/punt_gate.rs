//! Limits and counts what a worker gives back to the kernel.
//!
//! Packets of a [`LimitedReason`] pass a token bucket of that reason. They also leave a part of the ring to the kernel free, so
//! that packets for which the kernel may do more find room in any flood.

use std::array;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fullview_plane::burst::Slot;
use fullview_plane::port::reinject::Reinjector;
use fullview_plane::verdict::{LimitedReason, Punt, Reason, Verdict};

use crate::daemon::punts::PuntCount;
use crate::host::{RateLimit, TokenBucket};
use crate::options::PuntRates;

/// Verdicts of packets that the kernel may get.
const VERDICTS: usize = Punt::COUNT + Reason::COUNT;

/// A worker's way to the kernel.
pub struct PuntGate {
    ring: Reinjector,
    buckets: [TokenBucket; LimitedReason::COUNT],
    counts: Arc<GateCounts>,
    began: Instant,
    now: Duration,
}

/// What became of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Handed,
    Limited,
    Lost,
}

/// The counts of a gate by verdict and fate. One thread writes them; other threads read them.
pub struct GateCounts([[AtomicU64; 3]; VERDICTS]);

impl Default for GateCounts {
    fn default() -> GateCounts {
        GateCounts(array::from_fn(|_| array::from_fn(|_| AtomicU64::new(0))))
    }
}

impl PuntGate {
    pub fn new(ring: Reinjector, rates: &PuntRates) -> PuntGate {
        let bucket = |reason: &LimitedReason| TokenBucket::new(limit(rates.of_worker(*reason)));
        PuntGate {
            ring,
            buckets: array::from_fn(|index| bucket(&LimitedReason::ALL[index])),
            counts: Arc::default(),
            began: Instant::now(),
            now: Duration::ZERO,
        }
    }

    /// What this gate counts.
    pub fn counts(&self) -> Arc<GateCounts> {
        Arc::clone(&self.counts)
    }

    /// Reads the clock. Call it once per burst, before the first packet.
    pub fn begin_burst(&mut self) {
        self.now = self.began.elapsed();
    }

    /// Gives a packet that came in by this link back to the kernel, if the limit of its reason allows that.
    pub fn hand_over(&mut self, link: u32, packet: &Slot) {
        let fate = self.fate(LimitedReason::of(packet.verdict), link, packet.frame());
        self.counts.count(packet.verdict, fate);
    }

    fn fate(&mut self, reason: Option<LimitedReason>, link: u32, frame: &[u8]) -> Fate {
        if reason.is_some_and(|reason| !self.buckets[reason.index()].take(self.now)) {
            return Fate::Limited;
        }
        let has_room = reason.is_none() || !self.ring.is_busy();
        if has_room && self.ring.queue(link, frame) { Fate::Handed } else { Fate::Lost }
    }

    /// Wakes the thread that passes the packets to the kernel.
    pub fn flush(&mut self) {
        self.ring.flush();
    }
}

/// A burst of a tenth of a second, and of some packets at the least.
fn limit(rate: NonZeroU32) -> RateLimit {
    const LEAST: u32 = 64;
    let rate = rate.get();
    RateLimit { rate, burst: (rate / 10).max(LEAST) }
}

impl GateCounts {
    fn count(&self, verdict: Verdict, fate: Fate) {
        if let Some(place) = place(verdict) {
            let count = &self.0[place][fate as usize];
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The counts by the names of reasons; a name may come several times.
    pub fn read(&self) -> impl Iterator<Item = (&'static str, PuntCount)> {
        let punts = Punt::ALL.iter().map(|punt| Verdict::Punt(*punt));
        let verdicts = punts.chain(Reason::ALL.iter().map(|reason| Verdict::Drop(*reason)));
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        verdicts.zip(&self.0).map(move |(verdict, counts)| {
            let [handed, limited, lost] = counts.each_ref().map(load);
            (name(verdict), PuntCount { handed, limited, lost })
        })
    }
}

/// The place of a verdict among the counters: that of its punt, or behind the punts that of its drop.
fn place(verdict: Verdict) -> Option<usize> {
    match verdict {
        Verdict::Punt(punt) => Some(punt.index()),
        Verdict::Drop(reason) => Some(Punt::COUNT + reason.index()),
        Verdict::Forward | Verdict::Reject(_) => None,
    }
}

/// The name of a limited reason is the same for all engines.
fn name(verdict: Verdict) -> &'static str {
    match (LimitedReason::of(verdict), verdict) {
        (Some(reason), _) => reason.name(),
        (None, Verdict::Punt(punt)) => punt.name(),
        (None, Verdict::Drop(reason)) => reason.name(),
        (None, Verdict::Forward | Verdict::Reject(_)) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::punts::by_reason;

    #[test]
    fn each_verdict_is_counted_under_its_own_name_or_that_of_its_limit() {
        let counts = GateCounts::default();
        counts.count(Verdict::Drop(Reason::TtlExpired), Fate::Handed);
        counts.count(Verdict::Drop(Reason::HopLimitExpired), Fate::Limited);
        counts.count(Verdict::Drop(Reason::NeedsFragments), Fate::Handed);
        counts.count(Verdict::Punt(Punt::PolicyRule), Fate::Lost);
        counts.count(Verdict::Forward, Fate::Handed);
        let count = |handed, limited, lost| PuntCount { handed, limited, lost };
        let found: Vec<_> = by_reason(counts.read()).into_iter().collect();
        let meant = [
            ("needs_fragments", count(1, 0, 0)),
            ("policy_rule", count(0, 0, 1)),
            ("ttl_expired", count(1, 1, 0)),
        ];
        assert_eq!(found, meant);
    }
}
