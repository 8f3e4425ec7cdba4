//! The cores of the generator and of the device under test.

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::error::RatesError;
use super::real_time::run_in_real_time;

/// The device runs before other programs on its core.
const FIRST: i32 = -20;
const USUAL: i32 = 0;
const LAST: i32 = 19;

/// The last number that a core can have.
pub const LAST_CORE: usize = CpuSet::MAX_CPU - 1;

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
    if core > LAST_CORE {
        return Err(RatesError::NoCore { core, last: LAST_CORE });
    }
    let mut only = CpuSet::new();
    only.set(core);
    let kept = sched_setaffinity(thread, &only).and_then(|()| setpriority_process(thread, priority));
    kept.map_err(|error| RatesError::Pin(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_without_a_place_in_the_mask_is_an_error() {
        let error = put_beside(LAST_CORE + 1).unwrap_err().to_string();
        assert_eq!(error, "core 1024: cores have the numbers 0 to 1023");
    }
}
