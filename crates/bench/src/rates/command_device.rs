//! A device that is any program: a line of the shell starts it.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::error::RatesError;
use crate::testbed::{Namespace, OwnerFolder, end_tied, exit_of, start_tied, tied};

/// A program that does not end for so long after SIGTERM is killed.
const END: Duration = Duration::from_secs(2);
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

    /// -1 after a signal.
    fn exit_status(&self) -> Option<i32> {
        Some(exit_of(&self.child)?.exit_status().unwrap_or(-1))
    }

    fn said(&self) -> String {
        let log = fs::read(self.folder.path().join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("; ")
    }
}

impl Drop for CommandProcess {
    fn drop(&mut self) {
        end_tied(&mut self.child, END);
    }
}
