//! Sixteen 32-bit lanes behind one small trait, and the only `unsafe` of this crate.
//!
//! An algorithm writes its batch loop once, as a `Kernel` over `Lanes`; `run` compiles it for each instruction
//! set and enters the version that an [`Isa`] names. An `Isa` exists only if this processor has it, and every gather
//! clamps its indices, so kernels need no `unsafe` and can go wrong only by answering wrongly.
#![allow(unsafe_code)]

use crate::nexthop::NextHop;

#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod avx512;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod inserts;
mod lines;
mod pages;
mod scalar;
mod word;

use lines::Branch;
pub(crate) use lines::{
    Deeper, FANOUT, Line, Lines, Place, RANGES, ROOTS, Search, Slot, Walk, prefetch_behind,
};
pub(crate) use pages::Pages;
pub(crate) use word::{Entry, Found, Places, Ring, Top, Word, Word8, Word16, Word32, Words};

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scalar,
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    Avx2,
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    Avx512,
}

impl Isa {
    /// Plain code; every processor has it.
    pub const SCALAR: Isa = Isa(Kind::Scalar);

    /// What this processor has, the widest last.
    pub fn available() -> Vec<Isa> {
        #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(unused_mut))]
        let mut all = vec![Isa::SCALAR];
        #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
            all.extend(avx2.then_some(Isa(Kind::Avx2)));
            let avx512 = avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            all.extend(avx512.then_some(Isa(Kind::Avx512)));
        }
        all
    }

    /// The widest this processor has.
    pub fn best() -> Isa {
        Isa::available().pop().unwrap_or(Isa::SCALAR)
    }

    /// `scalar`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            Kind::Avx2 => "avx2",
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            Kind::Avx512 => "avx512",
        }
    }
}

/// A loop over vectors, written once for every instruction set. Only code inlined into [`run`]'s doors is compiled for
/// their instruction set, so mark `run` and what it calls `#[inline(always)]`, and pass vectors to no closure, not even
/// `array::from_fn`'s or `map`'s: the compiler may leave one standing alone, and the rate falls to a quarter.
pub(crate) trait Kernel {
    /// Does the work with these lanes.
    fn run<L: Lanes>(self, lanes: L);
}

/// Runs a kernel with one instruction set.
pub(crate) fn run<K: Kernel>(isa: Isa, kernel: K) {
    match isa.0 {
        Kind::Scalar => kernel.run(scalar::Scalar),
        #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
        // SAFETY: an `Isa` of this kind is made only where the processor was found to have AVX2 and POPCNT.
        Kind::Avx2 => unsafe { avx2::door(kernel) },
        #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
        // SAFETY: an `Isa` of this kind is made only where the processor was found to have AVX-512 F and BW, and POPCNT.
        Kind::Avx512 => unsafe { avx512::door(kernel) },
    }
}

/// Keeps [`Lanes`] to this module: what is done without checks relies on what its operations compute.
mod sealed {
    pub trait Sealed {}
}

/// The vector operations that lookups need. A value of the implementing type proves that the processor has them.
pub(crate) trait Lanes: Copy + sealed::Sealed {
    /// Sixteen `u32`.
    type U32: Copy;
    /// One bit a lane.
    type Mask: Copy;
    /// Whether lanes live in vector registers. If not, a kernel does better to treat one address after the other,
    /// though the answers are the same.
    const IN_REGISTERS: bool;

    /// The same value in every lane.
    fn splat(self, value: u32) -> Self::U32;
    /// Lane `i` from `values[i]`.
    fn load(self, values: &[u32; LANES]) -> Self::U32;
    /// The low 16 bits of lane `i` to `out[i]`.
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
    /// Lanes that have a bit in common.
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
    /// `values[i]` from lane `i`.
    fn store(self, lanes: Self::U32, values: &mut [u32; LANES]);
    /// A mask of all lanes.
    fn all(self) -> Self::Mask;
    /// `a` where the mask is set, `b` elsewhere.
    fn select(self, mask: Self::Mask, a: Self::U32, b: Self::U32) -> Self::U32;

    /// Table entry `index` where the mask is set, `otherwise` elsewhere; see [`Words`] for how entries lie in words.
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

    /// The entry of each address, by one plain load after the other.
    fn read_top<const BITS: u32>(self, top: Top<'_, BITS>, addrs: &[u32; LANES]) -> Self::U32;

    /// These entries, of 8 or 16 bits, as next hops, by one plain load after the other. Says whether any is the highest
    /// that an entry can hold.
    fn read_next_hops<W: Word>(self, found: Found<'_, W>, out: &mut [NextHop; LANES]) -> bool;

    /// How many of the lasts of a line are below the key that all lanes hold; they are sorted, and `T::LASTS`.
    fn below<T: Line>(self, line: &T, key: Self::U32) -> u32;

    /// Where the child of a branch begins to which the key that all lanes hold belongs: a place.
    #[inline(always)]
    fn child(self, branch: &Branch, key: Self::U32) -> u32 {
        branch.child(self.below(branch, key))
    }

    /// Table entry `index` in every lane.
    #[inline(always)]
    fn gather<W: Word>(self, words: Words<'_, W>, index: Self::U32) -> Self::U32 {
        self.gather_where(self.all(), words, index, self.splat(0))
    }
}

/// Asks the processor to bring a cache line nearer, wherever it lies.
#[inline(always)]
fn prefetch_unchecked(place: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing the program could see, and does nothing where there is no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
    let _ = place;
}

/// Asks the processor for what lies so many bytes beyond the beginning of `values`, in them or behind them.
#[inline(always)]
pub(crate) fn prefetch_beyond<T>(values: &[T], bytes: usize) {
    prefetch_unchecked(values.as_ptr().cast::<u8>().wrapping_add(bytes));
}

/// Asks the processor to bring a place of a table nearer. An index beyond the end asks for nothing.
#[inline(always)]
pub(crate) fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        if let Some(place) = table.get(index) {
            // SAFETY: a prefetch reads nothing the program could see, and the address is that of a live reference.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
    let _ = (table, index);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::array::from_fn;

    /// Every operation once, results in order; the lanes come back through 16-bit stores, high and low halves apart.
    struct Everything<'a> {
        narrowest: &'a Pages<Word8>,
        narrow: &'a Pages<Word16>,
        wide: &'a Pages<Word32>,
        results: &'a mut Vec<[u32; LANES]>,
    }

    fn out<L: Lanes>(lanes: L, values: L::U32) -> [u32; LANES] {
        let (mut low, mut high) = ([NextHop::NONE; LANES], [NextHop::NONE; LANES]);
        lanes.store_next_hops(values, &mut low);
        lanes.store_next_hops(lanes.shr::<16>(values), &mut high);
        from_fn(|i| u32::from(high[i].0) << 16 | u32::from(low[i].0))
    }

    /// What single loads find, and in the high halves whether the highest value was among it.
    fn read<L: Lanes, W: Word>(lanes: L, entries: &Pages<W>, index: L::U32) -> [u32; LANES] {
        let (mut places, mut hops) = (Places::<_, 2>::new(entries.ring()), [NextHop::NONE; LANES]);
        places.set(lanes, 1, index);
        let any_highest = places.read(lanes, 1, &mut hops);
        hops.map(|hop| u32::from(any_highest) << 16 | u32::from(hop.0))
    }

    impl Kernel for Everything<'_> {
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            let a: [u32; LANES] = from_fn(|i| 0x9e37_79b9u32.wrapping_mul(i as u32 + 1));
            let b: [u32; LANES] = from_fn(|i| 0x85eb_ca6bu32.wrapping_mul(i as u32 + 7));
            // Inside, at the end, beyond it, and as far beyond as an index can be.
            let index: [u32; LANES] = from_fn(|i| [0, 1, 2, 97, 98, 99, 100, u32::MAX][i % 8]);
            let addrs = a;
            let (a, b, index) = (lanes.load(&a), lanes.load(&b), lanes.load(&index));
            let mask = lanes.test(a, lanes.splat(0x8000_0001));
            let (narrow, wide) = (self.narrow.words(), self.wide.words());
            let results = [
                lanes.and(a, b),
                lanes.or(a, b),
                lanes.add(a, b),
                lanes.sub(a, b),
                lanes.min(a, b),
                lanes.shr::<9>(a),
                lanes.shl::<5>(a),
                lanes.shr_by(a, lanes.and(b, lanes.splat(31))),
                lanes.shl_by(a, lanes.and(b, lanes.splat(31))),
                lanes.count_ones(a),
                lanes.select(lanes.at_most(a, b), a, b),
                lanes.select(lanes.at_most(a, a), a, b),
                lanes.select(mask, a, b),
                lanes.gather(wide, index),
                lanes.gather_where(mask, wide, index, b),
                lanes.gather(narrow, index),
                lanes.gather_where(mask, narrow, index, b),
                lanes.gather_where(lanes.test(a, lanes.splat(0)), wide, index, b),
            ];
            self.results.extend(results.map(|values| out(lanes, values)));
            let any =
                [mask, lanes.test(a, lanes.splat(0)), lanes.all()].map(|mask| u32::from(lanes.any(mask)));
            self.results.push(from_fn(|i| any[i % any.len()]));
            let top = Top::<6>::new(wide.words).unwrap();
            self.results.push(out(lanes, lanes.read_top(top, &addrs)));
            self.results.push(read(lanes, self.narrow, index));
            self.results.push(read(lanes, self.narrowest, index));
            self.results.push(read(lanes, self.narrowest, a));
            let mut stored = [0; LANES];
            lanes.store(a, &mut stored);
            self.results.push(stored);
        }
    }

    #[test]
    fn every_instruction_set_computes_what_plain_code_does() {
        let narrowest = Pages::<Word8>::zeroed(100).unwrap();
        let (narrow, wide) = (Pages::<Word16>::zeroed(100).unwrap(), Pages::<Word32>::zeroed(100).unwrap());
        for i in 0..100 {
            // The ring ends with entry 63.
            narrowest.set(i, 0xc0 + i as u32);
            narrow.set(i, 0xff00 + i as u32);
            wide.set(i, 0xffff_0000 + i as u32);
        }
        let all = Isa::available().into_iter().map(|isa| {
            let mut results = Vec::new();
            let everything =
                Everything { narrowest: &narrowest, narrow: &narrow, wide: &wide, results: &mut results };
            run(isa, everything);
            (isa.name(), results)
        });
        let all: Vec<_> = all.collect();
        assert_eq!(all[0].0, "scalar");
        assert_eq!(all[0].1[13][..8], [0, 1, 2, 97, 98, 99, 99, 99].map(|i| 0xffff_0000 + i), "clamped");
        let wrapped = [0, 1, 2, 97 - 64, 98 - 64, 99 - 64, 100 - 64, 63];
        let singly = &all[0].1[all[0].1.len() - 5..];
        assert_eq!(singly[0][0], 0xffff_0000 + (0x9e37_79b9u32 >> 26));
        assert_eq!(singly[1][..8], wrapped.map(|i| 0xff00 + i));
        assert_eq!(singly[2][..8], wrapped.map(|i| 1 << 16 | (0xc0 + i)), "the highest is among them");
        for (name, results) in &all {
            assert_eq!(results, &all[0].1, "{name}");
        }
    }

    /// The child and the answer of a key: line 1 is the root of a tree, as a branch and as a leaf. Child `i` of the
    /// branch is a leaf that answers `i`.
    struct Searched<'a> {
        lines: &'a Lines,
        key: u32,
        found: &'a mut Vec<[u16; 2]>,
    }

    impl Kernel for Searched<'_> {
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            let key = lanes.splat(self.key);
            let mut walk = self.lines.search().walk::<2>();
            walk.enter(0, 7);
            walk.enter(1, 7);
            walk.descend(lanes, 0, key);
            self.found.push([walk.hop(lanes, 0, key), walk.hop(lanes, 1, key)]);
        }
    }

    #[test]
    fn every_instruction_set_finds_the_child_and_the_range_of_a_key() {
        let lasts: [u32; FANOUT - 1] =
            from_fn(|i| [5, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0][i % 4] + (i / 4) as u32);
        for count in 0..FANOUT {
            let mut lasts = lasts[..count].to_vec();
            lasts.sort_unstable();
            let lines = Lines::zeroed(20).unwrap();
            lines.set_root(7, lines.place(1));
            lines.write_branch(1, lines.place(3), &lasts);
            for child in 0..FANOUT {
                let slot = Slot { last: u32::MAX, hop: child as u16, deeper: None };
                lines.write_leaf(3 + child, &[slot], 0);
            }
            let ends = lasts.iter().copied().take(RANGES - 1).chain([u32::MAX]);
            let slots: Vec<Slot> =
                ends.zip(100..).map(|(last, hop)| Slot { last, hop, deeper: None }).collect();
            lines.write_leaf(1, &slots, 0);
            let near = lasts.iter().flat_map(|last| [last - 1, *last, last + 1]);
            for key in near.chain([0, u32::MAX]) {
                let child = lasts.partition_point(|last| *last < key);
                let range = slots.partition_point(|slot| slot.last < key);
                for isa in Isa::available() {
                    let mut found = Vec::new();
                    run(isa, Searched { lines: &lines, key, found: &mut found });
                    assert_eq!(found, [[child as u16, 100 + range as u16]], "{} {key:#x}", isa.name());
                }
            }
        }
    }

    #[test]
    fn a_list_holds_what_was_set_and_nothing_of_the_branch_before_it() {
        let lines = Lines::zeroed(20).unwrap();
        // As places: of line 0, of the last line that may be used, of the two behind it.
        lines.write_branch(5, lines.place(1), &[7, 19 * 64, 20 * 64, 21 * 64]);
        let deeper = Deeper { tree: lines.place(19), bits: 32 };
        let slots: Vec<Slot> =
            (0..6).map(|i| Slot { last: i, hop: 1, deeper: (i == 5).then_some(deeper) }).collect();
        lines.write_leaf(3, &slots, 5);
        assert_eq!(lines.slots(3, 5).collect::<Vec<_>>(), slots);
    }

    #[test]
    fn a_branch_taken_for_a_list_leads_to_nothing_beyond_the_capacity() {
        let lines = Lines::zeroed(20).unwrap();
        lines.write_leaf(3, &[Slot { last: u32::MAX, hop: 1, deeper: None }], 5);
        lines.write_branch(5, lines.place(1), &[7, 19 * 64, 20 * 64, 21 * 64]);
        let trees: Vec<_> =
            (0..5).map(|slot| lines.deeper(3, slot).map(|deeper| deeper.tree.line())).collect();
        assert_eq!(trees, [None, Some(19), None, None, None]);
    }

    #[test]
    #[should_panic(expected = "line 20 of 20")]
    fn a_place_beyond_the_stores_is_refused() {
        Lines::zeroed(20).unwrap().place(20);
    }

    #[test]
    fn tables_have_a_word_at_least() {
        assert_eq!(Pages::<Word16>::zeroed(0).unwrap().as_slice().len(), 1);
        assert_eq!(Pages::<Word16>::zeroed(3).unwrap().as_slice().len(), 2);
        assert!(Words::<Word32>::new(&[]).is_none());
    }
}
