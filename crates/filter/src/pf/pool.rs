//! The addresses that translation rules put in place of others.

use crate::pf::address::PfAddress;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PfPool {
    pub addresses: Vec<PfAddress>,
    pub ports: PoolPorts,
    pub choice: Option<PoolChoice>,
    /// A source keeps the address that it got first.
    pub sticky: bool,
    pub map_e: Option<MapE>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolPorts {
    /// Of `nat`: those of [`NAT_PORTS`]. Of `rdr`: the packet's.
    Default,
    /// `static-port`: the packet's.
    Keep,
    Range(u16, u16),
}

/// The ports that `nat` chooses from unless the rule names others.
pub const NAT_PORTS: (u16, u16) = (50_001, 65_535);

/// How an address of the pool is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolChoice {
    Bitmask,
    Random,
    /// By the source address, with a key. Without one it is chosen when the rules are loaded.
    SourceHash(Option<u128>),
    RoundRobin,
}

/// The ports that MAP-E gives to one subscriber (RFC 7597).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapE {
    pub offset: u8,
    pub length: u8,
    pub id: u16,
}
