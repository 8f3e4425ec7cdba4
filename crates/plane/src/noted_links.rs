//! Failed links, noted in memory that workers read, and that a program in the kernel may write (`bpf/link_failures.h`): it knows of
//! a failure before the kernel takes the routes by the link out of use, and long before the kernel reports it. That a link works
//! again only the router says.

use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(all(feature = "bpf", target_os = "linux"))]
use crate::port::SharedWords;

/// Places where devices are noted.
pub(crate) const FAILED: usize = 1 << 12;

/// The words, as in `struct noted_links` of `bpf/classify.c`: how often they changed, the network namespace in which the program
/// notes links, and the places.
const CHANGES: usize = 0;
const NAMESPACE: usize = 1;
const FIRST_PLACE: usize = 2;
/// How many they are.
pub(crate) const WORDS: usize = FIRST_PLACE + FAILED;

/// Places where devices are noted: each has that of its index modulo their number. Any thread may write them at any time.
pub(crate) struct NotedDevices<'w>(pub &'w [AtomicU32]);

impl NotedDevices<'_> {
    fn place(&self, device: u32) -> &AtomicU32 {
        &self.0[device as usize % FAILED]
    }

    /// Notes that the link of a device has failed, or works again. Says whether that was not noted yet. Of devices whose indices
    /// differ by a multiple of 4,096, only the last one is noted.
    pub fn note(&self, device: u32, has_failed: bool) -> bool {
        let place = self.place(device);
        match has_failed {
            true => place.swap(device, Ordering::Relaxed) != device,
            // It may be the place of another device.
            false => place.compare_exchange(device, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok(),
        }
    }

    /// Takes all links for working ones.
    pub fn forget(&self) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }

    /// Whether the link of this device, which is not 0, has failed.
    pub fn contains(&self, device: u32) -> bool {
        self.place(device).load(Ordering::Relaxed) == device
    }
}

/// The links that all workers of a router leave.
pub struct NotedLinks(NoteMemory);

enum NoteMemory {
    OfProcess(Box<[AtomicU32]>),
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    OfProgram(SharedWords),
}

impl Default for NotedLinks {
    /// Links that only this process notes.
    fn default() -> NotedLinks {
        NotedLinks(NoteMemory::OfProcess((0..WORDS).map(|_| AtomicU32::new(0)).collect()))
    }
}

impl NotedLinks {
    /// Links that a program in the kernel notes too, from [`Self::begin`] on
    /// ([`link_words`](crate::port::classify::Classifier::link_words)).
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    pub fn shared(words: SharedWords) -> NotedLinks {
        NotedLinks(NoteMemory::OfProgram(words))
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU32] {
        match &self.0 {
            NoteMemory::OfProcess(words) => words,
            #[cfg(all(feature = "bpf", target_os = "linux"))]
            NoteMemory::OfProgram(words) => words.words(),
        }
    }

    fn devices(&self) -> NotedDevices<'_> {
        NotedDevices(&self.words()[FIRST_PLACE..WORDS])
    }

    /// Notes that the link of a device has failed, or works again.
    pub fn note(&self, device: u32, has_failed: bool) {
        if self.devices().note(device, has_failed) {
            self.count_change();
        }
    }

    /// Takes all links for working ones, as some may be of which that is not known.
    pub fn forget(&self) {
        self.devices().forget();
        self.count_change();
    }

    /// Has the program note the failed links of a network namespace.
    pub fn begin(&self, namespace: u32) {
        self.words()[NAMESPACE].store(namespace, Ordering::Relaxed);
    }

    /// Ends the notes, because no thread will report any more that a link works again: the program notes none from now on.
    pub fn end(&self) {
        self.begin(0);
        self.forget();
    }

    fn count_change(&self) {
        self.words()[CHANGES].fetch_add(1, Ordering::Release);
    }

    /// How often notes have changed. What is read afterwards is at least as new.
    #[inline(always)]
    pub(crate) fn changes(&self) -> u32 {
        self.words()[CHANGES].load(Ordering::Acquire)
    }

    /// Whether the link of a device has failed; there is no device 0.
    pub fn has_failed(&self, device: u32) -> bool {
        device != 0 && self.devices().contains(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_noted_until_it_works_or_another_takes_its_place() {
        let (links, other) = (NotedLinks::default(), 3 + FAILED as u32);
        let failed = || [0, 3, other].map(|device| links.has_failed(device));
        let cases = [
            ((3, true), [false, true, false], 1),
            ((3, true), [false, true, false], 1),
            ((other, false), [false, true, false], 1),
            ((other, true), [false, false, true], 2),
            ((3, false), [false, false, true], 2),
            ((other, false), [false; 3], 3),
        ];
        for ((device, has_failed), expected, changes) in cases {
            links.note(device, has_failed);
            assert_eq!((failed(), links.changes()), (expected, changes), "{device} {has_failed}");
        }
        links.note(3, true);
        links.forget();
        assert_eq!((failed(), links.changes()), ([false; 3], 5));
    }
}
