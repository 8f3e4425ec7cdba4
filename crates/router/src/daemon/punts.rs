//! Counts of the packets that the data path hands to the host, by reason.

use std::collections::BTreeMap;
#[cfg(feature = "bpf")]
use std::ops::AddAssign;

/// What became of the packets of one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuntCount {
    /// The host got them.
    pub handed: u64,
    /// They were dropped because the host had got as many as it should.
    pub limited: u64,
    /// They were dropped because there was no room on the way to the host.
    pub lost: u64,
}

#[cfg(feature = "bpf")]
impl PuntCount {
    pub fn handed(handed: u64) -> PuntCount {
        PuntCount { handed, ..PuntCount::default() }
    }

    pub fn limited(limited: u64) -> PuntCount {
        PuntCount { limited, ..PuntCount::default() }
    }
}

#[cfg(feature = "bpf")]
impl AddAssign for PuntCount {
    fn add_assign(&mut self, other: PuntCount) {
        self.handed += other.handed;
        self.limited += other.limited;
        self.lost += other.lost;
    }
}

/// The counts by the names of reasons, for reasons that occurred.
pub type PuntCounts = BTreeMap<&'static str, PuntCount>;

/// Adds up the counts of equal names.
#[cfg(feature = "bpf")]
pub fn by_reason(counts: impl IntoIterator<Item = (&'static str, PuntCount)>) -> PuntCounts {
    let mut all = PuntCounts::new();
    for (reason, count) in counts.into_iter().filter(|(_, count)| *count != PuntCount::default()) {
        *all.entry(reason).or_default() += count;
    }
    all
}
