//! Who is on the links: the cache of ARP and of neighbour discovery (RFC 826; RFC 4861, section 7.3), with the packets
//! that wait for an answer.
//!
//! The forwarding loop does not tell which neighbours it uses. So a neighbour is not asked again when it is used after
//! a pause, as hosts do, but whenever its answer has become old, and is forgotten when it does not answer any more.
//!
//! Everything is bounded, so that nobody who makes up addresses costs more than a fixed amount of memory and of
//! questions (RFC 6583): see [`NeighborSettings`]. Who has answered is never pushed out by who has not.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::config::NeighborSettings;
use super::limit::TokenBucket;
use super::next_hop::Key;
use entry::{NeighborEntry, Reachability};
use fullview_plane::wire::ethernet::Mac;

mod entry;
#[cfg(test)]
mod tests;

/// A packet that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueuedPacket {
    /// The IP packet.
    pub packet: Vec<u8>,
    /// The interface it came in by, or, if the router made it, that it leaves by.
    pub interface: u16,
}

/// How a link address came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The station was asked, and answered.
    Answer {
        /// Whether it wants to be believed rather than what is known.
        overrides: bool,
    },
    /// The station spoke without having been asked.
    Unasked {
        /// As for an answer.
        overrides: bool,
    },
    /// The station asked for us.
    Question,
}

/// What became of a packet whose neighbour is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// The neighbour has to be asked for.
    Ask,
    /// It was asked for already.
    Waits,
    /// The packet is gone: too many others wait, or are asked for.
    Refused,
}

/// What learning changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// Whether the link address is new.
    pub changed: bool,
    /// What waited for it.
    pub released: VecDeque<QueuedPacket>,
    /// Who had to make room, if the forwarding loop knew it.
    pub evicted: Option<Key>,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Somebody is to be asked: at its link address, if there is one, else everybody.
    Ask(Key, Option<Mac>),
    /// Nobody answered.
    Lost(Key, VecDeque<QueuedPacket>),
}

/// Neighbours looked at when one has to go. Whoever was not confirmed is asked again soonest and stands in front.
const EVICTION_SCAN: usize = 256;

/// The cache.
pub(super) struct NeighborCache {
    settings: NeighborSettings,
    entries: FxHashMap<Key, NeighborEntry>,
    /// All entries but the static ones, by when something is to be done about them.
    timers: BTreeSet<(Duration, Key)>,
    incomplete: usize,
    queued: usize,
    resolutions: Vec<TokenBucket>,
}

impl NeighborCache {
    pub fn new(interfaces: usize, settings: NeighborSettings) -> NeighborCache {
        let resolutions = vec![TokenBucket::new(settings.resolutions); interfaces];
        let (entries, timers) = (FxHashMap::default(), BTreeSet::new());
        NeighborCache { settings, entries, timers, incomplete: 0, queued: 0, resolutions }
    }

    /// For so many interfaces at least.
    pub fn grow(&mut self, interfaces: usize) {
        let interfaces = interfaces.max(self.resolutions.len());
        self.resolutions.resize(interfaces, TokenBucket::new(self.settings.resolutions));
    }

    /// Stations that are never forgotten.
    pub fn statics(&self) -> impl Iterator<Item = Key> + '_ {
        self.entries.iter().filter(|(_, entry)| entry.state == Reachability::Static).map(|(key, _)| *key)
    }

    /// All whose link address is known.
    pub fn known(&self) -> impl Iterator<Item = (Key, Mac)> + '_ {
        self.entries.iter().filter_map(|(key, entry)| Some((*key, entry.mac()?)))
    }

    /// Forgets a station, whatever is known about it.
    pub fn remove(&mut self, key: Key) {
        self.forget(key);
    }

    /// Forgets all stations of these interfaces but the static ones; what waited for them.
    pub fn forget_learnt(&mut self, interfaces: &FxHashSet<u16>) -> Vec<(Key, VecDeque<QueuedPacket>)> {
        let learnt = self.timers.iter().map(|(_, key)| *key).filter(|key| interfaces.contains(&key.0));
        let learnt: Vec<Key> = learnt.collect();
        learnt.into_iter().filter_map(|key| Some((key, self.forget(key)?.queue))).collect()
    }

    /// A station that is never asked for and never forgotten.
    pub fn set_static(&mut self, key: Key, mac: Mac) {
        self.forget(key);
        self.entries.insert(key, NeighborEntry::known(Reachability::Static, mac, Duration::ZERO));
    }

    /// The link address, if it is known.
    pub fn mac(&self, key: Key) -> Option<Mac> {
        self.entries.get(&key).and_then(NeighborEntry::mac)
    }

    /// The packet that has waited longest for a neighbour.
    pub fn first_waiting(&self, key: Key) -> Option<&QueuedPacket> {
        self.entries.get(&key)?.queue.front()
    }

    /// Keeps a packet until its neighbour, which is not known, has answered.
    pub fn wait(&mut self, now: Duration, key: Key, waiting: QueuedPacket) -> Queued {
        let is_new = !self.entries.contains_key(&key);
        if self.queued >= self.settings.queued || is_new && !self.admit_incomplete(now, key) {
            return Queued::Refused;
        }
        let Some(entry) = self.entries.get_mut(&key) else { return Queued::Refused };
        entry.queue.push_back(waiting);
        self.queued += 1;
        if entry.queue.len() > self.settings.queue {
            entry.queue.pop_front();
            self.queued -= 1;
        }
        if is_new { Queued::Ask } else { Queued::Waits }
    }

    /// Makes an entry to be asked for, if the interface may ask for another neighbour and there is room.
    fn admit_incomplete(&mut self, now: Duration, key: Key) -> bool {
        let bucket = self.resolutions.get_mut(usize::from(key.0));
        if !bucket.is_some_and(|bucket| bucket.take(now)) {
            return false;
        }
        if self.incomplete >= self.settings.incomplete {
            self.evict(|entry| entry.state == Reachability::Incomplete);
        }
        if self.timers.len() >= self.settings.capacity {
            self.evict(|entry| entry.state == Reachability::Incomplete);
        }
        if self.incomplete >= self.settings.incomplete || self.timers.len() >= self.settings.capacity {
            return false;
        }
        self.insert(key, NeighborEntry::incomplete(now), now + self.settings.retransmit);
        true
    }

    /// Takes note of a station's link address.
    pub fn learn(&mut self, now: Duration, key: Key, mac: Mac, evidence: Evidence) -> Learned {
        match self.entries.get(&key).map(|entry| entry.state) {
            None if evidence == Evidence::Question => self.meet(now, key, mac),
            None | Some(Reachability::Static) => Learned::default(),
            Some(_) => self.update(now, key, mac, evidence),
        }
    }

    /// A station nobody asked for, which has asked for us: an answer to it will follow, and more perhaps.
    fn meet(&mut self, now: Duration, key: Key, mac: Mac) -> Learned {
        let mut evicted = None;
        if self.timers.len() >= self.settings.capacity {
            evicted =
                self.evict(|entry| matches!(entry.state, Reachability::Incomplete | Reachability::Stale));
        }
        if self.timers.len() >= self.settings.capacity {
            return Learned::default();
        }
        self.insert(key, NeighborEntry::known(Reachability::Stale, mac, now), now + self.settings.stale);
        Learned { changed: true, evicted, ..Learned::default() }
    }

    fn update(&mut self, now: Duration, key: Key, mac: Mac, evidence: Evidence) -> Learned {
        let lock = if key.1.is_ipv4() { self.settings.lock } else { Duration::ZERO };
        let Some(entry) = self.entries.get_mut(&key) else { return Learned::default() };
        let was_incomplete = entry.state == Reachability::Incomplete;
        let changed = entry.update(now, mac, evidence, lock);
        let released = if entry.state == Reachability::Incomplete {
            VecDeque::new()
        } else {
            std::mem::take(&mut entry.queue)
        };
        let state = entry.state;
        self.queued -= released.len();
        self.incomplete -= usize::from(was_incomplete && state != Reachability::Incomplete);
        self.schedule(key, now);
        Learned { changed, released, evicted: None }
    }

    /// Sets the timer that the state asks for; a neighbour already being asked again keeps its own.
    fn schedule(&mut self, key: Key, now: Duration) {
        let Some(entry) = self.entries.get(&key) else { return };
        let deadline = match entry.state {
            Reachability::Reachable if entry.confirmed == now => now + self.settings.reachable,
            Reachability::Stale if entry.confirmed == now => now + self.settings.stale,
            _ => return,
        };
        self.set_timer(key, deadline);
    }

    /// The next thing that is due by now, if any.
    pub fn due(&mut self, now: Duration) -> Option<Due> {
        let (_, key) = *self.timers.first().filter(|(at, _)| *at <= now)?;
        let entry = self.entries.get_mut(&key)?;
        let (mac, exhausted) = (entry.mac(), entry.probes >= self.settings.probes);
        if exhausted && matches!(entry.state, Reachability::Incomplete | Reachability::Probe) {
            let queue = self.forget(key).map_or_else(VecDeque::new, |entry| entry.queue);
            return Some(Due::Lost(key, queue));
        }
        if matches!(entry.state, Reachability::Reachable | Reachability::Stale) {
            (entry.state, entry.probes) = (Reachability::Probe, 0);
        }
        entry.probes += 1;
        self.set_timer(key, now + self.settings.retransmit);
        Some(Due::Ask(key, mac))
    }

    /// When something is due.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn insert(&mut self, key: Key, entry: NeighborEntry, deadline: Duration) {
        self.incomplete += usize::from(entry.state == Reachability::Incomplete);
        self.entries.insert(key, entry);
        self.set_timer(key, deadline);
    }

    fn set_timer(&mut self, key: Key, deadline: Duration) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        self.timers.remove(&(entry.deadline, key));
        entry.deadline = deadline;
        self.timers.insert((deadline, key));
    }

    fn forget(&mut self, key: Key) -> Option<NeighborEntry> {
        let entry = self.entries.remove(&key)?;
        self.timers.remove(&(entry.deadline, key));
        self.queued -= entry.queue.len();
        self.incomplete -= usize::from(entry.state == Reachability::Incomplete);
        Some(entry)
    }

    /// Forgets the one of those who may go whose turn would have come first. Returned if its link address was known.
    fn evict(&mut self, may_go: impl Fn(&NeighborEntry) -> bool) -> Option<Key> {
        let mut candidates = self.timers.iter().take(EVICTION_SCAN).map(|(_, key)| *key);
        let key = candidates.find(|key| self.entries.get(key).is_some_and(&may_go))?;
        let entry = self.forget(key)?;
        entry.mac().map(|_| key)
    }
}
