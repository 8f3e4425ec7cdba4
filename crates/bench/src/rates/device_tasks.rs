//! What works for a device on its core.

use super::bed::RateBed;
use super::memory::processes_of;

/// Processes, and threads of the kernel.
#[derive(Clone, Debug, Default)]
pub struct DeviceTasks {
    pub processes: Vec<u32>,
    /// Beginnings of the threads' names.
    pub kernel_threads: Vec<String>,
}

impl DeviceTasks {
    /// The thread that receives for the device, and the core's own, which processes what interrupts leave.
    pub fn new(process: Option<u32>, bed: &RateBed) -> DeviceTasks {
        DeviceTasks {
            processes: process.map(processes_of).unwrap_or_default(),
            kernel_threads: vec![format!("napi/{}-", bed.ingress), format!("ksoftirqd/{}", bed.cores.device)],
        }
    }
}
