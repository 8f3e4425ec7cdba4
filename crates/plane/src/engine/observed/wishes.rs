//! What the program is to copy, in memory that both share.
//!
//! The program may read a watch while it is written, and then take one packet too many or too few. The process compares each
//! copy with the requests again.

use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use super::layout::{
    BYTES, FIRST_LOSS, FIRST_WATCH, KEY, LONGEST_GAP, LOSS, MISSED, WATCH, WATCH_COUNT, WATCHES,
};
use crate::engine::error::EngineError;
use crate::engine::layout::COUNTED;
use crate::port::sys::SharedWords;
use crate::program_verdict::XdpReason;
use crate::trace::{FilterMask, TraceRequest};

/// The fate of forwarded packets; those of others have the bits of their reasons.
const ALL_FATES: u64 = u64::MAX;

pub struct Wishes(SharedWords);

/// The counts of samples that found no room, as the program has them: they begin again at 0 after the highest number.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct RawLoss {
    pub samples: u32,
    pub packets: u32,
    pub device: u32,
}

impl Wishes {
    pub fn new(map: BorrowedFd<'_>) -> Result<Wishes, EngineError> {
        Ok(Wishes(SharedWords::new(map, BYTES).map_err(EngineError::Mapping)?))
    }

    fn word(&self, place: usize) -> &AtomicU32 {
        &self.0.words()[place]
    }

    /// One packet in so many is sampled.
    pub fn sample(&self, rate: Option<NonZeroU32>) {
        // The mean of 1 to this number is the rate. A rate that does not fit is met only nearly.
        let longest = rate.map_or(0, |rate| (2 * u64::from(rate.get()) - 1).min(u32::MAX.into()));
        self.word(LONGEST_GAP).store(longest as u32, Ordering::Relaxed);
    }

    /// Replaces the watches: `device` gives the device of a port. Requests beyond the number of watches are left out.
    pub fn watch<'r>(
        &self,
        requests: impl Iterator<Item = &'r TraceRequest>,
        device: impl Fn(u16) -> Option<u32>,
    ) {
        self.word(WATCH_COUNT).store(0, Ordering::Release);
        let mut count = 0;
        for (place, request) in (FIRST_WATCH..).step_by(WATCH).zip(requests).take(WATCHES) {
            let mask = request.filter.mask(&device);
            for (at, word) in words(&mask, fates(request)).into_iter().enumerate() {
                self.word(place + at).store(word, Ordering::Relaxed);
            }
            count += 1;
        }
        self.word(WATCH_COUNT).store(count, Ordering::Release);
    }

    /// Packets of watches that found no room.
    pub fn missed(&self) -> u32 {
        self.word(MISSED).load(Ordering::Relaxed)
    }

    /// The losses, by number of interface.
    pub fn losses(&self) -> impl Iterator<Item = RawLoss> + '_ {
        let losses = self.0.words()[FIRST_LOSS..][..COUNTED * LOSS].chunks_exact(LOSS);
        losses.map(|words| {
            let [samples, packets, device] = [0, 1, 2].map(|at| words[at].load(Ordering::Relaxed));
            RawLoss { samples, packets, device }
        })
    }
}

fn fates(request: &TraceRequest) -> u64 {
    if !request.drops_only {
        return ALL_FATES;
    }
    let discards = XdpReason::ALL.into_iter().filter(|reason| reason.discards());
    discards.map(|reason| 1 << reason as u8).sum()
}

/// `struct watch`.
fn words(mask: &FilterMask, fates: u64) -> [u32; WATCH] {
    let mut words = [0; WATCH];
    let bytes = [&mask.value[..], &mask.mask[..], &fates.to_ne_bytes()].concat();
    let (four, _) = bytes.as_chunks::<4>();
    words.iter_mut().zip(four).for_each(|(word, bytes)| *word = u32::from_ne_bytes(*bytes));
    words
}

const _: () = assert!(4 * KEY == FilterMask::BYTES);
