//! The router's side of ARP and neighbour discovery: `arp` and `ndp` answer requests for its addresses and learn from
//! what other stations send.

#[derive(Default)]
pub(super) struct NeighborResponder {
    /// Requests answered.
    pub answers: u64,
    /// Messages in which another station claimed an address of this router.
    pub conflicts: u64,
}
