//! The writer's half: trees built from the RIB.

use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::fib::CompileError;
use crate::memory::Full;
use crate::prefix::Prefix;
use crate::rib::{Range, Rib};
use crate::simd::Isa;

use super::key::{BRANCHES, ESCAPE, NAME};
use super::key_ranges::{self, KEY_BITS, ROOT_BITS};
use super::lines::{Deeper, FANOUT, LineStore, Place, RANGES, Slot};
use super::space::{Hold, LineKind, LineRow, LineSpace};
use super::view::View;

/// The fanout of a new branch and the ranges of a new leaf, which leave room for more, as long as these suffice.
const ROOMY: (usize, usize) = (FANOUT - 2, RANGES - 1);
/// Most slots of a tree.
const MOST_SLOTS: usize = FANOUT.pow(BRANCHES as u32) * RANGES;
/// The bits that divide a tree that would be too large.
const DIVISION: u8 = 8;

/// All trees, and the view for readers.
pub(super) struct Trees {
    pub(super) space: LineSpace,
    /// Trees of one answer, by that answer, and how many links lead to each: several blocks share such a tree.
    uniform: FxHashMap<u16, (Place, usize)>,
    /// The answers of these trees, by place.
    pub(super) shared: FxHashMap<Place, u16>,
    isa: Isa,
    view: Arc<View>,
}

impl Trees {
    /// Compiles a table into stores that are doubled until half of them suffices: without spare lines each new boundary
    /// would cause a rebuild. Lines that are never written cost no memory.
    pub(super) fn build(rib: &Rib<u128>, isa: Isa) -> Result<Self, CompileError> {
        let mut lines = rib.len() + (1 << 14);
        loop {
            let memory =
                |error: io::Error| CompileError::Memory { algorithm: NAME, reason: error.to_string() };
            let mut trees = Trees::empty(lines, isa).map_err(memory)?;
            let built = trees.roots(rib, rib.ranges()).is_ok();
            if built && (trees.space.has_spare_half() || lines >= LineStore::MOST) {
                trees.view = trees.new_view(trees.space.token());
                return Ok(trees);
            }
            if lines >= LineStore::MOST {
                return Err(CompileError::Limit {
                    algorithm: NAME,
                    what: "lines",
                    needed: lines + 1,
                    limit: LineStore::MOST,
                });
            }
            lines *= 2;
        }
    }

    fn empty(lines: usize, isa: Isa) -> io::Result<Self> {
        let space = LineSpace::new(lines)?;
        let view = View { lines: Arc::clone(&space.lines), isa, used: space.used(), _hold: space.token() };
        Ok(Trees {
            space,
            uniform: FxHashMap::default(),
            shared: FxHashMap::default(),
            isa,
            view: Arc::new(view),
        })
    }

    /// The present view.
    pub(super) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    fn new_view(&self, token: Hold) -> Arc<View> {
        Arc::new(View {
            lines: Arc::clone(&self.space.lines),
            isa: self.isa,
            used: self.space.used(),
            _hold: token,
        })
    }

    /// Ends a patch: begins a new view if lines were replaced or added, and frees the lines that no reader can read.
    pub(super) fn turn(&mut self) {
        if let Some(token) = self.space.turn() {
            self.view = self.new_view(token);
            self.space.reclaim();
        } else if self.view.used != self.space.used() {
            self.view = self.new_view(self.space.token());
        }
    }

    /// Builds the trees of blocks of 16 bits; `ranges` cover these blocks.
    pub(super) fn roots(
        &mut self,
        rib: &Rib<u128>,
        ranges: impl Iterator<Item = Range<u128>>,
    ) -> Result<(), Full> {
        let mut slots = Vec::new();
        for range in ranges {
            for top in (range.first >> 112) as u16..=(range.last >> 112) as u16 {
                let block = Prefix::containing(u128::from(top) << 112, ROOT_BITS);
                let (first, last) = (range.first.max(block.first()), range.last.min(block.last()));
                key_ranges::push(&mut slots, &Range { first, last, ..range }, 0);
                if last == block.last() {
                    let tree = self.tree(rib, block, &mut slots)?;
                    self.set_root(top, tree);
                    slots.clear();
                }
            }
        }
        Ok(())
    }

    fn set_root(&mut self, top: u16, tree: Place) {
        let before = self.space.lines.root(top);
        if before != tree {
            self.space.lines.set_root(top, tree);
        }
        // If the tree is shared and was here before, the new link was counted, and this removes the old one.
        self.retire_tree(before);
    }

    /// Builds the tree of a block from the RIB.
    pub(super) fn block(&mut self, rib: &Rib<u128>, block: Prefix<u128>) -> Result<Place, Full> {
        let mut slots = key_ranges::slots(rib.ranges_within(block), key_ranges::consumed(block));
        self.tree(rib, block, &mut slots)
    }

    /// Builds a tree with these slots.
    fn tree(&mut self, rib: &Rib<u128>, block: Prefix<u128>, slots: &mut Vec<Slot>) -> Result<Place, Full> {
        if let [Slot { hop, .. }] = slots[..]
            && hop != ESCAPE
        {
            return self.uniform(hop);
        }
        divide(slots);
        self.go_deeper(rib, block, 0, slots)?;
        self.write(slots)
    }

    /// Returns the tree of blocks with one answer, and counts one more link to it.
    fn uniform(&mut self, hop: u16) -> Result<Place, Full> {
        if let Some((tree, links)) = self.uniform.get_mut(&hop) {
            *links += 1;
            return Ok(*tree);
        }
        let tree = self.write(&[Slot { last: u32::MAX, hop, deeper: None }])?;
        self.uniform.insert(hop, (tree, 1));
        self.shared.insert(tree, hop);
        Ok(tree)
    }

    /// Removes one link to a tree, if the tree is shared. Returns whether other links are left.
    fn unlink(&mut self, tree: Place) -> bool {
        let Some(hop) = self.shared.get(&tree).copied() else { return false };
        if let Some((_, links)) = self.uniform.get_mut(&hop).filter(|(_, links)| *links > 1) {
            *links -= 1;
            return true;
        }
        self.uniform.remove(&hop);
        self.shared.remove(&tree);
        false
    }

    /// Builds the trees of slots that lead deeper; the first slot begins at `first`.
    pub(super) fn go_deeper(
        &mut self,
        rib: &Rib<u128>,
        block: Prefix<u128>,
        mut first: u32,
        slots: &mut [Slot],
    ) -> Result<(), Full> {
        for slot in slots {
            if slot.hop == ESCAPE && slot.deeper.is_none() {
                let bits = if slot.last == first { KEY_BITS } else { DIVISION };
                let tree = self.block(rib, key_ranges::cell(block, slot.last, bits))?;
                slot.deeper = Some(Deeper { tree, bits: u32::from(bits) });
            }
            first = slot.last.wrapping_add(1);
        }
        Ok(())
    }

    /// Writes a whole tree.
    fn write(&mut self, slots: &[Slot]) -> Result<Place, Full> {
        let row = self.space.take(LineKind::Branches, 1)?;
        self.write_below(row, BRANCHES - 1, slots)?;
        Ok(self.space.lines.place(row))
    }

    /// Writes a branch with so many levels of branches below it, and all of these. Slots that exceed [`ROOMY`] lines
    /// are spread over all possible children of a branch, so that each child has room as long as there is any.
    pub(super) fn write_below(&mut self, line: usize, below: usize, slots: &[Slot]) -> Result<(), Full> {
        let (fanout, ranges) = ROOMY;
        let children = slots.len().div_ceil(ranges).div_ceil(fanout.pow(below as u32)).min(FANOUT);
        if below == 0 {
            return self.write_leaves(line, slots, children);
        }
        let row = self.space.take(LineKind::Branches, children)?;
        for i in 0..children {
            self.write_below(row + i, below - 1, part(slots, i, children))?;
        }
        self.link(line, row, slots, children);
        Ok(())
    }

    /// Writes a branch and so many leaves below it.
    fn write_leaves(&mut self, line: usize, slots: &[Slot], leaves: usize) -> Result<(), Full> {
        let row = self.space.take(LineKind::Leaves, leaves)?;
        for i in 0..leaves {
            let slots = part(slots, i, leaves);
            let deeper = slots.iter().any(|slot| slot.deeper.is_some());
            let list = if deeper { self.space.take(LineKind::Branches, 1)? } else { 0 };
            self.space.lines.write_leaf(row + i, slots, list);
        }
        self.link(line, row, slots, leaves);
        Ok(())
    }

    /// Writes a branch whose children, in a row, have equal parts of these slots.
    fn link(&self, line: usize, row: usize, slots: &[Slot], children: usize) {
        let mut lasts = [u32::MAX; FANOUT - 1];
        for (i, last) in lasts.iter_mut().enumerate().take(children - 1) {
            *last = part(slots, i, children).last().map_or(u32::MAX, |slot| slot.last);
        }
        self.space.lines.write_branch(line, self.space.lines.place(row), &lasts);
    }

    /// Retires a tree and those it leads to, unless other links lead to it.
    pub(super) fn retire_tree(&mut self, tree: Place) {
        if tree.line() != 0 && !self.unlink(tree) {
            self.retire_branch(tree.line(), BRANCHES);
            self.space.retire(LineRow(LineKind::Branches, tree.line()));
        }
    }

    /// Retires everything below a branch from which so many steps lead to the leaves.
    fn retire_branch(&mut self, line: usize, steps: usize) {
        let first = self.space.lines.first(line).line();
        let row = LineRow(if steps == 1 { LineKind::Leaves } else { LineKind::Branches }, first);
        for child in first..first + self.space.length(row) {
            if steps == 1 { self.retire_list(child) } else { self.retire_branch(child, steps - 1) }
        }
        self.space.retire(row);
    }

    /// Retires the list of a leaf and the trees in it.
    fn retire_list(&mut self, leaf: usize) {
        let lines = Arc::clone(&self.space.lines);
        if lines.list(leaf) != 0 {
            for slot in (0..RANGES).filter(|slot| lines.answer(leaf, *slot) == ESCAPE) {
                lines.deeper(leaf, slot).into_iter().for_each(|deeper| self.retire_tree(deeper.tree));
            }
            self.space.retire(LineRow(LineKind::Branches, lines.list(leaf)));
        }
    }
}

/// Part `i` of `parts` parts, whose sizes differ by one at most.
fn part(slots: &[Slot], i: usize, parts: usize) -> &[Slot] {
    &slots[i * slots.len() / parts..(i + 1) * slots.len() / parts]
}

/// Reduces the slots to the number that a tree can hold: the blocks with most of them get a tree of their own.
fn divide(slots: &mut Vec<Slot>) {
    if slots.len() <= MOST_SLOTS {
        return;
    }
    let shift = KEY_BITS - DIVISION;
    let mut sizes = [0usize; 1 << DIVISION];
    slots.iter().for_each(|slot| sizes[(slot.last >> shift) as usize] += 1);
    let mut largest: Vec<usize> = (0..sizes.len()).collect();
    largest.sort_by_key(|block| std::cmp::Reverse(sizes[*block]));
    let mut left = slots.len();
    let mut own_tree = [false; 1 << DIVISION];
    for block in largest {
        if left <= MOST_SLOTS / 2 {
            break;
        }
        // A slot that extends into the block from before is cut at its edge.
        left = left + 2 - sizes[block].min(left);
        own_tree[block] = true;
    }
    *slots = replace_blocks(slots, &own_tree, shift);
}

/// The slots, with each block that has its own tree replaced by one slot.
fn replace_blocks(slots: &[Slot], own_tree: &[bool], shift: u8) -> Vec<Slot> {
    let mut all = Vec::new();
    let mut first = 0;
    for slot in slots {
        for block in first >> shift..=slot.last >> shift {
            let end = block << shift | ((1 << shift) - 1);
            let whole = Slot { last: end, hop: ESCAPE, deeper: None };
            let part = Slot { last: slot.last.min(end), ..*slot };
            push_or_extend(&mut all, if own_tree[block as usize] { whole } else { part });
        }
        first = slot.last.wrapping_add(1);
    }
    all
}

/// Adds a slot, unless the last one belongs to the same block or has the same answer.
fn push_or_extend(all: &mut Vec<Slot>, slot: Slot) {
    match all.last_mut() {
        Some(before) if before.last == slot.last => {}
        Some(before) if before.hop == slot.hop && slot.hop != ESCAPE => before.last = slot.last,
        _ => all.push(slot),
    }
}
