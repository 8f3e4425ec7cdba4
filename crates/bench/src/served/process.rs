//! A process that serves slices, as the program that measures sees it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use fullview_lab::Experiment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::ServedError;
use super::protocol::{Hello, PROTOCOL, Reply, Request, ServedBuild, ServedFailure};
use crate::settings::{Kind, Settings};
use crate::subject::measures;

/// The command of the program that serves.
pub const COMMAND: &str = "serve-slices";
/// How long a program may take to say who it is.
const HELLO: Duration = Duration::from_secs(20);
/// How long a panel may take to load tables, to compile and to verify.
const PANEL: Duration = Duration::from_secs(900);
/// How long any other answer may take beyond the length of the slice.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a process may take to end.
const END: Duration = Duration::from_secs(10);
/// A longer line is no message.
const LONGEST_LINE: usize = 64 << 20;
/// Bytes at the end of what the process logged that an error shows.
const LOG_SHOWN: u64 = 2_000;

/// A build that can serve.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    hello: Hello,
}

impl Program {
    /// Starts the program once, to find out whether it serves and which build it is.
    pub fn at(path: &Path) -> Result<Self, ServedError> {
        let (_, hello) = ServedProcess::spawn(path)?;
        Ok(Self { path: path.into(), hello })
    }

    /// Refuses a build that serves no slices of the kind of an experiment.
    pub fn serving(self, experiment: &Experiment<Settings>) -> Result<Self, ServedError> {
        let kind = [Kind::Veth, Kind::Testbed].into_iter().find(|kind| measures(experiment, *kind));
        match kind {
            Some(kind) if !self.hello.given_lengths => {
                Err(ServedError::OlderThanKind { program: self.path, kind })
            }
            _ => Ok(self),
        }
    }

    /// Which build it is.
    pub fn build(&self) -> &ServedBuild {
        &self.hello.build
    }

    pub(super) fn start(&self) -> Result<ServedProcess, ServedError> {
        let (process, hello) = ServedProcess::spawn(&self.path)?;
        let same = hello == self.hello;
        if same { Ok(process) } else { Err(ServedError::Replaced { program: self.path.clone() }) }
    }
}

/// A running process. It ends when this value is dropped.
pub struct ServedProcess {
    program: PathBuf,
    child: Child,
    requests: Option<ChildStdin>,
    replies: ChildStdout,
    /// What was read and is not yet a line.
    read: Vec<u8>,
    /// Its standard error.
    log: File,
}

impl ServedProcess {
    fn spawn(program: &Path) -> Result<(Self, Hello), ServedError> {
        let mut process =
            Self::run(program).map_err(|error| ServedError::Start { program: program.into(), error })?;
        let hello = process.hello()?;
        match hello.protocol {
            PROTOCOL => Ok((process, hello)),
            served => Err(ServedError::OtherProtocol { program: program.into(), served }),
        }
    }

    /// Starts it in a process group of its own: Ctrl-C ends the campaign, which then ends this process.
    fn run(program: &Path) -> io::Result<Self> {
        let log = tempfile::tempfile()?;
        let mut child = Command::new(program)
            .arg(COMMAND)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone()?)
            .spawn()?;
        let (requests, Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        Ok(Self { program: program.into(), child, requests, replies, read: Vec::new(), log })
    }

    fn hello(&mut self) -> Result<Hello, ServedError> {
        let found = match self.line(HELLO) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(Reply::Hello(hello)) => return Ok(hello),
                _ => format!("its first line is \"{}\"", shortened(&line)),
            },
            Err(ServedError::Ended { .. }) if self.log().contains("unrecognized subcommand") => {
                return Err(ServedError::TooOld { program: self.program.clone() });
            }
            Err(ServedError::Ended { .. }) => format!("it ended at once{}", self.shown_log()),
            Err(ServedError::Silent { .. }) => "it does not answer".into(),
            Err(error) => return Err(error),
        };
        Err(ServedError::NotFullview { program: self.program.clone(), found })
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ServedError> {
        self.send(request)?;
        let line = self.line(timeout(request))?;
        match serde_json::from_str(&line) {
            Ok(Reply::Error(ServedFailure { member: None, message })) => {
                Err(ServedError::Failed { program: self.program.clone(), message })
            }
            Ok(reply) => Ok(reply),
            Err(_) => Err(self.unexpected(&line)),
        }
    }

    /// The error of an answer that does not fit its request.
    pub fn unexpected(&self, found: &str) -> ServedError {
        ServedError::Answer { program: self.program.clone(), found: shortened(found) }
    }

    /// The error of a member that failed.
    pub fn failed(&self, message: String) -> ServedError {
        ServedError::Failed { program: self.program.clone(), message }
    }

    fn send(&mut self, request: &Request) -> Result<(), ServedError> {
        let mut line = serde_json::to_vec(request).map_err(|error| self.pipe(error.into()))?;
        line.push(b'\n');
        let sent = self.requests.as_mut().map_or(Ok(()), |requests| requests.write_all(&line));
        match sent {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(self.ended()),
            sent => sent.map_err(|error| self.pipe(error)),
        }
    }

    /// Reads the next line, without its end.
    fn line(&mut self, within: Duration) -> Result<String, ServedError> {
        let deadline = Instant::now() + within;
        let mut searched = 0;
        loop {
            if let Some(end) = self.read[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(searched + end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            searched = self.read.len();
            if searched > LONGEST_LINE {
                return Err(self.unexpected("a line without end"));
            }
            if !self.wait(deadline).map_err(|error| self.pipe(error))? {
                return Err(ServedError::Silent { program: self.program.clone(), after: within });
            }
            let mut chunk = [0; 4096];
            match self.replies.read(&mut chunk).map_err(|error| self.pipe(error))? {
                0 => return Err(self.ended()),
                count => self.read.extend(&chunk[..count]),
            }
        }
    }

    /// Waits until there is something to read; false if nothing came until the deadline.
    fn wait(&self, deadline: Instant) -> io::Result<bool> {
        let mut waiting = [PollFd::new(&self.replies, PollFlags::IN)];
        loop {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()));
            match poll(&mut waiting, left.ok().as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                found => return Ok(found? > 0),
            }
        }
    }

    fn ended(&mut self) -> ServedError {
        ServedError::Ended { program: self.program.clone(), log: self.shown_log() }
    }

    fn pipe(&self, error: io::Error) -> ServedError {
        ServedError::Pipe { program: self.program.clone(), error }
    }

    /// The end of what it logged, for the end of a message.
    fn shown_log(&mut self) -> String {
        let log = self.log();
        if log.is_empty() { String::new() } else { format!(": {log}") }
    }

    fn log(&mut self) -> String {
        let mut bytes = Vec::new();
        let length = self.log.seek(SeekFrom::End(0)).unwrap_or(0);
        let begin = self.log.seek(SeekFrom::Start(length.saturating_sub(LOG_SHOWN)));
        // What cannot be read is left out: another error is on its way to the user.
        let _ = begin.and_then(|_| self.log.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

impl Drop for ServedProcess {
    /// It ends by itself when its requests end, and gives back what it took. One that does not is killed.
    fn drop(&mut self) {
        self.requests = None;
        let deadline = Instant::now() + END;
        let mut chunk = [0; 4096];
        while self.wait(deadline).is_ok_and(|ready| ready)
            && self.replies.read(&mut chunk).is_ok_and(|n| n > 0)
        {}
        if Instant::now() >= deadline {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn timeout(request: &Request) -> Duration {
    match request {
        Request::Panel(_) => PANEL,
        Request::Slice(slice) => {
            ANSWER + Duration::from_nanos(slice.lead_in_ns.saturating_add(slice.length_ns))
        }
        Request::Findings | Request::End => ANSWER,
    }
}

fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    let shown: String = text.chars().filter(|c| !c.is_control()).take(MOST).collect();
    if text.chars().count() > MOST { shown + "…" } else { shown }
}
