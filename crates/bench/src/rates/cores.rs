//! The cores of the generator and of the device under test.

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::error::RatesError;
use super::real_time::run_in_real_time;

/// The device runs before other programs on its core.
const FIRST: i32 = -20;
const USUAL: i32 = 0;
const LAST: i32 = 19;

/// Two cores.
#[derive(Clone, Copy, Debug)]
pub struct BedCores {
    pub generator: usize,
    pub device: usize,
}

impl BedCores {
    /// The first and the last core that this process may use.
    pub fn choose() -> Result<BedCores, RatesError> {
        let allowed = sched_getaffinity(None).map_err(|error| RatesError::Pin(error.into()))?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
        match cores[..] {
            [generator, .., device] => Ok(BedCores { generator, device }),
            _ => Err(RatesError::Cores(cores.len())),
        }
    }
}

/// Keeps a thread, or the calling one, on a core, and lets it run before other programs.
pub fn keep(thread: Option<Pid>, core: usize) -> Result<(), RatesError> {
    place(thread, core, FIRST)
}

/// Keeps the calling thread on a core, on which no other program runs meanwhile, or only some in their turn if the machine
/// refuses real time: a generator that waits for a core keeps no schedule.
pub fn keep_real_time(core: usize) -> Result<(), RatesError> {
    keep(None, core)?;
    run_in_real_time(&rustix::thread::gettid().to_string())
}

/// Keeps the calling thread on a core, on which programs that are kept there run before it.
pub fn put_beside(core: usize) -> Result<(), RatesError> {
    place(None, core, USUAL)
}

/// Keeps a thread on a core, on which it runs after all other programs.
pub fn put_last(thread: Pid, core: usize) -> Result<(), RatesError> {
    place(Some(thread), core, LAST)
}

fn place(thread: Option<Pid>, core: usize, priority: i32) -> Result<(), RatesError> {
    let mut only = CpuSet::new();
    only.set(core);
    let kept = sched_setaffinity(thread, &only).and_then(|()| setpriority_process(thread, priority));
    kept.map_err(|error| RatesError::Pin(error.into()))
}
