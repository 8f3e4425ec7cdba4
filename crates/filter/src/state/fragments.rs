//! The ports of fragmented packets: later fragments lack them, and belong to the flow of their first one.
//!
//! Fragments are neither held back nor put together. A later fragment that comes before the first one is judged by the
//! rules without ports. The cache is a ring: a new packet replaces the oldest one.

use super::flow_key::FlowKey;
use super::hash::FlowHasher;
use super::index::FlowIndex;
use crate::packet::{Fragment, Packet};

/// How long later fragments are expected, in milliseconds (RFC 8200, section 4.5).
const LIFETIME: u32 = 60_000;

#[derive(Clone, Copy, Debug)]
struct FragmentedPacket {
    /// The addresses, the protocol, and the identification in place of the ports.
    key: FlowKey,
    ports: (u16, u16),
    seen: u32,
}

/// A bounded cache of fragmented packets.
#[derive(Debug)]
pub struct FragmentCache {
    ring: Vec<Option<FragmentedPacket>>,
    next: usize,
    index: FlowIndex,
    hasher: FlowHasher,
}

impl FragmentCache {
    /// An empty cache for so many packets, with a secret seed.
    pub fn new(capacity: u32, seed: u64) -> Self {
        let entries = capacity.max(1) as usize;
        FragmentCache {
            ring: vec![None; entries],
            next: 0,
            index: FlowIndex::new(entries),
            hasher: FlowHasher::new(seed),
        }
    }

    /// Remembers the ports of a first fragment, or gives them to a later one.
    #[cold]
    pub fn complete(&mut self, packet: &mut Packet, now: u32) {
        match packet.fragment {
            Fragment::Whole => {}
            Fragment::First { id } => self.remember(identity(packet, id), packet.flow_ports(), now),
            Fragment::Later { id } => {
                if let Some(ports) = self.find(&identity(packet, id), now) {
                    (packet.source_port, packet.destination_port) = ports;
                }
            }
        }
    }

    fn find(&self, key: &FlowKey, now: u32) -> Option<(u16, u16)> {
        let entry = |number: u32| self.ring[number as usize].filter(|found| found.key == *key);
        let number = self.index.find(self.hasher.hash(key), |number| entry(number).is_some())?;
        entry(number).filter(|found| now.wrapping_sub(found.seen) < LIFETIME).map(|found| found.ports)
    }

    fn remember(&mut self, key: FlowKey, ports: (u16, u16), now: u32) {
        let hash = self.hasher.hash(&key);
        let packet = Some(FragmentedPacket { key, ports, seen: now });
        let is_it = |number: u32| self.ring[number as usize].is_some_and(|found| found.key == key);
        if let Some(number) = self.index.find(hash, is_it) {
            self.ring[number as usize] = packet;
            return;
        }
        if let Some(oldest) = self.ring[self.next].take() {
            self.index.remove(self.hasher.hash(&oldest.key), self.next as u32);
        }
        if self.index.insert(hash, self.next as u32).is_ok() {
            self.ring[self.next] = packet;
            self.next = (self.next + 1) % self.ring.len();
        }
    }
}

/// What the fragments of a packet have in common. Both directions of a flow number their packets independently; a key and
/// its reverse have one hash, but are not equal.
fn identity(packet: &Packet, id: u32) -> FlowKey {
    FlowKey {
        source: packet.source,
        destination: packet.destination,
        source_port: (id >> 16) as u16,
        destination_port: id as u16,
        protocol: packet.protocol,
    }
}
