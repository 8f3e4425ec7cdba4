//! The members of next-hop groups.

use crate::nexthop::NextHop;

/// A next hop of a group, and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Member {
    /// A plain next hop.
    pub next_hop: NextHop,
    /// Its share of the flows, relative to the weights of the other members.
    pub weight: u16,
}
