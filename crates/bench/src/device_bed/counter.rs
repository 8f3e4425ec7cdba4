//! Counts what comes out, by the kernel's counter of the receiver's interface: it misses no packet at any rate and takes
//! no time of a core.

use std::fs::File;
use std::io::{Read, Seek};

use super::error::DeviceBedError;
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
        let figure = self.text.lines().find_map(|line| figure(line, &self.interface));
        figure.ok_or(DeviceBedError::NoCounter)
    }
}

/// The second figure of the interface's line.
fn figure(line: &str, interface: &str) -> Option<u64> {
    let (name, figures) = line.split_once(':')?;
    (name.trim() == interface).then(|| figures.split_ascii_whitespace().nth(1)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_for_its_own_interface() {
        let line = "    r0: 600 10 0 0 0 0 0 0 70 1 0 0 0 0 0 0";
        assert_eq!(figure(line, "r0"), Some(10));
        assert_eq!(figure(line, "r"), None);
        assert_eq!(figure(" face |bytes    packets", "r0"), None);
    }
}
