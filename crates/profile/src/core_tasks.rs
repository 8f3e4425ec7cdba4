//! Whose the samples of a core are.

use serde::{Deserialize, Serialize};

use crate::script::Sample;
use crate::symbols::sanitized;

/// What belongs to the device that is observed.
#[derive(Debug, Clone, Default)]
pub struct CoreTasks {
    /// Its processes.
    pub processes: Vec<u32>,
    /// Beginnings of the names of the kernel's threads that work for it, as [`begins`] compares them.
    pub kernel_threads: Vec<String>,
    pub scope: TaskScope,
}

/// What belongs to a device beside its processes and threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskScope {
    #[default]
    Nothing,
    /// What the kernel does with received packets, in whichever thread an interrupt came
    ReceivedPackets,
    /// All programs: the machine has no other task
    Everything,
}

/// The letters of a thread's name that the kernel gives to perf; an interface's name may be as long.
const NAME: usize = 15;

/// Whether the name of a thread has this beginning, as far as the kernel keeps names.
pub fn begins(name: &str, beginning: &str) -> bool {
    name.starts_with(beginning.get(..NAME).unwrap_or(beginning))
}

/// The function of the kernel by which it processes received packets, and the name that they have as a thread.
const RECEIVES: &str = "net_rx_action";
const SOFTIRQ: &str = "[softirq]";

/// Whose a sample is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The core had nothing to do.
    Idle,
    /// The device's, in the thread of this name.
    Device(String),
    /// This process: the measurement itself.
    Measurement,
    /// Another program's.
    Other(String),
}

impl CoreTasks {
    pub(crate) fn owner(&self, sample: &Sample) -> Owner {
        let is_ours = |beginning: &String| begins(&sample.name, beginning);
        let receives = || sample.frames.iter().any(|frame| frame.symbol.starts_with(RECEIVES));
        let is_thread = || self.kernel_threads.iter().any(is_ours);
        match sample.process {
            _ if self.scope != TaskScope::Nothing && !is_thread() && receives() => {
                Owner::Device(SOFTIRQ.to_owned())
            }
            // perf gives the idle task the number 0 on every core.
            0 => Owner::Idle,
            process if process == std::process::id() => Owner::Measurement,
            process if self.processes.contains(&process) => Owner::Device(sanitized(&sample.name)),
            _ if is_thread() => Owner::Device(kernel_thread(&sample.name)),
            _ if self.scope == TaskScope::Everything => Owner::Device(sanitized(&sample.name)),
            _ => Owner::Other(sanitized(&sample.name)),
        }
    }

    /// The name of the thread of a device's sample.
    pub(crate) fn device_thread(&self, sample: &Sample) -> Option<String> {
        match self.owner(sample) {
            Owner::Device(name) => Some(name),
            _ => None,
        }
    }
}

/// Without the interface, the number or the core, so that two graphs have the same thread.
fn kernel_thread(name: &str) -> String {
    format!("[{}]", name.split('/').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::RawFrame;

    #[test]
    fn a_sample_has_one_owner() {
        let tasks =
            CoreTasks { processes: vec![7], kernel_threads: vec!["napi/i1-".into()], ..CoreTasks::default() };
        let sample = |name: &str, process| Sample {
            name: name.into(),
            process,
            thread: 9,
            core: None,
            frames: vec![],
        };
        for (name, process, owner) in [
            ("swapper", 0, Owner::Idle),
            ("fv-worker", 7, Owner::Device("fv-worker".into())),
            ("napi/i1-12", 70, Owner::Device("[napi]".into())),
            ("napi/i2-12", 71, Owner::Other("napi/i2-12".into())),
            ("a;b", 5, Owner::Other("a:b".into())),
            ("fullview", std::process::id(), Owner::Measurement),
        ] {
            assert_eq!(tasks.owner(&sample(name, process)), owner);
        }
    }

    #[test]
    fn a_name_is_compared_as_far_as_the_kernel_keeps_it() {
        assert!(begins("napi/enp129s0f1", "napi/enp129s0f1np1-"), "as perf shows it");
        assert!(begins("napi/enp129s0f1np1-8", "napi/enp129s0f1np1-"), "as /proc does since Linux 5.17");
        assert!(!begins("napi/i1-12", "napi/i1-2"));
        assert!(!begins("napi/i12-3", "napi/i1-"));
    }

    #[test]
    fn packets_that_an_interrupt_brings_are_the_devices_on_a_machine_of_its_own() {
        let frame =
            RawFrame { address: 1, symbol: "net_rx_action+0x1".into(), object: "[kernel.kallsyms]".into() };
        let sample = |process, frames| Sample { name: "x".into(), process, thread: 9, core: None, frames };
        let owner = |scope, sample| CoreTasks { scope, ..CoreTasks::default() }.owner(&sample);
        let softirq = Owner::Device(SOFTIRQ.into());
        assert_eq!(owner(TaskScope::Nothing, sample(0, vec![frame.clone()])), Owner::Idle);
        assert_eq!(owner(TaskScope::ReceivedPackets, sample(0, vec![frame.clone()])), softirq);
        assert_eq!(owner(TaskScope::ReceivedPackets, sample(5, vec![frame])), softirq);
        assert_eq!(owner(TaskScope::ReceivedPackets, sample(5, vec![])), Owner::Other("x".into()));
        assert_eq!(owner(TaskScope::Everything, sample(5, vec![])), Owner::Device("x".into()));
        assert_eq!(owner(TaskScope::Everything, sample(0, vec![])), Owner::Idle);
    }
}
