//! Immutable copies of the writer's tables, which readers hold, and one lookup in them.

use std::hint::select_unpredictable;
use std::io;

use crate::fib::CompileError;
use crate::memory::{AtomicEntry as _, Pages, Word16, Word32};
use crate::nexthop::NextHop;
use crate::simd::Isa;

use super::tables::{
    BASE, BASE_BITS, CHUNK_BITS, COUNT, DxrTables, IN_CHUNK, LONG_HOP_BITS, MANY, MOST_WORDS, SHORT,
    SHORT_HOP_BITS, SHORT_START_SHIFT, TRIE_BITS, low_bits,
};

pub(super) const NAME: &str = "dxr";

/// The tables at one moment; the writer makes another snapshot for each batch of changes.
///
/// For the reason of its alignment see [`CachePadded`](crate::memory::CachePadded).
#[repr(align(128))]
pub(super) struct Snapshot {
    /// The number of bits D that index the direct table.
    pub(super) direct_bits: u8,
    /// Row numbers.
    pub(super) direct: Pages<Word16>,
    /// Descriptors, 2^X a row.
    pub(super) rows: Pages<Word32>,
    /// Ranges, with holes between them.
    pub(super) ranges: Pages<Word32>,
    /// Words of `rows` and `ranges` without the holes.
    pub(super) used: [usize; 2],
    pub(super) isa: Isa,
}

impl Snapshot {
    /// Looks up one address.
    #[inline(always)]
    pub(super) fn find(&self, addr: u32) -> NextHop {
        match self.descriptor(addr) {
            next_hop @ 0..=BASE => NextHop(next_hop as u16),
            descriptor => self.in_ranges(descriptor, addr),
        }
    }

    #[inline(always)]
    fn descriptor(&self, addr: u32) -> u32 {
        let row_bits = u32::from(TRIE_BITS - self.direct_bits);
        let row = self.direct.get((addr >> (CHUNK_BITS + row_bits)) as usize);
        let in_row = (addr >> CHUNK_BITS) & !(u32::MAX << row_bits);
        self.rows.get((row << row_bits | in_row) as usize)
    }

    #[inline(always)]
    fn in_ranges(&self, descriptor: u32, addr: u32) -> NextHop {
        let (base, count) = ((descriptor & BASE) as usize, descriptor & COUNT);
        let ranges = self.ranges.entries();
        if descriptor & SHORT != 0 {
            let key = (addr & IN_CHUNK) >> SHORT_START_SHIFT << SHORT_HOP_BITS | low_bits(SHORT_HOP_BITS);
            let count = (count >> BASE_BITS) as usize + 1;
            let range = |i: usize| ranges[base + i / 2].get() >> (16 * (i % 2)) & 0xffff;
            NextHop((bisect(count, key, range) & low_bits(SHORT_HOP_BITS)) as u16)
        } else {
            let (base, count) = match count {
                MANY => (base + 1, ranges[base].get() as usize),
                count => (base, (count >> BASE_BITS) as usize),
            };
            let key = (addr & IN_CHUNK) << LONG_HOP_BITS | low_bits(LONG_HOP_BITS);
            NextHop(bisect(count, key, |i| ranges[base + i].get()) as u16)
        }
    }
}

/// Finds the last of `count` sorted ranges that is not above `key`; the first range never is. It selects instead of
/// branching, so the processor can mispredict the end of the loop only.
#[inline(always)]
fn bisect(count: usize, key: u32, range: impl Fn(usize) -> u32) -> u32 {
    let (mut at, mut found, mut left) = (0, range(0), count);
    while left > 1 {
        let half = left / 2;
        let middle = range(at + half);
        let below = middle <= key;
        at = select_unpredictable(below, at + half, at);
        found = select_unpredictable(below, middle, found);
        left -= half;
    }
    found
}

/// Why a snapshot could not be made.
pub(super) enum Unpublished {
    /// Descriptors cannot reach so many words of ranges.
    Words(usize),
    Memory(io::Error),
}

impl From<Unpublished> for CompileError {
    fn from(reason: Unpublished) -> Self {
        match reason {
            Unpublished::Words(needed) => {
                CompileError::Limit { algorithm: NAME, what: "words of ranges", needed, limit: MOST_WORDS }
            }
            Unpublished::Memory(error) => CompileError::Memory { algorithm: NAME, reason: error.to_string() },
        }
    }
}

/// Copies a table of 32-bit words.
fn copied(words: &[u32]) -> Result<Pages<Word32>, Unpublished> {
    let pages = Pages::zeroed(words.len()).map_err(Unpublished::Memory)?;
    words.iter().enumerate().for_each(|(i, word)| pages.set(i, *word));
    Ok(pages)
}

impl Snapshot {
    pub(super) fn new(tables: &DxrTables, isa: Isa) -> Result<Self, Unpublished> {
        let words = tables.ranges.words();
        if words.len() > MOST_WORDS {
            return Err(Unpublished::Words(words.len()));
        }
        let direct = Pages::zeroed(tables.direct.len()).map_err(Unpublished::Memory)?;
        // Rows lie one after the other, and their number never exceeds the entries of the direct table.
        let row_bits = TRIE_BITS - tables.direct_bits;
        tables.direct.iter().enumerate().for_each(|(i, start)| direct.set(i, (start >> row_bits) as u32));
        Ok(Snapshot {
            direct_bits: tables.direct_bits,
            direct,
            rows: copied(tables.rows.words())?,
            ranges: copied(words)?,
            used: [tables.rows.used(), tables.ranges.used()],
            isa,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rib::Range;

    /// Ranges of two addresses with different neighbours: every chunk needs 2,048 words, and one for their number.
    fn fine_ranges(count: u32) -> impl Iterator<Item = Range<u32>> {
        let fine = (0..count).map(|n| Range {
            first: 2 * n,
            last: 2 * n + 1,
            next_hop: NextHop((n % 65_521) as u16),
        });
        let rest = Range { first: 2 * count, last: u32::MAX, next_hop: NextHop(7) };
        fine.chain([rest])
    }

    #[test]
    fn ranges_beyond_the_reach_of_descriptors_are_refused() {
        let fits = DxrTables::compile(fine_ranges(2_000 * 2_048));
        assert!(Snapshot::new(&fits, Isa::SCALAR).is_ok());
        let beyond = DxrTables::compile(fine_ranges(2_100 * 2_048));
        let error = CompileError::from(Snapshot::new(&beyond, Isa::SCALAR).err().unwrap());
        assert_eq!(
            error.to_string(),
            "dxr cannot hold this table: 4302900 words of ranges needed, 4194304 possible"
        );
    }
}
