//! How long a thread waited for its core.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kernel's records of the calling thread, and of the thread that goes on with received packets on its core when there
/// are too many (`ksoftirqd`). What the latter does is the forwarder's work, although the former waits meanwhile.
///
/// The processor time of the thread does not tell: some kernels count the handling of received packets there, others
/// do not (`CONFIG_IRQ_TIME_ACCOUNTING`).
pub struct CoreWait {
    own: PathBuf,
    helper: Option<PathBuf>,
}

/// The fields of `schedstat`: nanoseconds on a core, and ready to run without one.
#[derive(Clone, Copy, Default)]
struct CoreUse {
    ran: u64,
    waited: u64,
}

/// Both records at one moment.
#[derive(Clone, Copy)]
pub struct Waited {
    own: u64,
    helper: u64,
}

impl CoreWait {
    /// Of a thread that stays on this core. Finds nothing where the kernel keeps no records; then no wait is seen.
    pub fn on(core: usize) -> CoreWait {
        let name = format!("ksoftirqd/{core}");
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let is_helper = |process: &PathBuf| {
            fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        };
        let helper = processes.into_iter().find(is_helper).map(|process| process.join("schedstat"));
        CoreWait { own: PathBuf::from("/proc/thread-self/schedstat"), helper }
    }

    /// What the calling thread has waited so far.
    pub fn now(&self) -> Waited {
        let helper = self.helper.as_deref().map(read).unwrap_or_default();
        Waited { own: read(&self.own).waited, helper: helper.ran }
    }
}

impl Waited {
    /// The time since then in which other threads than the helper had the core.
    pub fn since(self, before: Waited) -> Duration {
        Duration::from_nanos((self.own - before.own).saturating_sub(self.helper - before.helper))
    }
}

fn read(path: &Path) -> CoreUse {
    fs::read_to_string(path).ok().and_then(|text| parse(&text)).unwrap_or_default()
}

fn parse(text: &str) -> Option<CoreUse> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let mut next = || fields.next().and_then(Result::ok);
    Some(CoreUse { ran: next()?, waited: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helpers_time_is_no_wait() {
        let read = parse("162987 67812 2\n").unwrap();
        assert_eq!((read.ran, read.waited), (162_987, 67_812));
        let before = Waited { own: 1_000, helper: 500 };
        assert_eq!(Waited { own: 4_000, helper: 1_500 }.since(before), Duration::from_nanos(2_000));
        assert_eq!(Waited { own: 1_000, helper: 1_500 }.since(before), Duration::ZERO);
    }
}
