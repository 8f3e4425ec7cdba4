//! Counts what comes out, by the kernel's counter of the receiver's interface: it misses no packet at any rate and takes
//! no time of a core.

use std::fs::File;
use std::io::{Read, Seek};

use super::error::DeviceBedError;
use crate::rates::received_packets;
use crate::testbed::Namespace;

/// The counters of a namespace, readable from every other one.
pub struct ReceiveCounter {
    counters: File,
    interface: String,
    text: String,
}

impl ReceiveCounter {
    /// Opens the counter of an interface.
    pub fn open(namespace: &Namespace, interface: &str) -> Result<ReceiveCounter, DeviceBedError> {
        let counters = namespace.within(|| Ok(File::open("/proc/thread-self/net/dev")))?;
        let counters = counters.map_err(DeviceBedError::Counter)?;
        Ok(ReceiveCounter { counters, interface: interface.to_owned(), text: String::new() })
    }

    /// Packets received since the interface was made.
    pub fn packets(&mut self) -> Result<u64, DeviceBedError> {
        self.text.clear();
        let reread = self.counters.rewind().and_then(|()| self.counters.read_to_string(&mut self.text));
        reread.map_err(DeviceBedError::Counter)?;
        received_packets(&self.text, &self.interface).ok_or(DeviceBedError::NoCounter)
    }
}
