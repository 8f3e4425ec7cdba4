//! Frames that the program forwarded, by interface. Only the worker counts them, when it takes the counts of entries.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::entry::FlowEnds;
use crate::counters::{Counters, Traffic};

/// Interfaces whose frames are counted. Flows of others are not shared.
pub(super) const MOST_INTERFACES: usize = 4096;

/// Received packets and bytes, then sent ones.
type Counts = [AtomicU64; 4];

#[derive(Debug)]
pub(super) struct FlowTraffic {
    interfaces: Box<[Counts]>,
    /// All packets ever.
    packets: AtomicU64,
}

impl FlowTraffic {
    pub fn new() -> FlowTraffic {
        let none = || [const { AtomicU64::new(0) }; 4];
        FlowTraffic { interfaces: (0..MOST_INTERFACES).map(|_| none()).collect(), packets: AtomicU64::new(0) }
    }

    /// Counts packets of a flow and what their frames have besides Ethernet headers.
    pub fn count(&self, ends: &FlowEnds, packets: u64, bytes: u64) {
        for (side, (interface, header)) in ends.interfaces.into_iter().zip(ends.headers).enumerate() {
            let Some(counts) = self.interfaces.get(usize::from(interface)) else { continue };
            add(&counts[2 * side], packets);
            add(&counts[2 * side + 1], bytes + packets * header);
        }
        add(&self.packets, packets);
    }

    /// Moves the counts of so many interfaces to the worker's.
    pub fn move_to(&self, counters: &mut Counters) {
        let interfaces = counters.interfaces.len();
        for (number, counts) in (0..).zip(self.interfaces.iter().take(interfaces)) {
            let [packets, bytes, sent, sent_bytes] = counts.each_ref().map(|count| count.swap(0, Relaxed));
            counters.add_received(number, Traffic { packets, bytes });
            counters.add_sent(number, Traffic { packets: sent, bytes: sent_bytes });
        }
    }

    pub fn packets(&self) -> u64 {
        self.packets.load(Relaxed)
    }
}

/// One thread adds, so a load and a store suffice.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
}
