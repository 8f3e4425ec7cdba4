//! The keys of trees, and what stands for an answer that a key cannot have.

use crate::nexthop::NextHop;

pub(super) const NAME: &str = "btree6";

/// The answer that is none: no next hop has this number.
pub(super) const ESCAPE: u16 = u16::MAX;

const _: () = assert!(ESCAPE > NextHop::MAX);

/// Branches from the root of a tree to a leaf.
pub(super) const BRANCHES: usize = 3;

/// The 32 bits that are searched in a tree whose addresses have `consumed` bits before the last 16 that lead to it.
/// Behind the end of an address are zeroes.
#[inline(always)]
pub(super) fn key(addr: u128, consumed: u32) -> u32 {
    ((addr << consumed) >> 80) as u32
}
