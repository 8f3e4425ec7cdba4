//! The memory that the worker, the router's thread and programs in the kernel share: `struct flow`, `struct bucket` and
//! `struct flow_head` in known_flow.h.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use fullview_filter::state::flow::{FlowOffload, OffloadedPackets};

use super::entry::{ENTRY, EntryWords, FlowEnds};
use super::traffic::FlowTraffic;
use crate::filter_time::{NANOS_PER_MILLISECOND, step_of};

/// Entries at most: their indices have 16 bits, and 0 is none.
pub const MOST_FLOWS: u16 = u16::MAX;

/// The places of words that change in an entry.
const TALLY: usize = 0;
const LAST: usize = 1;
const GENERATION: usize = 8;
const LIFETIME: usize = 9;
const PADDING: usize = 10;

/// The words of a bucket.
const BUCKET: usize = 4;

/// The words of the head, and their places.
const HEAD: usize = 8;
const PRESENT_GENERATION: usize = 0;
const CONTROL_UNTIL: usize = 1;
const WORKER_UNTIL: usize = 2;

/// Bits of the tally.
const FORWARDS: u64 = 1 << 63;
const PACKETS_SHIFT: u32 = 36;

/// Where the bits of a flow's hash begin in a slot, above an index.
const TAG_SHIFT: u32 = 16;

/// How long the program forwards after a report, in nanoseconds.
const LONGEST_SILENCE: u64 = 1_000_000_000;

/// Words that this process shares with programs in the kernel.
pub trait FlowWords: Debug + Send + Sync {
    fn words(&self) -> &[AtomicU64];
}

/// Memory of this process alone.
impl FlowWords for Box<[AtomicU64]> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

/// One of the three parts of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    Head,
    Buckets,
    Entries,
}

/// How large the parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRegions {
    flows: u16,
}

impl FlowRegions {
    /// Parts for so many flows, at least one.
    pub fn new(flows: u16) -> FlowRegions {
        FlowRegions { flows: flows.max(1) }
    }

    /// The values of the map that holds a part.
    pub fn values(self, region: Region) -> u32 {
        match region {
            Region::Head => 1,
            Region::Buckets => u32::from(self.flows).next_power_of_two(),
            Region::Entries => u32::from(self.flows) + 1,
        }
    }

    /// The words of a part.
    pub fn words(self, region: Region) -> usize {
        let each = match region {
            Region::Head => HEAD,
            Region::Buckets => BUCKET,
            Region::Entries => ENTRY,
        };
        self.values(region) as usize * each
    }
}

/// The shared memory.
#[derive(Debug)]
pub struct FlowMemory {
    head: Box<dyn FlowWords>,
    buckets: Box<dyn FlowWords>,
    entries: Box<dyn FlowWords>,
    regions: FlowRegions,
    keys: [u64; 2],
    /// How often the worker has ended the generation.
    ended_by_worker: AtomicU64,
    traffic: FlowTraffic,
}

impl FlowMemory {
    /// Memory of these parts, which are all zeros, with the keys that the program has.
    ///
    /// # Errors
    /// Fails if a part cannot be made.
    pub fn new<E>(
        regions: FlowRegions,
        keys: [u64; 2],
        mut part: impl FnMut(Region) -> Result<Box<dyn FlowWords>, E>,
    ) -> Result<FlowMemory, E> {
        Ok(FlowMemory {
            head: part(Region::Head)?,
            buckets: part(Region::Buckets)?,
            entries: part(Region::Entries)?,
            regions,
            keys,
            ended_by_worker: AtomicU64::new(0),
            traffic: FlowTraffic::new(),
        })
    }

    /// How many flows there is room for.
    pub fn room(&self) -> u16 {
        self.regions.flows
    }

    /// The keys of the hash.
    pub(super) fn keys(&self) -> &[u64; 2] {
        &self.keys
    }

    /// The packets that were forwarded, by interface.
    pub(super) fn traffic(&self) -> &FlowTraffic {
        &self.traffic
    }

    /// Packets that the worker knows were forwarded.
    pub fn packets(&self) -> u64 {
        self.traffic.packets()
    }

    /// The present generation, apart from those that the worker has ended itself. What is read afterwards is at least as new.
    pub(super) fn generation_of_others(&self) -> u64 {
        let present = self.head.words()[PRESENT_GENERATION].load(Ordering::Acquire);
        present.wrapping_sub(self.ended_by_worker.load(Ordering::Relaxed))
    }

    /// The generation that [`Self::generation_of_others`] was part of, if only the worker has ended some since.
    pub(super) fn generation_since(&self, of_others: u64) -> u64 {
        of_others.wrapping_add(self.ended_by_worker.load(Ordering::Relaxed))
    }

    /// Ends all entries at once. What was written before is seen by those who find the new generation.
    pub fn end_generation(&self) {
        self.head.words()[PRESENT_GENERATION].fetch_add(1, Ordering::AcqRel);
    }

    /// Lets the program forward for a second after this time, in nanoseconds, as far as the router's thread is concerned.
    pub fn report_control(&self, complete_until: u64) {
        self.head.words()[CONTROL_UNTIL].store(complete_until + LONGEST_SILENCE, Ordering::Release);
    }

    /// Lets the program forward nothing until the next report.
    pub fn stop(&self) {
        self.head.words()[CONTROL_UNTIL].store(0, Ordering::Release);
    }

    /// Lets the program forward for a second after this time, in milliseconds, as far as the worker is concerned.
    pub(super) fn report_worker(&self, now: u64) {
        let until = now * NANOS_PER_MILLISECOND + LONGEST_SILENCE;
        self.head.words()[WORKER_UNTIL].store(until, Ordering::Release);
    }

    fn entry(&self, index: u32) -> &[AtomicU64; ENTRY] {
        &self.entries.words().as_chunks().0[index as usize]
    }

    /// Writes an entry that no program can find, and lets packets pass by it.
    pub(super) fn fill(&self, index: u32, words: &EntryWords) {
        let entry = self.entry(index);
        entry.iter().zip(words.0).skip(1).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        entry[TALLY].store(FORWARDS, Ordering::Release);
    }

    /// Says that an entry holds in this generation, for so many milliseconds without packets after this time.
    pub(super) fn renew(&self, index: u32, generation: u64, (now, lifetime): (u64, u64)) {
        let entry = self.entry(index);
        entry[LAST].store(now * NANOS_PER_MILLISECOND, Ordering::Relaxed);
        self.set_lifetime(index, lifetime);
        entry[GENERATION].store(generation, Ordering::Release);
    }

    /// Sets how long an entry holds without packets, in milliseconds.
    pub(super) fn set_lifetime(&self, index: u32, lifetime: u64) {
        self.entry(index)[LIFETIME].store(lifetime * NANOS_PER_MILLISECOND, Ordering::Relaxed);
    }

    /// Whether packets may pass by an entry, apart from generations and times.
    pub(super) fn forwards(&self, index: u32) -> bool {
        self.entry(index)[TALLY].load(Ordering::Relaxed) & FORWARDS != 0
    }

    /// When the last packet passed by an entry, in milliseconds.
    pub(super) fn last(&self, index: u32) -> u64 {
        self.entry(index)[LAST].load(Ordering::Relaxed) / NANOS_PER_MILLISECOND
    }

    /// The index of the entry in each slot of the bucket of a hash, and whether the slot's flow may have this hash.
    pub(super) fn slots(&self, hash: u64) -> [(u32, bool); BUCKET] {
        self.bucket(hash).each_ref().map(|slot| {
            let slot = slot.load(Ordering::Relaxed);
            ((slot & u64::from(u16::MAX)) as u32, (slot ^ hash) >> TAG_SHIFT == 0)
        })
    }

    /// Lets programs find an entry that is filled.
    pub(super) fn set_slot(&self, hash: u64, place: usize, index: u32) {
        let slot = hash >> TAG_SHIFT << TAG_SHIFT | u64::from(index);
        self.bucket(hash)[place].store(slot, Ordering::Release);
    }

    /// Lets no program find this entry any more, which the bucket of this hash may have.
    pub(super) fn clear_slot(&self, hash: u64, index: u32) {
        for (slot, (there, _)) in self.bucket(hash).iter().zip(self.slots(hash)) {
            if there == index {
                slot.store(0, Ordering::Relaxed);
            }
        }
    }

    fn bucket(&self, hash: u64) -> &[AtomicU64; BUCKET] {
        let (buckets, _) = self.buckets.words().as_chunks();
        &buckets[hash as usize & (buckets.len() - 1)]
    }

    /// What a tally says. Each packet is accounted for once.
    fn account(&self, index: u32, tally: u64) -> OffloadedPackets {
        let entry = self.entry(index);
        let packets = (tally & !FORWARDS) >> PACKETS_SHIFT;
        let bytes = tally & ((1 << PACKETS_SHIFT) - 1);
        if packets > 0 {
            let padding = entry[PADDING].swap(0, Ordering::Relaxed);
            let ends = FlowEnds::of(|word| entry[word].load(Ordering::Relaxed));
            self.traffic.count(&ends, packets, bytes + padding);
        }
        OffloadedPackets { packets: packets as u32, bytes, last: step_of(self.last(index)) as u32 }
    }
}

impl FlowOffload for FlowMemory {
    fn take(&self, entry: u32) -> OffloadedPackets {
        // The bit stays as it is, and counts begin again at zero.
        self.account(entry, self.entry(entry)[TALLY].fetch_and(FORWARDS, Ordering::AcqRel))
    }

    fn end(&self, entry: u32) -> OffloadedPackets {
        self.account(entry, self.entry(entry)[TALLY].swap(0, Ordering::AcqRel))
    }

    fn end_all(&self) {
        self.end_generation();
        self.ended_by_worker.fetch_add(1, Ordering::Relaxed);
    }
}
