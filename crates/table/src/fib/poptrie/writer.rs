//! The writer's half: it builds a poptrie, and replaces parts by changed copies while readers look up.

use std::iter::Peekable;
use std::mem;
use std::sync::Arc;

use crate::addr::Address;
use crate::memory::{Full, Reclaim, Token};
use crate::nexthop::NextHop;
use crate::prefix::Prefix;
use crate::rib::{Range, Rib};
use crate::sync::Arc as TokenArc;

use super::space::RunSpace;
use super::store::{DIRECT_BITS, NODE, NodeContent, PoptrieStore, SLOT_BITS, SLOTS};

/// The content of an entry of the direct table, or of a slot: the answer for a block of addresses.
#[derive(Clone, Copy)]
enum SlotContent {
    Leaf(NextHop),
    Node(NodeContent),
}

/// A run of nodes or of leaves: its start and its length.
#[derive(Clone, Copy)]
enum Part {
    Nodes(u32, usize),
    Leaves(u32, usize),
}

/// The parts taken for the entry that is stored next, and the parts to which nothing will lead then.
#[derive(Default)]
struct Edit {
    taken: Vec<Part>,
    replaced: Vec<Part>,
}

/// The writer of a poptrie.
pub(super) struct Writer {
    store: Arc<PoptrieStore>,
    nodes: RunSpace,
    leaves: RunSpace,
    edit: Edit,
    /// The number of nodes and of leaves that lookups can reach.
    used: [usize; 2],
    /// Parts to which nothing leads any more, but in which readers may still be.
    replaced: Reclaim<Part>,
}

/// The number of replaced parts from which a new view begins.
const WORTH_A_VIEW: usize = 256;

/// A block of addresses: the first one, and the bits that all of them have in common.
#[derive(Clone, Copy)]
struct AddressBlock<A> {
    first: A,
    bits: u8,
}

impl<A: Address> AddressBlock<A> {
    /// The block of an entry of the direct table.
    fn entry(index: usize) -> Self {
        AddressBlock { first: low::<A>(index) << usize::from(A::BITS - DIRECT_BITS), bits: DIRECT_BITS }
    }

    /// The block of a slot of this block's node.
    fn slot(self, slot: usize) -> Self {
        // Up before down: in the last level the slot's low bits lie beyond the address.
        let below = low::<A>(slot) << usize::from(A::BITS - SLOT_BITS) >> usize::from(self.bits);
        AddressBlock { first: self.first | below, bits: self.bits + SLOT_BITS }
    }

    fn last(self) -> A {
        self.first | !A::mask(self.bits)
    }

    /// The slot of this block's node that `addr` is in, the first of those that stand for the same addresses.
    fn slot_of(self, addr: A) -> usize {
        (addr << usize::from(self.bits) >> usize::from(A::BITS - SLOT_BITS)).low_usize()
    }

    /// The number of slots that stand for the same addresses: 1, except in the last level, where fewer than six bits of
    /// an address are left.
    fn slots_alike(self) -> usize {
        1 << (self.bits + SLOT_BITS).saturating_sub(A::BITS)
    }
}

/// An index of at most 18 bits as an address.
#[allow(clippy::expect_used)]
fn low<A: Address>(index: usize) -> A {
    A::from(index).expect("an address has at least 32 bits")
}

impl Writer {
    /// Builds a poptrie of these ranges, which cover the address space, in tables with so many nodes and leaves.
    pub(super) fn build<A: Address>(
        store: PoptrieStore,
        [nodes, leaves]: [u32; 2],
        ranges: impl Iterator<Item = Range<A>>,
    ) -> Result<Self, Full> {
        let mut writer = Writer {
            nodes: RunSpace::new(nodes),
            leaves: RunSpace::new(leaves),
            store: Arc::new(store),
            edit: Edit::default(),
            used: [0; 2],
            replaced: Reclaim::new(),
        };
        writer.write_entries(Prefix::containing(A::zero(), 0), ranges)?;
        Ok(writer)
    }

    pub(super) fn store(&self) -> Arc<PoptrieStore> {
        Arc::clone(&self.store)
    }

    /// The token that the newest view must hold.
    pub(super) fn token(&self) -> TokenArc<Token> {
        self.replaced.token()
    }

    /// Begins a new view, which must hold the token returned, if enough parts have been replaced.
    pub(super) fn turn(&mut self) -> Option<TokenArc<Token>> {
        (self.replaced.retired() >= WORTH_A_VIEW).then(|| self.replaced.turn())
    }

    /// Frees the parts that no reader can be in any more.
    pub(super) fn reclaim(&mut self) {
        for part in self.replaced.reclaim() {
            self.give_back(part);
        }
    }

    /// Brings the block of a prefix up to the RIB. If the tables are full, each address has its old answer or its new
    /// one.
    pub(super) fn update<A: Address>(&mut self, rib: &Rib<A>, prefix: Prefix<A>) -> Result<(), Full> {
        let result = if prefix.len() <= DIRECT_BITS {
            self.write_entries(prefix, rib.ranges_within(prefix))
        } else {
            self.replace_within(rib, prefix)
        };
        // Only a failure leaves parts here; nothing leads to them.
        mem::take(&mut self.edit).taken.into_iter().for_each(|part| self.give_back(part));
        result
    }

    /// Writes all entries of the direct table within `prefix`, whose ranges these are.
    fn write_entries<A: Address>(
        &mut self,
        prefix: Prefix<A>,
        ranges: impl Iterator<Item = Range<A>>,
    ) -> Result<(), Full> {
        let mut ranges = ranges.peekable();
        let entries = prefix.first().bits(0, DIRECT_BITS)..=prefix.last().bits(0, DIRECT_BITS);
        for index in entries {
            let old = self.entry(index);
            self.replace(old);
            let new = self.built(&mut ranges, AddressBlock::entry(index))?;
            self.publish(index, new)?;
        }
        Ok(())
    }

    /// Replaces the path to a prefix longer than the direct table's index.
    fn replace_within<A: Address>(&mut self, rib: &Rib<A>, prefix: Prefix<A>) -> Result<(), Full> {
        let index = prefix.first().bits(0, DIRECT_BITS);
        let old = self.entry(index);
        let new = self.changed(old, AddressBlock::entry(index), rib, prefix)?;
        self.publish(index, new)
    }

    fn entry(&self, index: usize) -> SlotContent {
        match self.store.direct.get(index) {
            next_hop @ 0..NODE => SlotContent::Leaf(NextHop(next_hop as u16)),
            node => SlotContent::Node(self.store.node(node & !NODE)),
        }
    }

    /// Links a built part into the direct table. From then on nothing leads to the parts that it replaces.
    fn publish(&mut self, index: usize, new: SlotContent) -> Result<(), Full> {
        let before = self.store.direct.get(index);
        let entry = match new {
            SlotContent::Leaf(next_hop) => u32::from(next_hop.0),
            SlotContent::Node(content) => NODE | self.write_nodes(&[content])?,
        };
        self.store.direct.set(index, entry);
        if before & NODE != 0 {
            self.edit.replaced.push(Part::Nodes(before & !NODE, 1));
        }
        let Edit { taken, replaced } = mem::take(&mut self.edit);
        for part in 0..2 {
            let sum = |parts: &[Part]| -> usize { parts.iter().map(|piece| piece.size()[part]).sum() };
            self.used[part] = self.used[part] + sum(&taken) - sum(&replaced);
        }
        self.store.set_used(self.used);
        replaced.into_iter().for_each(|part| self.replaced.retire(part));
        Ok(())
    }

    /// Builds the content of a block from these ranges, after skipping those before the block.
    fn built<A: Address>(
        &mut self,
        ranges: &mut Peekable<impl Iterator<Item = Range<A>>>,
        block: AddressBlock<A>,
    ) -> Result<SlotContent, Full> {
        while ranges.next_if(|range| range.last < block.first).is_some() {}
        match ranges.peek() {
            Some(range) if range.last < block.last() => {
                let mut items = [SlotContent::Leaf(NextHop::NONE); SLOTS];
                self.build_slots(ranges, block, 0..SLOTS, &mut items)?;
                self.assembled(&items)
            }
            range => Ok(SlotContent::Leaf(range.map_or(NextHop::NONE, |range| range.next_hop))),
        }
    }

    fn build_slots<A: Address>(
        &mut self,
        ranges: &mut Peekable<impl Iterator<Item = Range<A>>>,
        block: AddressBlock<A>,
        slots: std::ops::Range<usize>,
        items: &mut [SlotContent; SLOTS],
    ) -> Result<(), Full> {
        for slot in slots.step_by(block.slots_alike()) {
            let item = self.built(ranges, block.slot(slot))?;
            items[slot..slot + block.slots_alike()].fill(item);
        }
        Ok(())
    }

    /// Builds a copy of the content of a block, brought up to the RIB within `prefix`, which is longer than the block's
    /// bits.
    fn changed<A: Address>(
        &mut self,
        old: SlotContent,
        block: AddressBlock<A>,
        rib: &Rib<A>,
        prefix: Prefix<A>,
    ) -> Result<SlotContent, Full> {
        let mut items = self.slots(old);
        let (first, last) = (block.slot_of(prefix.first()), block.slot_of(prefix.last()));
        if prefix.len() > block.bits + SLOT_BITS {
            items[first] = self.changed(items[first], block.slot(first), rib, prefix)?;
        } else {
            let slots = first..last + block.slots_alike();
            items[slots.clone()].iter().for_each(|item| self.replace(*item));
            self.build_slots(&mut rib.ranges_within(prefix).peekable(), block, slots, &mut items)?;
        }
        if let SlotContent::Node(content) = old {
            self.replace_runs(&content);
        }
        self.assembled(&items)
    }

    fn slots(&self, item: SlotContent) -> [SlotContent; SLOTS] {
        let SlotContent::Node(content) = item else { return [item; SLOTS] };
        std::array::from_fn(|slot| match content.has_child(slot) {
            true => SlotContent::Node(self.store.node(content.child(slot))),
            false => SlotContent::Leaf(self.store.leaf(content.leaf(slot))),
        })
    }

    /// Stores the contents of slots: a node, unless all slots have the same answer.
    fn assembled(&mut self, items: &[SlotContent; SLOTS]) -> Result<SlotContent, Full> {
        let (mut vector, mut leafvec) = (0, 0);
        let (mut children, mut leaves) = (Vec::with_capacity(SLOTS), Vec::with_capacity(SLOTS));
        for (slot, item) in items.iter().enumerate() {
            match item {
                SlotContent::Node(content) => {
                    vector |= 1 << slot;
                    children.push(*content);
                }
                SlotContent::Leaf(next_hop) if leaves.last() != Some(next_hop) => {
                    leafvec |= 1 << slot;
                    leaves.push(*next_hop);
                }
                SlotContent::Leaf(_) => {}
            }
        }
        if let ([], [only]) = (&children[..], &leaves[..]) {
            return Ok(SlotContent::Leaf(*only));
        }
        let (children, leaves) = (self.write_nodes(&children)?, self.write_leaves(&leaves)?);
        Ok(SlotContent::Node(NodeContent { vector, leafvec, leaves, children }))
    }

    fn write_nodes(&mut self, contents: &[NodeContent]) -> Result<u32, Full> {
        if contents.is_empty() {
            return Ok(0);
        }
        let start = self.nodes.take(contents.len()).ok_or(Full)?;
        self.edit.taken.push(Part::Nodes(start, contents.len()));
        contents.iter().zip(start..).for_each(|(content, number)| self.store.write_node(number, content));
        Ok(start)
    }

    fn write_leaves(&mut self, next_hops: &[NextHop]) -> Result<u32, Full> {
        if next_hops.is_empty() {
            return Ok(0);
        }
        let start = self.leaves.take(next_hops.len()).ok_or(Full)?;
        self.edit.taken.push(Part::Leaves(start, next_hops.len()));
        next_hops.iter().zip(start..).for_each(|(next_hop, number)| self.store.write_leaf(number, *next_hop));
        Ok(start)
    }

    /// Marks everything below an entry or slot as replaced.
    fn replace(&mut self, item: SlotContent) {
        let SlotContent::Node(content) = item else { return };
        for child in 0..content.vector.count_ones() {
            self.replace(SlotContent::Node(self.store.node(content.children + child)));
        }
        self.replace_runs(&content);
    }

    /// Marks the children and leaves of a node as replaced, but nothing below its children.
    fn replace_runs(&mut self, content: &NodeContent) {
        let [children, leaves] = [content.vector, content.leafvec].map(|bits| bits.count_ones() as usize);
        let nodes = (children > 0).then_some(Part::Nodes(content.children, children));
        let leaves = (leaves > 0).then_some(Part::Leaves(content.leaves, leaves));
        self.edit.replaced.extend([nodes, leaves].into_iter().flatten());
    }

    fn give_back(&mut self, part: Part) {
        match part {
            Part::Nodes(start, len) => self.nodes.give_back(start, len),
            Part::Leaves(start, len) => self.leaves.give_back(start, len),
        }
    }
}

impl Part {
    /// The number of nodes and of leaves.
    fn size(&self) -> [usize; 2] {
        match *self {
            Part::Nodes(_, len) => [len, 0],
            Part::Leaves(_, len) => [0, len],
        }
    }
}
