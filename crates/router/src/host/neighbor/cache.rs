//! The cache itself.
//!
//! The forwarding loop does not report which neighbours it uses. So the cache does not verify a neighbour on its first
//! use after a pause, as hosts do, but whenever its last answer has expired; a neighbour that does not answer is removed.
//!
//! Everything is bounded, so that a station that makes up addresses costs a fixed amount of memory and of requests
//! (RFC 6583): see [`NeighborSettings`]. An unresolved neighbour always gets room from an older one: a neighbour that exists
//! answers long before it is the oldest. Neighbours that have answered make room for a few unresolved ones and for no more,
//! those of the interface first that has most: a station that answers for many addresses does not stop other resolutions.

use std::collections::VecDeque;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::admission::ResolutionLimiter;
use super::entry::{Evidence, NeighborEntry, QueuedPacket, Reachability};
use super::id::NeighborId;
use super::incomplete::IncompleteNeighbors;
use super::settings::NeighborSettings;
use super::timers::NeighborTimers;
use crate::host::limit::{InterfaceLimiter, RateLimit};
use fullview_plane::wire::ethernet::Mac;

#[cfg(test)]
mod tests;

/// What became of a packet whose neighbour is unresolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Enqueued {
    /// The packet waits, and the caller has to send the first request.
    Solicit {
        /// The neighbour that was removed to make room, if its link address was known.
        evicted: Option<NeighborId>,
    },
    /// The packet waits for a request that was sent before.
    Waits,
    /// The packet is dropped: too many resolutions began lately.
    Refused,
}

/// What a message changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::host) struct CacheUpdate {
    /// Whether the link address is new.
    pub changed: bool,
    /// The packets that waited for it.
    pub released: VecDeque<QueuedPacket>,
    /// The neighbour that was removed to make room, if its link address was known.
    pub evicted: Option<NeighborId>,
}

/// What to do about a neighbour whose timer has expired.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::host) enum NeighborTimeout {
    /// Send a request: to the link address if there is one, else to the whole link.
    Solicit(NeighborId, Option<Mac>),
    /// The neighbour did not answer, and these packets waited for it.
    Lost(NeighborId, VecDeque<QueuedPacket>),
}

/// The shortest time between two requests to a neighbour: without any, one turn would ask it without end.
const SHORTEST_RETRANSMIT: Duration = Duration::from_millis(1);
/// The most neighbours that are examined when one has to be evicted.
const EVICTION_SCAN: usize = 1024;
/// The share of the cache that stations cannot fill that only asked for the router: one part of so many is kept for
/// neighbours that the router resolves.
const RESOLUTION_SHARE: usize = 8;
/// The share of the cache that resolved neighbours give back to unresolved ones: one part of so many. It is small, because a
/// scan of a network takes it too.
const RETURNED_SHARE: usize = 64;

pub(in crate::host) struct NeighborCache {
    settings: NeighborSettings,
    entries: FxHashMap<NeighborId, NeighborEntry>,
    /// All entries except the static ones, by the time at which they need attention.
    timers: NeighborTimers,
    incomplete: IncompleteNeighbors,
    limiter: ResolutionLimiter,
    /// Limits how often stations are learned that asked for the router.
    requests: InterfaceLimiter,
    packets_dropped: u64,
}

impl NeighborCache {
    pub fn new(interfaces: usize, settings: NeighborSettings) -> NeighborCache {
        let limiter = ResolutionLimiter::new(interfaces, settings.resolutions);
        let requests = InterfaceLimiter::new(interfaces, settings.requests, RateLimit::NONE);
        let (entries, timers) = (FxHashMap::default(), NeighborTimers::new(interfaces));
        let incomplete = IncompleteNeighbors::new(interfaces);
        let retransmit = settings.retransmit.max(SHORTEST_RETRANSMIT);
        let settings = NeighborSettings { retransmit, ..settings };
        NeighborCache { settings, entries, timers, incomplete, limiter, requests, packets_dropped: 0 }
    }

    /// Makes room for at least this many interfaces.
    pub fn grow(&mut self, interfaces: usize) {
        self.limiter.grow(interfaces);
        self.requests.grow(interfaces);
        self.incomplete.grow(interfaces);
        self.timers.grow(interfaces);
    }

    /// Packets dropped because no more could wait for their neighbours.
    pub fn packets_dropped(&self) -> u64 {
        self.packets_dropped
    }

    /// The neighbours that are configured.
    pub fn static_neighbors(&self) -> impl Iterator<Item = NeighborId> + '_ {
        self.entries.iter().filter(|(_, entry)| entry.state == Reachability::Static).map(|(id, _)| *id)
    }

    /// All neighbours whose link address is known.
    pub fn resolved(&self) -> impl Iterator<Item = (NeighborId, Mac)> + '_ {
        self.entries.iter().filter_map(|(id, entry)| Some((*id, entry.mac()?)))
    }

    /// Removes a neighbour, whatever its state.
    pub fn remove(&mut self, id: NeighborId) {
        self.take(id);
    }

    /// Removes all neighbours of these interfaces except the static ones. Returns the packets that waited for them.
    pub fn remove_learned(
        &mut self,
        interfaces: &FxHashSet<u16>,
    ) -> Vec<(NeighborId, VecDeque<QueuedPacket>)> {
        let learned = self.timers.neighbors().filter(|id| interfaces.contains(&id.interface));
        let learned: Vec<NeighborId> = learned.collect();
        learned.into_iter().filter_map(|id| Some((id, self.take(id)?.queue))).collect()
    }

    /// Adds a neighbour that is never solicited and never removed by a timer.
    pub fn set_static(&mut self, id: NeighborId, mac: Mac) {
        self.take(id);
        self.entries.insert(id, NeighborEntry::resolved(Reachability::Static, mac, Duration::ZERO));
    }

    /// The link address, if it is resolved.
    pub fn mac(&self, id: NeighborId) -> Option<Mac> {
        self.entries.get(&id).and_then(NeighborEntry::mac)
    }

    /// The packet that has waited longest for a neighbour.
    pub fn oldest_queued(&self, id: NeighborId) -> Option<&QueuedPacket> {
        self.entries.get(&id)?.queue.front()
    }

    /// Queues a packet until its neighbour, which is unresolved, has answered.
    pub fn enqueue(&mut self, now: Duration, id: NeighborId, packet: QueuedPacket) -> Enqueued {
        let is_known = self.entries.contains_key(&id);
        let enqueued = if is_known { Enqueued::Waits } else { self.admit_incomplete(now, id, &packet) };
        let Some(entry) = self.entries.get_mut(&id) else {
            self.packets_dropped += 1;
            return enqueued;
        };
        entry.queue.push_back(packet);
        if entry.queue.len() > self.settings.queue {
            entry.queue.pop_front();
            self.packets_dropped += 1;
        }
        enqueued
    }

    /// Adds an unresolved entry, if the limits let another resolution begin.
    fn admit_incomplete(&mut self, now: Duration, id: NeighborId, packet: &QueuedPacket) -> Enqueued {
        if !self.limiter.take(now, id, (packet.interface, packet.source)) {
            return Enqueued::Refused;
        }
        let evicted = self.make_room();
        if self.is_full_of_incomplete() || self.is_full() {
            return Enqueued::Refused;
        }
        let serial = self.incomplete.add(id);
        self.insert(id, NeighborEntry::incomplete(now, serial), now + self.settings.retransmit);
        Enqueued::Solicit { evicted }
    }

    fn is_full(&self) -> bool {
        self.timers.len() >= self.settings.capacity
    }

    fn is_full_of_incomplete(&self) -> bool {
        self.incomplete.len() >= self.settings.incomplete
    }

    /// Makes room for an unresolved neighbour. Returns the resolved one that was removed for it.
    fn make_room(&mut self) -> Option<NeighborId> {
        let returned = (self.settings.capacity / RETURNED_SHARE).max(1);
        let may_evict = self.is_full() && self.incomplete.len() < returned && !self.is_full_of_incomplete();
        let evicted = if may_evict { self.evict_resolved() } else { None };
        if self.is_full() || self.is_full_of_incomplete() {
            self.evict_incomplete();
        }
        evicted
    }

    /// Removes the resolved neighbour with the earliest timer of the interface that has most.
    fn evict_resolved(&mut self) -> Option<NeighborId> {
        let is_resolved = |id: &NeighborId| self.mac(*id).is_some();
        let id = self.timers.of_fullest().find(is_resolved)?;
        self.take(id).map(|_| id)
    }

    /// Gives up the oldest resolution of the interface that has most.
    fn evict_incomplete(&mut self) {
        let evicted = self.incomplete.oldest_of_fullest().and_then(|id| self.take(id));
        self.packets_dropped += evicted.map_or(0, |entry| entry.queue.len() as u64);
    }

    /// Applies a message that names a station's link address.
    pub fn learn(&mut self, now: Duration, id: NeighborId, mac: Mac, evidence: Evidence) -> CacheUpdate {
        match self.entries.get(&id).map(|entry| entry.state) {
            None if evidence == Evidence::Request => self.add_stale(now, id, mac),
            None | Some(Reachability::Static) => CacheUpdate::default(),
            Some(_) => self.update(now, id, mac, evidence),
        }
    }

    /// Adds a station that asked for the router: an answer to it will follow, and probably more packets.
    fn add_stale(&mut self, now: Duration, id: NeighborId, mac: Mac) -> CacheUpdate {
        if !self.requests.take(now, id.interface) {
            return CacheUpdate::default();
        }
        let room = self.settings.capacity - self.settings.capacity / RESOLUTION_SHARE;
        let is_full = self.timers.len() >= room;
        let evicted = if is_full { self.evict_stale() } else { None };
        if is_full && evicted.is_none() {
            return CacheUpdate::default();
        }
        self.insert(id, NeighborEntry::resolved(Reachability::Stale, mac, now), now + self.settings.stale);
        CacheUpdate { changed: true, evicted, ..CacheUpdate::default() }
    }

    fn update(&mut self, now: Duration, id: NeighborId, mac: Mac, evidence: Evidence) -> CacheUpdate {
        let lock = if id.ip.is_ipv4() { self.settings.lock } else { Duration::ZERO };
        let Some(entry) = self.entries.get_mut(&id) else { return CacheUpdate::default() };
        let was_incomplete = entry.state == Reachability::Incomplete;
        let changed = entry.update(now, mac, evidence, lock);
        let mut released = VecDeque::new();
        if was_incomplete && entry.state != Reachability::Incomplete {
            released = std::mem::take(&mut entry.queue);
            self.incomplete.remove(id.interface, entry.serial);
        }
        self.schedule(id, now);
        CacheUpdate { changed, released, evicted: None }
    }

    /// Sets the timer that the state needs. A neighbour that is being probed keeps its timer.
    fn schedule(&mut self, id: NeighborId, now: Duration) {
        let Some(entry) = self.entries.get(&id) else { return };
        let deadline = match entry.state {
            Reachability::Reachable if entry.confirmed == now => now + self.settings.reachable,
            Reachability::Stale if entry.confirmed == now => now + self.settings.stale,
            _ => return,
        };
        self.set_timer(id, deadline);
    }

    /// The next neighbour whose timer has expired by now, and what to do about it.
    pub fn next_timeout(&mut self, now: Duration) -> Option<NeighborTimeout> {
        let (_, id) = self.timers.first().filter(|(at, _)| *at <= now)?;
        let entry = self.entries.get_mut(&id)?;
        let (mac, exhausted) = (entry.mac(), entry.probes >= self.settings.probes);
        if exhausted && matches!(entry.state, Reachability::Incomplete | Reachability::Probe) {
            let queue = self.take(id).map_or_else(VecDeque::new, |entry| entry.queue);
            return Some(NeighborTimeout::Lost(id, queue));
        }
        if matches!(entry.state, Reachability::Reachable | Reachability::Stale) {
            (entry.state, entry.probes) = (Reachability::Probe, 0);
        }
        entry.probes += 1;
        self.set_timer(id, now + self.settings.retransmit);
        Some(NeighborTimeout::Solicit(id, mac))
    }

    /// When the next timer expires.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| at)
    }

    fn insert(&mut self, id: NeighborId, entry: NeighborEntry, deadline: Duration) {
        self.entries.insert(id, entry);
        self.set_timer(id, deadline);
    }

    fn set_timer(&mut self, id: NeighborId, deadline: Duration) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        self.timers.remove(entry.deadline, id);
        entry.deadline = deadline;
        self.timers.insert(deadline, id);
    }

    fn take(&mut self, id: NeighborId) -> Option<NeighborEntry> {
        let entry = self.entries.remove(&id)?;
        self.timers.remove(entry.deadline, id);
        if entry.state == Reachability::Incomplete {
            self.incomplete.remove(id.interface, entry.serial);
        }
        Some(entry)
    }

    /// Removes the neighbour with the earliest timer among those that only asked for the router.
    fn evict_stale(&mut self) -> Option<NeighborId> {
        let is_stale =
            |id: &NeighborId| self.entries.get(id).is_some_and(|entry| entry.state == Reachability::Stale);
        let id = self.timers.neighbors().take(EVICTION_SCAN).find(is_stale)?;
        self.take(id).map(|_| id)
    }
}
