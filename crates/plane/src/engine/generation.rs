//! One of the two generations of all that the program looks up in.
//!
//! # Who reads while this is written
//!
//! Packets go by the generation that the map `current` holds. Only the other one, the *idle* one, is written. It
//! becomes current by one update of `current`, an array of maps:
//! - A program that runs after the update finds the new generation. All words in it were stored before the system call,
//!   which orders them before the pointer is published (`rcu_assign_pointer` in effect: `xchg` in
//!   `bpf_fd_array_map_update_elem`); the program reaches them through that pointer.
//! - A program that found the old one may still be in it. It runs from begin to end inside an RCU read-side section
//!   (XDP: in a driver's NAPI poll, with bottom halves off), and the system call does not return before all such
//!   sections have ended: for arrays and hashes of maps `kernel/bpf/syscall.c` calls `maybe_wait_bpf_programs`, that
//!   is `synchronize_rcu()`, so that user space knows when the old inner map is out of use (Linux 4.18 and since, 6.18
//!   too).
//!
//! So when the call returns nobody is in what was current before, and it is the idle one. It lags behind by one round,
//! and is brought up to date when it is written next: by then changes of two rounds have gathered in the blocks that
//! it copies. Nothing is copied twice in between, and nobody waits for it.
//!
//! What begins lookups in the tables of VRFs lies in a map beside, in which each generation has places of its own: a
//! program chooses them by the number that it read from its generation, so the same holds for them.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aya::maps::MapData;
use fullview_table::fib::image::BLOCK;

use super::block_ranges::allocate;
use super::config::CompiledConfig;
use super::error::EngineError;
use super::layout::{
    BTREE6_BRANCHES, BTREE6_LEAVES, BTREE6_ROOTS, BYTES, DIR18_INDEX, DIR18_LEAF_BYTES, DIR18_LEAVES,
    FLOW_SEED, GROUP_SLOTS, INTERFACES, NEXT_HOPS, NUMBER, VRF, VRF_INDEX, VRF_PLACES, VRF_ROOTS, WordRange,
};
use super::section_copy::{SectionCopy, store};
use super::table_images::TableImages;
use crate::port::sys::SharedWords;

/// A generation, and what has been written to it.
pub(super) struct Generation {
    pub map: MapData,
    memory: SharedWords,
    /// What begins lookups in the tables of VRFs, those of both generations by turns.
    vrfs: Arc<SharedWords>,
    number: usize,
    /// The main one, and as many as there may be of VRFs.
    tables: Vec<TableCopy>,
    /// The plan it holds, by number, and how many words of next hops and slots that is.
    plan: u64,
    hops: usize,
    slots: usize,
}

/// Arrays that the tables share, and what they are called in messages.
const SHARED: [(WordRange, &str); 3] = [
    (DIR18_LEAVES, "bytes of dir18's leaves"),
    (BTREE6_BRANCHES, "bytes of btree6's branches"),
    (BTREE6_LEAVES, "bytes of btree6's leaves"),
];

/// The copy of a table.
struct TableCopy {
    index: SectionCopy,
    roots: SectionCopy,
    /// Its parts of the arrays that all tables share.
    shared: [SectionCopy; SHARED.len()],
}

impl TableCopy {
    fn new() -> TableCopy {
        let shared = [(); SHARED.len()].map(|()| SectionCopy::nowhere());
        let (index, roots) =
            (SectionCopy::alone(VRF_INDEX.words / BLOCK), SectionCopy::alone(VRF_ROOTS.words / BLOCK));
        TableCopy { index, roots, shared }
    }

    /// Alone, it has all there is.
    fn main() -> TableCopy {
        TableCopy {
            shared: SHARED.map(|(part, _)| SectionCopy::alone(part.words / BLOCK)),
            ..TableCopy::new()
        }
    }
}

impl Generation {
    /// Number 0 or 1, with so many VRFs.
    pub fn new(
        map: MapData,
        number: usize,
        room: usize,
        vrfs: Arc<SharedWords>,
    ) -> Result<Generation, EngineError> {
        let memory = SharedWords::new(map.fd().as_fd(), BYTES).map_err(EngineError::Mapping)?;
        store(&memory.words()[NUMBER.range()], &[number as u32]);
        let tables = std::iter::once(TableCopy::main()).chain((0..room).map(|_| TableCopy::new())).collect();
        Ok(Generation { map, memory, vrfs, number, tables, plan: 0, hops: 0, slots: 0 })
    }

    /// Makes room for tables that need so many blocks of each shared array; the main one comes first. To be called
    /// before [`Self::follow`] whenever a table may have grown.
    pub fn make_room(&mut self, needed: &[[usize; SHARED.len()]]) -> Result<(), EngineError> {
        if needed.len() > self.tables.len() {
            let (needed, limit) = (needed.len() - 1, self.tables.len() - 1);
            return Err(EngineError::TooLarge { what: "tables of VRFs", needed, limit });
        }
        for (at, (part, what)) in SHARED.into_iter().enumerate() {
            let before: Vec<_> = self.tables.iter().map(|table| table.shared[at].range()).collect();
            // Not even an empty table may lie where another one is.
            let needed: Vec<_> = needed.iter().map(|needed| needed[at].max(1)).collect();
            let limit = part.words / BLOCK;
            let ranges = allocate(limit, &before[..needed.len()], &needed).ok_or_else(|| {
                let [needed, limit] = [needed.iter().sum(), limit].map(|blocks: usize| blocks * BLOCK * 4);
                EngineError::TooLarge { what, needed, limit }
            })?;
            let ranges = ranges.into_iter().chain(std::iter::repeat(0..0));
            self.tables.iter_mut().zip(ranges).for_each(|(table, range)| table.shared[at].move_to(range));
        }
        Ok(())
    }

    /// Brings one table of this generation, which no program is in, up to date; how many blocks were copied.
    pub fn follow(&mut self, table: usize, images: &TableImages<'_>) -> usize {
        let memory = self.memory.words();
        let TableCopy { index, roots, shared } = &mut self.tables[table];
        let parts = SHARED.iter().zip(shared.iter_mut()).zip(images.shared());
        let copied: usize =
            parts.map(|(((part, _), copied), section)| copied.follow(&memory[part.range()], section)).sum();
        let (own, [of_index, of_roots]) = match table.checked_sub(1) {
            None => (memory, [DIR18_INDEX, BTREE6_ROOTS]),
            Some(vrf) => {
                let vrf = &self.vrfs.words()[(2 * vrf + self.number) * VRF..][..VRF];
                store(&vrf[VRF_PLACES.range()], &places(images, shared));
                (vrf, [VRF_INDEX, VRF_ROOTS])
            }
        };
        if table == 0 {
            store(&memory[DIR18_LEAF_BYTES.range()], &[images.leaf_bytes as u32]);
        }
        copied
            + index.follow(&own[of_index.range()], images.index)
            + roots.follow(&own[of_roots.range()], images.roots)
    }

    /// Goes by another plan, if it does not yet. Next hops that the plan before had and this one has not are wiped: no
    /// neighbour.
    pub fn plan(&mut self, number: u64, plan: &CompiledConfig) {
        if std::mem::replace(&mut self.plan, number) == number {
            return;
        }
        let memory = self.memory.words();
        let write = |part: WordRange, words: &[u32], before: usize| {
            let to = &memory[part.range()];
            store(to, words);
            to[words.len()..before.max(words.len())].iter().for_each(|word| word.store(0, Ordering::Relaxed));
            words.len()
        };
        self.hops = write(NEXT_HOPS, &plan.hops, self.hops);
        self.slots = write(GROUP_SLOTS, &plan.slots, self.slots);
        write(INTERFACES, &plan.ports, 0);
        write(FLOW_SEED, &plan.flow_seed, 0);
    }
}

/// How wide the leaves of a VRF's table are, and where they, its branches and its leaves of btree6 begin.
fn places(images: &TableImages<'_>, shared: &[SectionCopy; SHARED.len()]) -> [u32; 4] {
    let [leaves, branches, leaves6] = shared.each_ref().map(|copied| copied.range().start * BLOCK * 4);
    [images.leaf_bytes, leaves / images.leaf_bytes, branches, leaves6].map(|word| word as u32)
}
