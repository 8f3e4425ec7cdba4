//! The BSD radix tree, as `net/radix.c` has kept routes since 4.3BSD-Reno (Sklower, "A tree-based packet routing table
//! for Berkeley Unix", USENIX Winter 1991): the structure under `radix` and `radix_lockless`.
//!
//! ```text
//!            ┌ bit 8 ┐                 inner nodes test one bit; bits on which all leaves agree are skipped
//!        ┌ bit 15 ┐   leaf 10.128.0.0/9
//!   leaf 10.0.0.0   leaf 10.1.0.0/16
//!   /16 → /8                           one leaf for each key; its masks are chained, longest first
//! ```
//!
//! A lookup follows the bits of the address down to one leaf without comparing anything, compares there how many bits
//! are equal, and climbs back until it meets a mask that is short enough. Every prefix that contains a whole subtree is
//! listed at the topmost inner node of that subtree, so climbing finds it.

use std::mem::offset_of;

use crate::addr::Address;
use crate::fib::Footprint;
use crate::nexthop::NextHop;
use crate::prefix::Prefix;
use crate::rib::{Change, Rib};

/// No slot: the end of a list, the parent of the root.
const NIL: u32 = u32::MAX;

/// A link to a child, packed into 32 bits: inner nodes and leaves are numbered separately.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NodeLink(u32);

/// An unpacked [`NodeLink`].
enum Node {
    Inner(u32),
    /// The first leaf of the chain of one key.
    Leaf(u32),
}

impl NodeLink {
    const NONE: NodeLink = NodeLink(NIL);
    const LEAF: u32 = 1 << 31;

    fn inner(slot: u32) -> NodeLink {
        NodeLink(slot)
    }
    fn leaf(slot: u32) -> NodeLink {
        NodeLink(slot | Self::LEAF)
    }
    fn node(self) -> Node {
        if self.0 & Self::LEAF == 0 { Node::Inner(self.0) } else { Node::Leaf(self.0 & !Self::LEAF) }
    }
}

/// An inner node: it tests one bit of the address.
#[derive(Clone)]
struct InnerNode {
    /// The children, by the value of the bit.
    children: [NodeLink; 2],
    parent: u32,
    /// The first leaf whose prefix contains this whole subtree and not that of the parent; the others follow, longest
    /// first.
    masks: u32,
    /// The bit tested, counted from the most significant; all keys below have the same bits before it.
    bit: u8,
}

/// A prefix and its next hop.
#[derive(Clone)]
#[repr(align(16))]
struct RadixLeaf<A> {
    key: A,
    /// The inner node above; valid in the first leaf of a chain only.
    parent: u32,
    /// The next shorter prefix with the same key.
    same_key: u32,
    /// The next shorter prefix in the list of the same inner node; valid while this leaf is in a list.
    same_node: u32,
    next_hop: NextHop,
    len: u8,
}

/// The memory of one route: a leaf and an inner node, as in a BSD `rtentry`, padded to a cache line as in FreeBSD's
/// lockless copies. A tree of n keys has n − 1 inner nodes, so there is always room for inner nodes.
#[derive(Clone)]
#[repr(C, align(64))]
struct RouteEntry<A> {
    inner: InnerNode,
    leaf: RadixLeaf<A>,
}

const _: () = assert!(size_of::<RouteEntry<u32>>() == 64 && size_of::<RouteEntry<u128>>() == 64);

/// The first of eight bytes that no entry uses, in each cache line of the tree.
pub(super) const UNUSED: usize = 24;

const _: () = assert!(size_of::<InnerNode>() <= UNUSED);
const _: () = assert!(offset_of!(RouteEntry<u32>, leaf) >= UNUSED + 8);
const _: () = assert!(offset_of!(RouteEntry<u128>, leaf) >= UNUSED + 8);

/// Routes in a radix tree.
pub(super) struct RadixTree<A> {
    entries: Vec<RouteEntry<A>>,
    root: NodeLink,
    free_inners: Vec<u32>,
    free_leaves: Vec<u32>,
}

impl<A: Address> RadixTree<A> {
    pub(super) fn new(rib: &Rib<A>) -> Self {
        let entries = Vec::with_capacity(rib.len());
        let mut tree =
            RadixTree { entries, root: NodeLink::NONE, free_inners: Vec::new(), free_leaves: Vec::new() };
        for route in rib.iter() {
            tree.insert(route.prefix, route.next_hop);
        }
        tree
    }

    pub(super) fn lookup(&self, addr: A) -> NextHop {
        let Some(reached) = self.descend(addr) else { return NextHop::NONE };
        let leaf = self.leaf(reached);
        let agreeing = leading_bits(addr ^ leaf.key);
        let mut found = self.first_within(agreeing, reached, |leaf| leaf.same_key);
        let mut at = leaf.parent;
        while found.is_none() && at != NIL {
            // These leaves have other keys than the leaf reached, but share at least their own length with it.
            let inner = self.inner(at);
            found = self.first_within(agreeing, inner.masks, |leaf| leaf.same_node);
            at = inner.parent;
        }
        found.unwrap_or(NextHop::NONE)
    }

    pub(super) fn apply(&mut self, change: &Change<A>) {
        match change.next_hop {
            Some(next_hop) => self.insert(change.prefix, next_hop),
            None => self.remove(change.prefix),
        }
    }

    pub(super) fn footprint(&self) -> Footprint {
        Footprint(vec![("entries", size_of_val(&self.entries[..]))])
    }

    /// The first leaf of a list with at most `agreeing` significant bits.
    fn first_within(&self, agreeing: u8, head: u32, next: impl Fn(&RadixLeaf<A>) -> u32) -> Option<NextHop> {
        let mut at = head;
        while at != NIL {
            let leaf = self.leaf(at);
            if leaf.len <= agreeing {
                return Some(leaf.next_hop);
            }
            at = next(leaf);
        }
        None
    }

    /// The only leaf whose key can be equal to `addr`; `None` in an empty tree.
    fn descend(&self, addr: A) -> Option<u32> {
        if self.root == NodeLink::NONE {
            return None;
        }
        let mut link = self.root;
        loop {
            match link.node() {
                Node::Leaf(slot) => return Some(slot),
                Node::Inner(slot) => {
                    let inner = self.inner(slot);
                    link = inner.children[addr.bits(inner.bit, 1)];
                }
            }
        }
    }
}

/// Insertion.
impl<A: Address> RadixTree<A> {
    fn insert(&mut self, prefix: Prefix<A>, next_hop: NextHop) {
        let Some(near) = self.descend(prefix.first()) else {
            let slot = self.new_leaf(prefix, next_hop);
            self.root = NodeLink::leaf(slot);
            return;
        };
        let agreeing = leading_bits(prefix.first() ^ self.leaf(near).key);
        if agreeing == A::BITS {
            self.insert_into_chain(near, prefix, next_hop);
        } else {
            self.insert_key(agreeing, prefix, next_hop);
        }
    }

    /// Adds a prefix to the leaves of its key, or replaces its next hop.
    fn insert_into_chain(&mut self, head: u32, prefix: Prefix<A>, next_hop: NextHop) {
        let (before, at) = self.find_len(head, prefix.len(), |leaf| leaf.same_key);
        if at != NIL && self.leaf(at).len == prefix.len() {
            self.leaf_mut(at).next_hop = next_hop;
            return;
        }
        let parent = self.leaf(head).parent;
        let slot = self.new_leaf(prefix, next_hop);
        self.leaf_mut(slot).same_key = at;
        if before == NIL {
            self.leaf_mut(slot).parent = parent;
            self.redirect(parent, NodeLink::leaf(head), NodeLink::leaf(slot));
        } else {
            self.leaf_mut(before).same_key = slot;
        }
        self.enlist(slot, parent);
    }

    /// Adds a leaf with a new key, which first differs from the keys of its subtree in `bit`.
    fn insert_key(&mut self, bit: u8, prefix: Prefix<A>, next_hop: NextHop) {
        let (parent, displaced) = self.find_bit(bit, prefix.first());
        let leaf = self.new_leaf(prefix, next_hop);
        let inner = self.new_inner();
        let side = prefix.first().bits(bit, 1);
        let mut children = [displaced; 2];
        children[side] = NodeLink::leaf(leaf);
        *self.inner_mut(inner) = InnerNode { children, parent, masks: NIL, bit };
        self.redirect(parent, displaced, NodeLink::inner(inner));
        self.set_parent(displaced, inner);
        self.leaf_mut(leaf).parent = inner;
        self.raise_masks(displaced, inner, parent);
        self.enlist(leaf, inner);
    }

    /// The place of a new branch on `bit`: the parent it gets and the child it displaces.
    fn find_bit(&self, bit: u8, key: A) -> (u32, NodeLink) {
        let (mut parent, mut link) = (NIL, self.root);
        while let Node::Inner(slot) = link.node() {
            let inner = self.inner(slot);
            if inner.bit > bit {
                break;
            }
            parent = slot;
            link = inner.children[key.bits(inner.bit, 1)];
        }
        (parent, link)
    }

    /// Updates the lists after `inner` was inserted between `parent` and `child`: prefixes that contain all of `inner`
    /// are listed there.
    fn raise_masks(&mut self, child: NodeLink, inner: u32, parent: u32) {
        let bit = self.inner(inner).bit;
        match child.node() {
            Node::Inner(slot) => {
                let (before, at) = self.find_len(self.inner(slot).masks, bit, |leaf| leaf.same_node);
                self.inner_mut(inner).masks = at;
                self.set_next_mask(slot, before, NIL);
            }
            Node::Leaf(head) => {
                let above = if parent == NIL { None } else { Some(self.inner(parent).bit) };
                let mut at = self.find_len(head, bit, |leaf| leaf.same_key).1;
                while at != NIL && above.is_none_or(|above| self.leaf(at).len > above) {
                    self.enlist(at, inner);
                    at = self.leaf(at).same_key;
                }
            }
        }
    }
}

/// Removal.
impl<A: Address> RadixTree<A> {
    fn remove(&mut self, prefix: Prefix<A>) {
        let Some(head) = self.descend(prefix.first()) else { return };
        let (before, at) = self.find_len(head, prefix.len(), |leaf| leaf.same_key);
        if at == NIL || self.leaf(at).key != prefix.first() || self.leaf(at).len != prefix.len() {
            return;
        }
        let parent = self.leaf(head).parent;
        self.delist(at, parent);
        match (before, self.leaf(at).same_key) {
            (NIL, NIL) => self.remove_key(at),
            (NIL, next) => {
                self.leaf_mut(next).parent = parent;
                self.redirect(parent, NodeLink::leaf(at), NodeLink::leaf(next));
            }
            (before, next) => self.leaf_mut(before).same_key = next,
        }
        self.free_leaves.push(at);
    }

    /// Removes the last leaf of a key together with the branch that led to it.
    fn remove_key(&mut self, leaf: u32) {
        let branch = self.leaf(leaf).parent;
        if branch == NIL {
            self.root = NodeLink::NONE;
            return;
        }
        let InnerNode { children, parent, masks, .. } = self.inner(branch).clone();
        let sibling = if children[0] == NodeLink::leaf(leaf) { children[1] } else { children[0] };
        self.redirect(parent, NodeLink::inner(branch), sibling);
        self.set_parent(sibling, parent);
        self.lower_masks(masks, sibling);
        self.free_inners.push(branch);
    }

    /// Moves the prefixes listed at a removed branch to the subtree that is left of it. If that is one key, they are
    /// listed nowhere: a lookup that reaches the key reads all its prefixes anyway.
    fn lower_masks(&mut self, masks: u32, sibling: NodeLink) {
        if let Node::Inner(slot) = sibling.node() {
            // The prefixes of the sibling are all longer than the bit that the branch tested, so /0 is not among them
            // and the search ends at the last of them.
            let (last, _) = self.find_len(self.inner(slot).masks, 0, |leaf| leaf.same_node);
            self.set_next_mask(slot, last, masks);
        }
    }
}

/// Lists of masks.
impl<A: Address> RadixTree<A> {
    /// The topmost inner node, from `parent` upwards, whose whole subtree a prefix of `len` bits contains.
    fn topmost_within(&self, parent: u32, len: u8) -> Option<u32> {
        let (mut top, mut at) = (None, parent);
        while at != NIL && self.inner(at).bit >= len {
            top = Some(at);
            at = self.inner(at).parent;
        }
        top
    }

    /// Lists a leaf, whose key is below `parent`, where lookups of other keys will meet it.
    fn enlist(&mut self, slot: u32, parent: u32) {
        let len = self.leaf(slot).len;
        let Some(top) = self.topmost_within(parent, len) else { return };
        let (before, at) = self.find_len(self.inner(top).masks, len, |leaf| leaf.same_node);
        self.leaf_mut(slot).same_node = at;
        self.set_next_mask(top, before, slot);
    }

    fn delist(&mut self, slot: u32, parent: u32) {
        let len = self.leaf(slot).len;
        let Some(top) = self.topmost_within(parent, len) else { return };
        let (before, _) = self.find_len(self.inner(top).masks, len, |leaf| leaf.same_node);
        self.set_next_mask(top, before, self.leaf(slot).same_node);
    }

    /// Makes `next` follow `before` in an inner node's list; `before` = [`NIL`] means its head.
    fn set_next_mask(&mut self, inner: u32, before: u32, next: u32) {
        if before == NIL {
            self.inner_mut(inner).masks = next;
        } else {
            self.leaf_mut(before).same_node = next;
        }
    }

    /// In a list ordered longest first: the last leaf longer than `len` and the first that is not; [`NIL`] for none.
    fn find_len(&self, head: u32, len: u8, next: impl Fn(&RadixLeaf<A>) -> u32) -> (u32, u32) {
        let (mut before, mut at) = (NIL, head);
        while at != NIL && self.leaf(at).len > len {
            before = at;
            at = next(self.leaf(at));
        }
        (before, at)
    }
}

/// Slots and links.
impl<A: Address> RadixTree<A> {
    fn leaf(&self, slot: u32) -> &RadixLeaf<A> {
        &self.entries[slot as usize].leaf
    }
    fn leaf_mut(&mut self, slot: u32) -> &mut RadixLeaf<A> {
        &mut self.entries[slot as usize].leaf
    }
    fn inner(&self, slot: u32) -> &InnerNode {
        &self.entries[slot as usize].inner
    }
    fn inner_mut(&mut self, slot: u32) -> &mut InnerNode {
        &mut self.entries[slot as usize].inner
    }

    fn new_leaf(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> u32 {
        let (key, len) = (prefix.first(), prefix.len());
        let leaf = RadixLeaf { key, parent: NIL, same_key: NIL, same_node: NIL, next_hop, len };
        if let Some(slot) = self.free_leaves.pop() {
            *self.leaf_mut(slot) = leaf;
            return slot;
        }
        // 2^31 entries would be 128 GiB: the number always fits beside the leaf bit.
        let slot = self.entries.len() as u32;
        let inner = InnerNode { children: [NodeLink::NONE; 2], parent: NIL, masks: NIL, bit: 0 };
        self.entries.push(RouteEntry { leaf, inner });
        self.free_inners.push(slot);
        slot
    }

    fn new_inner(&mut self) -> u32 {
        // There are as many slots for inner nodes as leaves were ever in use at once, and fewer inner nodes than
        // leaves.
        self.free_inners.pop().unwrap_or(NIL)
    }

    /// Replaces one child of `parent`, or the root.
    fn redirect(&mut self, parent: u32, from: NodeLink, to: NodeLink) {
        if parent == NIL {
            self.root = to;
            return;
        }
        let children = &mut self.inner_mut(parent).children;
        let side = usize::from(children[1] == from);
        children[side] = to;
    }

    fn set_parent(&mut self, child: NodeLink, parent: u32) {
        match child.node() {
            Node::Inner(slot) => self.inner_mut(slot).parent = parent,
            Node::Leaf(slot) => self.leaf_mut(slot).parent = parent,
        }
    }
}

/// The number of equal leading bits of two addresses, given their exclusive or.
fn leading_bits<A: Address>(difference: A) -> u8 {
    difference.leading_zeros() as u8 // at most 128
}
