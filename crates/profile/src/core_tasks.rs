//! Whose the samples of a core are.

use crate::script::Sample;
use crate::symbols::sanitized;

/// What belongs to the device that is observed.
#[derive(Debug, Clone, Default)]
pub struct CoreTasks {
    /// Its processes.
    pub processes: Vec<u32>,
    /// Beginnings of the names of the kernel's threads that work for it.
    pub kernel_threads: Vec<String>,
}

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
        let is_ours = |beginning: &String| sample.name.starts_with(beginning.as_str());
        match sample.process {
            // perf gives the idle task the number 0 on every core.
            0 => Owner::Idle,
            process if process == std::process::id() => Owner::Measurement,
            process if self.processes.contains(&process) => Owner::Device(sanitized(&sample.name)),
            _ if self.kernel_threads.iter().any(is_ours) => Owner::Device(kernel_thread(&sample.name)),
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

    #[test]
    fn a_sample_has_one_owner() {
        let tasks = CoreTasks { processes: vec![7], kernel_threads: vec!["napi/i1-".into()] };
        let sample = |name: &str, process| Sample { name: name.into(), process, thread: 9, frames: vec![] };
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
}
