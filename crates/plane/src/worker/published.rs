//! A worker's counters for other threads. Only the worker writes them, once per round, with plain stores.
//!
//! Readers take no lock and slow the worker down only by the cache lines they fetch. Each counter is exact and never
//! decreases; two counters may be one round apart. A packet that waits for room at its port is not counted as sent.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::{Counters, InterfaceCounters, Traffic};
use crate::report_time::ReportTime;
use crate::verdict::{Punt, Reason};

/// Counters of a worker that are not packets of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Rounds over all ports.
    pub rounds: u64,
    /// Rounds without a received packet.
    pub idle_rounds: u64,
}

/// Interfaces whose counters are allocated together.
const CHUNK: usize = 64;

/// Received packets and bytes, sent packets and bytes, overruns.
type InterfaceCells = [AtomicU64; 5];

/// All counters of one worker, aligned so that no two workers write to the same pair of cache lines: processors fetch two
/// lines at a time.
#[repr(align(128))]
pub struct PublishedCounters {
    drops: [AtomicU64; Reason::COUNT],
    punts: [AtomicU64; Punt::COUNT],
    rounds: AtomicU64,
    idle_rounds: AtomicU64,
    /// When the last round began, in nanoseconds.
    round_began: AtomicU64,
    /// How many interfaces there are.
    interfaces: AtomicU64,
    chunks: Box<[OnceLock<Box<InterfaceChunk>>]>,
}

#[repr(align(128))]
struct InterfaceChunk {
    traffic: [InterfaceCells; CHUNK],
    drops: [[AtomicU64; Reason::COUNT]; CHUNK],
}

const _: () =
    assert!(align_of::<PublishedCounters>() == 128 && size_of::<InterfaceChunk>().is_multiple_of(128));

impl Default for PublishedCounters {
    fn default() -> PublishedCounters {
        let zero = |_| AtomicU64::new(0);
        let chunks = (0..=usize::from(u16::MAX) / CHUNK).map(|_| OnceLock::new());
        PublishedCounters {
            drops: std::array::from_fn(zero),
            punts: std::array::from_fn(zero),
            rounds: zero(0),
            idle_rounds: zero(0),
            round_began: zero(0),
            interfaces: zero(0),
            chunks: chunks.collect(),
        }
    }
}

impl PublishedCounters {
    /// Publishes that a round begins.
    pub(super) fn begin_round(&self, now: ReportTime) {
        store(&self.round_began, now.nanos());
    }

    /// When the last round began. A worker that sleeps for lack of packets begins rounds too.
    pub fn round_began(&self) -> ReportTime {
        ReportTime::from_nanos(self.round_began.load(Ordering::Relaxed))
    }

    /// Publishes the counters. It allocates only when an interface appears for the first time.
    pub(super) fn publish(&self, counters: &Counters, worker: WorkerCounters) {
        store(&self.rounds, worker.rounds);
        store(&self.idle_rounds, worker.idle_rounds);
        let has_dropped = store_all(&self.drops, &counters.drops);
        store_all(&self.punts, &counters.punts);
        for (chunk, counters) in self.chunks.iter().zip(counters.interfaces.chunks(CHUNK)) {
            let cells = &chunk.get_or_init(InterfaceChunk::zeros).traffic;
            cells.iter().zip(counters).for_each(|(cells, counters)| _ = store_all(cells, &flat(counters)));
        }
        if has_dropped {
            self.publish_drops(counters);
        }
        // Stored last: a reader that loads this number finds the cells of all interfaces.
        self.interfaces.store(counters.interfaces.len() as u64, Ordering::Release);
    }

    /// Stores the many drop counters by interface, which rounds without a drop skip.
    fn publish_drops(&self, counters: &Counters) {
        for (chunk, drops) in self.chunks.iter().zip(counters.interface_drops.chunks(CHUNK)) {
            let cells = chunk.get().into_iter().flat_map(|chunk| &chunk.drops);
            cells.zip(drops).for_each(|(cells, drops)| _ = store_all(cells, drops));
        }
    }

    /// The counters of packets.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::new(self.interfaces.load(Ordering::Acquire) as usize);
        load_all(&self.drops, &mut counters.drops);
        load_all(&self.punts, &mut counters.punts);
        let Counters { interfaces, interface_drops, .. } = &mut counters;
        let chunks = self.chunks.iter().map_while(OnceLock::get);
        for (chunk, (traffic, drops)) in
            chunks.zip(interfaces.chunks_mut(CHUNK).zip(interface_drops.chunks_mut(CHUNK)))
        {
            chunk.traffic.iter().zip(traffic).for_each(|(cells, traffic)| *traffic = unflat(cells));
            chunk.drops.iter().zip(drops).for_each(|(cells, drops)| load_all(cells, drops));
        }
        counters
    }

    /// The other counters.
    pub fn worker(&self) -> WorkerCounters {
        let [rounds, idle_rounds] =
            [&self.rounds, &self.idle_rounds].map(|cell| cell.load(Ordering::Relaxed));
        WorkerCounters { rounds, idle_rounds }
    }
}

impl InterfaceChunk {
    fn zeros() -> Box<InterfaceChunk> {
        let drops = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        Box::new(InterfaceChunk { traffic: std::array::from_fn(|_| InterfaceCells::default()), drops })
    }
}

/// Stores a value that differs, and returns whether it differed: a line that is not written stays in the readers' caches.
fn store(cell: &AtomicU64, value: u64) -> bool {
    let differs = cell.load(Ordering::Relaxed) != value;
    if differs {
        cell.store(value, Ordering::Relaxed);
    }
    differs
}

fn store_all(cells: &[AtomicU64], values: &[u64]) -> bool {
    cells.iter().zip(values).fold(false, |differs, (cell, value)| differs | store(cell, *value))
}

fn load_all(cells: &[AtomicU64], values: &mut [u64]) {
    cells.iter().zip(values).for_each(|(cell, value)| *value = cell.load(Ordering::Relaxed));
}

fn flat(counters: &InterfaceCounters) -> [u64; 5] {
    let InterfaceCounters { received, sent, overruns } = counters;
    [received.packets, received.bytes, sent.packets, sent.bytes, *overruns]
}

fn unflat(cells: &InterfaceCells) -> InterfaceCounters {
    let [received_packets, received_bytes, packets, bytes, overruns] =
        cells.each_ref().map(|cell| cell.load(Ordering::Relaxed));
    let received = Traffic { packets: received_packets, bytes: received_bytes };
    InterfaceCounters { received, sent: Traffic { packets, bytes }, overruns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    #[test]
    fn readers_see_what_was_published_last() {
        let published = PublishedCounters::default();
        assert_eq!(published.counters(), Counters::new(0));
        let mut counters = Counters::new(CHUNK + 3);
        counters.interfaces[CHUNK + 2].sent = Traffic { packets: 3, bytes: 180 };
        counters.interfaces[0].received = Traffic { packets: 4, bytes: 240 };
        counters.interfaces[1].overruns = 5;
        counters.count_rejected(CHUNK as u16 + 1, Verdict::Drop(Reason::NoRoute));
        counters.punts[Punt::Arp.index()] = 2;
        let worker = WorkerCounters { rounds: 9, idle_rounds: 8 };
        published.publish(&counters, worker);
        assert_eq!((published.counters(), published.worker()), (counters, worker));
    }
}
