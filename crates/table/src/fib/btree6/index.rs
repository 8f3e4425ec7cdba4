//! The index: which tree an address belongs to.
//!
//! A block of 16 bits is halved, and the halves again, until each piece has no more ranges than a tree holds. The block's
//! part of the index is as fine as its smallest piece; the places of a larger one all lead to the same tree.

use crate::prefix::Prefix;
use crate::rib::{Range, Rib};
use crate::simd::{Part, Place, Slot};

use super::build::Trees;
use super::pieces::{self, Home, KEY_BITS, ROOT_BITS};
use super::space::{Full, Table};
use super::{ESCAPE, key};

/// Ranges that a tree is given at most when a block is divided: nine tenths of what it holds, so that new boundaries find
/// room.
const FULL: usize = 2_304;
/// Bits of an index at most: enough for trees of one key each in 2,048.
const MOST_BITS: u32 = 21;
/// Places for each range at most.
const PLACES_A_RANGE: usize = 64;
/// Bits by which a tree's piece may be larger than a place: a tree written anew is stored in all its places.
const SHARED_BITS: u32 = 10;

/// The part of a block with one tree.
const WHOLE: u32 = KEY_BITS as u32;

impl Trees {
    /// Makes the index and the trees of blocks of 16 bits, all of which `ranges` cover.
    pub(super) fn blocks(
        &mut self,
        rib: &Rib<u128>,
        ranges: impl Iterator<Item = Range<u128>>,
    ) -> Result<(), Full> {
        let mut slots = Vec::new();
        for range in ranges {
            for top in (range.first >> 112) as u16..=(range.last >> 112) as u16 {
                let block = Prefix::containing(u128::from(top) << 112, ROOT_BITS);
                let (first, last) = (range.first.max(block.first()), range.last.min(block.last()));
                pieces::push(&mut slots, &Range { first, last, ..range }, 0);
                if last == block.last() {
                    self.index(rib, block, &slots)?;
                    slots.clear();
                }
            }
        }
        Ok(())
    }

    /// Makes the index and the trees of a block of 16 bits.
    fn index(&mut self, rib: &Rib<u128>, block: Prefix<u128>, slots: &[Slot]) -> Result<(), Full> {
        let top = (block.first() >> 112) as u16;
        let (before, trees_before) = (self.space.lines.part(top), self.trees_of(block));
        let bits = fineness(slots);
        let part = match bits {
            0 => Part { base: usize::from(top), shift: WHOLE },
            _ => Part { base: self.space.take_table(bits)?.first, shift: WHOLE - bits },
        };
        self.plant(rib, part, block, slots)?;
        self.space.lines.set_part(top, part);
        trees_before.into_iter().for_each(|tree| self.retire_tree(tree));
        if (1..WHOLE).contains(&before.shift) {
            self.space.retire_table(Table { first: before.base, bits: WHOLE - before.shift });
        }
        Ok(())
    }

    /// Makes the trees of a block of 16 bits or of a piece of one.
    fn plant(
        &mut self,
        rib: &Rib<u128>,
        part: Part,
        block: Prefix<u128>,
        slots: &[Slot],
    ) -> Result<(), Full> {
        let home = Home::indexed(block);
        let slots = within(slots, home);
        let finer = WHOLE - part.shift - u32::from(block.len() - ROOT_BITS);
        if finer > 0 && (slots.len() > FULL || finer > SHARED_BITS) {
            return halves(block).into_iter().try_for_each(|half| self.plant(rib, part, half, slots));
        }
        let tree = match slots {
            [Slot { hop, .. }] if *hop != ESCAPE => self.uniform(*hop)?,
            _ => {
                let mut slots = slots.to_vec();
                slots.last_mut().into_iter().for_each(|slot| slot.last = slot.last.min(home.last()));
                self.tree(rib, home, &mut slots)?
            }
        };
        self.set_tree(part, home, tree);
        Ok(())
    }

    /// Stores a tree in all its places.
    pub(super) fn set_tree(&mut self, part: Part, home: Home, tree: Place) {
        let places = part.at(home.first())..=part.at(home.last());
        let enough = self.lens.len().max(places.end() + 1);
        self.lens.resize(enough, 0);
        self.lens[places.clone()].fill(home.block.len());
        places.for_each(|at| self.space.lines.set_tree(at, tree));
    }

    /// The tree that an address belongs to, and what it is for.
    pub(super) fn tree_of(&self, addr: u128) -> (Place, Home) {
        let at = self.space.lines.part((addr >> 112) as u16).at(key(addr, 0));
        (self.space.lines.tree(at), Home::indexed(Prefix::containing(addr, self.lens[at])))
    }

    /// The trees of a block of 16 bits, if it was made before.
    fn trees_of(&self, block: Prefix<u128>) -> Vec<Place> {
        let mut trees = Vec::new();
        if self.space.lines.part((block.first() >> 112) as u16).shift == 0 {
            return trees;
        }
        let mut next = Some(block.first());
        while let Some(addr) = next.filter(|addr| block.contains(*addr)) {
            let (tree, home) = self.tree_of(addr);
            trees.push(tree);
            next = home.block.last().checked_add(1);
        }
        trees
    }
}

/// The two halves of a block.
fn halves(block: Prefix<u128>) -> [Prefix<u128>; 2] {
    [block.first(), block.last()].map(|addr| Prefix::containing(addr, block.len() + 1))
}

/// The slots that hold keys of a block.
fn within(slots: &[Slot], home: Home) -> &[Slot] {
    let from = slots.partition_point(|slot| slot.last < home.first());
    let to = slots.partition_point(|slot| slot.last < home.last());
    &slots[from..slots.len().min(to + 1)]
}

/// Bits of the index of a block of 16 bits with these slots.
fn fineness(slots: &[Slot]) -> u32 {
    let most = (PLACES_A_RANGE * slots.len().max(1)).ilog2().min(MOST_BITS);
    halvings(slots, Home::indexed(Prefix::containing(0, ROOT_BITS))).min(most)
}

/// How often a block must be halved until no piece has too many slots.
fn halvings(slots: &[Slot], home: Home) -> u32 {
    let slots = within(slots, home);
    if slots.len() <= FULL {
        return 0;
    }
    1 + halves(home.block).map(|half| halvings(slots, Home::indexed(half))).into_iter().max().unwrap_or(0)
}
