//! Tells the program which links have failed, before the tables follow. The thread that hears of it from the kernel notes them.
//! Where the kernel has type information, a program that runs within it has noted them by then.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::layout::{FAILED_DEVICES, NAMESPACE};
use crate::noted_links::NotedDevices;
use crate::port::SharedWords;

/// A word for each device, which the program reads when it has chosen a next hop. Any thread may write them at any time, in
/// both generations: it waits neither for packets nor for the thread that writes the tables.
pub struct LinkFailures([Arc<SharedWords>; 2]);

impl LinkFailures {
    pub(super) fn new(generations: [Arc<SharedWords>; 2]) -> LinkFailures {
        LinkFailures(generations)
    }

    fn generations(&self) -> impl Iterator<Item = NotedDevices<'_>> {
        self.0.iter().map(|memory| NotedDevices(&memory.words()[FAILED_DEVICES.range()]))
    }

    /// Notes that the link of a device has failed, or works again. Packets that would leave by a failed link leave by another
    /// member of the group, if there is one that works, and are passed to the kernel otherwise. Of devices whose indices differ by a
    /// multiple of 4,096, only the last one is noted.
    pub fn note(&self, device: u32, has_failed: bool) {
        self.generations().for_each(|devices| _ = devices.note(device, has_failed));
    }

    /// Takes all links for working ones, as some may be of which that is not known.
    pub fn forget(&self) {
        self.generations().for_each(|devices| devices.forget());
    }

    /// Ends the notes, because no thread will report any more that a link works again: no program notes any from now on.
    pub fn end(&self) {
        self.begin(0);
        self.forget();
    }

    /// Has a program note the failed links of a network namespace within the kernel, before it leaves them itself.
    pub fn begin(&self, namespace: u32) {
        let words = self.0.iter().map(|memory| &memory.words()[NAMESPACE.first]);
        words.for_each(|word| word.store(namespace, Ordering::Relaxed));
    }
}
