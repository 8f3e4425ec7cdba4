//! A router of this program between the hosts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fullview_router::control::client::Client;
use fullview_router::control::request::Request;
use fullview_router::control::status::CountersStatus;

use super::error::VethError;
use crate::testbed::{Namespace, OwnerFolder, end_tied, exit_of, start_tied, tied};

/// A router has loaded its programs and read the kernel's state within a small part of this time.
const START: Duration = Duration::from_secs(30);
/// A router that does not end for so long after SIGTERM is killed.
const END: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// What is started.
pub struct RouterProgram<'s> {
    pub program: &'s Path,
    /// The words of `--interfaces` and `--engine`.
    pub interfaces: &'s str,
    pub engine: &'s str,
    /// Further arguments of `fullview forward`.
    pub options: &'s [String],
}

/// A router that runs. It ends when this value is dropped.
pub struct RouterProcess {
    child: Child,
    folder: tempfile::TempDir,
    arguments: String,
    /// Its folder is the parent of `folder`.
    _owner: Arc<OwnerFolder>,
}

impl RouterProcess {
    /// Starts a router in a namespace, and waits until it answers.
    pub fn start(router: &Namespace, program: &RouterProgram<'_>) -> Result<RouterProcess, VethError> {
        let mut command = tied("ip");
        command.args(["netns", "exec", router.name()]).arg(program.program);
        RouterProcess::start_by(command, program)
    }

    /// Starts a router in this namespace, and waits until it answers.
    pub fn start_here(program: &RouterProgram<'_>) -> Result<RouterProcess, VethError> {
        RouterProcess::start_by(tied(program.program), program)
    }

    fn start_by(mut command: Command, program: &RouterProgram<'_>) -> Result<RouterProcess, VethError> {
        let owner = OwnerFolder::current()?;
        let folder = owner.folder("router-")?;
        let said = File::create(folder.path().join("log")).map_err(VethError::Folder)?;
        let control = control(folder.path());
        let mut arguments = vec!["--interfaces".to_owned(), program.interfaces.into(), "--engine".into()];
        arguments.push(program.engine.into());
        arguments.extend_from_slice(program.options);
        command.arg("forward").args(&arguments);
        command.arg("--control").arg(control).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let name = program.program.display().to_string();
        let child = start_tied(command).map_err(|error| VethError::Start { program: name, error })?;
        let mut started = RouterProcess { child, folder, arguments: arguments.join(" "), _owner: owner };
        started.wait()?;
        Ok(started)
    }

    fn wait(&mut self) -> Result<(), VethError> {
        let began = Instant::now();
        while self.counters().is_err() {
            if exit_of(&self.child).is_some() || began.elapsed() > START {
                return Err(VethError::Router { arguments: self.arguments.clone(), said: self.said() });
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn said(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(3).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("; ")
    }

    /// The packets that the router has sent, by its own count.
    pub fn forwarded(&self) -> Result<u64, VethError> {
        Ok(self.counters()?.sent.packets)
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    fn counters(&self) -> Result<CountersStatus, VethError> {
        Ok(Client::connect(&control(self.folder.path()))?.ask(&Request::Counters)?)
    }
}

fn control(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

impl Drop for RouterProcess {
    fn drop(&mut self) {
        // The kernel removes its programs and sockets with it, but not the fence of its filter.
        end_tied(&mut self.child, END);
    }
}
