//! Changes while readers look up.
//!
//! - If a change only gives existing ranges other next hops, these are stored one after the other: a lookup reads one
//!   of them. Ranges that become equal are not merged, so that a flapping route causes stores only.
//! - For a new boundary the leaves of one branch are written again, and the rows on the path from there to the root of
//!   the tree, 49 lines at most, with one more for each of the 16 leaves that leads deeper; storing the new root publishes them all. The old rows are retired.
//! - If that branch has no room, everything below the branch above it is written again, with its ranges spread evenly;
//!   if that has no room either, the whole tree.
//!
//! In each case a lookup finds the old answer of its address or the new one: it reads the boundaries of one leaf, which
//! never change, and one answer.

use std::sync::Arc;

use crate::memory::Full;
use crate::prefix::Prefix;
use crate::rib::Rib;

use super::build::Trees;
use super::key::{BRANCHES, ESCAPE, key};
use super::key_ranges::{self, KEY_BITS, ROOT_BITS};
use super::lines::{Deeper, FANOUT, Place, RANGES, Slot};
use super::space::{LineKind, LineRow};

/// A line of a tree, and the keys that lead to it.
#[derive(Clone, Copy, Default)]
struct KeySpan {
    line: usize,
    from: u32,
    to: u32,
}

/// An answer to store: leaf, slot and next hop.
type Answer = (usize, usize, u16);

/// The stores of a change in place: the answers, and the deeper trees to change.
type Stores = (Vec<Answer>, Vec<DeeperSlot>);

/// A slot of a leaf that leads to another tree, and the block of that tree.
struct DeeperSlot {
    leaf: usize,
    slot: usize,
    deeper: Deeper,
    block: Prefix<u128>,
}

/// The branches from a root to the branch above a leaf.
type BranchPath = [KeySpan; BRANCHES];

impl Trees {
    /// Brings the trees up to the RIB at and below a prefix. A change that fails for lack of space leaves the trees as
    /// they were, except for answers already stored.
    pub(super) fn apply(&mut self, rib: &Rib<u128>, prefix: Prefix<u128>) -> Result<(), Full> {
        if prefix.len() <= ROOT_BITS {
            return self.roots(rib, rib.ranges_within(prefix));
        }
        let top = (prefix.first() >> 112) as u16;
        let before = self.space.lines.root(top);
        let mut tree = before;
        let result = self.change(rib, &mut tree, Prefix::containing(prefix.first(), ROOT_BITS), prefix);
        if tree != before {
            self.space.lines.set_root(top, tree);
        }
        result
    }

    /// Brings the tree of a block up to the RIB at and below a prefix. If another tree replaces it, the lines of the
    /// old one that the new one does not use are retired, even if there is no space for all of the change.
    fn change(
        &mut self,
        rib: &Rib<u128>,
        tree: &mut Place,
        block: Prefix<u128>,
        prefix: Prefix<u128>,
    ) -> Result<(), Full> {
        if self.shared.contains_key(tree) {
            return self.renew(rib, tree, block);
        }
        let prefix = if prefix.covers(block) { block } else { prefix };
        let consumed = key_ranges::consumed(block);
        let from = key(prefix.first(), consumed);
        let path = self.path(*tree, from);
        let leaf = self.child(path[BRANCHES - 1], from);
        let to = key_ranges::last_key(prefix.last(), consumed);
        if let Some((slot, deeper)) = self.leads_deeper(leaf, from, to) {
            let block = Prefix::containing(prefix.first(), block.len() + deeper.bits as u8);
            return self.change_deeper(rib, DeeperSlot { leaf: leaf.line, slot, deeper, block }, prefix);
        }
        // A prefix longer than the key changes the answer of its key: all ranges of that key are needed.
        let prefix = Prefix::containing(prefix.first(), prefix.len().min(block.len() + KEY_BITS));
        let slots = key_ranges::slots(rib.ranges_within(prefix), consumed);
        if let Some(stores) = self.stores(*tree, block, from, &slots) {
            return self.store(rib, stores, prefix);
        }
        self.change_branches(rib, tree, block, prefix, &slots)
    }

    /// Replaces the slots of a prefix, one branch above leaves after the other.
    fn change_branches(
        &mut self,
        rib: &Rib<u128>,
        tree: &mut Place,
        block: Prefix<u128>,
        prefix: Prefix<u128>,
        mut slots: &[Slot],
    ) -> Result<(), Full> {
        let mut from = key(prefix.first(), key_ranges::consumed(block));
        while !slots.is_empty() {
            let path = self.path(*tree, from);
            let to = path[BRANCHES - 1].to;
            let here = up_to(&mut slots, to);
            match self.stores(*tree, block, from, &here) {
                Some(stores) => self.store(rib, stores, prefix)?,
                None if self.rewrite(rib, tree, block, &path, from, &here)? => {}
                None => return self.renew(rib, tree, block),
            }
            from = to.wrapping_add(1);
        }
        Ok(())
    }

    fn store(&mut self, rib: &Rib<u128>, stores: Stores, prefix: Prefix<u128>) -> Result<(), Full> {
        let (answers, links) = stores;
        answers.into_iter().for_each(|(leaf, slot, hop)| self.space.lines.set_hop(leaf, slot, hop));
        links.into_iter().try_for_each(|link| self.change_deeper(rib, link, prefix))
    }

    /// Replaces a tree by a new one.
    fn renew(&mut self, rib: &Rib<u128>, tree: &mut Place, block: Prefix<u128>) -> Result<(), Full> {
        let new = self.block(rib, block)?;
        self.retire_tree(std::mem::replace(tree, new));
        Ok(())
    }

    /// The slot of a leaf that contains all these keys and leads to another tree, if there is one.
    fn leads_deeper(&self, leaf: KeySpan, from: u32, to: u32) -> Option<(usize, Deeper)> {
        let mut slots = self.space.lines.slots(leaf.line, leaf.to).enumerate();
        let (slot, found) = slots.find(|(_, slot)| slot.last >= from)?;
        (found.hop == ESCAPE && to <= found.last).then_some((slot, found.deeper?))
    }

    /// Changes the tree that a slot of a leaf leads to.
    fn change_deeper(&mut self, rib: &Rib<u128>, link: DeeperSlot, prefix: Prefix<u128>) -> Result<(), Full> {
        let DeeperSlot { leaf, slot, deeper, block } = link;
        let mut tree = deeper.tree;
        let result = self.change(rib, &mut tree, block, prefix);
        if tree != deeper.tree {
            self.space.lines.set_deeper(leaf, slot, Deeper { tree, ..deeper });
        }
        result
    }

    /// The branches on the path to a key.
    fn path(&self, tree: Place, key: u32) -> BranchPath {
        let mut span = KeySpan { line: tree.line(), from: 0, to: u32::MAX };
        let mut path = [span; BRANCHES];
        for step in &mut path[1..] {
            span = self.child(span, key);
            *step = span;
        }
        path
    }

    /// The child of a branch that a key belongs to.
    fn child(&self, branch: KeySpan, key: u32) -> KeySpan {
        let (lasts, first) = (self.space.lines.lasts(branch.line), self.space.lines.first(branch.line));
        let child = lasts.partition_point(|last| *last < key);
        let from = child.checked_sub(1).map_or(branch.from, |before| lasts[before] + 1);
        let to = lasts.get(child).map_or(branch.to, |last| branch.to.min(*last));
        KeySpan { line: first.line() + child, from, to }
    }

    /// The answers to store and the deeper trees to change, if nothing else is needed: if each range of the tree lies
    /// in one of the new ones, which begin at `from`, or leads deeper.
    fn stores(&self, tree: Place, block: Prefix<u128>, mut from: u32, new: &[Slot]) -> Option<Stores> {
        let (mut answers, mut links) = (Vec::new(), Vec::new());
        let mut new = new.iter().peekable();
        while new.peek().is_some() {
            let leaf = self.child(self.path(tree, from)[BRANCHES - 1], from);
            let mut first = leaf.from;
            for (i, old) in self.space.lines.slots(leaf.line, leaf.to).enumerate() {
                if old.last >= from && new.peek().is_some() {
                    if first != from {
                        return None;
                    }
                    match old.deeper.filter(|_| old.hop == ESCAPE) {
                        Some(deeper) => {
                            while new.next_if(|now| now.last < old.last).is_some() {}
                            let block = key_ranges::cell(block, old.last, deeper.bits as u8);
                            new.peek()?;
                            links.push(DeeperSlot { leaf: leaf.line, slot: i, deeper, block });
                        }
                        None => {
                            let now = new.peek()?;
                            if old.last > now.last || now.hop == ESCAPE {
                                return None;
                            }
                            answers.push((leaf.line, i, now.hop));
                        }
                    }
                    new.next_if(|now| now.last == old.last);
                    from = old.last.wrapping_add(1);
                }
                first = old.last.wrapping_add(1);
            }
        }
        Some((answers, links))
    }

    /// Replaces slots by new ones, of which the first begins at `from`, with new lines below the lowest branch of the
    /// path to `from` that has room. Returns whether there is such a branch below the root.
    fn rewrite(
        &mut self,
        rib: &Rib<u128>,
        tree: &mut Place,
        block: Prefix<u128>,
        path: &BranchPath,
        from: u32,
        new: &[Slot],
    ) -> Result<bool, Full> {
        for below in 0..BRANCHES - 1 {
            let path = &path[..BRANCHES - below];
            let branch = path[BRANCHES - below - 1];
            let Some((mut slots, dropped)) = self.spliced(branch, below, from, new) else { return Ok(false) };
            let room = RANGES * FANOUT.pow(below as u32 + 1);
            // Boundaries of withdrawn routes are kept as long as there is room for them.
            if slots.len() > room {
                key_ranges::merge(&mut slots);
            }
            if slots.len() <= room {
                self.go_deeper(rib, block, branch.from, &mut slots)?;
                *tree = self.copy_path(path, &slots)?;
                dropped.into_iter().for_each(|tree| self.retire_tree(tree));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The slots below a branch with so many levels of branches below it, with the new ones in place of the old ones of
    /// their keys; and the trees to which the replaced slots led. `None` if a new slot is inside a block with a tree of
    /// its own.
    fn spliced(
        &self,
        branch: KeySpan,
        below: usize,
        from: u32,
        new: &[Slot],
    ) -> Option<(Vec<Slot>, Vec<Place>)> {
        let to = new.last()?.last;
        let (mut all, mut dropped, mut new) = (Vec::new(), Vec::new(), Some(new));
        let mut first = branch.from;
        for old in self.slots_below(branch, below) {
            if first < from {
                all.push(Slot { last: old.last.min(from - 1), ..old });
            }
            if first <= to && old.last >= from {
                if old.hop == ESCAPE {
                    let inside = first >= from && old.last <= to;
                    dropped.push(old.deeper.filter(|_| inside)?.tree);
                }
                all.extend(new.take().into_iter().flatten());
            }
            if old.last > to {
                all.push(old);
            }
            first = old.last.wrapping_add(1);
        }
        Some((all, dropped))
    }

    /// The slots of all leaves under a branch with so many branches below it.
    fn slots_below(&self, branch: KeySpan, below: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut from = branch.from;
        loop {
            let leaf = (0..=below).fold(branch, |branch, _| self.child(branch, from));
            slots.extend(self.space.lines.slots(leaf.line, leaf.to));
            if leaf.to == branch.to {
                return slots;
            }
            from = leaf.to + 1;
        }
    }

    /// Writes these slots below the last branch of a path, and copies the rows on the path, the row of the root
    /// included. All new rows are written before the old ones are retired.
    fn copy_path(&mut self, path: &[KeySpan], slots: &[Slot]) -> Result<Place, Full> {
        let lines = Arc::clone(&self.space.lines);
        let (last, below) = (path.len() - 1, BRANCHES - path.len());
        let mut rows = vec![path[0].line];
        rows.extend(path[..last].iter().map(|branch| lines.first(branch.line).line()));
        let mut copies = Vec::new();
        for row in &rows {
            copies.push(
                self.space.take(LineKind::Branches, self.space.length(LineRow(LineKind::Branches, *row)))?,
            );
        }
        self.write_below(copies[last] + path[last].line - rows[last], below, slots)?;
        for (step, (row, new)) in rows.iter().zip(&copies).enumerate() {
            for i in 0..self.space.length(LineRow(LineKind::Branches, *row)) {
                let (old, new) = (row + i, new + i);
                let below = copies.get(step + 1).map(|row| lines.place(*row));
                match below.filter(|_| old == path[step].line) {
                    Some(copied) => lines.write_branch(new, copied, &lines.lasts(old)),
                    None if old == path[step].line => {} // written with the lines below it
                    None => lines.write_branch(new, lines.first(old), &lines.lasts(old)),
                }
            }
        }
        self.retire_below(path[last].line, below);
        rows.iter().for_each(|row| self.space.retire(LineRow(LineKind::Branches, *row)));
        Ok(lines.place(copies[0]))
    }

    /// Retires the lines below a branch with so many levels of branches below it, but not the trees to which they lead.
    fn retire_below(&mut self, branch: usize, below: usize) {
        let row = self.space.lines.first(branch).line();
        if below == 0 {
            return self.retire_leaves(row);
        }
        let branches = LineRow(LineKind::Branches, row);
        (row..row + self.space.length(branches)).for_each(|branch| self.retire_below(branch, below - 1));
        self.space.retire(branches);
    }

    /// Retires a row of leaves, but not the trees to which they lead.
    fn retire_leaves(&mut self, row: usize) {
        let leaves = LineRow(LineKind::Leaves, row);
        for leaf in row..row + self.space.length(leaves) {
            let list = self.space.lines.list(leaf);
            if list != 0 {
                self.space.retire(LineRow(LineKind::Branches, list));
            }
        }
        self.space.retire(leaves);
    }
}

/// Takes the slots of keys up to `to` from the front of `slots`, and leaves in it those that reach further.
fn up_to(slots: &mut &[Slot], to: u32) -> Vec<Slot> {
    let ended = slots.iter().take_while(|slot| slot.last <= to).count();
    let (here, rest) = slots.split_at(ended);
    let mut here = here.to_vec();
    if here.last().is_none_or(|slot| slot.last < to) {
        // Such a slot has a plain answer: a slot that leads deeper has one key only.
        here.extend(rest.first().map(|slot| Slot { last: to, ..*slot }));
    }
    *slots = rest;
    here
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nexthop::NextHop;
    use crate::rib::Change;
    use crate::simd::Isa;

    /// A table with a /48 for every fourth key from the lowest on: two slots each.
    fn every_fourth(count: u128) -> Rib<u128> {
        let mut rib = Rib::default();
        for number in 0..count {
            let prefix = Prefix::containing(0x2001 << 112 | number << 82, 48);
            rib.apply(Change { prefix, next_hop: Some(NextHop(1)) });
        }
        rib
    }

    #[test]
    fn a_tree_that_is_nearly_full_has_room_below_each_branch() {
        let trees = Trees::build(&every_fourth(18_000), Isa::best()).unwrap();
        let tree = trees.space.lines.root(0x2001);
        let (mut from, mut all) = (0, 0);
        loop {
            let branch = trees.path(tree, from)[BRANCHES - 1];
            let slots = trees.slots_below(branch, 0).len();
            assert!(slots + 16 <= RANGES * FANOUT, "{slots} slots from {from:#x} on");
            all += slots;
            if branch.to == u32::MAX {
                break;
            }
            from = branch.to + 1;
        }
        assert!(all >= 36_000, "{all} slots");
    }
}
