//! The flows of one family. An entry is one cache line, in one of two places that follow from the hash of its flow and lie near
//! each other. Of five thousand flows 25 in 26 have the first one, so nothing else leads to them: a packet's
//! only memory here is its entry, which can be asked for as soon as the hash is known.

use super::addresses::{FlowAddresses, WireFlow};
use super::entry::{CachedFlow, FlowMark, FlowSum, NEVER};
use super::finder::{FlowFinder, FlowHash, HashOne, SoughtEntry};
use super::offload::{FlowAccounts, NOT_OFFLOADED, OffloadedPackets};
use super::simd::FlowIsa;
use super::translations::{FlowTranslation, FlowTranslations};
use crate::memory::LargeArray;
use crate::state::table::{Hit, StateTable};
use crate::state::windows::Comparison;

/// So many flows move for a new one, so that of five thousand flows hardly one has no place.
const MOST_MOVES: u32 = 2;
/// An entry gives way to another flow if its last packet is so many milliseconds old.
const IDLE: i32 = 500;

/// What an entry follows from.
#[derive(Clone, Copy, Debug)]
struct FlowBasis {
    states: FlowStates,
    /// What the rules, the view and the routes were when the flow was learned.
    stamp: u64,
    /// The time of the last packet, as far as it is known.
    last: u32,
    /// The entry of [`FlowOffload`](super::FlowOffload) that forwards packets of the flow too.
    offloaded: u32,
}

/// What an entry's renewal did to a state.
#[derive(Clone, Copy, Debug)]
struct Renewal {
    place: u32,
    id: u32,
    /// The time of the state's last packet before, and now.
    last: [u32; 2],
}

/// Since when an entry is true.
#[derive(Clone, Copy, Debug)]
pub struct FlowTime {
    /// The stamp of the table's routes.
    pub stamp: u64,
    /// The time of packets, in milliseconds.
    pub now: u64,
    /// Another number for each other `stamp` and `now`: [`FlowCaches::new_stamp`](super::FlowCaches::new_stamp).
    pub moment: u64,
}

/// The states that decide about both passes, of those that are decided by states.
pub(crate) type FlowStates = [Option<Hit>; 2];

/// What is learned about a flow.
#[derive(Clone, Copy)]
pub(super) struct LearnedFlow<A> {
    pub flow: WireFlow<A>,
    pub translation: Option<FlowTranslation<A>>,
    pub states: FlowStates,
    pub time: FlowTime,
    pub next_hop: u16,
    pub rules: u16,
}

/// Fewest entries of a cache.
const FEWEST: usize = 16;
/// Most entries of a cache.
const MOST: usize = 1 << 16;

/// Two for each packet of a burst.
const MOST_RENEWALS: usize = 512;

/// A bounded cache of flows.
#[derive(Debug)]
pub struct FlowCache<A> {
    entries: LargeArray<CachedFlow<A>>,
    bases: LargeArray<FlowBasis>,
    translations: FlowTranslations<A>,
    /// The places that were ever used.
    used: Vec<u32>,
    /// Those of this burst, in their order.
    renewals: Vec<Renewal>,
    keys: [u64; 4],
    isa: FlowIsa,
}

impl<A: FlowAddresses> FlowCache<A> {
    /// An empty cache for so many flows, with secret keys: none, or a power of two from
    /// 16 to 65,536.
    pub(super) fn new(entries: usize, keys: [u64; 4], isa: FlowIsa) -> Self {
        let entries = if entries == 0 { 0 } else { entries.next_power_of_two().clamp(FEWEST, MOST) };
        let (flow, mark, sum) = (WireFlow::default(), FlowMark::new(NEVER, 0), FlowSum::default());
        let basis = FlowBasis { states: [None; 2], stamp: NEVER, last: 0, offloaded: NOT_OFFLOADED };
        FlowCache {
            entries: LargeArray::new(CachedFlow { flow, mark, sum, next_hop: 0 }, entries),
            bases: LargeArray::new(basis, entries),
            translations: FlowTranslations::new(entries),
            used: Vec::with_capacity(entries),
            renewals: Vec::with_capacity(MOST_RENEWALS.min(2 * entries)),
            keys,
            isa,
        }
    }

    /// How many flows it keeps at most.
    pub(super) fn room(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was ever learned, as it never is without room.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// The hash of a flow.
    pub fn hash(&self, flow: &WireFlow<A>) -> FlowHash {
        self.isa.run(HashOne { finder: self.finder(), flow })
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.entries.len().wrapping_sub(1)
    }

    /// What finds the memory of entries.
    #[inline(always)]
    pub fn finder(&self) -> FlowFinder<'_, A> {
        FlowFinder { entries: &self.entries, keys: self.keys, isa: self.isa }
    }

    /// Counts the first packets, as long as each is of a flow whose entry is valid at this moment and names this list of rules, and
    /// nothing else is to be done for it; and notes their next hops. Returns how many they are, and their bytes.
    #[inline(always)]
    pub fn count_run<'p, H: From<u16> + 'p>(
        &mut self,
        packets: impl Iterator<Item = ((&'p WireFlow<A>, &'p SoughtEntry), &'p mut H)>,
        (moment, rules): (u64, u16),
    ) -> FlowSum
    where
        A: 'p,
    {
        let (mask, mark, mut all) = (self.mask(), FlowMark::new(moment, rules), FlowSum::default());
        // A slice, as the compiler cannot know that entries do not overlap the cache.
        let entries = &mut *self.entries;
        for ((flow, SoughtEntry { hash, packet }), next_hop) in packets {
            let entry = match entries.get_mut(hash.first(mask)) {
                Some(entry) if entry.is_of(flow, mark) => entry,
                // The second entry's memory was not asked for: only a packet that may be counted waits for it.
                _ if packet.is_empty() => break,
                _ => match entries.get_mut(hash.second(mask)) {
                    Some(entry) if entry.is_of(flow, mark) => entry,
                    _ => break,
                },
            };
            let Some(sum) = entry.sum.plus(*packet) else { break };
            entry.sum = sum;
            *next_hop = H::from(entry.next_hop);
            all.add(*packet);
        }
        all
    }

    /// As [`Self::count_run`] for packets that are to be translated. `counted` gets the place and the translation of each.
    #[inline(always)]
    pub fn count_translated_run<'p, H: From<u16> + 'p>(
        &mut self,
        packets: impl Iterator<Item = ((&'p WireFlow<A>, &'p SoughtEntry), &'p mut H)>,
        (moment, rules): (u64, u16),
        mut counted: impl FnMut(usize, &Option<FlowTranslation<A>>),
    ) -> FlowSum
    where
        A: 'p,
    {
        let (mark, mut all) = (FlowMark::new(moment, rules).translated(), FlowSum::default());
        for (sought, next_hop) in packets {
            let Some(place) = self.place_of(sought) else { break };
            let entry = &mut self.entries[place];
            let packet = sought.1.packet;
            let (Some(sum), true) = (entry.sum.plus(packet), entry.mark == mark) else { break };
            entry.sum = sum;
            *next_hop = H::from(entry.next_hop);
            all.add(packet);
            counted(place, &self.translations.entries()[place]);
        }
        all
    }

    /// Finds the first packets, as long as each is of a flow whose entry is valid at this moment and whose states follow each
    /// packet, and as long as `found` takes it, which gets its place. Returns how many they are.
    #[inline(always)]
    pub fn find_run<'p>(
        &self,
        packets: impl Iterator<Item = (&'p WireFlow<A>, &'p SoughtEntry)>,
        moment: u64,
        mut found: impl FnMut(usize) -> bool,
    ) -> usize
    where
        A: 'p,
    {
        let is_followed = |place: &usize| self.entries[*place].mark.is_followed_at(moment);
        let places = packets.map(|sought| self.place_of(sought).filter(is_followed));
        places.take_while(|place| place.is_some_and(&mut found)).count()
    }

    /// The place of a packet's entry, valid or not.
    #[inline(always)]
    fn place_of(&self, (flow, SoughtEntry { hash, .. }): (&WireFlow<A>, &SoughtEntry)) -> Option<usize> {
        let mask = self.mask();
        let is_its = |place: &usize| self.entries.get(*place).is_some_and(|entry| entry.flow == *flow);
        let first = Some(hash.first(mask)).filter(is_its);
        first.or_else(|| Some(hash.second(mask)).filter(is_its))
    }

    /// Both places where the entry of a flow may be.
    fn places(&self, hash: FlowHash) -> [usize; 2] {
        [hash.first(self.mask()), hash.second(self.mask())]
    }

    /// The place of the entry of a flow with this hash, valid or not.
    pub fn find(&self, hash: FlowHash, flow: &WireFlow<A>) -> Option<usize> {
        let has = |place: &usize| self.entries.get(*place).is_some_and(|entry| entry.flow == *flow);
        self.places(hash).into_iter().find(has)
    }

    /// Whether the entry is valid at this moment.
    pub fn is_fresh(&self, place: usize, moment: u64) -> bool {
        let is_fresh = |entry: &CachedFlow<A>| entry.mark.moment() == moment && entry.sum.has_room();
        self.entries.get(place).is_some_and(is_fresh)
    }

    /// Counts a packet of the flow. Returns its next hop, and the list of the rules that count it.
    #[inline(always)]
    pub fn count(&mut self, place: usize, length: u16) -> (u16, u16) {
        let Some(entry) = self.entries.get_mut(place) else { return (0, 0) };
        // Where there is no room, the entry was not fresh.
        entry.sum = entry.sum.plus(FlowSum::packet(length)).unwrap_or(entry.sum);
        (entry.next_hop, entry.mark.rules())
    }

    /// Forgets the renewals of the last burst.
    pub(super) fn begin_burst(&mut self) {
        self.renewals.clear();
    }

    /// Takes a packet back that was counted in this burst, and returns the list of its rules. The states have to be asked about
    /// the flow's next packet. [`Self::undo_renewals`] comes after the last one.
    pub(super) fn subtract(&mut self, place: usize, length: u16, states: &mut StateTable) -> u16 {
        let entry = &mut self.entries[place];
        let list = entry.mark.rules();
        if let Some(sum) = entry.sum.minus(FlowSum::packet(length)) {
            entry.sum = sum;
        } else {
            // The states were given the count within the burst: another packet asked one of them, or the sum was full.
            self.states(place).for_each(|id| states.take_back(id, length));
        }
        self.entries[place].mark = FlowMark::new(NEVER, list);
        list
    }

    /// Gives the states of flows whose packets were taken back the times that they had before this burst.
    pub(super) fn undo_renewals(&mut self, states: &mut StateTable) {
        // The first renewal of a state knows the time before all of them. A later packet may have been forwarded elsewhere.
        for Renewal { place, id, last: [former, now] } in self.renewals.drain(..).rev() {
            if self.entries[place as usize].mark.moment() == NEVER && states.get(id).0.last == now {
                states.set_last(id, former);
            }
        }
    }

    /// The stamp and the next hop of an entry.
    pub fn route(&self, place: usize) -> (u64, u16) {
        (self.bases[place].stamp, self.entries[place].next_hop)
    }

    /// The states of an entry.
    pub(crate) fn states(&self, place: usize) -> impl Iterator<Item = u32> + use<A> {
        self.hits(place).into_iter().flatten().map(|hit| hit.id)
    }

    /// The states of an entry, and which way the flow goes.
    pub(crate) fn hits(&self, place: usize) -> FlowStates {
        self.bases[place].states
    }

    /// Where the states of an entry stand, so that this memory can be requested.
    #[inline(always)]
    pub fn memory_of_states(&self, place: usize) -> &FlowStates {
        &self.bases[place].states
    }

    /// The flow of an entry, valid or not.
    pub fn flow(&self, place: usize) -> WireFlow<A> {
        self.entries[place].flow
    }

    /// Whether no flow was ever translated.
    #[inline(always)]
    pub fn translates_none(&self) -> bool {
        self.translations.is_empty()
    }

    /// What becomes of the packets of an entry, if they are translated.
    #[inline(always)]
    pub fn translation(&self, place: usize) -> Option<&FlowTranslation<A>> {
        self.translations.get(place)
    }

    /// The flow of an entry's packets between both passes.
    fn between(&self, place: usize) -> WireFlow<A> {
        let flow = &self.entries[place].flow;
        self.translation(place).map_or(*flow, |translation| translation.between(flow))
    }

    /// The entry that forwards packets of the flow elsewhere, if one does.
    pub fn offloaded(&self, place: usize) -> Option<u32> {
        Some(self.bases[place].offloaded).filter(|entry| *entry != NOT_OFFLOADED)
    }

    /// Notes that packets of the flow are forwarded elsewhere too, by this entry.
    pub fn set_offloaded(&mut self, place: usize, entry: u32) {
        self.bases[place].offloaded = entry;
    }

    /// Notes a packet at this time.
    pub(crate) fn renew(&mut self, place: usize, time: FlowTime, states: &mut StateTable) {
        if !self.entries[place].sum.has_room() {
            self.settle_own(place, states);
        }
        let now = time.now as u32;
        for id in self.states(place) {
            let last = [states.get(id).0.last, now];
            self.renewals.push(Renewal { place: place as u32, id, last });
            states.set_last(id, now);
        }
        self.renew_known(place, time);
    }

    /// Notes a packet that the states of its flow know of.
    fn renew_known(&mut self, place: usize, FlowTime { stamp, now, moment }: FlowTime) {
        (self.bases[place].stamp, self.bases[place].last) = (stamp, now as u32);
        self.entries[place].mark = self.mark(place, moment, self.entries[place].mark.rules());
    }

    /// The mark of an entry whose flow and translation are set.
    fn mark(&self, place: usize, moment: u64, rules: u16) -> FlowMark {
        let mark = FlowMark::new(moment, rules);
        let mark = if self.entries[place].flow.is_of_tcp() { mark.followed() } else { mark };
        if self.translation(place).is_some() { mark.translated() } else { mark }
    }

    /// Gives the states what the entry has counted.
    fn settle_own(&mut self, place: usize, states: &mut StateTable) {
        let sum = std::mem::take(&mut self.entries[place].sum);
        if sum.packets() > 0 {
            self.states(place).for_each(|id| states.count(id, sum.packets() as u32, sum.bytes()));
        }
    }

    /// Gives the states what was counted here and elsewhere.
    pub(super) fn settle(&mut self, place: usize, accounts: &mut FlowAccounts<'_>) {
        self.settle_own(place, accounts.states);
        let taken = accounts.take(self.bases[place].offloaded);
        taken.into_iter().for_each(|taken| self.credit(place, taken, accounts));
    }

    /// As [`Self::settle`]. From now on the flow's packets are not forwarded elsewhere.
    pub(super) fn recall(&mut self, place: usize, accounts: &mut FlowAccounts<'_>) {
        self.settle_own(place, accounts.states);
        let taken = accounts.end(std::mem::replace(&mut self.bases[place].offloaded, NOT_OFFLOADED));
        taken.into_iter().for_each(|taken| self.credit(place, taken, accounts));
    }

    /// Counts packets that were forwarded elsewhere.
    fn credit(&mut self, place: usize, taken: OffloadedPackets, accounts: &mut FlowAccounts<'_>) {
        let OffloadedPackets { packets, bytes, last, windows } = taken;
        let basis = &mut self.bases[place];
        if last.wrapping_sub(basis.last) as i32 > 0 {
            basis.last = last;
        }
        if packets > 0 {
            accounts.rules.add(self.entries[place].mark.rules(), packets.into(), bytes);
        }
        for hit in self.hits(place).into_iter().flatten() {
            accounts.states.count(hit.id, packets, bytes);
            accounts.states.advance_last(hit.id, last);
            windows.iter().for_each(|windows| accounts.states.raise_windows(hit, windows));
        }
    }

    /// Moves the windows of the entries that forward packets of a flow elsewhere to those of its states. If these differ from
    /// each other, takes the flow back. Says whether there are such entries.
    pub(super) fn hand_windows(&mut self, flow: &WireFlow<A>, accounts: &mut FlowAccounts<'_>) -> bool {
        let mut is_offloaded = false;
        self.each_of(flow, |cache, place| {
            let Some(entry) = cache.offloaded(place) else { return };
            match accounts.states.comparison(cache.hits(place)) {
                Comparison::Windows(windows) => accounts.raise(entry, &windows),
                _ => return cache.recall(place, accounts),
            }
            is_offloaded = true;
        });
        is_offloaded
    }

    /// The entry that forwards the packets of the opposite direction elsewhere, if the same states decide about these.
    pub fn answering(&self, place: usize) -> Option<u32> {
        let flow = WireFlow::of(&self.flow(place).key().reversed(), 0)?;
        let ids = |place| self.hits(place).map(|hit| hit.map(|hit| hit.id));
        let [first, second] = ids(place);
        let is_it =
            |place: &usize| self.entries[*place].flow.is_same_flow(&flow) && ids(*place) == [second, first];
        self.places(self.hash(&flow)).into_iter().find(is_it).and_then(|place| self.offloaded(place))
    }

    /// As [`Self::settle`] for all entries.
    pub(super) fn settle_all(&mut self, accounts: &mut FlowAccounts<'_>) {
        (0..self.used.len()).for_each(|at| self.settle(self.used[at] as usize, accounts));
    }

    /// As [`Self::recall`] for all entries.
    pub(super) fn recall_all(&mut self, accounts: &mut FlowAccounts<'_>) {
        (0..self.used.len()).for_each(|at| self.recall(self.used[at] as usize, accounts));
    }

    /// Ends the entries with these next hops.
    pub(super) fn end_by(&mut self, is_ended: impl Fn(u16) -> bool, accounts: &mut FlowAccounts<'_>) {
        for at in 0..self.used.len() {
            let place = self.used[at] as usize;
            if is_ended(self.entries[place].next_hop) {
                self.recall(place, accounts);
                self.end(place);
            }
        }
    }

    /// Removes a flow of one of both passes, whichever interfaces it comes in by.
    pub(super) fn remove(&mut self, flow: &WireFlow<A>, accounts: &mut FlowAccounts<'_>) {
        self.each_of(flow, |cache, place| {
            cache.recall(place, accounts);
            cache.end(place);
        });
    }

    /// Ends an entry. It leaves its list, which entries with other flows on the wire may join again and again.
    fn end(&mut self, place: usize) {
        if self.translation(place).is_some() {
            let hash = self.hash(&self.between(place));
            self.translations.set(place, None, [hash, hash]);
        }
        self.bases[place].stamp = NEVER;
        let mark = &mut self.entries[place].mark;
        *mark = FlowMark::new(NEVER, mark.rules());
    }

    /// As [`Self::settle`] for a flow of one of both passes, whichever interfaces it comes in by.
    pub(super) fn settle_flow(&mut self, flow: &WireFlow<A>, accounts: &mut FlowAccounts<'_>) {
        self.each_of(flow, |cache, place| cache.settle(place, accounts));
    }

    /// Does something for each entry whose packets have this flow on the wire or between both passes.
    fn each_of(&mut self, flow: &WireFlow<A>, mut act: impl FnMut(&mut Self, usize)) {
        let hash = self.hash(flow);
        for place in self.places(hash) {
            if self.entries[place].flow.is_same_flow(flow) {
                act(self, place);
            }
        }
        let mut listed = self.translations.first(hash);
        while let Some(place) = listed {
            listed = self.translations.next(place);
            if self.between(place).is_same_flow(flow) {
                act(self, place);
            }
        }
    }

    /// Adds or replaces a flow, unless both its places belong to others that are valid and in use. Returns its place.
    pub(super) fn learn(
        &mut self,
        new: LearnedFlow<A>,
        floor: u64,
        accounts: &mut FlowAccounts<'_>,
    ) -> Option<usize> {
        let since = (floor, new.time.now as u32);
        let hash = self.hash(&new.flow);
        let found = self.find(hash, &new.flow);
        if let Some(place) = found.filter(|place| self.is_known(*place, &new, floor)) {
            // As the further packets of a burst whose first one it was learned from.
            self.renew_known(place, new.time);
            return Some(place);
        }
        let place = found.or_else(|| self.vacate(hash, since, accounts))?;
        self.recall(place, accounts);
        self.note_used(place);
        let LearnedFlow { flow, translation, states, time: FlowTime { stamp, now, moment }, next_hop, rules } =
            new;
        self.bases[place] = FlowBasis { states, stamp, last: now as u32, offloaded: NOT_OFFLOADED };
        let mark = FlowMark::new(NEVER, rules);
        self.replace(place, CachedFlow { flow, mark, sum: FlowSum::default(), next_hop }, translation);
        self.entries[place].mark = self.mark(place, moment, rules);
        Some(place)
    }

    /// Whether an entry already says what is learned about its flow.
    fn is_known(&self, place: usize, new: &LearnedFlow<A>, floor: u64) -> bool {
        let (entry, FlowBasis { states, stamp, .. }) = (&self.entries[place], self.bases[place]);
        stamp >= floor
            && states == new.states
            && (entry.next_hop, entry.mark.rules()) == (new.next_hop, new.rules)
            && self.translation(place) == new.translation.as_ref()
    }

    /// Writes an entry and its translation.
    fn replace(&mut self, place: usize, new: CachedFlow<A>, translation: Option<FlowTranslation<A>>) {
        let before = self.between(place);
        let now = translation.map_or(new.flow, |translation| translation.between(&new.flow));
        if translation.is_some() || self.translation(place).is_some() {
            self.translations.set(place, translation, [self.hash(&before), self.hash(&now)]);
        }
        self.entries[place] = new;
    }

    /// A place of a flow with this hash whose entry may be replaced.
    fn vacate(
        &mut self,
        hash: FlowHash,
        since: (u64, u32),
        accounts: &mut FlowAccounts<'_>,
    ) -> Option<usize> {
        let mut places = self.places(hash).into_iter();
        let free = places.clone().find(|place| self.is_free(*place, since));
        free.or_else(|| places.find(|place| self.move_away(*place, since, accounts, MOST_MOVES)))
    }

    fn is_free(&self, place: usize, (floor, now): (u64, u32)) -> bool {
        let FlowBasis { stamp, last, .. } = self.bases[place];
        stamp < floor || now.wrapping_sub(last) as i32 > IDLE
    }

    /// Moves a flow to its other place, if that is free or another move frees it. Its packets are not forwarded elsewhere any
    /// more, by an entry for the place where it was.
    fn move_away(
        &mut self,
        place: usize,
        since: (u64, u32),
        accounts: &mut FlowAccounts<'_>,
        most: u32,
    ) -> bool {
        let places = self.places(self.hash(&self.entries[place].flow));
        let other = places[usize::from(places[0] == place)];
        let moves =
            self.is_free(other, since) || most > 1 && self.move_away(other, since, accounts, most - 1);
        if moves {
            self.recall(place, accounts);
            self.recall(other, accounts);
            self.note_used(other);
            self.bases[other] = self.bases[place];
            self.replace(other, self.entries[place], self.translation(place).copied());
            self.end(place);
        }
        moves
    }

    fn note_used(&mut self, place: usize) {
        if self.entries[place].flow == WireFlow::default() {
            self.used.push(place as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::addresses::{Inet6Addresses, InetAddresses};
    use super::super::counted_rules::CountedRules;
    use super::super::entry::MOST_PACKETS;
    use super::*;
    use crate::state::hash::split_mix;

    const TIME: FlowTime = FlowTime { stamp: 2, now: 1000, moment: 2 };

    /// How many flows have no place in a cache with these keys.
    fn without_place<A: FlowAddresses>(flows: &[WireFlow<A>], keys: [u64; 4], isa: FlowIsa) -> usize {
        let (mut states, mut rules) = (StateTable::new(1, 1), CountedRules::new());
        let mut accounts = FlowAccounts { states: &mut states, rules: &mut rules, offload: None };
        let mut cache = FlowCache::new(MOST, keys, isa);
        for flow in flows {
            let new = LearnedFlow {
                flow: *flow,
                translation: None,
                states: [None; 2],
                time: TIME,
                next_hop: 1,
                rules: 0,
            };
            cache.learn(new, 1, &mut accounts);
        }
        let is_known = |flow: &&WireFlow<A>| {
            cache.find(cache.hash(flow), flow).is_some_and(|place| cache.is_fresh(place, TIME.moment))
        };
        flows.len() - flows.iter().filter(is_known).count()
    }

    #[test]
    fn packets_from_before_and_after_a_full_sum_are_taken_back() {
        let (mut states, mut rules) = (StateTable::new(1, 1), CountedRules::new());
        let mut accounts = FlowAccounts { states: &mut states, rules: &mut rules, offload: None };
        let mut cache = FlowCache::new(16, [1, 2, 3, 4], FlowIsa::best());
        let flow = flow([198, 18, 0, 1], [198, 19, 0, 1], 2000);
        let new =
            LearnedFlow { flow, translation: None, states: [None; 2], time: TIME, next_hop: 1, rules: 0 };
        cache.learn(new, 1, &mut accounts);
        let place = cache.find(cache.hash(&flow), &flow).unwrap();
        for _ in 1..MOST_PACKETS {
            cache.count(place, 60);
        }
        cache.count(place, 1500);
        cache.renew(place, TIME, &mut states);
        cache.count(place, 60);
        for length in [1500, 60] {
            cache.subtract(place, length, &mut states);
        }
        assert_eq!((cache.entries[place].sum.packets(), cache.entries[place].sum.bytes()), (0, 0));
    }

    /// As of a connection that is opened again and again with the same ports, and translated to another address each time.
    #[test]
    fn ended_entries_are_in_no_list() {
        let (mut states, mut rules) = (StateTable::new(1, 1), CountedRules::new());
        let mut accounts = FlowAccounts { states: &mut states, rules: &mut rules, offload: None };
        let mut cache = FlowCache::new(1 << 10, [1, 2, 3, 4], FlowIsa::best());
        let between = flow([198, 19, 0, 1], [198, 18, 0, 1], 2000);
        let list = cache.hash(&between);
        for address in 1..100 {
            let answer = flow([198, 19, 0, 1], [192, 0, 2, address], 2000);
            let translation = Some(FlowTranslation::new(&answer, between, [true, false]));
            let new = LearnedFlow {
                flow: answer,
                translation,
                states: [None; 2],
                time: TIME,
                next_hop: 1,
                rules: 0,
            };
            let place = cache.learn(new, 1, &mut accounts);
            assert!(place.is_some());
            assert_eq!(cache.translations.first(list), place);
            cache.remove(&between, &mut accounts);
            assert_eq!(cache.translations.first(list), None);
        }
    }

    fn flow(source: [u8; 4], destination: [u8; 4], port: u16) -> WireFlow<InetAddresses> {
        let [a, b, c, d] = source;
        let [e, f, g, h] = destination;
        let [high, low] = port.to_be_bytes();
        WireFlow::new(InetAddresses::from_wire([a, b, c, d, e, f, g, h]), [high, low, 7, 208], 17, 1)
    }

    fn flow6(net: u16, host: u16, port: u16) -> WireFlow<Inet6Addresses> {
        let [[a, b], [c, d]] = [net, host].map(u16::to_be_bytes);
        let mut addresses = [0; 32];
        addresses[..8].copy_from_slice(&[0x20, 1, 0, 2, 0, 0, a, b]);
        addresses[16..24].copy_from_slice(&[0x20, 1, 0, 2, 0, 0x80, 0, 0]);
        addresses[30..].copy_from_slice(&[c, d]);
        let [high, low] = port.to_be_bytes();
        WireFlow::new(Inet6Addresses::from_wire(addresses), [high, low, 7, 208], 17, 1)
    }

    /// Adds flows with each instruction set and several keys.
    fn each_has_a_place<A: FlowAddresses>(flows: &[WireFlow<A>]) {
        for isa in FlowIsa::available() {
            let mut random = 12;
            for _ in 0..16 {
                let keys = [(); 4].map(|()| split_mix(&mut random));
                assert!(without_place(flows, keys, isa) <= 3, "{isa:?} {keys:?}");
            }
        }
    }

    #[test]
    fn nearly_all_flows_have_a_place_however_their_addresses_follow_each_other() {
        let numbers = 0..5000_u16;
        let kinds: [fn(u16) -> WireFlow<InetAddresses>; 3] = [
            |n| flow([198, 18, 10, (n % 20) as u8], [198, 19, 10, (n / 20) as u8], 2000),
            |n| flow([198, 18, 10, (n % 16) as u8], [198, 19, 10, 1], 1024 + n / 16),
            |n| flow([198, 18, 0, 1], [198, 19, (n >> 8) as u8, n as u8], 2000),
        ];
        kinds.iter().for_each(|kind| each_has_a_place(&numbers.clone().map(kind).collect::<Vec<_>>()));
        let kinds: [fn(u16) -> WireFlow<Inet6Addresses>; 3] =
            [|n| flow6(n % 20, n / 20, 2000), |n| flow6(n % 16, 1, 1024 + n / 16), |n| flow6(0, n, 2000)];
        kinds.iter().for_each(|kind| each_has_a_place(&numbers.clone().map(kind).collect::<Vec<_>>()));
    }
}
