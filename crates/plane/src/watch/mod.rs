//! Packets noted on their way through the loop: for traces, and for captures of what is dropped.
//!
//! A worker asks once a burst whether anybody watches, which is one pointer to compare. If somebody does, it copies the
//! frames that match before the loop has them, sees what becomes of them, and puts the [`Note`] into a ring of its own;
//! nobody waits, and a ring that is full is a number ([`Collector::take_missed`]). Whoever collects the notes explains or
//! writes them in a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use arc_swap::cache::Cache;

use crate::burst::{Burst, FRAME_CAPACITY, Packet, Slot};
use crate::forward::{Egress, Forwarder};
use crate::verdict::Verdict;
pub use matching::{Matching, MatchingError};

pub mod capture;
mod matching;

/// Notes in a worker's ring.
const RING: usize = 128;

/// What somebody wants to be noted.
#[derive(Debug)]
pub struct Watch {
    /// Which packets.
    pub matching: Matching,
    /// Only those that are dropped.
    pub drops_only: bool,
    /// How many more, of all workers together.
    left: AtomicU64,
}

impl Watch {
    /// The next `count` packets that match.
    pub fn new(matching: Matching, drops_only: bool, count: u64) -> Watch {
        Watch { matching, drops_only, left: AtomicU64::new(count) }
    }

    /// Lets so many more be noted, but never leaves more than `most` open.
    pub fn refill(&self, more: u64, most: u64) {
        // The update never fails: it always has a new value.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_add(more).min(most.max(left)))
        });
    }

    /// Whether all that was asked for is noted.
    pub fn is_finished(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn take(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A copy of a frame.
#[derive(Clone)]
pub struct Copied {
    len: u16,
    data: [u8; FRAME_CAPACITY],
}

impl Note {
    fn of(watch: u64, packet: &Slot, verdict: Verdict) -> Note {
        let (at, port, before) = (SystemTime::now(), packet.port, Copied::of(packet));
        Note { watch, at, port, before, verdict, departure: None }
    }
}

impl Copied {
    /// Copies as much of the packet as there is room for.
    pub fn of(slot: &Slot) -> Copied {
        let mut data = [0; FRAME_CAPACITY];
        data[..slot.frame_len()].copy_from_slice(slot.frame());
        Copied { len: slot.frame_len() as u16, data }
    }

    /// The frame.
    pub fn frame(&self) -> &[u8] {
        &self.data[..usize::from(self.len)]
    }
}

/// A packet that was noted.
#[derive(Clone)]
pub struct Note {
    /// For whom: the number that [`Watchers::add`] gave.
    pub watch: u64,
    /// When it was noted.
    pub at: SystemTime,
    /// The port it came in by; of a dropped packet that found its way out full, that one.
    pub port: u16,
    /// As it came in; of a dropped packet that found its way out full, as it would have left.
    pub before: Copied,
    /// What the loop did with it.
    pub verdict: Verdict,
    /// The port it left by, and as what, if it did.
    pub departure: Option<(u16, Copied)>,
}

type Watches = Vec<(u64, Arc<Watch>)>;

/// Who watches, and where their notes are: the end of whoever collects.
#[derive(Default)]
pub struct Watchers {
    current: Arc<ArcSwapOption<Watches>>,
    last: u64,
}

impl Watchers {
    /// None yet.
    pub fn new() -> Watchers {
        Watchers::default()
    }

    /// A worker's end, and the end at which its notes come out.
    pub fn connect(&self) -> (Watched, Collector) {
        let (ring, collected) = rtrb::RingBuffer::new(RING);
        let missed = Arc::new(AtomicU64::new(0));
        let notes = Notes { ring, missed: Arc::clone(&missed), traced: Vec::with_capacity(RING) };
        let watched = Watched { watches: Cache::new(Arc::clone(&self.current)), notes };
        (watched, Collector { notes: collected, missed })
    }

    /// Begins to watch; returns the number that the notes will carry.
    pub fn add(&mut self, watch: Arc<Watch>) -> u64 {
        self.last += 1;
        let number = self.last;
        self.change(|watches| watches.push((number, watch)));
        number
    }

    /// Watches no more.
    pub fn remove(&mut self, number: u64) {
        self.change(|watches| watches.retain(|(known, _)| *known != number));
    }

    fn change(&mut self, change: impl FnOnce(&mut Watches)) {
        let mut watches = self.current.load().as_deref().cloned().unwrap_or_default();
        change(&mut watches);
        self.current.store((!watches.is_empty()).then(|| Arc::new(watches)));
    }
}

/// Where a worker's notes come out.
pub struct Collector {
    notes: rtrb::Consumer<Note>,
    missed: Arc<AtomicU64>,
}

impl Collector {
    /// The next note.
    pub fn pop(&mut self) -> Option<Note> {
        self.notes.pop().ok()
    }

    /// Packets that would have been noted if there had been room, since this was last asked.
    pub fn take_missed(&mut self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }

    /// Whether the worker is gone, and its last note fetched.
    pub fn is_abandoned(&self) -> bool {
        self.notes.is_abandoned() && self.notes.is_empty()
    }
}

/// A worker's end, for its [`Forwarder::watch`].
pub struct Watched {
    watches: Cache<Arc<ArcSwapOption<Watches>>, Option<Arc<Watches>>>,
    notes: Notes,
}

impl Watched {
    /// Whether anybody watches.
    #[inline]
    pub(crate) fn is_on(&mut self) -> bool {
        self.watches.load().is_some()
    }

    /// Has the burst forwarded, and notes what is asked for.
    pub(crate) fn process<'a>(
        &mut self,
        forwarder: &mut Forwarder,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        match self.watches.load() {
            None => forwarder.forward(burst, egress, rejected),
            Some(watches) => self.notes.process(watches, forwarder, burst, egress, rejected),
        }
    }
}

/// What a worker notes.
struct Notes {
    ring: rtrb::Producer<Note>,
    missed: Arc<AtomicU64>,
    /// Packets of this burst that are traced, by the address of their slots.
    traced: Vec<(usize, Note)>,
}

impl Notes {
    /// Allocates nothing, but copies: the price of being watched.
    fn process<'a>(
        &mut self,
        watches: &Watches,
        forwarder: &mut Forwarder,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let before = rejected.len();
        self.copy_traced(watches, burst);
        forwarder.forward(burst, &mut Noting { egress, traced: &mut self.traced }, rejected);
        for packet in &rejected[before..] {
            with_slot(&mut self.traced, packet, |note| {
                (note.verdict, note.departure) = (packet.verdict, None)
            });
            self.note_drop(watches, packet);
        }
        self.hand_over();
    }

    fn copy_traced(&mut self, watches: &Watches, burst: &Burst<'_>) {
        let wanted = |watch: &Watch| !watch.drops_only && !watch.is_finished();
        for (number, watch) in watches.iter().filter(|(_, watch)| wanted(watch)) {
            for packet in burst.iter().filter(|packet| watch.matching.matches(packet.port, packet.frame())) {
                if self.traced.len() == RING || !watch.take() {
                    break;
                }
                self.traced.push((address(packet), Note::of(*number, packet, packet.verdict)));
            }
        }
    }

    /// A packet that was dropped is as it came in, but for one that found its way out full.
    fn note_drop(&mut self, watches: &Watches, packet: &Slot) {
        let Verdict::Drop(_) = packet.verdict else { return };
        for (number, watch) in watches.iter().filter(|(_, watch)| watch.drops_only) {
            if watch.matching.matches(packet.port, packet.frame()) {
                if watch.take() {
                    self.put(Note::of(*number, packet, packet.verdict));
                } else {
                    self.missed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn hand_over(&mut self) {
        while let Some((_, note)) = self.traced.pop() {
            self.put(note);
        }
    }

    fn put(&mut self, note: Note) {
        if self.ring.push(note).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sees packets leave.
struct Noting<'e, E: ?Sized> {
    egress: &'e mut E,
    traced: &'e mut Vec<(usize, Note)>,
}

impl<'a, E: Egress<'a> + ?Sized> Egress<'a> for Noting<'_, E> {
    /// One that the port does not take comes back by way of the rejected packets, with its verdict.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        with_slot(self.traced, packet, |note| {
            note.verdict = Verdict::Forward;
            note.departure = Some((port, Copied::of(packet)));
        });
        self.egress.send(port, packet)
    }
}

fn with_slot(traced: &mut [(usize, Note)], packet: &Slot, mut change: impl FnMut(&mut Note)) {
    let address = address(packet);
    traced.iter_mut().filter(|(of, _)| *of == address).for_each(|(_, note)| change(note));
}

/// Tells slots apart; never used to reach one.
fn address(packet: &Slot) -> usize {
    std::ptr::from_ref(packet).addr()
}
