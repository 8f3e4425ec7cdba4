//! A perf that observes this process or a core, and counts or samples only between two commands.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::control::Control;
use crate::error::ProfileError;
use crate::window::in_window;

pub struct Attached {
    /// perf's command, as `record`.
    name: &'static str,
    perf: Child,
    control: Control,
    folder: TempDir,
}

/// What perf observes.
#[derive(Debug, Clone, Copy)]
pub enum Observed {
    /// Its threads that exist now, and those that they start.
    ThisProcess,
    /// Everything on a core.
    Core(usize),
    /// Everything on all cores.
    AllCores,
}

impl Observed {
    fn options(self) -> Vec<String> {
        match self {
            Observed::ThisProcess => vec!["-p".to_owned(), std::process::id().to_string()],
            Observed::Core(core) => vec!["-C".to_owned(), core.to_string()],
            Observed::AllCores => vec!["-a".to_owned()],
        }
    }
}

/// Whether perf can be started.
///
/// # Errors
/// Says which package has it.
pub fn check() -> Result<(), ProfileError> {
    let perf = Command::new("perf").arg("--version").stdin(Stdio::null()).output();
    perf.map(drop).map_err(ProfileError::NoPerf)
}

impl Attached {
    /// Starts perf with a folder of its own in `parent`. The kernel kills it when the calling thread ends: perf on a core
    /// would not end with this process. A signal from the terminal does not reach it: it would end in the middle of the
    /// work, which then could not switch it off.
    pub fn start(
        name: &'static str,
        observed: Observed,
        options: &[&str],
        parent: &Path,
    ) -> Result<Attached, ProfileError> {
        check()?;
        let folder = tempfile::tempdir_in(parent).map_err(ProfileError::file(parent))?;
        let (control, option) = Control::new(folder.path())?;
        let said = folder.path().join("said");
        let messages = File::create(&said).map_err(ProfileError::file(&said))?;
        let perf = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "perf", name, "--delay=-1", &option])
            .args(options)
            .args(observed.options())
            .arg("-o")
            .arg(folder.path().join("data"))
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages)
            .spawn()
            .map_err(ProfileError::NoSetpriv)?;
        Ok(Attached { name, perf, control, folder })
    }

    /// Does the work on this thread while perf is switched on. Returns what the work returned, and the time that it took.
    pub fn during<T>(&mut self, work: impl FnOnce() -> T) -> Result<(T, Duration), ProfileError> {
        self.command("enable")?;
        let began = Instant::now();
        let done = in_window(work);
        let took = began.elapsed();
        self.command("disable")?;
        Ok((done, took))
    }

    fn command(&mut self, command: &'static str) -> Result<(), ProfileError> {
        self.control.command(&mut self.perf, command).map_err(|error| match self.messages() {
            said if said.is_empty() => error,
            said => ProfileError::Perf { command: self.name, said },
        })
    }

    /// What perf printed, in one line.
    fn messages(&self) -> String {
        let said = std::fs::read_to_string(self.folder.path().join("said")).unwrap_or_default();
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Lets perf write what it has, and gives `read` the file.
    pub fn end<T>(mut self, read: impl FnOnce(&Path) -> Result<T, ProfileError>) -> Result<T, ProfileError> {
        interrupt(&self.perf);
        let ended = self.perf.wait().map_err(ProfileError::file("perf"))?;
        let data: PathBuf = self.folder.path().join("data");
        if !was_interrupted(ended) || !data.exists() {
            return Err(ProfileError::Perf { command: self.name, said: self.messages() });
        }
        read(&data)
    }
}

/// perf ends by the signal that it was asked to end by, or successfully. One that another signal killed has written nothing,
/// or a part.
fn was_interrupted(ended: ExitStatus) -> bool {
    let interrupt = Signal::INT.as_raw();
    ended.signal() == Some(interrupt)
        || matches!(ended.code(), Some(code) if code == 0 || code == 128 + interrupt)
}

fn interrupt(perf: &Child) {
    if let Some(id) = Pid::from_raw(perf.id().cast_signed()) {
        // It has ended already if this fails.
        let _ = kill_process(id, Signal::INT);
    }
}

/// After a failure perf would otherwise record for ever.
impl Drop for Attached {
    fn drop(&mut self) {
        let began = Instant::now();
        while matches!(self.perf.try_wait(), Ok(None)) {
            interrupt(&self.perf);
            sleep(Duration::from_millis(5));
            if began.elapsed() > Duration::from_secs(5) {
                let _ = self.perf.kill();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_signal_is_an_end_without_failure() {
        let status = |wait| ExitStatus::from_raw(wait);
        assert!([0, 130 << 8, 2].into_iter().all(|wait| was_interrupted(status(wait))));
        assert!([1 << 8, 9, 11].into_iter().all(|wait| !was_interrupted(status(wait))));
    }
}
