//! Tells the program which links have failed, before the tables follow.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::layout::{FAILED, FAILED_DEVICES};
use crate::port::sys::SharedWords;

/// A word for each device, which the program reads when it has chosen a next hop. Any thread may write them at any time, in
/// both generations: it waits neither for packets nor for the thread that writes the tables.
pub struct LinkFailures([Arc<SharedWords>; 2]);

impl LinkFailures {
    pub(super) fn new(generations: [Arc<SharedWords>; 2]) -> LinkFailures {
        LinkFailures(generations)
    }

    /// Notes that the link of a device has failed, or works again. The program passes packets to the kernel that would leave
    /// by a failed link. Of devices whose indices differ by a multiple of 4,096, only the last one is noted.
    pub fn note(&self, device: u32, has_failed: bool) {
        for memory in &self.0 {
            let place = &memory.words()[FAILED_DEVICES.range()][device as usize % FAILED];
            match has_failed {
                true => place.store(device, Ordering::Relaxed),
                // It may be the place of another device.
                false => _ = place.compare_exchange(device, 0, Ordering::Relaxed, Ordering::Relaxed),
            }
        }
    }
}
