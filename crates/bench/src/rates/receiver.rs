//! Counts what comes out.
//!
//! The kernel's counter of the right host's interface counts: it misses no packet at any rate and takes no time of a core,
//! which a socket does. It counts ours alone, because nothing else sends in the namespace.

use std::fs;
use std::thread;
use std::time::Duration;

use fullview_table::Family;

use super::bed::RateBed;
use super::error::RatesError;
use super::spare_link::SPARE_HOST;

/// The counter is read so often.
const STEP: Duration = Duration::from_millis(5);
/// All packets have come out, and for so many steps no other one: nothing else sends.
const SILENT: u32 = 1;
/// Nothing more comes when nothing comes for so many steps. Threads that hold packets may wait that long for the device's core,
/// and what a new router reports of its groups waits in a queue of work of the kernel; neither must come out in the next trial.
const SILENT_FOR_GOOD: u32 = 40;
/// A device that never ends is not waited for.
const STEPS: usize = 400;

/// Packets that the right host has received, by all of its links.
pub fn received(bed: &RateBed) -> Result<u64, RatesError> {
    let read = || Ok(fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default());
    let text = bed.right.within(read)?;
    let count =
        |interface| received_packets(&text, interface).ok_or(RatesError::NoCounters("the right host"));
    let spare = bed.has_spare.then(|| count(SPARE_HOST)).transpose()?;
    Ok(count(bed.counted())? + spare.unwrap_or(0))
}

/// Waits until a new router has reported its multicast groups, which it does twice within some milliseconds. Over IPv4 it has
/// none to report.
pub fn await_silence(bed: &RateBed) -> Result<(), RatesError> {
    match bed.family {
        Family::Inet => Ok(()),
        Family::Inet6 => last_count(bed, |_| SILENT_FOR_GOOD).map(drop),
    }
}

/// Packets that came out since the counter was `before`, when no more come of the `sent` ones.
pub fn settled(bed: &RateBed, before: u64, sent: u64) -> Result<u64, RatesError> {
    let needed = |count| if count >= before + sent { SILENT } else { SILENT_FOR_GOOD };
    Ok(last_count(bed, needed)?.saturating_sub(before))
}

/// The counter when it has stood still for as many steps as its value needs.
fn last_count(bed: &RateBed, needed: impl Fn(u64) -> u32) -> Result<u64, RatesError> {
    let (mut count, mut silent) = (received(bed)?, 0);
    for _ in 0..STEPS {
        if silent >= needed(count) {
            break;
        }
        thread::sleep(STEP);
        let now = received(bed)?;
        silent = if now == count { silent + 1 } else { 0 };
        count = now;
    }
    Ok(count)
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
