use super::ranges::PortRange;
use crate::address::Address;

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Source,
    Destination,
}

impl Side {
    /// The one of the two that belongs to this end: the source's, or the destination's.
    #[inline]
    pub fn of<T>(self, (source, destination): (T, T)) -> T {
        match self {
            Side::Source => source,
            Side::Destination => destination,
        }
    }
}

/// How one end of a flow gets another address and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    pub side: Side,
    pub pool: AddressPool,
    pub ports: PortChoice,
    /// Translated packets pass without a look at the filter rules (pf's `rdr pass`).
    pub pass: bool,
}

/// The addresses to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPool {
    /// Ranges, both ends included. Those of the packet's family count; without one the packet is dropped.
    pub ranges: Vec<(Address, Address)>,
    pub order: PoolOrder,
}

/// Which address of a pool a new flow gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolOrder {
    /// Always the first address.
    First,
    RoundRobin,
    Random,
    /// By a hash of the source address with this key.
    SourceHash(u64),
    /// The address of the first range with the host part of the original one.
    Bitmask,
}

/// Which port a new flow gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// The original one.
    Keep,
    /// A free one of these.
    Free(PortRange),
    /// The original one if it is free, else a free one of these.
    KeepOrFree(PortRange),
    /// The first of `to` for `from`, the next one for the port after `from`, and so on; after the last comes the first again.
    Shift { from: u16, to: PortRange },
    /// This one.
    Fixed(u16),
}
