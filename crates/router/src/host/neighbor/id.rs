//! What identifies a neighbour.

use std::net::IpAddr;

/// A neighbour: the number of the interface whose link it is on, and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeighborId {
    pub interface: u16,
    pub ip: IpAddr,
}
