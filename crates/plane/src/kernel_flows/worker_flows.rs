//! The part of the memory that belongs to one worker, and what programs counted there.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fullview_filter::state::FlowWindows;
use fullview_filter::state::flow::{FlowOffload, OffloadedPackets};

use super::entry::{FlowEnds, WindowsOfFlow};
use super::memory::{FORWARDS, FlowMemory, PACKETS_SHIFT};
use super::traffic::FlowTraffic;
use crate::filter_time::step_of;

/// A worker's entries.
#[derive(Debug)]
pub(super) struct WorkerFlows {
    pub memory: Arc<FlowMemory>,
    pub worker: u16,
    pub traffic: FlowTraffic,
}

impl WorkerFlows {
    pub fn new(memory: Arc<FlowMemory>, worker: u16) -> WorkerFlows {
        WorkerFlows { memory, worker, traffic: FlowTraffic::new() }
    }

    /// Its entries.
    pub fn entries(&self) -> Range<u32> {
        self.memory.regions().entries_of(self.worker)
    }

    /// The generation of an entry that follows from what was read after [`FlowMemory::generation`] was this.
    pub fn generation_since(&self, of_all: u64) -> u64 {
        of_all.wrapping_add(self.memory.ended(self.worker).load(Ordering::Relaxed))
    }

    /// What a tally says. Each packet is accounted for once.
    fn account(&self, index: u32, tally: u64) -> OffloadedPackets {
        let packets = (tally & !FORWARDS) >> PACKETS_SHIFT;
        let bytes = tally & ((1 << PACKETS_SHIFT) - 1);
        if packets > 0 {
            let padding = self.memory.take_padding(index);
            let ends = FlowEnds::of(|word| self.memory.word(index, word));
            self.traffic.count(&ends, packets, bytes + padding);
        }
        let last = step_of(self.memory.last(index)) as u32;
        // The program moves the windows before it counts a segment.
        let windows = self.windows(index).map(|of| self.memory.windows(of.record).take(of.end));
        OffloadedPackets { packets: packets as u32, bytes, last, windows }
    }

    /// The windows of an entry.
    pub fn windows(&self, index: u32) -> Option<WindowsOfFlow> {
        WindowsOfFlow::of(|word| self.memory.word(index, word))
    }
}

impl FlowOffload for WorkerFlows {
    fn take(&self, entry: u32) -> OffloadedPackets {
        // The bit stays as it is, and counts begin again at zero.
        self.account(entry, self.memory.tally(entry).fetch_and(FORWARDS, Ordering::AcqRel))
    }

    fn end(&self, entry: u32) -> OffloadedPackets {
        self.account(entry, self.memory.tally(entry).swap(0, Ordering::AcqRel))
    }

    fn raise(&self, entry: u32, windows: &FlowWindows) {
        let of = self.windows(entry);
        of.into_iter().for_each(|of| self.memory.windows(of.record).raise(of.end, windows));
    }

    fn end_all(&self) {
        self.memory.ended(self.worker).fetch_add(1, Ordering::AcqRel);
    }
}
