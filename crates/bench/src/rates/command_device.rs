//! A device that is any program: a line of the shell starts it.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::error::RatesError;
use crate::testbed::{Namespace, OwnerFolder, start_tied, tied};

/// A program that does not end for so long after SIGTERM is killed.
const END: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);
const LOG: &str = "log";

/// A name for the table, and the line that starts the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCommand {
    pub name: String,
    pub line: String,
}

/// A program that runs. It ends with its process group when this value is dropped.
pub struct CommandProcess {
    name: String,
    child: Child,
    folder: tempfile::TempDir,
    /// Its folder is the parent of `folder`.
    _owner: Arc<OwnerFolder>,
}

impl CommandProcess {
    /// Runs the line by `sh` in a namespace, with the interfaces' names in these variables.
    pub fn start(
        namespace: &Namespace,
        command: &DeviceCommand,
        interfaces: &[(&str, &str)],
    ) -> Result<CommandProcess, RatesError> {
        let DeviceCommand { name, line } = command;
        let failed = |error| RatesError::CommandStart { name: name.clone(), error };
        let owner = OwnerFolder::current()?;
        let folder = owner.folder("command-")?;
        let log = File::create(folder.path().join(LOG)).map_err(failed)?;
        let mut started = tied("ip");
        started.args(["netns", "exec", namespace.name(), "sh", "-c", line]);
        started.envs(interfaces.iter().copied());
        started.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
        let child = start_tied(started).map_err(failed)?;
        Ok(CommandProcess { name: name.clone(), child, folder, _owner: owner })
    }

    /// The number of the process that leads its group.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Refuses a program that has failed. One that ended well has set the kernel up.
    pub fn check(&self) -> Result<(), RatesError> {
        match self.exit_status() {
            None | Some(0) => Ok(()),
            Some(status) => {
                Err(RatesError::CommandEnded { name: self.name.clone(), status, said: self.said() })
            }
        }
    }

    /// -1 after a signal. The child stays a zombie, so that no other process gets its number and that of its group.
    fn exit_status(&self) -> Option<i32> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = waitid(WaitId::Pid(self.pid()), options).ok().flatten()?;
        Some(ended.exit_status().unwrap_or(-1))
    }

    fn said(&self) -> String {
        let log = fs::read(self.folder.path().join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("; ")
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for CommandProcess {
    fn drop(&mut self) {
        // Failures cannot be reported from here; the group may have ended.
        let _ = kill_process_group(self.pid(), Signal::TERM);
        let asked = Instant::now();
        while self.exit_status().is_none() && asked.elapsed() < END {
            thread::sleep(POLL);
        }
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
    }
}
