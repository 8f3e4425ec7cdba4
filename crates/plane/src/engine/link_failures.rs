//! Tells the program which links have failed, before the tables follow. The thread that hears of it from the kernel notes them.
//! Where the kernel has type information, a program that runs within it has noted them by then.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{fs, io};

use aya::Btf;
use aya::programs::BtfTracePoint;

use super::error::EngineError;
use super::layout::{FAILED, FAILED_DEVICES, NAMESPACE};
use crate::bpf::LoadedObject;
use crate::port::sys::SharedWords;

/// The program of `bpf/link_failures.h`, and the kernel's tracepoint at which it runs.
const NOTES: &str = "note_failed_link";
const EMPTIES_QUEUE: &str = "qdisc_reset";

/// A word for each device, which the program reads when it has chosen a next hop. Any thread may write them at any time, in
/// both generations: it waits neither for packets nor for the thread that writes the tables.
pub struct LinkFailures([Arc<SharedWords>; 2]);

impl LinkFailures {
    pub(super) fn new(generations: [Arc<SharedWords>; 2]) -> LinkFailures {
        LinkFailures(generations)
    }

    /// Notes that the link of a device has failed, or works again. Packets that would leave by a failed link leave by another
    /// member of the group, if there is one that works, and are passed to the kernel otherwise. Of devices whose indices differ by a
    /// multiple of 4,096, only the last one is noted.
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

    /// Takes all links for working ones, as some may be of which that is not known.
    pub fn forget(&self) {
        let all = self.0.iter().flat_map(|memory| &memory.words()[FAILED_DEVICES.range()]);
        all.for_each(|place| place.store(0, Ordering::Relaxed));
    }

    /// Ends the notes, because no thread will report any more that a link works again: no program notes any from now on.
    pub fn end(&self) {
        self.note_in_namespace(0);
        self.forget();
    }

    /// Has failed links of this thread's network namespace noted within the kernel, before it leaves them itself.
    pub(super) fn note_at_once(&self, loaded: &mut LoadedObject) -> Result<(), EngineError> {
        let types = Btf::from_sys_fs().map_err(EngineError::Types)?;
        loaded.program(NOTES, |program: &mut BtfTracePoint| {
            if program.fd().is_err() {
                program.load(EMPTIES_QUEUE, &types)?;
            }
            program.attach().map(drop)
        })?;
        self.note_in_namespace(own_namespace().map_err(EngineError::Namespace)?);
        Ok(())
    }

    fn note_in_namespace(&self, number: u32) {
        let words = self.0.iter().map(|memory| &memory.words()[NAMESPACE.first]);
        words.for_each(|word| word.store(number, Ordering::Relaxed));
    }
}

/// The number by which the kernel tells this thread's network namespace from others.
fn own_namespace() -> io::Result<u32> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino() as u32)
}
