//! The vector operations that lookups need, as one trait over all instruction sets.

use crate::memory::{AtomicEntry as _, Top, Word, Words};
use crate::nexthop::NextHop;

use super::line::{LinkedLine, SearchLine};

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// A loop over vectors, written once for every instruction set. Only code that is inlined into the entry points of
/// [`run`](super::run) is compiled for their instruction set. So mark `Kernel::run` and everything it calls
/// `#[inline(always)]`, and pass vectors to no closure, not even to that of `array::from_fn` or `map`: the compiler may
/// leave a closure out of line, and the rate falls to a quarter.
pub(crate) trait Kernel {
    /// Does the work with these lanes.
    fn run<L: Lanes>(self, lanes: L);
}

/// Entries of a ring at places known to be inside it: one vector of [`Places`](super::Places).
pub(crate) struct Found<'p, W: Word> {
    pub(super) entries: &'p [W::Entry],
    /// Numbers of entries, none beyond the last.
    pub(super) places: &'p [u32; LANES],
}

impl<W: Word> Found<'_, W> {
    /// The entries, in the order of the lanes.
    #[inline(always)]
    pub(super) fn each(&self) -> impl Iterator<Item = u32> {
        // SAFETY: see `places`.
        self.places.iter().map(|place| unsafe { self.entries.get_unchecked(*place as usize) }.get())
    }
}

/// Prevents implementations of [`Lanes`] outside this module: code without checks relies on what its operations
/// compute.
pub(super) mod sealed {
    pub trait Sealed {}
}

/// The vector operations that lookups need. A value of the implementing type proves that the processor has them.
pub(crate) trait Lanes: Copy + sealed::Sealed {
    /// A vector of sixteen `u32`.
    type U32: Copy;
    /// A truth value for each lane.
    type Mask: Copy;
    /// Whether lanes live in vector registers. If not, a kernel is faster if it looks up one address after the other;
    /// the answers are the same.
    const IN_REGISTERS: bool;

    /// Puts the same value into every lane.
    fn splat(self, value: u32) -> Self::U32;
    /// Loads lane `i` from `values[i]`.
    fn load(self, values: &[u32; LANES]) -> Self::U32;
    /// Stores the low 16 bits of lane `i` to `out[i]`.
    fn store_next_hops(self, values: Self::U32, out: &mut [NextHop; LANES]);
    /// Bitwise and.
    fn and(self, a: Self::U32, b: Self::U32) -> Self::U32;
    /// Bitwise or.
    fn or(self, a: Self::U32, b: Self::U32) -> Self::U32;
    /// The sum, modulo 2^32.
    fn add(self, a: Self::U32, b: Self::U32) -> Self::U32;
    /// The difference, modulo 2^32.
    fn sub(self, a: Self::U32, b: Self::U32) -> Self::U32;
    /// The lesser, unsigned.
    #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(dead_code))] // plain code needs none
    fn min(self, a: Self::U32, b: Self::U32) -> Self::U32;
    /// Logical shift right by `N` bits, below 32.
    fn shr<const N: u32>(self, a: Self::U32) -> Self::U32;
    /// Shift left by `N` bits, below 32.
    fn shl<const N: u32>(self, a: Self::U32) -> Self::U32;
    /// Logical shift right of each lane by its own number of bits, below 32.
    fn shr_by(self, a: Self::U32, bits: Self::U32) -> Self::U32;
    /// Shift left of each lane by its own number of bits, below 32.
    fn shl_by(self, a: Self::U32, bits: Self::U32) -> Self::U32;
    /// The number of bits set.
    fn count_ones(self, a: Self::U32) -> Self::U32;
    /// Lanes where `a` is at most `b`, unsigned.
    fn at_most(self, a: Self::U32, b: Self::U32) -> Self::Mask;
    /// Lanes where `a` and `b` have a bit in common.
    fn test(self, a: Self::U32, b: Self::U32) -> Self::Mask;
    /// Whether any lane is set.
    fn any(self, mask: Self::Mask) -> bool;
    /// `words[index]` where the mask is set, `otherwise` elsewhere. An index beyond the end reads the last word.
    fn gather_words<W: Word>(
        self,
        mask: Self::Mask,
        words: Words<'_, W>,
        index: Self::U32,
        otherwise: Self::U32,
    ) -> Self::U32;
    /// Stores lane `i` to `values[i]`.
    fn store(self, lanes: Self::U32, values: &mut [u32; LANES]);
    /// A mask of all lanes.
    fn all(self) -> Self::Mask;
    /// `a` where the mask is set, `b` elsewhere.
    fn select(self, mask: Self::Mask, a: Self::U32, b: Self::U32) -> Self::U32;

    /// Table entry `index` where the mask is set, `otherwise` elsewhere; see [`Word`] for how entries lie in
    /// words.
    #[inline(always)]
    fn gather_where<W: Word>(
        self,
        mask: Self::Mask,
        words: Words<'_, W>,
        index: Self::U32,
        otherwise: Self::U32,
    ) -> Self::U32 {
        const { assert!(W::ENTRIES <= 2) };
        if W::ENTRIES == 1 {
            return self.gather_words(mask, words, index, otherwise);
        }
        let word = self.gather_words(mask, words, self.shr::<1>(index), otherwise);
        let half = self.shl::<4>(self.and(index, self.splat(1)));
        let entry = self.and(self.shr_by(word, half), self.splat(0xffff));
        self.select(mask, entry, otherwise)
    }

    /// Reads the entry of each address, by one plain load after the other.
    fn read_top<const BITS: u32>(self, top: Top<'_, BITS>, addrs: &[u32; LANES]) -> Self::U32;

    /// Reads these entries, of 8 or 16 bits, as next hops, by one plain load after the other. Returns whether any of
    /// them has the highest value that an entry can hold.
    fn read_next_hops<W: Word>(self, found: Found<'_, W>, out: &mut [NextHop; LANES]) -> bool;

    /// Counts the last keys of a line that are below the key that all lanes hold; they are sorted, and there are
    /// `T::LASTS` of them.
    fn below<T: SearchLine>(self, line: &T, key: Self::U32) -> u32;

    /// The place of the child of `branch` to which the key that all lanes hold belongs.
    #[inline(always)]
    fn child<T: LinkedLine>(self, branch: &T, key: Self::U32) -> u32 {
        branch.child(self.below(branch, key))
    }

    /// Reads table entry `index` in every lane.
    #[inline(always)]
    fn gather<W: Word>(self, words: Words<'_, W>, index: Self::U32) -> Self::U32 {
        self.gather_where(self.all(), words, index, self.splat(0))
    }
}
