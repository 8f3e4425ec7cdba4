//! `dxr`: a direct table of 2^20 chunks in two stages, and sorted ranges in each chunk; after Zec, Rizzo and Mikuc.
//!
//! ```text
//!   address   |  D bits  |  X = 20 - D bits  |  12 bits  |
//!                  │              │                │
//!   direct    [ … row … ]         │                │         rows that are alike are stored once
//!                  └──▶ row [ … chunk … ]          │
//!                                 └──▶ ranges [ start hop, start hop, … ]    chunks that are alike are stored once
//! ```
//!
//! A chunk is 4,096 addresses. Its descriptor in the row is the next hop of all of them, or says where its ranges lie
//! and how many they are; they are sorted by their first address and found by bisection. A range takes four bytes, or
//! two in a chunk where all begin at a multiple of 256 and all next hops are below 4,096.

use std::array;
use std::hint::select_unpredictable;
use std::io;
use std::sync::Arc;

use crate::nexthop::NextHop;
use crate::prefix::Prefix;
use crate::rib::{Change, Rib, Summary};
use crate::simd::{self, Entry as _, Isa, Kernel, LANES, Lanes, Pages, Word16, Word32};

use super::dxr_tables::{
    BASE, BASE_BITS, CHUNK_BITS, CHUNKS, COUNT, DIRECT_BITS, IN_CHUNK, LONG_HOP_BITS, MANY, MOST_WORDS,
    SHORT, SHORT_HOP_BITS, SHORT_START_SHIFT, TRIE_BITS, Tables, direct_bytes, low_bits,
};
use super::{Algorithm, CompileError, Fib, Footprint, Instance, Outcome};

const NAME: &str = "dxr";

/// The algorithm.
pub struct Dxr {
    /// The instruction set of batches; the best of the machine unless given.
    isa: Option<Isa>,
}

impl Dxr {
    /// With the widest vectors of the machine.
    pub const BEST: Dxr = Dxr { isa: None };

    /// With this instruction set, to compare them.
    pub const fn with_isa(isa: Isa) -> Self {
        Dxr { isa: Some(isa) }
    }
}

/// What readers hold: nothing in it changes. The writer makes another one for each batch of changes.
/// Why it is aligned stands at [`super::apart::Apart`].
#[repr(align(128))]
struct Snapshot {
    /// D.
    direct_bits: u8,
    /// Row numbers.
    direct: Pages<Word16>,
    /// Descriptors, 2^X a row.
    rows: Pages<Word32>,
    /// Ranges, and holes of them.
    ranges: Pages<Word32>,
    /// Words of `rows` and `ranges` without the holes.
    used: [usize; 2],
    isa: Isa,
}

impl Snapshot {
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

/// The last of `count` sorted ranges that is not above `key`; the first one never is. Selects instead of branching, so
/// that an address can make the processor mispredict the end of the loop at most.
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

impl Fib<u32> for Snapshot {
    fn lookup(&self, addr: u32) -> NextHop {
        match self.descriptor(addr) {
            next_hop @ 0..=BASE => NextHop(next_hop as u16),
            descriptor => self.in_ranges(descriptor, addr),
        }
    }

    fn lookup_batch(&self, addrs: &[u32], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { snapshot: self, addrs, next_hops });
    }

    /// The parts carry FreeBSD's name of the split, such as D16X4R.
    fn footprint(&self) -> Footprint {
        const DIRECT: [&str; 8] = ["D9", "D10", "D11", "D12", "D13", "D14", "D15", "D16"];
        const ROWS: [&str; 8] = ["X11", "X10", "X9", "X8", "X7", "X6", "X5", "X4"];
        let split = usize::from(self.direct_bits - DIRECT_BITS.start());
        let [rows, ranges] = self.used.map(|words| words * size_of::<u32>());
        Footprint(vec![(DIRECT[split], direct_bytes(self.direct_bits)), (ROWS[split], rows), ("R", ranges)])
    }
}

/// One call's work.
struct Batch<'a> {
    snapshot: &'a Snapshot,
    addrs: &'a [u32],
    next_hops: &'a mut [NextHop],
}

/// Vectors that bisect together: every step waits for memory, and the waits overlap.
const VECTORS: usize = 4;

impl Kernel for Batch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (addrs, out) = (&self.addrs[..count], &mut self.next_hops[..count]);
        if !L::IN_REGISTERS {
            return lookup_each(self.snapshot, addrs, out);
        }
        let (chunks, rest) = addrs.as_chunks::<LANES>();
        let (chunks_out, rest_out) = out.as_chunks_mut::<LANES>();
        let (blocks, chunks) = chunks.as_chunks::<VECTORS>();
        let (out, chunks_out) = chunks_out.as_chunks_mut::<VECTORS>();
        for (block, out) in blocks.iter().zip(out) {
            lookup_vectors::<L, VECTORS>(lanes, self.snapshot, block, out);
        }
        for (chunk, out) in chunks.iter().zip(chunks_out) {
            lookup_vectors::<L, 1>(lanes, self.snapshot, array::from_ref(chunk), array::from_mut(out));
        }
        lookup_each(self.snapshot, rest, rest_out);
    }
}

fn lookup_each(snapshot: &Snapshot, addrs: &[u32], next_hops: &mut [NextHop]) {
    for (addr, next_hop) in addrs.iter().zip(next_hops) {
        *next_hop = snapshot.lookup(*addr);
    }
}

/// Sixteen lookups in the middle of their bisections.
#[derive(Clone, Copy)]
struct Search<L: Lanes> {
    /// Word of the first range.
    base: L::U32,
    /// 1 in lanes whose chunk has short ranges, two a word.
    short: L::U32,
    /// What a range must not exceed.
    key: L::U32,
    /// The range reached, and its number.
    found: L::U32,
    at: L::U32,
    /// Ranges that may still be the right one; 0 in lanes that are answered.
    left: L::U32,
}

#[inline(always)]
fn lookup_vectors<L: Lanes, const N: usize>(
    lanes: L,
    snapshot: &Snapshot,
    addrs: &[[u32; LANES]; N],
    out: &mut [[NextHop; LANES]; N],
) {
    let zero = lanes.splat(0);
    let nothing = Search::<L> { base: zero, short: zero, key: zero, found: zero, at: zero, left: zero };
    let mut searches = [nothing; N];
    for v in 0..N {
        let addr = lanes.load(&addrs[v]);
        searches[v] = begin(lanes, snapshot, addr, descriptors(lanes, snapshot, addr));
    }
    let several = lanes.splat(!1);
    loop {
        let mut open = false;
        for search in &mut searches {
            let unfinished = lanes.test(search.left, several);
            if lanes.any(unfinished) {
                step(lanes, snapshot, search, unfinished);
                open = true;
            }
        }
        if !open {
            break;
        }
    }
    for v in 0..N {
        let search = &searches[v];
        let is_short = lanes.test(search.short, lanes.splat(1));
        let mask = lanes.select(
            is_short,
            lanes.splat(low_bits(SHORT_HOP_BITS)),
            lanes.splat(low_bits(LONG_HOP_BITS)),
        );
        lanes.store_next_hops(lanes.and(search.found, mask), &mut out[v]);
    }
}

#[inline(always)]
fn descriptors<L: Lanes>(lanes: L, snapshot: &Snapshot, addr: L::U32) -> L::U32 {
    let row_bits = u32::from(TRIE_BITS - snapshot.direct_bits);
    let row = lanes.gather(snapshot.direct.words(), lanes.shr_by(addr, lanes.splat(CHUNK_BITS + row_bits)));
    let in_row = lanes.and(lanes.shr::<CHUNK_BITS>(addr), lanes.splat(low_bits(row_bits)));
    lanes.gather(snapshot.rows.words(), lanes.or(lanes.shl_by(row, lanes.splat(row_bits)), in_row))
}

/// Reads the first range of each lane that has ranges; the others are answered by the descriptor.
#[inline(always)]
fn begin<L: Lanes>(lanes: L, snapshot: &Snapshot, addr: L::U32, descriptor: L::U32) -> Search<L> {
    let ranges = snapshot.ranges.words();
    let base = lanes.and(descriptor, lanes.splat(BASE));
    let short = lanes.shr::<31>(descriptor);
    let is_short = lanes.test(descriptor, lanes.splat(SHORT));
    let count = lanes.shr::<BASE_BITS>(lanes.and(descriptor, lanes.splat(COUNT)));
    let has_ranges = lanes.test(descriptor, lanes.splat(SHORT | COUNT));
    let in_chunk = lanes.and(addr, lanes.splat(IN_CHUNK));
    let short_key = lanes.or(
        lanes.shl::<SHORT_HOP_BITS>(lanes.shr::<SHORT_START_SHIFT>(in_chunk)),
        lanes.splat(low_bits(SHORT_HOP_BITS)),
    );
    let long_key = lanes.or(lanes.shl::<LONG_HOP_BITS>(in_chunk), lanes.splat(low_bits(LONG_HOP_BITS)));
    let first = lanes.gather_where(has_ranges, ranges, base, base);
    let mut search = Search {
        base,
        short,
        key: lanes.select(is_short, short_key, long_key),
        found: first,
        at: lanes.splat(0),
        left: lanes.add(count, short),
    };
    // No chunk has so many short ranges.
    let many = lanes.at_most(lanes.splat(MANY >> BASE_BITS), count);
    if lanes.any(many) {
        // The word read is the number of ranges, and they begin behind it.
        search.base = lanes.select(many, lanes.add(base, lanes.splat(1)), base);
        search.left = lanes.select(many, first, search.left);
        search.found = lanes.gather_where(many, ranges, search.base, first);
    }
    search
}

/// Halves what is left in the lanes of `unfinished`; the others stay as they are: half of what they have left is
/// nothing.
#[inline(always)]
fn step<L: Lanes>(lanes: L, snapshot: &Snapshot, search: &mut Search<L>, unfinished: L::Mask) {
    let half = lanes.shr::<1>(search.left);
    let middle = lanes.add(search.at, half);
    let index = lanes.add(search.base, lanes.shr_by(middle, search.short));
    let word = lanes.gather_where(unfinished, snapshot.ranges.words(), index, search.found);
    let is_short = lanes.test(search.short, lanes.splat(1));
    let in_half = lanes.shr_by(word, lanes.shl::<4>(lanes.and(middle, lanes.splat(1))));
    let range = lanes.select(is_short, lanes.and(in_half, lanes.splat(0xffff)), word);
    let below = lanes.at_most(range, search.key);
    search.at = lanes.select(below, middle, search.at);
    search.found = lanes.select(unfinished, lanes.select(below, range, search.found), search.found);
    search.left = lanes.sub(search.left, half);
}

/// The writer's half.
struct Writer {
    tables: Tables,
    /// A bit for each chunk that may have changed since the snapshot.
    dirty: Vec<u64>,
    /// Whether the caller was asked to collect more changes.
    asked: bool,
    /// Routes when D was chosen.
    routes: usize,
    /// Of the RIB that the snapshot answers like.
    generation: u64,
    snapshot: Arc<Snapshot>,
}

/// Why a snapshot could not be made.
enum Unpublished {
    /// So many words of ranges are beyond the reach of descriptors.
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

/// A snapshot's table of 32-bit words.
fn copied(words: &[u32]) -> Result<Pages<Word32>, Unpublished> {
    let pages = Pages::zeroed(words.len()).map_err(Unpublished::Memory)?;
    words.iter().enumerate().for_each(|(i, word)| pages.set(i, *word));
    Ok(pages)
}

impl Snapshot {
    fn new(tables: &Tables, isa: Isa) -> Result<Self, Unpublished> {
        let words = tables.ranges.words();
        if words.len() > MOST_WORDS {
            return Err(Unpublished::Words(words.len()));
        }
        let direct = Pages::zeroed(tables.direct.len()).map_err(Unpublished::Memory)?;
        // Rows lie one behind the other, and there are never more of them than the direct table has entries.
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

/// Holes in the ranges, in per cent of them, beyond which a change means a rebuild: FreeBSD's default for
/// `net.route.algo.dxr.frag_limit`.
const FRAG_LIMIT: usize = 1;
/// Words of holes that are no reason to rebuild however small the table is.
const HOLES_ALLOWED: usize = 1024;
/// Beyond so many changed chunks compiling all is faster: each changed one is looked up in the RIB by itself.
const MOST_DIRTY: usize = CHUNKS / 16;
/// Below so many routes D is not chosen again.
const FEW_ROUTES: usize = 1024;

impl Writer {
    fn new(isa: Isa, rib: &Rib<u32>) -> Result<Self, CompileError> {
        let tables = Tables::compile(rib.ranges());
        let snapshot = Snapshot::new(&tables, isa)?;
        Ok(Writer {
            tables,
            dirty: vec![0; CHUNKS / 64],
            asked: false,
            routes: rib.len(),
            generation: rib.generation(),
            snapshot: Arc::new(snapshot),
        })
    }

    /// Marks the chunks that a change may have changed.
    fn mark(&mut self, prefix: Prefix<u32>) {
        let (first, last) = (prefix.first() >> CHUNK_BITS, prefix.last() >> CHUNK_BITS);
        (first..=last).for_each(|chunk| self.dirty[chunk as usize / 64] |= 1 << (chunk % 64));
    }

    fn count_dirty(&self) -> usize {
        self.dirty.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// The marked chunks, whose marks it takes away.
    fn take_dirty(&mut self) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (word, bits) in self.dirty.iter_mut().enumerate() {
            while *bits != 0 {
                numbers.push(word * 64 + bits.trailing_zeros() as usize);
                *bits &= *bits - 1;
            }
        }
        numbers
    }

    /// Whether the ranges have holes beyond the limit.
    fn is_fragmented(&self) -> bool {
        let ranges = &self.tables.ranges;
        ranges.unused() > ranges.used() * FRAG_LIMIT / 100 + HOLES_ALLOWED
    }

    /// Whether a batch has stored ranges that descriptors cannot point to: they are lost, and so is what they stood
    /// for.
    fn is_out_of_reach(&self) -> bool {
        self.tables.ranges.words().len() > MOST_WORDS
    }

    /// Whether the table has grown or shrunk so much that another D may be better.
    fn has_outgrown_its_split(&self, rib: &Rib<u32>) -> bool {
        let magnitude = |routes: usize| routes.max(FEW_ROUTES).ilog2();
        magnitude(rib.len()).abs_diff(magnitude(self.routes)) > 1
    }
}

impl Instance<u32> for Writer {
    fn fib(&self) -> Arc<dyn Fib<u32>> {
        Arc::<Snapshot>::clone(&self.snapshot)
    }

    /// A snapshot costs a copy of the table however little has changed, so one change alone is asked to wait for
    /// others; the call after that is taken for the batch, however small.
    fn patch(&mut self, rib: &Rib<u32>, changes: &[Change<u32>]) -> Outcome {
        if rib.generation() == self.generation {
            return Outcome::Applied;
        }
        changes.iter().for_each(|change| self.mark(change.prefix));
        if changes.len() == 1 && !self.asked {
            self.asked = true;
            return Outcome::Batch;
        }
        self.asked = false;
        if self.count_dirty() > MOST_DIRTY || self.has_outgrown_its_split(rib) || self.is_out_of_reach() {
            return Outcome::Rebuild;
        }
        let dirty = self.take_dirty();
        self.tables.recompile(rib, &dirty);
        if self.is_fragmented() {
            return Outcome::Rebuild;
        }
        match Snapshot::new(&self.tables, self.snapshot.isa) {
            Ok(snapshot) => self.snapshot = Arc::new(snapshot),
            // Compiling says what is wrong if it still is.
            Err(_) => return Outcome::Rebuild,
        }
        self.generation = rib.generation();
        Outcome::Applied
    }
}

impl Algorithm<u32> for Dxr {
    fn name(&self) -> &'static str {
        NAME
    }

    /// FreeBSD's `dxr_get_pref`: good for every table.
    fn preference(&self, _summary: &Summary) -> u8 {
        251
    }

    fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
        Ok(Box::new(Writer::new(self.isa.unwrap_or_else(Isa::best), rib)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rib::Range;

    /// Two addresses a range, and no two neighbours alike: every chunk needs 2,048 words and one for their number.
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
        let fits = Tables::compile(fine_ranges(2_000 * 2_048));
        assert!(Snapshot::new(&fits, Isa::SCALAR).is_ok());
        let beyond = Tables::compile(fine_ranges(2_100 * 2_048));
        let error = CompileError::from(Snapshot::new(&beyond, Isa::SCALAR).err().unwrap());
        assert_eq!(
            error.to_string(),
            "dxr cannot hold this table: 4302900 words of ranges needed, 4194304 possible"
        );
    }
}
