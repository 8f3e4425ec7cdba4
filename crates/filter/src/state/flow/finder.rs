//! From the flow of a packet to the memory of its entry.

use super::addresses::{FlowAddresses, WireFlow};
use super::entry::{CachedFlow, FlowSum};
use super::simd::{FlowIsa, FlowLoop, WireHasher};

/// Both places of a flow lie within so many entries: within a page, or two that follow each other.
const NEAR: usize = 64;

/// The hash of a flow, from which its two places follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowHash(u32);

impl FlowHash {
    /// The place that most flows have.
    #[inline(always)]
    pub(super) fn first(self, mask: usize) -> usize {
        self.0 as usize & mask
    }

    /// The other one.
    #[inline(always)]
    pub(super) fn second(self, mask: usize) -> usize {
        self.first(mask) ^ ((self.0 as usize >> 24 & (NEAR - 1) | 1) & mask)
    }
}

/// A packet whose flow is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoughtFlow<A> {
    /// The default, which no packet has, for a packet that is not just counted.
    pub flow: WireFlow<A>,
    pub hash: FlowHash,
    /// What is counted: nothing by default.
    pub(super) packet: FlowSum,
}

impl<A> SoughtFlow<A> {
    /// A packet of this length.
    #[inline(always)]
    pub fn new(flow: WireFlow<A>, hash: FlowHash, length: u16) -> Self {
        SoughtFlow { flow, hash, packet: FlowSum::packet(length) }
    }
}

/// Hashes flows and finds the memory of their entries. It is a copy of what that takes, since a compiler cannot know that what a
/// loop writes is not part of the cache.
#[derive(Clone, Copy)]
pub struct FlowFinder<'c, A> {
    pub(super) entries: &'c [CachedFlow<A>],
    pub(super) keys: [u64; 4],
    pub(super) isa: FlowIsa,
}

impl<'c, A: FlowAddresses> FlowFinder<'c, A> {
    /// The instruction set whose hash the cache uses.
    #[inline(always)]
    pub fn isa(&self) -> FlowIsa {
        self.isa
    }

    /// The hash of a flow, by the hasher of [`Self::isa`].
    #[inline(always)]
    pub fn hash(&self, flow: &WireFlow<A>, hasher: impl WireHasher) -> FlowHash {
        FlowHash(flow.hash(&self.keys, hasher) as u32)
    }

    /// Whether there are no entries.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry that a flow with this hash most often has, for a prefetch.
    #[inline(always)]
    pub fn memory(&self, hash: FlowHash) -> Option<&'c impl Sized> {
        self.entries.get(hash.first(self.entries.len().wrapping_sub(1)))
    }
}

/// Hashes one flow.
pub(super) struct HashOne<'c, A> {
    pub finder: FlowFinder<'c, A>,
    pub flow: &'c WireFlow<A>,
}

impl<A: FlowAddresses> FlowLoop for HashOne<'_, A> {
    type Output = FlowHash;

    #[inline(always)]
    fn run(self, hasher: impl WireHasher) -> FlowHash {
        self.finder.hash(self.flow, hasher)
    }
}
