//! Changes, under the eyes of readers.
//!
//! - Where a change only gives existing ranges other next hops, these are stored, one after the other: a lookup reads
//!   one of them. Ranges that become equal stay apart, so that a route that flaps is never more than that.
//! - A change with a new boundary writes the leaves of one branch anew, and the rows on the way from there to the root
//!   of the tree, 49 lines at most; storing the new root publishes them all. The old rows are given back.
//! - A tree in which that branch has no room is written anew as a whole.
//!
//! Either way a lookup meets the old answer of its address or the new one: it reads the boundaries of one leaf, which
//! never change, and one answer.

use std::sync::Arc;

use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::simd::{Deeper, FANOUT, Place, RANGES, Slot};

use super::build::Trees;
use super::pieces::{self, KEY_BITS, ROOT_BITS};
use super::space::{Full, Row, Store};
use super::{BRANCHES, ESCAPE, key};

/// A line of a tree, and the keys that lead to it.
#[derive(Clone, Copy, Default)]
struct Span {
    line: usize,
    from: u32,
    to: u32,
}

/// An answer to store: leaf, slot and next hop.
type Answer = (usize, usize, u16);

/// A slot of a leaf that leads to another tree, and the block of that tree.
struct Link {
    leaf: usize,
    slot: usize,
    deeper: Deeper,
    block: Prefix<u128>,
}

/// The way from a root to the branch above a leaf.
type Path = [Span; BRANCHES];

impl Trees {
    /// Brings the trees up to the RIB at and below a prefix. A change that fails for lack of space leaves them as they
    /// were, but for answers that are new already.
    pub(super) fn apply(&mut self, rib: &Rib<u128>, prefix: Prefix<u128>) -> Result<(), Full> {
        if prefix.len() <= ROOT_BITS {
            return self.roots(rib, rib.ranges_within(prefix));
        }
        let top = (prefix.first() >> 112) as u16;
        let before = self.space.lines.root(top);
        let tree = self.change(rib, before, Prefix::containing(prefix.first(), ROOT_BITS), prefix)?;
        if tree != before {
            self.space.lines.set_root(top, tree);
        }
        Ok(())
    }

    /// Brings the tree of a block up to the RIB at and below a prefix. Returns the tree that takes its place, if it is
    /// not the same; what this one does not use of it has been given back.
    fn change(
        &mut self,
        rib: &Rib<u128>,
        tree: Place,
        block: Prefix<u128>,
        prefix: Prefix<u128>,
    ) -> Result<Place, Full> {
        if self.shared.contains(&tree) {
            return self.renew(rib, tree, block);
        }
        let prefix = if prefix.covers(block) { block } else { prefix };
        let consumed = pieces::consumed(block);
        let from = key(prefix.first(), consumed);
        let path = self.path(tree, from);
        let leaf = self.child(path[BRANCHES - 1], from);
        let to = pieces::last_key(prefix.last(), consumed);
        if let Some((slot, deeper)) = self.leads_deeper(leaf, from, to) {
            let block = Prefix::containing(prefix.first(), block.len() + deeper.bits as u8);
            self.change_deeper(rib, Link { leaf: leaf.line, slot, deeper, block }, prefix)?;
            return Ok(tree);
        }
        // A prefix longer than the key changes what its key means: the whole of that is asked for.
        let prefix = Prefix::containing(prefix.first(), prefix.len().min(block.len() + KEY_BITS));
        let slots = pieces::slots(rib.ranges_within(prefix), consumed);
        let Some((stores, links)) = self.stores(tree, block, from, &slots) else {
            return self.rewrite(rib, &path, block, from, slots);
        };
        stores.into_iter().for_each(|(leaf, slot, hop)| self.space.lines.set_hop(leaf, slot, hop));
        links.into_iter().try_for_each(|link| self.change_deeper(rib, link, prefix))?;
        Ok(tree)
    }

    /// Writes a tree anew.
    fn renew(&mut self, rib: &Rib<u128>, tree: Place, block: Prefix<u128>) -> Result<Place, Full> {
        let new = self.block(rib, block)?;
        self.retire_tree(tree);
        Ok(new)
    }

    /// The slot of a leaf that holds all these keys and leads to another tree, if there is one.
    fn leads_deeper(&self, leaf: Span, from: u32, to: u32) -> Option<(usize, Deeper)> {
        let mut slots = self.space.lines.slots(leaf.line, leaf.to).enumerate();
        let (slot, found) = slots.find(|(_, slot)| slot.last >= from)?;
        (found.hop == ESCAPE && to <= found.last).then_some((slot, found.deeper?))
    }

    /// Changes the tree that a slot of a leaf leads to.
    fn change_deeper(&mut self, rib: &Rib<u128>, link: Link, prefix: Prefix<u128>) -> Result<(), Full> {
        let Link { leaf, slot, deeper, block } = link;
        let tree = self.change(rib, deeper.tree, block, prefix)?;
        if tree != deeper.tree {
            self.space.lines.set_deeper(leaf, slot, Deeper { tree, ..deeper });
        }
        Ok(())
    }

    /// The branches on the way to a key.
    fn path(&self, tree: Place, key: u32) -> Path {
        let mut span = Span { line: tree.line(), from: 0, to: u32::MAX };
        let mut path = [span; BRANCHES];
        for step in &mut path[1..] {
            span = self.child(span, key);
            *step = span;
        }
        path
    }

    /// The child of a branch that a key belongs to.
    fn child(&self, branch: Span, key: u32) -> Span {
        let (lasts, first) = (self.space.lines.lasts(branch.line), self.space.lines.first(branch.line));
        let child = lasts.partition_point(|last| *last < key);
        let from = child.checked_sub(1).map_or(branch.from, |before| lasts[before] + 1);
        let to = lasts.get(child).map_or(branch.to, |last| branch.to.min(*last));
        Span { line: first.line() + child, from, to }
    }

    /// What to store where, and which other trees to change, if that is all there is to do: if each range of the tree
    /// lies in one of the new ones, which begin at `from`, or leads deeper.
    fn stores(
        &self,
        tree: Place,
        block: Prefix<u128>,
        mut from: u32,
        new: &[Slot],
    ) -> Option<(Vec<Answer>, Vec<Link>)> {
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
                            let block = pieces::cell(block, old.last, deeper.bits as u8);
                            new.peek()?;
                            links.push(Link { leaf: leaf.line, slot: i, deeper, block });
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

    /// Puts slots, of which the first begins at `from`, in the place of what there is, with new leaves below the last
    /// branch of the path to `from`; writes the whole tree anew if that is not enough.
    fn rewrite(
        &mut self,
        rib: &Rib<u128>,
        path: &Path,
        block: Prefix<u128>,
        from: u32,
        new: Vec<Slot>,
    ) -> Result<Place, Full> {
        let (tree, last) = (self.space.lines.place(path[0].line), path[BRANCHES - 1]);
        let Some((mut slots, dropped)) = self.spliced(last, from, new) else {
            return self.renew(rib, tree, block);
        };
        pieces::merge(&mut slots);
        if slots.len() > FANOUT * RANGES {
            return self.renew(rib, tree, block);
        }
        self.go_deeper(rib, block, last.from, &mut slots)?;
        let tree = self.copy_path(path, &slots)?;
        dropped.into_iter().for_each(|tree| self.retire_tree(tree));
        Ok(tree)
    }

    /// The slots below a branch, with new ones in the place of those for their keys; and the trees to which those had
    /// led. `None` if the new ones go beyond the branch, or into a block that was set apart.
    fn spliced(&self, branch: Span, from: u32, new: Vec<Slot>) -> Option<(Vec<Slot>, Vec<Place>)> {
        let to = new.last()?.last;
        if to > branch.to {
            return None;
        }
        let (mut all, mut dropped, mut new) = (Vec::new(), Vec::new(), Some(new));
        let mut first = branch.from;
        for old in self.slots_below(branch) {
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

    /// The slots of all leaves of a branch.
    fn slots_below(&self, branch: Span) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut leaf = self.child(branch, branch.from);
        loop {
            slots.extend(self.space.lines.slots(leaf.line, leaf.to));
            if leaf.to == branch.to {
                return slots;
            }
            leaf = self.child(branch, leaf.to + 1);
        }
    }

    /// Writes the leaves of the last branch of a path with these slots, and copies of the rows on the path, the root's
    /// included. All rows are there before the old ones are given back.
    fn copy_path(&mut self, path: &Path, slots: &[Slot]) -> Result<Place, Full> {
        let lines = Arc::clone(&self.space.lines);
        let first = |branch: Span| lines.first(branch.line).line();
        let mut rows = vec![path[0].line];
        rows.extend(path[..BRANCHES - 1].iter().map(|branch| first(*branch)));
        let mut copies = Vec::new();
        for row in &rows {
            copies.push(self.space.take(Store::Branches, self.space.length(Row(Store::Branches, *row)))?);
        }
        let copy = |step: usize| copies[step] + path[step].line - rows[step];
        let leaves = slots.len().div_ceil(RANGES - 1).min(FANOUT);
        self.write_leaves(copy(BRANCHES - 1), slots, leaves)?;
        for (step, (row, new)) in rows.iter().zip(&copies).enumerate() {
            for i in 0..self.space.length(Row(Store::Branches, *row)) {
                let (old, new) = (row + i, new + i);
                let below = copies.get(step + 1).map(|row| lines.place(*row));
                match below.filter(|_| old == path[step].line) {
                    Some(copied) => lines.write_branch(new, copied, &lines.lasts(old)),
                    None if old == path[step].line => {} // written with its leaves
                    None => lines.write_branch(new, lines.first(old), &lines.lasts(old)),
                }
            }
        }
        self.retire_leaves(first(path[BRANCHES - 1]));
        rows.iter().for_each(|row| self.space.retire(Row(Store::Branches, *row)));
        Ok(lines.place(copies[0]))
    }

    /// Gives a row of leaves back, but not the trees to which they lead.
    fn retire_leaves(&mut self, row: usize) {
        let leaves = Row(Store::Leaves, row);
        for leaf in row..row + self.space.length(leaves) {
            let list = self.space.lines.list(leaf);
            if list != 0 {
                self.space.retire(Row(Store::Branches, list));
            }
        }
        self.space.retire(leaves);
    }
}
