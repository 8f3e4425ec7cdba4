//! How many states and connections a source has, for rules that limit them.

use super::flow_key::FlowKey;
use super::hash::FlowHasher;
use super::index::FlowIndex;
use crate::rule::{FlowMask, SourceLimits};

/// What the flows of a source have in common: the parts of the first packet that the rule's mask selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceKey {
    flow: FlowKey,
    /// The rule, if only its own states count.
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
}

/// A source without its states, as another table can go on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceImage {
    pub flow: FlowKey,
    pub rule: u32,
    pub recent: u32,
    pub window: u32,
}

/// A bounded table of sources. A source leaves when its last state does.
#[derive(Debug)]
pub struct SourceTable {
    nodes: Vec<Option<SourceNode>>,
    free: Vec<u32>,
    index: FlowIndex,
    hasher: FlowHasher,
}

impl SourceTable {
    /// An empty table for so many sources, with a secret seed.
    pub fn new(capacity: u32, seed: u64) -> Self {
        SourceTable {
            nodes: vec![None; capacity as usize],
            free: (0..capacity).rev().collect(),
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
    /// is new.
    pub(crate) fn add(
        &mut self,
        key: SourceKey,
        limits: &SourceLimits,
        may_grow: bool,
        now: u32,
    ) -> Option<(u32, bool)> {
        let hash = self.hash(&key);
        let nodes = &self.nodes;
        let is_it = |number: u32| nodes[number as usize].is_some_and(|node| node.key == key);
        if let Some(number) = self.index.find(hash, is_it) {
            let node = self.nodes[number as usize].as_mut()?;
            if limits.max_states.is_some_and(|most| node.states >= most) {
                return None;
            }
            node.states += 1;
            return Some((number, false));
        }
        if !may_grow || limits.max_states == Some(0) {
            return None;
        }
        let number = self.free.pop()?;
        if self.index.insert(hash, number).is_err() {
            self.free.push(number);
            return None;
        }
        let node = SourceNode { key, states: 1, connections: 0, recent: 0, window: now };
        self.nodes[number as usize] = Some(node);
        Some((number, true))
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

    /// Stops counting a state, and returns the rule that the source counted for if it was the last state.
    pub(crate) fn release(&mut self, number: u32, was_connected: bool) -> Option<u32> {
        let node = self.nodes.get_mut(number as usize)?.as_mut()?;
        node.states = node.states.saturating_sub(1);
        node.connections = node.connections.saturating_sub(u32::from(was_connected));
        if node.states > 0 {
            return None;
        }
        let key = node.key;
        self.nodes[number as usize] = None;
        self.index.remove(self.hash(&key), number);
        self.free.push(number);
        Some(key.rule)
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
            let SourceNode { key: SourceKey { flow, rule }, recent, window, .. } = (*node)?;
            Some((number, SourceImage { flow, rule, recent, window }))
        })
    }

    /// Adds a source with one state, and returns its number, unless the table is full.
    pub(crate) fn restore(&mut self, image: &SourceImage) -> Option<u32> {
        let SourceImage { flow, rule, recent, window } = *image;
        let key = SourceKey { flow, rule };
        let number = self.free.pop()?;
        if self.index.insert(self.hash(&key), number).is_err() {
            self.free.push(number);
            return None;
        }
        self.nodes[number as usize] = Some(SourceNode { key, states: 1, connections: 0, recent, window });
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
