//! Counters of the host stack.

/// What the host stack did, and what it refused to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Echo requests answered.
    pub echoes: u64,
    /// ARP requests and neighbour solicitations answered.
    pub neighbor_answers: u64,
    /// ICMP errors sent, redirects among them, and TCP resets in answer to packets that the filter rejects.
    pub errors: u64,
    /// ICMP errors suppressed by a rate limit.
    pub errors_limited: u64,
    /// Packets forwarded on the slow path: to unresolved neighbours, in fragments, with options.
    pub forwarded: u64,
    /// Packets that would have left by an interface for which the filter had not judged them.
    pub unjudged: u64,
    /// Packets dropped because the queues for unresolved neighbours were full, or too many neighbours were unresolved.
    pub queue_full: u64,
    /// Neighbours that stopped answering, or never answered.
    pub lost_neighbors: u64,
    /// Messages in which another station claimed an address of this router.
    pub conflicts: u64,
}
