//! The memory that workers, the router's thread and programs in the kernel share: `struct flow`, `struct bucket`,
//! `struct flow_windows` and `struct flow_head` in known_flow.h.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entry::{ENTRY, EntryWords};
use super::windows::{SharedWindows, WINDOWS};
use crate::filter_time::NANOS_PER_MILLISECOND;

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

/// The words of each head, and their places.
const HEAD: usize = 8;
const PRESENT_GENERATION: usize = 0;
const CONTROL_UNTIL: usize = 1;
const WORKER_UNTIL: usize = 2;
const ENDED: usize = 3;

/// The bit of a tally that lets packets pass, and where the number of packets begins, above that of bytes.
pub(super) const FORWARDS: u64 = 1 << 63;
pub(super) const PACKETS_SHIFT: u32 = 36;

/// Where the bits of a flow's hash begin in a slot, above an index.
const TAG_SHIFT: u32 = 16;

/// How long the program forwards after a report, in nanoseconds.
pub(super) const LONGEST_SILENCE: u64 = 1_000_000_000;

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

/// One of the parts of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    Head,
    Buckets,
    Entries,
    Windows,
}

impl Region {
    /// All parts.
    pub const ALL: [Region; 4] = [Region::Head, Region::Buckets, Region::Entries, Region::Windows];
}

/// How large the parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRegions {
    flows: u16,
    workers: u16,
}

impl FlowRegions {
    /// Parts for so many flows of so many workers, at least one of both.
    pub fn new(flows: u16, workers: u16) -> FlowRegions {
        FlowRegions { flows: flows.max(1), workers: workers.max(1) }
    }

    /// The entries of a worker, which has an equal share.
    pub(super) fn entries_of(self, worker: u16) -> Range<u32> {
        let begin = |worker: u32| 1 + u32::from(self.flows) * worker / u32::from(self.workers);
        begin(worker.into())..begin(u32::from(worker) + 1)
    }

    /// The values of the map that holds a part.
    pub fn values(self, region: Region) -> u32 {
        match region {
            Region::Head => self.workers.into(),
            Region::Buckets => u32::from(self.flows).next_power_of_two(),
            Region::Entries | Region::Windows => u32::from(self.flows) + 1,
        }
    }

    /// The words of a part.
    pub fn words(self, region: Region) -> usize {
        let each = match region {
            Region::Head => HEAD,
            Region::Buckets => BUCKET,
            Region::Entries => ENTRY,
            Region::Windows => WINDOWS,
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
    windows: Box<dyn FlowWords>,
    regions: FlowRegions,
    keys: [u64; 2],
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
            windows: part(Region::Windows)?,
            regions,
            keys,
        })
    }

    /// How large the parts are.
    pub(super) fn regions(&self) -> FlowRegions {
        self.regions
    }

    /// The keys of the hash.
    pub(super) fn keys(&self) -> &[u64; 2] {
        &self.keys
    }

    /// The present generation of all workers' entries. What is read afterwards is at least as new.
    pub(super) fn generation(&self) -> u64 {
        self.head.words()[PRESENT_GENERATION].load(Ordering::Acquire)
    }

    /// How often a worker has ended its entries, which is added to the generation.
    pub(super) fn ended(&self, worker: u16) -> &AtomicU64 {
        &self.head.words()[usize::from(worker) * HEAD + ENDED]
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

    /// Lets the program forward for a second after this time, in milliseconds, as far as a worker is concerned.
    pub(super) fn report_worker(&self, worker: u16, now: u64) {
        let until = now * NANOS_PER_MILLISECOND + LONGEST_SILENCE;
        self.head.words()[usize::from(worker) * HEAD + WORKER_UNTIL].store(until, Ordering::Release);
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

    /// Lets programs find an entry that is filled, unless another worker has taken the slot.
    pub(super) fn set_slot(&self, hash: u64, place: usize, index: u32) -> bool {
        let slot = hash >> TAG_SHIFT << TAG_SHIFT | u64::from(index);
        let place = &self.bucket(hash)[place];
        place.compare_exchange(0, slot, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Lets no program find this entry any more, which the bucket of this hash may have. Only its worker removes it.
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

    /// The tally of an entry.
    pub(super) fn tally(&self, index: u32) -> &AtomicU64 {
        &self.entry(index)[TALLY]
    }

    /// The bytes of an entry's frames after their packets, of those that the tally has counted.
    pub(super) fn take_padding(&self, index: u32) -> u64 {
        self.entry(index)[PADDING].swap(0, Ordering::Relaxed)
    }

    /// The windows of a connection.
    pub(super) fn windows(&self, record: u32) -> SharedWindows<'_> {
        SharedWindows(&self.windows.words().as_chunks().0[record as usize])
    }

    /// A word of an entry that does not change.
    pub(super) fn word(&self, index: u32, word: usize) -> u64 {
        self.entry(index)[word].load(Ordering::Relaxed)
    }
}
