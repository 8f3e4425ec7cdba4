//! Packets and bytes of rules, which the worker counts and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Two counters for each rule. One worker adds; the sum over workers is the rule's.
#[derive(Debug, Default)]
pub struct RuleCounters {
    rules: Box<[[AtomicU64; 2]]>,
}

impl RuleCounters {
    /// Counters for so many rules.
    pub fn new(rules: usize) -> Self {
        RuleCounters { rules: (0..rules).map(|_| [const { AtomicU64::new(0) }; 2]).collect() }
    }

    /// Counts a packet. Only one thread calls it, so a load and a store suffice.
    #[inline(always)]
    pub(crate) fn add(&self, rule: u32, bytes: u16) {
        if let Some([packets, total]) = self.rules.get(rule as usize) {
            packets.store(packets.load(Relaxed).wrapping_add(1), Relaxed);
            total.store(total.load(Relaxed).wrapping_add(u64::from(bytes)), Relaxed);
        }
    }

    /// Counts several packets, as [`Self::add`].
    #[inline]
    pub(crate) fn add_all(&self, rule: u32, packets: u64, bytes: u64) {
        if let Some([count, total]) = self.rules.get(rule as usize) {
            count.store(count.load(Relaxed).wrapping_add(packets), Relaxed);
            total.store(total.load(Relaxed).wrapping_add(bytes), Relaxed);
        }
    }

    /// Continues a rule's counts of another rule set.
    pub(crate) fn carry(&self, rule: usize, (before, bytes): (u64, u64)) {
        if let Some([packets, total]) = self.rules.get(rule) {
            packets.store(before, Relaxed);
            total.store(bytes, Relaxed);
        }
    }

    /// The packets and bytes of a rule.
    pub fn get(&self, rule: usize) -> (u64, u64) {
        let of = |counters: &[AtomicU64; 2]| (counters[0].load(Relaxed), counters[1].load(Relaxed));
        self.rules.get(rule).map_or((0, 0), of)
    }

    /// The packets and bytes of a rule that several workers count.
    pub fn sum<'a>(workers: impl Iterator<Item = &'a RuleCounters>, rule: usize) -> (u64, u64) {
        let counts = workers.map(|counters| counters.get(rule));
        counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// How many rules have counters.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether no rule has.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}
