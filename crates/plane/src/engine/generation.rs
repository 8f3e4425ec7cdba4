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

use std::sync::atomic::{AtomicU32, Ordering};

use aya::maps::MapData;
use fullview_table::fib::image::{BLOCK, Image, Mark, Section};
use std::os::fd::AsFd;

use super::layout::{
    BTREE6_BRANCHES, BTREE6_LEAVES, BTREE6_ROOTS, BYTES, DIR18_INDEX, DIR18_LEAF_BYTES, DIR18_LEAVES,
    FLOW_SEED, GROUP_SLOTS, INTERFACES, NEXT_HOPS, Part,
};
use super::plan::Compiled;
use super::{EngineError, Images};
use crate::port::sys::SharedWords;

/// A generation, and what has been written to it.
pub(super) struct Generation {
    pub map: MapData,
    memory: SharedWords,
    sections: [Copied; 5],
    /// The plan it holds, by number, and how many words of next hops and slots that is.
    plan: u64,
    hops: usize,
    slots: usize,
}

/// A copy of a section.
struct Copied {
    part: Part,
    /// What of, for messages.
    what: &'static str,
    mark: Option<Mark>,
    /// Blocks that may hold anything but zeroes.
    blocks: usize,
}

impl Copied {
    fn new(part: Part, what: &'static str) -> Copied {
        Copied { part, what, mark: None, blocks: 0 }
    }

    /// Takes what has changed; how many blocks that was. A section of another table is taken whole.
    fn follow(&mut self, memory: &[AtomicU32], section: Section<'_>) -> Result<usize, EngineError> {
        let (needed, limit) = (section.blocks(), self.part.words / BLOCK);
        if needed > limit {
            let [needed, limit] = [needed, limit].map(|blocks| blocks * BLOCK * 4);
            return Err(EngineError::TooLarge { what: self.what, needed, limit });
        }
        let since = self.mark.replace(section.mark());
        let copy = |block: usize| copy(section, block, &memory[self.part.range()][block * BLOCK..][..BLOCK]);
        let copied = match since.and_then(|mark| section.changed(mark)) {
            Some(changed) => changed.map(copy).count(),
            None => (0..needed.max(self.blocks)).map(copy).count(),
        };
        self.blocks = self.blocks.max(needed);
        Ok(copied)
    }
}

fn copy(section: Section<'_>, block: usize, to: &[AtomicU32]) {
    let mut words = [0; BLOCK];
    section.read(block, &mut words);
    store(to, &words);
}

fn store(to: &[AtomicU32], words: &[u32]) {
    to.iter().zip(words).for_each(|(to, word)| to.store(*word, Ordering::Relaxed));
}

impl Generation {
    pub fn new(map: MapData) -> Result<Generation, EngineError> {
        let memory = SharedWords::new(map.fd().as_fd(), BYTES).map_err(EngineError::Mapping)?;
        let sections = [
            Copied::new(DIR18_INDEX, "bytes of dir18's index"),
            Copied::new(DIR18_LEAVES, "bytes of dir18's leaves"),
            Copied::new(BTREE6_ROOTS, "bytes of btree6's roots"),
            Copied::new(BTREE6_BRANCHES, "bytes of btree6's branches"),
            Copied::new(BTREE6_LEAVES, "bytes of btree6's leaves"),
        ];
        Ok(Generation { map, memory, sections, plan: 0, hops: 0, slots: 0 })
    }

    /// Brings this generation, which no program is in, up to date; how many blocks of tables were copied.
    pub fn follow(
        &mut self,
        images: &Images<'_>,
        number: u64,
        plan: &Compiled,
    ) -> Result<usize, EngineError> {
        let memory = self.memory.words();
        let [sections @ .., leaves6] = &mut self.sections;
        let [index, leaves, roots, branches] = sections;
        let mut copied = 0;
        if let Image::Dir18 { index: of_index, leaves: of_leaves, leaf_bytes } = &images.inet {
            copied += index.follow(memory, *of_index)? + leaves.follow(memory, *of_leaves)?;
            store(&memory[DIR18_LEAF_BYTES.range()], &[*leaf_bytes as u32]);
        }
        if let Image::Btree6 { roots: of_roots, branches: of_branches, leaves: of_leaves } = &images.inet6 {
            copied += roots.follow(memory, *of_roots)? + branches.follow(memory, *of_branches)?;
            copied += leaves6.follow(memory, *of_leaves)?;
        }
        if self.plan != number {
            self.write_plan(plan);
            self.plan = number;
        }
        Ok(copied)
    }

    /// Next hops that the plan before had and this one has not are wiped: no neighbour.
    fn write_plan(&mut self, plan: &Compiled) {
        let memory = self.memory.words();
        let write = |part: Part, words: &[u32], before: usize| {
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
