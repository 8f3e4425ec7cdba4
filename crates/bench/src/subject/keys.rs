//! Keys to look up, with the answers that the RIB gives them.

use fullview_table::{Address, NextHop};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::traffic::flow::FlowSet;

/// A stream of keys with the answers that the RIB gives them.
pub struct Keys<A> {
    pub addrs: Vec<A>,
    pub expected: Vec<NextHop>,
}

impl<A: Address> Keys<A> {
    /// The destinations of the flows in the order in which they are sent.
    pub fn as_sent(flows: &FlowSet<A>) -> Self {
        let packets = flows.packets();
        let addrs = packets.iter().map(|flow| flow.destination).collect();
        let expected = packets.iter().map(|flow| flows.next_hops()[flow.id as usize]).collect();
        Keys { addrs, expected }
    }

    /// `count` destinations of the flows in random order; a destination repeats as the draw has it.
    pub fn drawn(flows: &FlowSet<A>, count: usize, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let packets = flows.packets();
        let mut keys = Keys { addrs: Vec::with_capacity(count), expected: Vec::with_capacity(count) };
        for _ in 0..count {
            let flow = &packets[random.random_range(0..packets.len())];
            keys.addrs.push(flow.destination);
            keys.expected.push(flows.next_hops()[flow.id as usize]);
        }
        keys
    }
}
