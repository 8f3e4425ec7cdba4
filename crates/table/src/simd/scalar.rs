//! The lanes in plain code: every processor runs it, and the other instruction sets are tested against it.

use std::array::from_fn;
use std::sync::atomic::Ordering;

use crate::memory::{AtomicEntry as _, Top, Word, Words, entries};
use crate::nexthop::NextHop;

use super::lanes::{Found, LANES, Lanes, sealed};
use super::line::SearchLine;

/// Plain code needs no instructions that a processor may lack.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

type U32s = [u32; LANES];

impl sealed::Sealed for Scalar {}

impl Lanes for Scalar {
    type U32 = U32s;
    type Mask = [bool; LANES];
    const IN_REGISTERS: bool = false;

    #[inline(always)]
    fn splat(self, value: u32) -> U32s {
        [value; LANES]
    }
    #[inline(always)]
    fn load(self, values: &[u32; LANES]) -> U32s {
        *values
    }
    #[inline(always)]
    fn store(self, lanes: U32s, values: &mut [u32; LANES]) {
        *values = lanes;
    }
    #[inline(always)]
    fn store_next_hops(self, values: U32s, out: &mut [NextHop; LANES]) {
        *out = values.map(|value| NextHop(value as u16));
    }
    #[inline(always)]
    fn and(self, a: U32s, b: U32s) -> U32s {
        from_fn(|i| a[i] & b[i])
    }
    #[inline(always)]
    fn or(self, a: U32s, b: U32s) -> U32s {
        from_fn(|i| a[i] | b[i])
    }
    #[inline(always)]
    fn add(self, a: U32s, b: U32s) -> U32s {
        from_fn(|i| a[i].wrapping_add(b[i]))
    }
    #[inline(always)]
    fn sub(self, a: U32s, b: U32s) -> U32s {
        from_fn(|i| a[i].wrapping_sub(b[i]))
    }
    #[inline(always)]
    fn min(self, a: U32s, b: U32s) -> U32s {
        from_fn(|i| a[i].min(b[i]))
    }
    #[inline(always)]
    fn shr<const N: u32>(self, a: U32s) -> U32s {
        a.map(|a| a >> N)
    }
    #[inline(always)]
    fn shl<const N: u32>(self, a: U32s) -> U32s {
        a.map(|a| a << N)
    }
    #[inline(always)]
    fn shr_by(self, a: U32s, bits: U32s) -> U32s {
        from_fn(|i| a[i] >> (bits[i] & 31))
    }
    #[inline(always)]
    fn shl_by(self, a: U32s, bits: U32s) -> U32s {
        from_fn(|i| a[i] << (bits[i] & 31))
    }
    #[inline(always)]
    fn count_ones(self, a: U32s) -> U32s {
        a.map(u32::count_ones)
    }
    #[inline(always)]
    fn at_most(self, a: U32s, b: U32s) -> [bool; LANES] {
        from_fn(|i| a[i] <= b[i])
    }
    #[inline(always)]
    fn test(self, a: U32s, b: U32s) -> [bool; LANES] {
        from_fn(|i| a[i] & b[i] != 0)
    }
    #[inline(always)]
    fn any(self, mask: [bool; LANES]) -> bool {
        mask.iter().fold(false, |any, lane| any | lane)
    }
    #[inline(always)]
    fn all(self) -> [bool; LANES] {
        [true; LANES]
    }
    #[inline(always)]
    fn select(self, mask: [bool; LANES], a: U32s, b: U32s) -> U32s {
        from_fn(|i| if mask[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn gather_words<W: Word>(
        self,
        mask: [bool; LANES],
        words: Words<'_, W>,
        index: U32s,
        otherwise: U32s,
    ) -> U32s {
        let word = |index: u32| {
            let word = std::slice::from_ref(&words.as_slice()[index.min(words.last()) as usize]);
            let halves = entries(word).iter().enumerate();
            halves.fold(0, |bits, (which, entry)| bits | entry.get() << (32 / W::ENTRIES * which))
        };
        from_fn(|i| if mask[i] { word(index[i]) } else { otherwise[i] })
    }
    #[inline(always)]
    fn read_top<const BITS: u32>(self, top: Top<'_, BITS>, addrs: &[u32; LANES]) -> U32s {
        addrs.map(|addr| top.get(addr))
    }
    #[inline(always)]
    fn read_next_hops<W: Word>(self, found: Found<'_, W>, out: &mut [NextHop; LANES]) -> bool {
        // Each entry is read once: it may change between two reads.
        out.iter_mut().zip(found.each()).fold(false, |any, (next_hop, entry)| {
            *next_hop = NextHop(entry as u16);
            any | (entry == W::HIGHEST)
        })
    }
    /// Takes four steps without a branch: last keys that a line does not have count as above all keys.
    #[inline(always)]
    fn below<T: SearchLine>(self, line: &T, [key, ..]: U32s) -> u32 {
        let lasts = line.lasts();
        let is_below = |i: usize| lasts.get(i).is_some_and(|last| last.load(Ordering::Relaxed) < key);
        [8, 4, 2, 1].into_iter().fold(0, |below, step| below + step * usize::from(is_below(below + step - 1)))
            as u32
    }
    /// Reads only the entry wanted instead of the word around it.
    #[inline(always)]
    fn gather_where<W: Word>(
        self,
        mask: [bool; LANES],
        words: Words<'_, W>,
        index: U32s,
        otherwise: U32s,
    ) -> U32s {
        let entries = entries(words.as_slice());
        let last = words.last() as usize * W::ENTRIES;
        // Beyond the last word this is the entry at the same place in the last word, as for the vectors.
        let entry = |index: usize| entries[index.min(last + index % W::ENTRIES)].get();
        from_fn(|i| if mask[i] { entry(index[i] as usize) } else { otherwise[i] })
    }
}
