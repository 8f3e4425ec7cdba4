//! The keys of trees, and the answer of keys that a tree cannot answer.

use crate::nexthop::NextHop;

pub(super) const NAME: &str = "btree6";

/// The answer of a range that leads to a deeper tree; no next hop has this number.
pub(super) const ESCAPE: u16 = u16::MAX;

const _: () = assert!(ESCAPE > NextHop::MAX);

/// The number of branches from the root of a tree to a leaf.
pub(super) const BRANCHES: usize = 3;

/// The 32 bits to search in a tree whose addresses have `consumed` bits before the last 16 that lead to it. Zeroes
/// follow the end of an address.
#[inline(always)]
pub(super) fn key(addr: u128, consumed: u32) -> u32 {
    ((addr << consumed) >> 80) as u32
}
