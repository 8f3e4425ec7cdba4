//! What a follower counts.

/// Counters of what was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Messages decoded.
    pub events: u64,
    /// Messages that were damaged.
    pub malformed: u64,
    /// How often the kernel dropped messages.
    pub overflows: u64,
    /// Dumps that changes disturbed.
    pub interrupted: u64,
    /// Dumps ended, of any part.
    pub dumps: u64,
    /// Entries of the mirror that a dump removed: the kernel had not reported that they were gone.
    pub repaired: u64,
}
