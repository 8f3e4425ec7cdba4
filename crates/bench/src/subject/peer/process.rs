//! A peer: a process that answers `peers/README.md`'s protocol.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::files::PeerFiles;
use crate::error::PeerError;

/// A running peer. It ends when this value is dropped.
pub struct Process {
    child: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
    ready: Ready,
    _inputs: Rc<PeerFiles>,
}

/// The line a peer prints once it has loaded the table and verified every answer.
#[derive(Debug, Deserialize)]
pub struct Ready {
    pub contestants: Vec<String>,
    pub pages: String,
    pub facts: Vec<Fact>,
    pub bad: Vec<WrongAnswers>,
    pub refused: Vec<Refusal>,
}

/// What a peer reports of a contestant's structure.
#[derive(Debug, Deserialize)]
pub struct Fact {
    pub contestant: String,
    pub bytes: Option<f64>,
    pub build_s: Option<f64>,
}

/// Wrong answers on one stream.
#[derive(Debug, Deserialize)]
pub struct WrongAnswers {
    pub contestant: String,
    pub family: String,
    pub stream: String,
    pub bad: usize,
    pub of: usize,
    pub first: Option<String>,
}

/// A contestant that cannot take part.
#[derive(Debug, Deserialize)]
pub struct Refusal {
    pub contestant: String,
    pub why: String,
}

/// The answer to one command.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PeerReply<T> {
    Refused { error: String },
    Done(T),
}

impl Process {
    /// Starts `program` with only these contestants and waits until it is ready.
    pub fn start(
        program: &Path,
        contestants: &[&str],
        inputs: Rc<PeerFiles>,
        (core, other): (usize, Option<usize>),
    ) -> Result<Self, PeerError> {
        let other = other.map(|other| ("ROUTER_CORE", other.to_string()));
        let mut child = Command::new(program)
            .env("CORE", core.to_string())
            .envs(other)
            .args(["--only", &contestants.join(","), "--serve"])
            .arg(inputs.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| PeerError::Start { program: program.into(), error })?;
        let (Some(commands), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            let error = io::Error::other("no pipes to the peer");
            return Err(PeerError::Start { program: program.into(), error });
        };
        let mut replies = BufReader::new(replies);
        let ready = ready_line(&mut replies)
            .map_err(|error| PeerError::NotReady { program: program.into(), error: Box::new(error) })?;
        Ok(Process { child, commands, replies, ready, _inputs: inputs })
    }

    /// One sample of `contestant` over `length`.
    pub fn sample<T: DeserializeOwned>(
        &mut self,
        contestant: &str,
        stream: &str,
        length: Duration,
    ) -> Result<T, PeerError> {
        writeln!(self.commands, "run {contestant} {stream} {}", length.as_secs_f64())?;
        match serde_json::from_str(&line(&mut self.replies)?).map_err(PeerError::Answer)? {
            PeerReply::Refused { error } => Err(PeerError::Refused(error)),
            PeerReply::Done(sample) => Ok(sample),
        }
    }
}

impl Process {
    /// What the peer reported when it was ready.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }
}

impl Drop for Process {
    /// The peer ends by itself at `quit`. Its script then gives back the huge pages that it took, so this waits for the
    /// end and does not kill it.
    fn drop(&mut self) {
        let _ = writeln!(self.commands, "quit");
        let _ = self.child.wait();
    }
}

fn ready_line(replies: &mut impl BufRead) -> Result<Ready, PeerError> {
    serde_json::from_str(&line(replies)?).map_err(PeerError::FirstLine)
}

fn line(replies: &mut impl BufRead) -> Result<String, PeerError> {
    let mut line = String::new();
    if replies.read_line(&mut line)? > 0 { Ok(line) } else { Err(PeerError::Ended) }
}
