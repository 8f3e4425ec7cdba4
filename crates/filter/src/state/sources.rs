//! How many states and connections a source has, for rules that limit them.

use super::flow_key::FlowKey;
use super::hash::FlowHasher;
use super::index::FlowIndex;
use super::number_list::NumberList;
use crate::rule::{FlowMask, SourceLimits};

/// What the flows of a source have in common: the parts of the first packet that the rule's mask selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceKey {
    flow: FlowKey,
    /// The rule, if only its own states count, also if that is gone; [`NO_RULE`](super::NO_RULE) if those of all rules do.
    rule: u32,
}

impl SourceKey {
    /// The key of a flow; parts that the mask leaves out are zero.
    pub fn new(flow: FlowKey, mask: FlowMask, rule: u32) -> Self {
        let mut masked = FlowKey::NOTHING;
        if mask.source {
            masked.source = flow.source;
        }
        if mask.destination {
            masked.destination = flow.destination;
        }
        if mask.source_port {
            masked.source_port = flow.source_port;
        }
        if mask.destination_port {
            masked.destination_port = flow.destination_port;
        }
        if mask.protocol {
            masked.protocol = flow.protocol;
        }
        SourceKey { flow: masked, rule }
    }
}

#[derive(Clone, Copy, Debug)]
struct SourceNode {
    key: SourceKey,
    states: u32,
    /// States whose TCP handshake is complete.
    connections: u32,
    /// Connections since `window`.
    recent: u32,
    /// When the current period of the rate began.
    window: u32,
    /// For how many milliseconds it stays without states.
    stay: u32,
    /// When its last state ended, if it has none.
    idle_since: u32,
}

impl SourceNode {
    fn is_over(&self, now: u32) -> bool {
        // A clock that went back makes no age.
        let age = now.wrapping_sub(self.idle_since) as i32;
        self.states == 0 && i64::from(age) >= i64::from(self.stay)
    }
}

/// A state that counts for a source.
pub(crate) struct NewSourceState<'a> {
    pub key: SourceKey,
    pub limits: &'a SourceLimits,
    /// Whether the source may be a new one.
    pub may_grow: bool,
    /// For how many milliseconds the source stays after its last state (pf's `src.track`).
    pub stay: u32,
}

/// A source without its states, as another table can go on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceImage {
    pub flow: FlowKey,
    pub rule: u32,
    pub recent: u32,
    pub window: u32,
    /// When its last state ended, if it has none.
    pub idle_since: Option<u32>,
}

/// How many sources without states a call of [`SourceTable::sweep`] looks at, at most, and in how many milliseconds it
/// visits all of them.
const SWEPT: u32 = 128;
const INTERVAL: u32 = 10_000;

/// A bounded table of sources. A source stays for a time after its last state, unless a new one needs its place.
#[derive(Debug)]
pub struct SourceTable {
    nodes: Vec<Option<SourceNode>>,
    free: Vec<u32>,
    /// Those without states.
    idle: NumberList,
    /// When the sweep last ran.
    swept: u32,
    index: FlowIndex,
    hasher: FlowHasher,
}

impl SourceTable {
    /// An empty table for so many sources, with a secret seed.
    pub fn new(capacity: u32, seed: u64) -> Self {
        SourceTable {
            nodes: vec![None; capacity as usize],
            free: (0..capacity).rev().collect(),
            idle: NumberList::new(capacity),
            swept: 0,
            index: FlowIndex::new(capacity as usize),
            hasher: FlowHasher::new(seed),
        }
    }

    /// How many sources there are.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts a new state, unless a limit or the table's size forbids it. Returns the number of the source, and whether it
    /// is new. In a full table the source that has been without states for the longest time makes room: `removed` gets its
    /// rule.
    pub(crate) fn add(
        &mut self,
        new: &NewSourceState<'_>,
        now: u32,
        removed: impl FnMut(u32),
    ) -> Option<(u32, bool)> {
        if let Some(number) = self.find(&new.key) {
            return self.add_to(number, new, now).then_some((number, false));
        }
        if !new.may_grow || new.limits.max_states == Some(0) {
            return None;
        }
        if self.free.is_empty() {
            self.evict().into_iter().for_each(removed);
        }
        let SourceKey { flow, rule } = new.key;
        let image = SourceImage { flow, rule, recent: 0, window: now, idle_since: None };
        let number = self.restore(&image, new.stay)?;
        Some((number, true))
    }

    fn find(&self, key: &SourceKey) -> Option<u32> {
        let is_it = |number: u32| self.nodes[number as usize].is_some_and(|node| node.key == *key);
        self.index.find(self.hash(key), is_it)
    }

    /// Counts a state of a source that is there, and says whether its limits allow it.
    fn add_to(&mut self, number: u32, new: &NewSourceState<'_>, now: u32) -> bool {
        let Some(node) = &mut self.nodes[number as usize] else { return false };
        if new.limits.max_states.is_some_and(|most| node.states >= most) {
            return false;
        }
        if node.states == 0 {
            self.idle.remove(number);
        }
        if node.is_over(now) {
            (node.recent, node.window) = (0, now);
        }
        node.states += 1;
        node.stay = new.stay;
        true
    }

    /// Counts a connection whose handshake is complete, and says whether the limits allow it.
    pub(crate) fn connect(&mut self, number: u32, limits: &SourceLimits, now: u32) -> bool {
        let Some(node) = self.nodes.get_mut(number as usize).and_then(Option::as_mut) else { return true };
        node.connections += 1;
        let (most, seconds) = limits.rate.unwrap_or((u32::MAX, 0));
        if now.wrapping_sub(node.window) >= seconds.saturating_mul(1000) {
            (node.recent, node.window) = (0, now);
        }
        node.recent += 1;
        node.recent <= most && limits.max_connections.is_none_or(|limit| node.connections <= limit)
    }

    /// Stops counting a state, and returns the rule that the source counted for if that leaves with it.
    pub(crate) fn release(&mut self, number: u32, was_connected: bool, now: u32) -> Option<u32> {
        let node = self.nodes.get_mut(number as usize)?.as_mut()?;
        node.states = node.states.saturating_sub(1);
        node.connections = node.connections.saturating_sub(u32::from(was_connected));
        if node.states > 0 {
            return None;
        }
        node.idle_since = now;
        let stays = node.stay > 0;
        self.idle.push(number);
        if stays { None } else { self.remove_idle(number) }
    }

    /// Removes the source that has been without states for the longest time, and returns its rule.
    fn evict(&mut self) -> Option<u32> {
        let number = self.idle.first()?;
        self.remove_idle(number)
    }

    fn remove_idle(&mut self, number: u32) -> Option<u32> {
        let SourceNode { key, .. } = self.nodes[number as usize].take()?;
        self.idle.remove(number);
        self.index.remove(self.hash(&key), number);
        self.free.push(number);
        Some(key.rule)
    }

    /// Removes sources that have been without states for long enough, and passes on their rules. It looks at a bounded piece
    /// of them, so that all are visited every ten seconds.
    pub(crate) fn sweep(&mut self, now: u32, mut removed: impl FnMut(u32)) {
        let due = u64::from(self.idle.len()) * u64::from(now.wrapping_sub(self.swept)) / u64::from(INTERVAL);
        if due == 0 && self.idle.len() > 0 {
            return;
        }
        self.swept = now;
        for _ in 0..due.min(u64::from(SWEPT)).min(u64::from(self.idle.len())) {
            let Some(number) = self.idle.step() else { return };
            if self.nodes[number as usize].is_some_and(|node| node.is_over(now)) {
                self.remove_idle(number).into_iter().for_each(&mut removed);
            }
        }
    }

    /// Forgets which rule sources count for, as rules have new numbers: new states count from zero.
    pub(crate) fn renumber(&mut self, new: impl Fn(u32) -> u32) {
        for number in 0..self.nodes.len() as u32 {
            let Some(node) = self.nodes[number as usize] else { continue };
            let key = SourceKey { rule: new(node.key.rule), ..node.key };
            self.index.remove(self.hash(&node.key), number);
            // As many entries as before: a slot is free.
            let _ = self.index.insert(self.hash(&key), number);
            self.nodes[number as usize] = Some(SourceNode { key, ..node });
        }
    }

    /// All sources, with their numbers.
    pub(crate) fn images(&self) -> impl Iterator<Item = (u32, SourceImage)> {
        (0..).zip(&self.nodes).filter_map(|(number, node)| {
            let SourceNode { key: SourceKey { flow, rule }, recent, window, idle_since, states, .. } =
                (*node)?;
            let idle_since = (states == 0).then_some(idle_since);
            Some((number, SourceImage { flow, rule, recent, window, idle_since }))
        })
    }

    /// Adds a source with one state, and returns its number, unless the table is full.
    pub(crate) fn restore(&mut self, image: &SourceImage, stay: u32) -> Option<u32> {
        let SourceImage { flow, rule, recent, window, .. } = *image;
        let key = SourceKey { flow, rule };
        let number = self.free.pop()?;
        if self.index.insert(self.hash(&key), number).is_err() {
            self.free.push(number);
            return None;
        }
        let node = SourceNode { key, states: 1, connections: 0, recent, window, stay, idle_since: 0 };
        self.nodes[number as usize] = Some(node);
        Some(number)
    }

    /// Counts a state that was counted before, in another table.
    pub(crate) fn count_again(&mut self, number: u32, is_connected: bool) {
        if let Some(node) = self.nodes.get_mut(number as usize).and_then(Option::as_mut) {
            node.states = node.states.saturating_add(1);
            node.connections = node.connections.saturating_add(u32::from(is_connected));
        }
    }

    fn hash(&self, key: &SourceKey) -> u64 {
        self.hasher.hash(&key.flow) ^ u64::from(key.rule).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
