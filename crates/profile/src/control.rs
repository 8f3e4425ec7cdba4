//! The two pipes by which perf is switched on and off (perf-record(1), `--control`).

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::error::ProfileError;

/// perf opens its events before it answers the first command.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Control {
    commands: File,
    answers: File,
}

impl Control {
    /// Makes the pipes in a folder; the second value is perf's option.
    pub fn new(folder: &Path) -> Result<(Control, String), ProfileError> {
        let (commands, answers) = (folder.join("commands"), folder.join("answers"));
        let option = format!("--control=fifo:{},{}", commands.display(), answers.display());
        Ok((Control { commands: pipe(&commands)?, answers: pipe(&answers)? }, option))
    }

    /// Gives perf a command and waits until it has carried it out.
    pub fn command(&mut self, perf: &mut Child, command: &'static str) -> Result<(), ProfileError> {
        let write = self.commands.write_all(format!("{command}\n").as_bytes());
        write.map_err(ProfileError::file("perf's pipe"))?;
        let began = Instant::now();
        let mut answer = [0; 16];
        while began.elapsed() < PATIENCE {
            match self.answers.read(&mut answer) {
                Ok(len) if answer[..len].starts_with(b"ack") => return Ok(()),
                _ if matches!(perf.try_wait(), Ok(Some(_))) => break,
                _ => sleep(Duration::from_millis(1)),
            }
        }
        Err(ProfileError::NoAnswer(command))
    }
}

/// A pipe that is opened for both directions has always the user at the other end, so that opening it does not wait.
fn pipe(path: &Path) -> Result<File, ProfileError> {
    let made = mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    made.map_err(|error| ProfileError::File { path: path.into(), source: error.into() })?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options.open(path).map_err(ProfileError::file(path))
}
