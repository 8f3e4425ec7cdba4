//! The states of one worker, found by either direction of their flows.

use std::hint::black_box;
use std::ops::BitXor;

use super::entry::{ColdState, HotState, Peer, StateFlags, StateTranslation};
use super::flow_key::FlowKey;
use super::hash::FlowHasher;
use super::index::FlowIndex;
use super::number_set::NumberSet;
use super::phase::Phase;
use super::tcp::{self, Tracked};
use super::windows::{Comparison, FlowWindows};
use crate::memory::LargeArray;
use crate::packet::protocol::{ICMP, ICMP6, TCP};
use crate::packet::{Direction, Packet, TcpSegment, Transport};
use crate::rule::{FlowName, Side};
use crate::verdict::Rewrite;

/// A state that a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub id: u32,
    /// Whether the packet goes the way of the first one.
    pub forward: bool,
}

/// No entry is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

/// What a new state starts with.
pub(crate) struct NewState {
    pub key: FlowKey,
    pub flags: StateFlags,
    pub cold: ColdState,
}

/// A bounded table of states.
#[derive(Debug)]
pub struct StateTable {
    hot: LargeArray<HotState>,
    cold: LargeArray<ColdState>,
    index: FlowIndex,
    hasher: FlowHasher,
    /// Entries that were never used start here.
    fresh: u32,
    /// The first of a list of entries that are free again, linked by [`ColdState::rule`].
    freed: u32,
    len: usize,
    /// How many of them translate.
    translating: usize,
    /// Those that end for new ones in a full table, and the entry from which on the next one is looked for. It goes round: a
    /// state that took the place of another one comes last. (An order of their own would take 8 bytes each.)
    replaceable: NumberSet,
    hand: u32,
}

/// The end of the list of free entries.
const NONE: u32 = u32::MAX;

impl StateTable {
    /// An empty table for so many states, with a secret seed for its hash.
    pub fn new(capacity: u32, seed: u64) -> Self {
        let entries = capacity as usize;
        StateTable {
            hot: LargeArray::new(HotState::FREE, entries),
            cold: LargeArray::new(ColdState::FREE, entries),
            index: FlowIndex::new(2 * entries),
            hasher: FlowHasher::new(seed),
            fresh: 0,
            freed: NONE,
            len: 0,
            translating: 0,
            replaceable: NumberSet::new(capacity),
            hand: 0,
        }
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no entry is free.
    pub fn is_full(&self) -> bool {
        self.len == self.capacity()
    }

    /// The states that end for new ones in a full table, the next one first.
    pub(crate) fn replaceable(&self) -> impl Iterator<Item = u32> {
        self.replaceable.iter_from(self.hand)
    }

    /// Has the next one looked for behind a state that ends for a new one.
    pub(crate) fn pass_replaced(&mut self, id: u32) {
        self.hand = id + 1;
    }

    /// The entries of all states: at last those that give way to new ones, in the order in which they do.
    pub(crate) fn entries_in_order(&self) -> Vec<u32> {
        let stays = |id: &u32| self.get(*id).0.is_used() && !self.get(*id).0.gives_way();
        (0..self.fresh).filter(stays).chain(self.replaceable()).collect()
    }

    /// How many states fit.
    pub fn capacity(&self) -> usize {
        self.hot.len()
    }

    /// How many entries were ever used: those behind them are free.
    pub fn used_entries(&self) -> u32 {
        self.fresh
    }

    /// The bytes of all its parts.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.hot) + size_of_val(&*self.cold) + self.index.bytes() + self.replaceable.bytes()
    }

    /// The hash of a flow.
    #[inline(always)]
    pub fn hash(&self, key: &FlowKey) -> u64 {
        self.hasher.hash(key)
    }

    /// Reads what a search for each hash most likely reads, so that the processor fetches all lines at once.
    #[inline]
    pub fn touch(&self, hashes: &[u64]) {
        if self.len > 0 {
            black_box(hashes.iter().fold(0, |all, hash| all ^ self.index.touch(*hash)));
            let touch =
                |hash: &u64| self.index.candidates(*hash).map(|id| self.touch_state(id)).fold(0, u32::bitxor);
            black_box(hashes.iter().map(touch).fold(0, u32::bitxor));
        }
    }

    /// Whether a search for the hash most likely finds a state.
    #[inline(always)]
    pub fn seems_to_have(&self, hash: u64) -> bool {
        self.len > 0 && self.index.candidates(hash).next().is_some()
    }

    #[inline(always)]
    fn touch_state(&self, id: u32) -> u32 {
        self.hot[id as usize].last ^ self.cold[id as usize].rule
    }

    /// The state of a packet in its pass. Without a name its mark may be any: pf's states have no names.
    #[inline]
    pub(crate) fn find(&self, packet: &Packet, hash: u64, flow: Option<FlowName>) -> Option<Hit> {
        self.find_key(&FlowKey::of(packet), hash, packet, packet.pass.direction, flow)
    }

    /// The state of a flow. `direction` is that in which the flow's packet passes, which differs from the direction of
    /// `packet` if that only quotes it.
    #[inline]
    pub(crate) fn find_key(
        &self,
        key: &FlowKey,
        hash: u64,
        packet: &Packet,
        direction: Direction,
        flow: Option<FlowName>,
    ) -> Option<Hit> {
        if self.len == 0 {
            return None;
        }
        let mut forward = false;
        let id = self.index.find(hash, |id| {
            let (hot, cold) = (&self.hot[id as usize], &self.cold[id as usize]);
            let Some(way) = self.way(hot, cold, key) else { return false };
            forward = way;
            hot.includes(packet, direction, way, cold) && flow.is_none_or(|flow| flow.finds(cold.mark))
        })?;
        Some(Hit { id, forward })
    }

    /// Whether a packet with this key that passes in this direction, by whatever interface, has a state.
    pub(crate) fn is_taken(&self, key: &FlowKey, direction: Direction) -> bool {
        let is_found = |id: u32| {
            let (hot, cold) = (&self.hot[id as usize], &self.cold[id as usize]);
            self.way(hot, cold, key).is_some_and(|forward| hot.binding().includes(direction, forward))
        };
        self.index.find(self.hash(key), is_found).is_some()
    }

    /// Whether a key is that of the state's first packet (`Some(true)`) or that of its answers (`Some(false)`).
    #[inline(always)]
    fn way(&self, hot: &HotState, cold: &ColdState, key: &FlowKey) -> Option<bool> {
        let own = hot.key();
        if own == *key {
            return Some(true);
        }
        let answers = match hot.translation() {
            StateTranslation::No => own.reversed(),
            translation => answer(own, translation, cold),
        };
        (answers == *key).then_some(false)
    }

    /// Adds a state. The caller has made sure that no state is found by its keys.
    #[inline]
    pub(crate) fn insert(&mut self, new: NewState, hash: u64, now: u32) -> Result<u32, TableFull> {
        self.insert_entry(HotState::new(new.key, new.flags, now), new.cold, hash)
    }

    /// Adds a state that is not new. `hash` is that of its first packet's key.
    #[inline]
    pub(crate) fn insert_entry(
        &mut self,
        hot: HotState,
        cold: ColdState,
        hash: u64,
    ) -> Result<u32, TableFull> {
        let id = self.take_free()?;
        self.hot[id as usize] = hot;
        self.cold[id as usize] = cold;
        if self.index.insert(hash, id).is_err() {
            self.give_back(id);
            return Err(TableFull);
        }
        if let Some(answers) = self.separate_answers(id)
            && self.index.insert(answers, id).is_err()
        {
            self.index.remove(hash, id);
            self.give_back(id);
            return Err(TableFull);
        }
        if hot.gives_way() {
            self.replaceable.insert(id);
        }
        self.len += 1;
        self.translating += usize::from(hot.translation().side().is_some());
        Ok(id)
    }

    /// Removes a state, and returns what it was.
    pub(crate) fn remove(&mut self, id: u32) -> (HotState, ColdState) {
        let (hot, cold) = (self.hot[id as usize], self.cold[id as usize]);
        self.index.remove(self.hash(&hot.key()), id);
        if let Some(answers) = self.separate_answers(id) {
            self.index.remove(answers, id);
        }
        if hot.gives_way() {
            self.replaceable.remove(id);
        }
        self.give_back(id);
        self.len -= 1;
        self.translating -= usize::from(hot.translation().side().is_some());
        (hot, cold)
    }

    /// The hash by which answers find a state, if it is another one than that of its first packet.
    fn separate_answers(&self, id: u32) -> Option<u64> {
        self.hot[id as usize].translation().side()?;
        Some(self.hash(&self.key_of(Hit { id, forward: false })))
    }

    /// The flow of a state's packets in one direction, as they come to it.
    fn key_of(&self, hit: Hit) -> FlowKey {
        let (hot, cold) = self.get(hit.id);
        if hit.forward { hot.key() } else { answer(hot.key(), hot.translation(), cold) }
    }

    /// The flows of a state's packets in both directions.
    pub(crate) fn flows(&self, id: u32) -> [FlowKey; 2] {
        [true, false].map(|forward| self.key_of(Hit { id, forward }))
    }

    /// The hashes of both, of which `one` is the hash of one.
    pub(crate) fn hashes(&self, id: u32, one: u64) -> [u64; 2] {
        let answers = self.separate_answers(id);
        answers.map_or([one; 2], |answers| [self.hash(&self.hot[id as usize].key()), answers])
    }

    fn take_free(&mut self) -> Result<u32, TableFull> {
        if self.freed != NONE {
            let id = self.freed;
            self.freed = self.cold[id as usize].rule;
            return Ok(id);
        }
        if self.fresh as usize == self.hot.len() {
            return Err(TableFull);
        }
        self.fresh += 1;
        Ok(self.fresh - 1)
    }

    fn give_back(&mut self, id: u32) {
        self.hot[id as usize] = HotState::FREE;
        self.cold[id as usize].rule = self.freed;
        self.freed = id;
    }

    /// The two parts of an entry.
    #[inline(always)]
    pub(crate) fn get(&self, id: u32) -> (&HotState, &ColdState) {
        (&self.hot[id as usize], &self.cold[id as usize])
    }

    /// Follows the first packet of a new state.
    pub(crate) fn start(&mut self, id: u32, packet: &Packet) {
        let hot = &mut self.hot[id as usize];
        match packet.tcp() {
            Some(segment) => {
                let peers = tcp::open(segment);
                hot.set_peer(0, peers[0]);
                hot.set_peer(1, peers[1]);
            }
            None => hot.set_phase(0, Phase::Opened),
        }
        if let Transport::Icmp(message) = packet.transport {
            hot.set_query(message.kind);
        }
    }

    /// Follows a further packet of a state. An invalid one changes nothing.
    #[inline]
    pub(crate) fn track(&mut self, hit: Hit, packet: &Packet, now: u32) -> Tracked {
        let (hot, from) = (&mut self.hot[hit.id as usize], usize::from(!hit.forward));
        let gave_way = hot.gives_way();
        let tracked = match packet.tcp() {
            Some(segment) => tcp::track(hot, from, segment),
            // A later fragment of a segment shows nothing of it.
            None if hot.protocol == TCP => Tracked::Valid,
            None => answer_phase(hot, from),
        };
        if tracked == Tracked::Valid {
            hot.last = now;
            let cold = &mut self.cold[hit.id as usize];
            cold.packets = cold.packets.saturating_add(1);
            cold.bytes = cold.bytes.wrapping_add(u64::from(packet.length));
        }
        if gave_way != hot.gives_way() {
            self.set_replaceable(hit.id, !gave_way);
        }
        tracked
    }

    #[cold]
    fn set_replaceable(&mut self, id: u32, gives_way: bool) {
        if gives_way { self.replaceable.insert(id) } else { self.replaceable.remove(id) }
    }

    /// Notes when the last packet of a state came.
    pub(crate) fn set_last(&mut self, id: u32, now: u32) {
        self.hot[id as usize].last = now;
    }

    /// Notes a packet that may not be the last one.
    pub(crate) fn advance_last(&mut self, id: u32, then: u32) {
        let last = &mut self.hot[id as usize].last;
        if then.wrapping_sub(*last) as i32 > 0 {
            *last = then;
        }
    }

    /// Counts packets that a state has not followed one by one.
    pub(crate) fn count(&mut self, id: u32, packets: u32, bytes: u64) {
        let cold = &mut self.cold[id as usize];
        cold.packets = cold.packets.saturating_add(packets);
        cold.bytes = cold.bytes.wrapping_add(bytes);
    }

    /// Takes back a packet that was counted.
    pub(crate) fn take_back(&mut self, id: u32, length: u16) {
        let cold = &mut self.cold[id as usize];
        cold.packets = cold.packets.saturating_sub(1);
        cold.bytes = cold.bytes.wrapping_sub(u64::from(length));
    }

    /// Whether a further packet of this direction would change nothing but the state's time and counters, and no packet of another
    /// flow ends the state.
    pub(crate) fn is_steady(&self, id: u32, forward: bool) -> bool {
        let (hot, from) = (&self.hot[id as usize], usize::from(!forward));
        let phases = hot.phases();
        hot.is_used()
            && !hot.gives_way()
            && phases[from] != Phase::Silent
            && match phases[from ^ 1] {
                Phase::Opened => false,
                // A plain segment may be what such an end waits for.
                Phase::Silent | Phase::Closing => hot.protocol != TCP,
                _ => true,
            }
    }

    /// Follows a plain segment in the states of both its passes, if both take it and none changes its phases. Times and counters
    /// stay as they are.
    #[inline]
    pub(crate) fn follow_segment(&mut self, [first, second]: [Option<Hit>; 2], segment: &TcpSegment) -> bool {
        let Some(first) = first else { return second.is_none_or(|hit| self.follow(hit, segment).is_some()) };
        let Some(before) = self.follow(first, segment) else { return false };
        // To be followed twice by the same state changes nothing more.
        let is_done = second.is_none_or(|hit| hit == first && self.may_repeat(hit, segment));
        let is_followed = is_done || second.is_some_and(|hit| self.follow(hit, segment).is_some());
        if !is_followed {
            tcp::set_ends(&mut self.hot[first.id as usize], usize::from(!first.forward), before);
        }
        is_followed
    }

    #[inline(always)]
    fn follow(&mut self, hit: Hit, segment: &TcpSegment) -> Option<[Peer; 2]> {
        tcp::follow(&mut self.hot[hit.id as usize], usize::from(!hit.forward), segment)
    }

    #[inline(always)]
    fn may_repeat(&self, hit: Hit, segment: &TcpSegment) -> bool {
        tcp::may_repeat(&self.hot[hit.id as usize], usize::from(!hit.forward), segment)
    }

    /// Whether a state compares sequence numbers with windows.
    pub(crate) fn has_windows(&self, id: u32) -> bool {
        let hot = &self.hot[id as usize];
        hot.protocol == TCP && hot.has_windows()
    }

    /// What has to be compared of the packets of a flow with these states. If both have windows one comparison stands for both.
    pub(crate) fn comparison(&self, hits: [Option<Hit>; 2]) -> Comparison {
        if hits[0] == hits[1] && hits[0].is_some_and(|hit| self.has_windows(hit.id)) {
            // Each segment would be followed twice.
            return Comparison::States;
        }
        let compared = hits.into_iter().flatten().filter(|hit| self.has_windows(hit.id));
        let windows = compared.map(|hit| self.windows(hit));
        let of_both = windows.reduce(|first, second| first?.of_both(&second?));
        of_both.map_or(Comparison::Nothing, |windows| windows.map_or(Comparison::States, Comparison::Windows))
    }

    /// The windows of a packet's connection, if they are known and it has begun in both directions.
    fn windows(&self, hit: Hit) -> Option<FlowWindows> {
        let hot = &self.hot[hit.id as usize];
        hot.knows_windows().then(|| tcp::windows(hot, usize::from(!hit.forward)))
    }

    /// Moves the windows of a packet's connection forward to where others are.
    pub(crate) fn raise_windows(&mut self, hit: Hit, windows: &FlowWindows) {
        if self.has_windows(hit.id) {
            tcp::raise(&mut self.hot[hit.id as usize], usize::from(!hit.forward), windows);
        }
    }

    /// Whether something else moves the windows of a state too.
    #[inline(always)]
    pub(crate) fn is_shared(&self, id: u32) -> bool {
        self.hot[id as usize].is_shared()
    }

    /// Notes whether something else moves the windows of a state too.
    pub(crate) fn set_shared(&mut self, id: u32, is_shared: bool) {
        self.hot[id as usize].set_shared(is_shared);
    }

    /// Gives a state the numbers of its rule and timeouts in another rule set.
    pub(crate) fn set_rule(&mut self, id: u32, rule: u32, timeouts: u8, generation: u8) {
        let cold = &mut self.cold[id as usize];
        (cold.rule, cold.timeouts, cold.generation) = (rule, timeouts, generation);
    }

    /// Marks that a state counts for a source.
    pub(crate) fn set_source(&mut self, id: u32, source: u32) {
        self.cold[id as usize].source = source;
    }

    /// Whether the state can have sent the segment that an ICMP error quotes, which goes the way opposite to `hit`.
    pub(crate) fn sent_quoted(&self, hit: Hit, seq: u32) -> bool {
        let hot = &self.hot[hit.id as usize];
        hot.protocol != TCP || tcp::was_sent(hot, usize::from(hit.forward), seq)
    }

    /// If the state translates: the flow of a packet before, and what it must become.
    pub(crate) fn translation(&self, hit: Hit) -> Option<(FlowKey, Rewrite)> {
        self.rewrite(hit).map(|rewrite| (self.key_of(hit), rewrite))
    }

    /// The flow of a packet between both passes, if a state that it may belong to translates it as it comes in.
    pub(crate) fn between(&self, key: &FlowKey) -> Option<FlowKey> {
        if self.translating == 0 {
            return None;
        }
        let mut between = None;
        self.index.find(self.hash(key), |id| {
            let (hot, cold) = self.get(id);
            let way = self.way(hot, cold, key);
            let rewrite = way.and_then(|forward| self.rewrite(Hit { id, forward }));
            let entering = rewrite.filter(|rewrite| rewrite.side == Side::Destination);
            between =
                entering.map(|to| FlowKey { destination: to.address, destination_port: to.port, ..*key });
            between.is_some()
        });
        between
    }

    /// What a packet of this state must become, if the state translates.
    #[inline(always)]
    pub(crate) fn rewrite(&self, hit: Hit) -> Option<Rewrite> {
        let side = self.hot[hit.id as usize].translation().side()?;
        Some(self.rewrite_of(hit, side))
    }

    #[inline(never)]
    fn rewrite_of(&self, hit: Hit, side: Side) -> Rewrite {
        let (hot, cold) = self.get(hit.id);
        if hit.forward {
            return Rewrite { side, address: cold.translated, port: cold.translated_port, quoted: false };
        }
        match side {
            Side::Source => {
                Rewrite { side: Side::Destination, address: hot.source, port: hot.source_port, quoted: false }
            }
            Side::Destination => Rewrite {
                side: Side::Source,
                address: hot.destination,
                port: hot.destination_port,
                quoted: false,
            },
        }
    }
}

/// Follows a packet of a protocol without connections.
#[inline(always)]
fn answer_phase(hot: &mut HotState, from: usize) -> Tracked {
    let phases = hot.phases();
    if phases[from] == Phase::Silent {
        hot.set_phase(from, Phase::Opened);
    }
    if phases[from ^ 1] == Phase::Opened {
        hot.set_phase(from ^ 1, Phase::Established);
    }
    Tracked::Valid
}

/// The key of the packets that answer the first one.
#[inline(always)]
fn answer(own: FlowKey, translation: StateTranslation, cold: &ColdState) -> FlowKey {
    let mut key = own.reversed();
    match translation {
        StateTranslation::No => {}
        StateTranslation::Source => {
            (key.destination, key.destination_port) = (cold.translated, cold.translated_port);
        }
        StateTranslation::Destination => {
            (key.source, key.source_port) = (cold.translated, cold.translated_port);
        }
    }
    // A query of ICMP has one identifier, which stands for both ports.
    if matches!(key.protocol, ICMP | ICMP6) && translation != StateTranslation::No {
        (key.source_port, key.destination_port) = (cold.translated_port, cold.translated_port);
    }
    key
}
