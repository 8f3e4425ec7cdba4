//! What works for a device on its core.

use fullview_profile::CoreTasks;

use super::bed::RateBed;
use super::memory::processes_of;

/// The processes of a device's program, the thread that receives for it, and the core's own, which processes what interrupts
/// leave.
pub fn device_tasks(process: Option<u32>, bed: &RateBed) -> CoreTasks {
    CoreTasks {
        processes: process.map(processes_of).unwrap_or_default(),
        kernel_threads: vec![format!("napi/{}-", bed.ingress), format!("ksoftirqd/{}", bed.cores.device)],
        ..CoreTasks::default()
    }
}
