//! Whether the generator runs in real time.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::error::RatesError;
use crate::testbed::run;

/// What a report says of a generator that may not.
pub const NO_REAL_TIME: &str = "The generator runs before other programs (nice -20), but not in real time, which this machine \
                                refuses to it.";

/// Whether programs that this process starts may run in real time. Where the kernel gives groups of processes real time
/// (`CONFIG_RT_GROUP_SCHED`), a cgroup may have none, and then not even root may.
pub fn may_run_in_real_time() -> Result<bool, RatesError> {
    static MAY: OnceLock<bool> = OnceLock::new();
    if let Some(may) = MAY.get() {
        return Ok(*may);
    }
    let mut trial = Command::new("chrt");
    trial.args(["--fifo", "50", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let may = trial.status().map_err(RatesError::NoChrt)?.success();
    Ok(*MAY.get_or_init(|| may))
}

/// Lets a thread of this process run before all that is not in real time, if the machine lets it.
pub fn run_in_real_time(thread: &str) -> Result<(), RatesError> {
    match may_run_in_real_time()? {
        true => run("chrt", &["--fifo", "--pid", "50", thread], "").map_err(RatesError::RealTime),
        false => Ok(()),
    }
}

/// What reports say of the priority of this machine's generator. A missing `chrt` ends the campaign at its first trial.
pub fn priority_note() -> Option<&'static str> {
    matches!(may_run_in_real_time(), Ok(false)).then_some(NO_REAL_TIME)
}

/// The conditions of a campaign with what is to be said of the generator.
pub fn with_priority(conditions: &str, note: Option<&str>) -> String {
    [conditions].into_iter().chain(note).collect::<Vec<_>>().join(" ")
}
