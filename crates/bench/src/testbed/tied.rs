//! Children that end with this process.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpriority_process, kill_process_group,
    setpriority_process, waitid,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const POLL: Duration = Duration::from_millis(10);

/// A command to start, and where its result goes.
type Start = (Command, ThreadPlace, Sender<io::Result<Child>>);

/// Where a thread runs, which its children inherit.
struct ThreadPlace {
    cores: CpuSet,
    priority: i32,
}

/// A command that the kernel kills when the thread ends that starts it; `start_tied` starts it. It has a process group of its
/// own: Ctrl-C ends the measurement, which first finishes what it has begun with this program.
pub fn tied(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program).process_group(0);
    command
}

/// Starts a command of `tied`. One thread starts them all and lasts as long as this process, because the signal is sent
/// when the thread ends that started the child. The child has the cores and the priority of the calling thread.
pub fn start_tied(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Start>> = OnceLock::new();
    let ended = |_| io::Error::other("the thread that starts programs has ended");
    let (result, started) = channel();
    let place = ThreadPlace { cores: sched_getaffinity(None)?, priority: getpriority_process(None)? };
    STARTER.get_or_init(starter).send((command, place, result)).map_err(|error| ended(error.to_string()))?;
    started.recv().map_err(|error| ended(error.to_string()))?
}

/// Ends a child of `start_tied` with its process group: by SIGTERM, and by SIGKILL what still runs after `patience`.
pub fn end_tied(child: &mut Child, patience: Duration) {
    let group = Pid::from_child(child);
    // Failures cannot be reported by those who drop it; the group may have ended.
    let _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    while exit_of(child).is_none() && asked.elapsed() < patience {
        thread::sleep(POLL);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// How a child has ended. It stays a zombie, so that no other process gets its number and that of its group.
pub fn exit_of(child: &Child) -> Option<WaitIdStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), options).ok().flatten()
}

fn starter() -> Sender<Start> {
    let (sender, queue) = channel::<Start>();
    thread::spawn(move || {
        for (mut command, place, result) in queue {
            let started = place.take().and_then(|()| command.spawn());
            // The caller waits for it.
            let _ = result.send(started);
        }
    });
    sender
}

impl ThreadPlace {
    fn take(self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.cores).and_then(|()| setpriority_process(None, self.priority))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, getpgid};

    /// A terminal sends SIGINT to every process of the group in its foreground.
    #[test]
    fn a_tied_program_is_not_in_the_group_of_this_process() {
        let mut command = tied("sleep");
        command.arg("60");
        let mut child = start_tied(command).expect("setpriv and sleep");
        let process = Pid::from_child(&child);
        assert_eq!(getpgid(Some(process)), Ok(process));
        child.kill().and_then(|()| child.wait()).expect("the end of sleep");
    }
}
