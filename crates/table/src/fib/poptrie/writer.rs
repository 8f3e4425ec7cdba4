//! How a `poptrie` is built, and how a part of it is replaced by a changed copy while readers go on.

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

/// What an entry of the direct table or a slot says about its block of addresses.
#[derive(Clone, Copy)]
enum SlotContent {
    Leaf(NextHop),
    Node(NodeContent),
}

/// A run of nodes or of leaves: where it starts, and how many.
#[derive(Clone, Copy)]
enum Part {
    Nodes(u32, usize),
    Leaves(u32, usize),
}

/// What has been taken for the entry that is written next, and what nothing will lead to once it is.
#[derive(Default)]
struct Edit {
    taken: Vec<Part>,
    replaced: Vec<Part>,
}

/// The writer's half.
pub(super) struct Writer {
    store: Arc<PoptrieStore>,
    nodes: RunSpace,
    leaves: RunSpace,
    edit: Edit,
    /// Nodes and leaves that lookups can reach.
    used: [usize; 2],
    /// What nothing leads to any more, and readers may still be in.
    replaced: Reclaim<Part>,
}

/// Replaced parts that are worth a new view for the readers.
const WORTH_A_VIEW: usize = 256;

/// A block of addresses: the first one, and the bits that all of them have in common.
#[derive(Clone, Copy)]
struct AddressBlock<A> {
    first: A,
    bits: u8,
}

impl<A: Address> AddressBlock<A> {
    /// That of an entry of the direct table.
    fn entry(index: usize) -> Self {
        AddressBlock { first: low::<A>(index) << usize::from(A::BITS - DIRECT_BITS), bits: DIRECT_BITS }
    }

    /// That of a slot of this block's node.
    fn slot(self, slot: usize) -> Self {
        // Up before down: in the last level the slot's low bits lie beyond the address.
        let below = low::<A>(slot) << usize::from(A::BITS - SLOT_BITS) >> usize::from(self.bits);
        AddressBlock { first: self.first | below, bits: self.bits + SLOT_BITS }
    }

    fn last(self) -> A {
        self.first | !A::mask(self.bits)
    }

    /// The slot of this block's node that `addr` is in, the first of those that mean the same.
    fn slot_of(self, addr: A) -> usize {
        (addr << usize::from(self.bits) >> usize::from(A::BITS - SLOT_BITS)).low_usize()
    }

    /// Slots that mean the same block: 1, but in the last level, where fewer than six bits of an address are left.
    fn slots_alike(self) -> usize {
        1 << (self.bits + SLOT_BITS).saturating_sub(A::BITS)
    }
}

/// An index of at most 18 bits as an address.
#[allow(clippy::expect_used)]
fn low<A: Address>(index: usize) -> A {
    A::from(index).expect("an address has 32 bits at least")
}

impl Writer {
    /// A poptrie of these ranges, which cover the address space, in a store with so many nodes and leaves.
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

    /// For the readers' newest view to hold.
    pub(super) fn token(&self) -> TokenArc<Token> {
        self.replaced.token()
    }

    /// Begins a new view, which must hold the token returned, if enough has been replaced to be worth it.
    pub(super) fn turn(&mut self) -> Option<TokenArc<Token>> {
        (self.replaced.retired() >= WORTH_A_VIEW).then(|| self.replaced.turn())
    }

    /// Makes room of what no reader can be in any more.
    pub(super) fn reclaim(&mut self) {
        for part in self.replaced.reclaim() {
            self.give_back(part);
        }
    }

    /// Brings the block of a prefix up to the RIB. If the store is full, each address has its old answer or its new
    /// one.
    pub(super) fn update<A: Address>(&mut self, rib: &Rib<A>, prefix: Prefix<A>) -> Result<(), Full> {
        let result = if prefix.len() <= DIRECT_BITS {
            self.write_entries(prefix, rib.ranges_within(prefix))
        } else {
            self.replace_within(rib, prefix)
        };
        // Empty but after a failure, which leaves all as it was.
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

    /// Links what was built into the direct table. From here on nothing leads to what it replaces.
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

    /// What to say of a block whose ranges these are, once those before it have been passed.
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

    /// A copy of what is said of a block, brought up to the RIB within `prefix`, which is longer than the block's bits.
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

    /// Stores what slots say; a node, unless all say the same.
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

    /// All below an item will be replaced.
    fn replace(&mut self, item: SlotContent) {
        let SlotContent::Node(content) = item else { return };
        for child in 0..content.vector.count_ones() {
            self.replace(SlotContent::Node(self.store.node(content.children + child)));
        }
        self.replace_runs(&content);
    }

    /// A node's children and leaves will be replaced, but what is below its children may be used again.
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
    /// Nodes and leaves.
    fn size(&self) -> [usize; 2] {
        match *self {
            Part::Nodes(_, len) => [len, 0],
            Part::Leaves(_, len) => [0, len],
        }
    }
}
