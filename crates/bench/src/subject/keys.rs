//! Keys to look up, with the answers that the RIB gives them.

use fullview_table::{Address, NextHop};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::traffic::flow::FlowSet;

/// Keys looked up between two readings of the clock, at most: some ten microseconds, so that the readings do not show in the
/// rate and a slice of half a millisecond has its length.
pub const MOST_KEYS_AT_ONCE: usize = 1 << 12;

/// A stream of keys with the answers that the RIB gives them, which is walked round and round. Its beginning follows its end
/// once more, so that no part of the walk is shorter where the stream ends.
pub struct Keys<A> {
    addrs: Vec<A>,
    expected: Vec<NextHop>,
    count: usize,
}

impl<A: Address> Keys<A> {
    /// The destinations of the flows in the order in which they are sent.
    pub fn as_sent(flows: &FlowSet<A>) -> Self {
        let packets = flows.packets().iter();
        Keys::new(packets.map(|flow| (flow.destination, flows.next_hops()[flow.id as usize])))
    }

    /// `count` destinations of the flows in random order; a destination repeats as the draw has it.
    pub fn drawn(flows: &FlowSet<A>, count: usize, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let packets = flows.packets();
        let drawn = (0..count).map(|_| &packets[random.random_range(0..packets.len())]);
        Keys::new(drawn.map(|flow| (flow.destination, flows.next_hops()[flow.id as usize])))
    }

    fn new(stream: impl Iterator<Item = (A, NextHop)>) -> Self {
        let (mut addrs, mut expected): (Vec<A>, Vec<NextHop>) = stream.unzip();
        let count = addrs.len();
        repeat_beginning(&mut addrs);
        repeat_beginning(&mut expected);
        Keys { addrs, expected, count }
    }

    /// The number of keys after which the stream repeats.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The stream, once.
    pub fn once(&self) -> (&[A], &[NextHop]) {
        (&self.addrs[..self.count], &self.expected[..self.count])
    }

    /// So many keys from a place of the stream on, and their answers; [`MOST_KEYS_AT_ONCE`] at most.
    pub fn part(&self, at: usize, length: usize) -> (&[A], &[NextHop]) {
        (&self.addrs[at..at + length], &self.expected[at..at + length])
    }
}

fn repeat_beginning<T: Copy>(stream: &mut Vec<T>) {
    let beginning: Vec<T> = stream.iter().copied().cycle().take(MOST_KEYS_AT_ONCE).collect();
    stream.reserve_exact(beginning.len());
    stream.extend(beginning);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_whole_and_goes_on_where_the_stream_begins() {
        for count in [1, 3, MOST_KEYS_AT_ONCE, 7_000] {
            let keys = Keys::new((0..count).map(|key| (key as u32, NextHop(key as u16))));
            assert_eq!(keys.once().0.len(), count);
            for at in [0, count / 2, count - 1] {
                let (addrs, expected) = keys.part(at, MOST_KEYS_AT_ONCE);
                let wanted = (at..at + MOST_KEYS_AT_ONCE).map(|key| (key % count) as u32);
                assert!(addrs.iter().copied().eq(wanted), "{count} keys from {at}");
                assert!(addrs.iter().zip(expected).all(|(addr, hop)| *addr as u16 == hop.0));
            }
        }
    }
}
