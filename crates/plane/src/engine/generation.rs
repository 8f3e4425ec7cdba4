//! One of the two generations of the tables and the configuration that the program reads.
//!
//! # Readers while a generation is written
//!
//! The program uses the generation in the map `current`. Only the other one, the *idle* one, is written. It becomes current
//! by one update of `current`, an array of maps:
//! - A program that runs after the update finds the new generation. All words in it were stored before the system call,
//!   which orders them before the pointer is published (`rcu_assign_pointer` in effect: `xchg` in
//!   `bpf_fd_array_map_update_elem`); the program reaches them through that pointer.
//! - A program that found the old one may still read it. It runs from begin to end inside an RCU read-side section
//!   (XDP: in a driver's NAPI poll, with bottom halves off), and the system call does not return before all such
//!   sections have ended: for arrays and hashes of maps `kernel/bpf/syscall.c` calls `maybe_wait_bpf_programs`, that
//!   is `synchronize_rcu()`, so that user space knows when the old inner map is out of use (Linux 4.18 and since, 6.18
//!   too).
//!
//! So when the call returns, no program reads the generation that was current before, and it becomes the idle one. It is
//! one update behind, and catches up when it is written next, with the changed blocks of two updates. No block is copied
//! twice in between, and no thread waits.
//!
//! The first levels of VRF tables are in a map of their own, in which each generation has its own entries. The program
//! chooses the entry by the number in its generation, so the same argument holds for them.

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
    FLOW_FIELDS, FLOW_SEED, GROUP_SLOTS, INTERFACES, LAST_REPORT, NEXT_HOPS, NUMBER, POLICY_RULES,
    PORT_FACTOR, RULE_LISTS, VRF, VRF_INDEX, VRF_PLACES, VRF_ROOTS, WordRange,
};
use super::section_copy::{SectionCopy, store};
use super::table_images::TableImages;
use super::words::halves;
use crate::flow_hash::FlowHash;
use crate::port::sys::SharedWords;

/// A generation and its contents.
pub(super) struct Generation {
    pub map: MapData,
    pub memory: Arc<SharedWords>,
    /// The first levels of VRF tables, of both generations alternately.
    vrfs: Arc<SharedWords>,
    number: usize,
    /// The main table, and the VRF tables there is room for.
    tables: Vec<TableCopy>,
    /// The number of the configuration it holds, and the words of its next hops and slots.
    config: u64,
    hops: usize,
    slots: usize,
}

/// Arrays that all tables share, with their names in messages.
const SHARED: [(WordRange, &str); 3] = [
    (DIR18_LEAVES, "bytes of dir18's leaves"),
    (BTREE6_BRANCHES, "bytes of btree6's branches"),
    (BTREE6_LEAVES, "bytes of btree6's leaves"),
];

/// The copy of one table.
struct TableCopy {
    index: SectionCopy,
    roots: SectionCopy,
    /// Its ranges of the arrays that all tables share.
    shared: [SectionCopy; SHARED.len()],
}

impl TableCopy {
    fn new() -> TableCopy {
        let shared = [(); SHARED.len()].map(|()| SectionCopy::unplaced());
        let (index, roots) = (
            SectionCopy::exclusive(VRF_INDEX.words / BLOCK),
            SectionCopy::exclusive(VRF_ROOTS.words / BLOCK),
        );
        TableCopy { index, roots, shared }
    }

    /// The main table without VRFs: it has the whole arrays.
    fn main() -> TableCopy {
        TableCopy {
            shared: SHARED.map(|(part, _)| SectionCopy::exclusive(part.words / BLOCK)),
            ..TableCopy::new()
        }
    }
}

impl Generation {
    /// Generation 0 or 1, with room for VRF tables.
    pub fn new(
        map: MapData,
        number: usize,
        room: usize,
        vrfs: Arc<SharedWords>,
    ) -> Result<Generation, EngineError> {
        let memory = Arc::new(SharedWords::new(map.fd().as_fd(), BYTES).map_err(EngineError::Mapping)?);
        store(&memory.words()[NUMBER.range()], &[number as u32]);
        let tables = std::iter::once(TableCopy::main()).chain((0..room).map(|_| TableCopy::new())).collect();
        Ok(Generation { map, memory, vrfs, number, tables, config: 0, hops: 0, slots: 0 })
    }

    /// Sets when the process last reported. The program may be reading this generation.
    pub fn report(&self, ticks: u32) {
        store(&self.memory.words()[LAST_REPORT.range()], &[ticks]);
    }

    /// Makes room for tables, main table first, by the blocks that each needs of each shared array. Has to be called before
    /// [`Self::follow`] whenever a table may have grown.
    pub fn make_room(&mut self, needed: &[[usize; SHARED.len()]]) -> Result<(), EngineError> {
        if needed.len() > self.tables.len() {
            let (needed, limit) = (needed.len() - 1, self.tables.len() - 1);
            return Err(EngineError::TooLarge { what: "tables of VRFs", needed, limit });
        }
        for (at, (part, what)) in SHARED.into_iter().enumerate() {
            let before: Vec<_> = self.tables.iter().map(|table| table.shared[at].range()).collect();
            // An empty table must not overlap another one either.
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

    /// Copies the changes of one table to this generation, which no program reads, and returns the number of blocks.
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

    /// Writes another configuration, unless it is there already. Next hops that only the configuration before had are
    /// overwritten with zeroes, which means no neighbour.
    pub fn configure(&mut self, number: u64, config: &CompiledConfig) {
        if std::mem::replace(&mut self.config, number) == number {
            return;
        }
        let memory = self.memory.words();
        let write = |part: WordRange, words: &[u32], before: usize| {
            let to = &memory[part.range()];
            store(to, words);
            to[words.len()..before.max(words.len())].iter().for_each(|word| word.store(0, Ordering::Relaxed));
            words.len()
        };
        self.hops = write(NEXT_HOPS, &config.hops, self.hops);
        self.slots = write(GROUP_SLOTS, &config.slots, self.slots);
        write(INTERFACES, &config.ports.words, 0);
        write(RULE_LISTS, &config.rules.lists, 0);
        write(POLICY_RULES, &config.rules.rules, 0);
        write(PORT_FACTOR, &halves(config.ports.factor), 0);
        let FlowHash { seed, inet, inet6 } = config.flow_hash;
        write(FLOW_SEED, &halves(seed), 0);
        write(FLOW_FIELDS, &[inet as u32, inet6 as u32], 0);
    }
}

/// The width of the leaves of a VRF table, and the offsets of its leaves, and of its branches and leaves of btree6.
fn places(images: &TableImages<'_>, shared: &[SectionCopy; SHARED.len()]) -> [u32; 4] {
    let [leaves, branches, leaves6] = shared.each_ref().map(|copied| copied.range().start * BLOCK * 4);
    [images.leaf_bytes, leaves / images.leaf_bytes, branches, leaves6].map(|word| word as u32)
}
