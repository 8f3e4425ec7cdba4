//! What is sampled: the processor's cycles where the machine counts them, else the time on the core.

use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// Samples a second. No multiple of the timers that the kernel and other programs use, so that it does not follow them.
pub const FREQUENCY: u32 = 997;

/// The event whose occurrences are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A hardware event.
    Cycles,
    /// The software clock of the thread on its core, for machines that do not show their counters, as many virtual ones.
    CpuClock,
}

impl Event {
    /// The best event of this machine. Both sides of a comparison have to use the same.
    pub fn best() -> Event {
        if counts("cycles") { Event::Cycles } else { Event::CpuClock }
    }

    /// perf's name. Without privileges only the user's part of the time can be sampled.
    pub(crate) fn name(self) -> String {
        let name = match self {
            Event::Cycles => "cycles",
            Event::CpuClock => "cpu-clock",
        };
        if rustix::process::geteuid().is_root() { name.to_owned() } else { format!("{name}:u") }
    }

    /// One sentence for the report.
    pub fn describe(self) -> &'static str {
        match self {
            Event::Cycles => "Samples are taken by the processor's cycles.",
            Event::CpuClock => {
                "Samples are taken by the software clock: this machine shows no hardware counters, so that cycles, \
                 instructions and cache misses are not known."
            }
        }
    }
}

/// Whether this machine counts an event. perf prints `<not supported>` in place of a count, and is successful.
fn counts(event: &str) -> bool {
    let perf = Command::new("perf").args(["stat", "-x,", "-e", event, "true"]).stdin(Stdio::null()).output();
    perf.is_ok_and(|output| {
        let said = String::from_utf8_lossy(&output.stderr);
        let count = said.split(',').next().unwrap_or_default().trim();
        output.status.success() && count.parse::<u64>().is_ok_and(|count| count > 0)
    })
}
