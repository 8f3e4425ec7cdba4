//! Counts what comes out.
//!
//! The kernel's counter of the right host's interface counts: it misses no packet at any rate and takes no time of a core,
//! which a socket does. It counts ours alone, because nothing else sends in the namespace.

use std::fs;
use std::thread;
use std::time::Duration;

use super::bed::RateBed;
use super::error::RatesError;

/// The device has sent what it holds when nothing comes out for so long.
const SILENCE: Duration = Duration::from_millis(5);
/// A device that never ends is not waited for.
const CHECKS: usize = 200;

/// Packets that the right host has received.
pub fn received(bed: &RateBed) -> Result<u64, RatesError> {
    let read = || Ok(fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default());
    let text = bed.right.within(read)?;
    received_packets(&text, bed.counted()).ok_or(RatesError::NoCounters("the right host"))
}

/// The same, when no more come.
pub fn settled(bed: &RateBed) -> Result<u64, RatesError> {
    let mut before = received(bed)?;
    for _ in 0..CHECKS {
        thread::sleep(SILENCE);
        let now = received(bed)?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(before)
}

/// The packets that an interface has received, by the text of `/proc/net/dev`: its second figure.
pub fn received_packets(text: &str, interface: &str) -> Option<u64> {
    let figures = |line: &'_ str| {
        let (name, figures) = line.split_once(':')?;
        (name.trim() == interface).then(|| figures.split_ascii_whitespace().nth(1)?.parse().ok())?
    };
    text.lines().find_map(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packets_of_one_interface_are_read() {
        let text = "Inter-| Receive\n face |bytes packets\n    lo: 1 2 0\n  eth0: 600 10 3 0\n eth01:7 8 0";
        assert_eq!(received_packets(text, "eth0"), Some(10));
        assert_eq!(received_packets(text, "eth01"), Some(8));
        assert_eq!(received_packets(text, "eth"), None);
    }
}
