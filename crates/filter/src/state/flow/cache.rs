//! The flows of one family. A flow has one of two slots of one cache line, which follow from its hash. A slot is four bytes
//! with a tag, so that the only entry that is read is most often the right one; entries are one cache line, and lie side by side in the order
//! in which flows were learned, so that they take few pages.

use std::hint::select_unpredictable;

use super::addresses::{FlowAddresses, WireFlow};
use super::offload::{FlowAccounts, NOT_OFFLOADED, OffloadedPackets};
use crate::state::table::{Hit, StateTable};

/// The stamp of an entry that is no longer valid, older than all others.
const NEVER: u64 = 0;
/// An entry gives way to another flow if its last packet is so many milliseconds old.
const IDLE: i32 = 500;
/// So many packets are counted before the states are.
const MOST_PACKETS: u32 = 1 << 15;

/// What every packet of the flow reads and writes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct CachedFlow<A> {
    flow: WireFlow<A>,
    /// What the rules, the view and the routes were when the flow was learned.
    stamp: u64,
    /// The time up to which the states are known to live, which is the time of their last packet.
    last: u32,
    /// Packets and bytes that the states have not counted yet.
    packets: u32,
    bytes: u32,
    next_hop: u16,
    /// The number of the list of rules that count.
    rules: u16,
}

const _: () = assert!(size_of::<CachedFlow<super::addresses::Inet6Addresses>>() == 64);

impl<A> CachedFlow<A> {
    #[inline(always)]
    fn is_fresh(&self, stamp: u64, now: u32) -> bool {
        (self.stamp == stamp) & (self.last == now) & (self.packets < MOST_PACKETS)
    }

    #[inline(always)]
    fn count(&mut self, length: u16) -> (u16, u16) {
        self.packets += 1;
        self.bytes = self.bytes.wrapping_add(u32::from(length));
        (self.next_hop, self.rules)
    }
}

/// The states that decide about both passes, of those that are decided by states.
pub(crate) type FlowStates = [Option<Hit>; 2];

/// What is learned about a flow.
#[derive(Clone, Copy)]
pub(super) struct LearnedFlow<A> {
    pub flow: WireFlow<A>,
    pub states: FlowStates,
    pub stamp: u64,
    pub next_hop: u16,
    pub rules: u16,
}

/// Slots that share a cache line.
const SLOTS: usize = 16;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct SlotLine([u32; SLOTS]);

/// A bounded cache of flows.
#[derive(Debug)]
pub struct FlowCache<A> {
    entries: Box<[CachedFlow<A>]>,
    slots: Box<[SlotLine]>,
    /// How many entries were ever used. As many slots are.
    used: u32,
    states: Box<[FlowStates]>,
    /// The entry of [`FlowOffload`](super::FlowOffload) that forwards packets of the flow too.
    offloaded: Box<[u32]>,
    keys: [u64; 4],
}

impl<A: FlowAddresses> FlowCache<A> {
    /// An empty cache for so many flows, with secret keys: none, or a power of two from
    /// 16 to 32,768.
    pub(super) fn new(entries: usize, keys: [u64; 4]) -> Self {
        let entries = if entries == 0 { 0 } else { entries.next_power_of_two().clamp(SLOTS, USED as usize) };
        let flow = WireFlow::default();
        let empty = CachedFlow { flow, stamp: NEVER, last: 0, packets: 0, bytes: 0, next_hop: 0, rules: 0 };
        FlowCache {
            entries: vec![empty; entries].into(),
            slots: vec![SlotLine([0; SLOTS]); entries / SLOTS].into(),
            used: 0,
            states: vec![[None; 2]; entries].into(),
            offloaded: vec![NOT_OFFLOADED; entries].into(),
            keys,
        }
    }

    /// Whether it keeps flows at all.
    pub(super) fn has_room(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Whether nothing was ever learned, as it never is without room.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The hash of a flow, which leads to its slots.
    #[inline(always)]
    pub fn hash(&self, flow: &WireFlow<A>) -> u64 {
        flow.hash(&self.keys)
    }

    /// Reads the slots of a hash before they are needed. Returns a value that depends on them. The cache has room.
    #[inline(always)]
    pub fn touch_slots(&self, hash: u64) -> u32 {
        self.slot(self.slots_of(hash)[0])
    }

    /// The place of the entry of the flow with this hash, if it has one. A flow in its second slot whose first one has the same
    /// tag by accident is not found. The cache has room.
    #[inline(always)]
    pub fn place(&self, hash: u64) -> usize {
        let [first, second] = self.slots_of(hash);
        let (first, second) = (self.slot(first), self.slot(second));
        // A branch would often be mispredicted while its memory is on the way.
        entry_of(select_unpredictable(first & TAG == tag(hash), first, second))
    }

    /// Reads the entry at this place before it is needed. Returns a value that depends on it.
    #[inline(always)]
    pub fn touch(&self, place: usize) -> u32 {
        self.entries.get(place).map_or(0, |entry| entry.last)
    }

    /// Whether the place has the entry of the flow, valid or not.
    #[inline(always)]
    pub fn has(&self, place: usize, flow: &WireFlow<A>) -> bool {
        self.entries.get(place).is_some_and(|entry| entry.flow == *flow)
    }

    /// Whether the entry is valid and its states were alive at this time.
    #[inline(always)]
    pub fn is_fresh(&self, place: usize, stamp: u64, now: u32) -> bool {
        self.entries.get(place).is_some_and(|entry| entry.is_fresh(stamp, now))
    }

    /// As [`Self::count`], if the place has the entry of the flow and that is fresh.
    #[inline(always)]
    pub fn count_fresh(
        &mut self,
        place: usize,
        flow: &WireFlow<A>,
        (stamp, now): (u64, u32),
        length: u16,
    ) -> Option<(u16, u16)> {
        let entry = self.entries.get_mut(place)?;
        let counts = (entry.flow == *flow) & entry.is_fresh(stamp, now);
        counts.then(|| entry.count(length))
    }

    fn find(&self, flow: &WireFlow<A>) -> Option<usize> {
        let slots = self.slots_of(flow.hash(&self.keys)).into_iter();
        slots.filter_map(|slot| self.entry_in(slot)).find(|place| self.has(*place, flow))
    }

    /// The place of the entry that a slot has.
    fn entry_in(&self, slot: usize) -> Option<usize> {
        let slot = self.slot(slot);
        (slot & USED != 0).then(|| entry_of(slot))
    }

    /// Counts a packet of the flow. Returns its next hop, and the list of the rules that count it.
    #[inline(always)]
    pub fn count(&mut self, place: usize, length: u16) -> (u16, u16) {
        self.entries.get_mut(place).map_or((0, 0), |entry| entry.count(length))
    }

    /// Takes a packet back, and returns the list of its rules.
    pub(super) fn subtract(&mut self, place: usize, length: u16) -> u16 {
        let entry = &mut self.entries[place];
        // Nothing is left to take back if the states were given it meanwhile: they count this packet twice.
        if let Some(packets) = entry.packets.checked_sub(1) {
            entry.packets = packets;
            entry.bytes = entry.bytes.wrapping_sub(u32::from(length));
        }
        entry.rules
    }

    #[inline(always)]
    fn slots_of(&self, hash: u64) -> [usize; 2] {
        let first = hash as usize & self.entries.len().wrapping_sub(1);
        [first, first ^ (hash as usize >> 24 & (SLOTS - 1))]
    }

    #[inline(always)]
    fn slot(&self, slot: usize) -> u32 {
        self.slots[slot / SLOTS].0[slot % SLOTS]
    }

    fn set_slot(&mut self, slot: usize, value: u32) {
        self.slots[slot / SLOTS].0[slot % SLOTS] = value;
    }

    /// The stamp and the next hop of an entry.
    pub fn route(&self, place: usize) -> (u64, u16) {
        (self.entries[place].stamp, self.entries[place].next_hop)
    }

    /// The states of an entry.
    pub(crate) fn states(&self, place: usize) -> impl Iterator<Item = u32> + use<A> {
        self.hits(place).into_iter().flatten().map(|hit| hit.id)
    }

    /// The states of an entry, and which way the flow goes.
    pub(crate) fn hits(&self, place: usize) -> FlowStates {
        self.states[place]
    }

    /// The flow of an entry, valid or not.
    pub fn flow(&self, place: usize) -> WireFlow<A> {
        self.entries[place].flow
    }

    /// The entry that forwards packets of the flow elsewhere, if one does.
    pub fn offloaded(&self, place: usize) -> Option<u32> {
        Some(self.offloaded[place]).filter(|entry| *entry != NOT_OFFLOADED)
    }

    /// Notes that packets of the flow are forwarded elsewhere too, by this entry.
    pub fn set_offloaded(&mut self, place: usize, entry: u32) {
        self.offloaded[place] = entry;
    }

    /// Notes a packet at this time.
    pub(crate) fn renew(&mut self, place: usize, stamp: u64, now: u32, states: &mut StateTable) {
        if self.entries[place].packets >= MOST_PACKETS {
            self.settle_own(place, states);
        }
        self.states(place).for_each(|id| states.set_last(id, now));
        (self.entries[place].stamp, self.entries[place].last) = (stamp, now);
    }

    /// Gives the states what the entry has counted.
    fn settle_own(&mut self, place: usize, states: &mut StateTable) {
        let entry = &mut self.entries[place];
        let (packets, bytes) = (std::mem::take(&mut entry.packets), std::mem::take(&mut entry.bytes));
        if packets > 0 {
            self.states(place).for_each(|id| states.count(id, packets, bytes.into()));
        }
    }

    /// Gives the states what was counted here and elsewhere.
    pub(super) fn settle(&mut self, place: usize, accounts: &mut FlowAccounts<'_>) {
        self.settle_own(place, accounts.states);
        let taken = accounts.take(self.offloaded[place]);
        taken.into_iter().for_each(|taken| self.credit(place, taken, accounts));
    }

    /// As [`Self::settle`]. From now on the flow's packets are not forwarded elsewhere.
    pub(super) fn recall(&mut self, place: usize, accounts: &mut FlowAccounts<'_>) {
        self.settle_own(place, accounts.states);
        let taken = accounts.end(std::mem::replace(&mut self.offloaded[place], NOT_OFFLOADED));
        taken.into_iter().for_each(|taken| self.credit(place, taken, accounts));
    }

    /// Counts packets that were forwarded elsewhere.
    fn credit(&mut self, place: usize, taken: OffloadedPackets, accounts: &mut FlowAccounts<'_>) {
        let OffloadedPackets { packets, bytes, last } = taken;
        let entry = &mut self.entries[place];
        if last.wrapping_sub(entry.last) as i32 > 0 {
            entry.last = last;
        }
        if packets > 0 {
            accounts.rules.add(entry.rules, packets.into(), bytes);
        }
        for id in self.states(place) {
            accounts.states.count(id, packets, bytes);
            accounts.states.advance_last(id, last);
        }
    }

    /// As [`Self::settle`] for all entries.
    pub(super) fn settle_all(&mut self, accounts: &mut FlowAccounts<'_>) {
        (0..self.used as usize).for_each(|place| self.settle(place, accounts));
    }

    /// As [`Self::recall`] for all entries.
    pub(super) fn recall_all(&mut self, accounts: &mut FlowAccounts<'_>) {
        (0..self.used as usize).for_each(|place| self.recall(place, accounts));
    }

    /// Removes a flow, whichever interfaces it comes in by.
    pub(super) fn remove(&mut self, flow: &WireFlow<A>, accounts: &mut FlowAccounts<'_>) {
        for place in self.entries_of(flow).into_iter().flatten() {
            self.recall(place, accounts);
            self.entries[place].stamp = NEVER;
        }
    }

    /// As [`Self::settle`] for a flow, whichever interfaces it comes in by.
    pub(super) fn settle_flow(&mut self, flow: &WireFlow<A>, accounts: &mut FlowAccounts<'_>) {
        self.entries_of(flow).into_iter().flatten().for_each(|place| self.settle(place, accounts));
    }

    fn entries_of(&self, flow: &WireFlow<A>) -> [Option<usize>; 2] {
        let is_same = |place: &usize| self.entries[*place].flow.is_same_flow(flow);
        self.slots_of(flow.hash(&self.keys)).map(|slot| self.entry_in(slot).filter(is_same))
    }

    /// Adds or replaces a flow, unless both its slots belong to others that are valid and in use. Returns its place.
    pub(super) fn learn(
        &mut self,
        new: LearnedFlow<A>,
        (floor, now): (u64, u32),
        accounts: &mut FlowAccounts<'_>,
    ) -> Option<usize> {
        let place = self.find(&new.flow).or_else(|| self.vacate(&new.flow, floor, now))?;
        self.recall(place, accounts);
        let LearnedFlow { flow, states, stamp, next_hop, rules } = new;
        self.states[place] = states;
        self.entries[place] = CachedFlow { flow, stamp, last: now, packets: 0, bytes: 0, next_hop, rules };
        Some(place)
    }

    /// An entry that a slot of the flow leads to and that may be replaced.
    fn vacate(&mut self, flow: &WireFlow<A>, floor: u64, now: u32) -> Option<usize> {
        let hash = flow.hash(&self.keys);
        let mut slots = self.slots_of(hash).into_iter();
        let free = slots.clone().find(|slot| self.is_free(*slot, floor, now));
        let slot = free.or_else(|| slots.find(|slot| self.move_away(*slot, floor, now)))?;
        let place = self.entry_in(slot).unwrap_or(self.used as usize);
        self.used = self.used.max(place as u32 + 1);
        self.set_slot(slot, tag(hash) | USED | place as u32);
        Some(place)
    }

    fn is_free(&self, slot: usize, floor: u64, now: u32) -> bool {
        self.entry_in(slot).is_none_or(|place| {
            let entry = &self.entries[place];
            entry.stamp < floor || now.wrapping_sub(entry.last) as i32 > IDLE
        })
    }

    /// Moves the flow of a slot to its other one, if that is free.
    fn move_away(&mut self, slot: usize, floor: u64, now: u32) -> bool {
        let Some(place) = self.entry_in(slot) else { return true };
        let slots = self.slots_of(self.entries[place].flow.hash(&self.keys));
        let other = slots[usize::from(slots[0] == slot)];
        let moves = other != slot && self.is_free(other, floor, now);
        if moves {
            let (moved, free) = (self.slot(slot), self.slot(other));
            self.set_slot(slot, free);
            self.set_slot(other, moved);
        }
        moves
    }
}

/// The part of a slot that two flows seldom have in common.
const TAG: u32 = 0xffff_0000;
/// Set in slots that have an entry.
const USED: u32 = 0x8000;

#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 & TAG
}

#[inline(always)]
fn entry_of(slot: u32) -> usize {
    (slot & (USED - 1)) as usize
}
