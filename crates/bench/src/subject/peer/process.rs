//! A peer: a process that answers `peers/README.md`'s protocol.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use fullview_lab::Slice;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::files::PeerFiles;
use crate::error::PeerError;

/// How long a peer may take to end by itself, and how often that is checked. DPDK can lock itself up at the end.
const LONGEST_END: Duration = Duration::from_secs(30);
const END_CHECK: Duration = Duration::from_millis(5);

/// A running peer. It ends when this value is dropped.
pub struct Process {
    child: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
    ready: Ready,
    _inputs: Rc<PeerFiles>,
}

/// Where a peer runs.
#[derive(Clone, Copy, Default)]
pub struct PeerPlace {
    pub core: usize,
    /// The core of a router that runs apart from its generator.
    pub other: Option<usize>,
    /// Packet buffers of its bed.
    pub buffers: Option<usize>,
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

/// The counted part of a slice.
#[derive(Debug, Deserialize)]
struct PeerSlice {
    counted: u64,
    offered: u64,
    time_ns: u64,
    lost_core_ns: u64,
}

/// What a router counted in all slices of a stream; checked packets that came out wrong include the bed's own.
#[derive(Debug, Deserialize)]
pub struct PeerTotals {
    pub sent: u64,
    pub received: u64,
    pub wrong: u64,
}

impl From<PeerSlice> for Slice {
    fn from(slice: PeerSlice) -> Slice {
        let [time, lost_core] = [slice.time_ns, slice.lost_core_ns].map(Duration::from_nanos);
        Slice { counted: slice.counted, offered: slice.offered, time, lost_core }
    }
}

impl Process {
    /// Starts `program` with only these contestants and waits until it is ready. It has a process group of its own: Ctrl-C
    /// ends the campaign after its round, which then ends the peer.
    pub fn start(
        program: &Path,
        contestants: &[String],
        inputs: Rc<PeerFiles>,
        PeerPlace { core, other, buffers }: PeerPlace,
    ) -> Result<Self, PeerError> {
        let other = other.map(|other| ("ROUTER_CORE", other.to_string()));
        let buffers = buffers.map(|buffers| ("BED_BUFFERS", buffers.to_string()));
        let mut child = Command::new(program)
            .env("CORE", core.to_string())
            .envs(other.into_iter().chain(buffers))
            .args(["--only", &contestants.join(","), "--serve"])
            .arg(inputs.path())
            .process_group(0)
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

    /// A slice of `contestant` after a part that does not count.
    pub fn slice(
        &mut self,
        contestant: &str,
        stream: &str,
        lead_in: Duration,
        length: Duration,
    ) -> Result<Slice, PeerError> {
        let [lead_in, length] = [lead_in, length].map(|time| time.as_nanos());
        self.ask(&format!("slice {contestant} {stream} {lead_in} {length}")).map(PeerSlice::into)
    }

    /// Lets a router send what it keeps, and returns its counts.
    pub fn totals(&mut self) -> Result<PeerTotals, PeerError> {
        self.ask("totals")
    }

    fn ask<T: DeserializeOwned>(&mut self, command: &str) -> Result<T, PeerError> {
        self.commands.write_all(format!("{command}\n").as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => PeerError::Ended,
            _ => error.into(),
        })?;
        match serde_json::from_str(&line(&mut self.replies)?).map_err(PeerError::Answer)? {
            PeerReply::Refused { error } => Err(PeerError::Refused(error)),
            PeerReply::Done(reply) => Ok(reply),
        }
    }

    /// What the peer reported when it was ready.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }
}

impl Drop for Process {
    /// The peer ends by itself at `quit`, or else at SIGTERM. Its script then gives back the huge pages that it took, so this waits
    /// for the end and does not kill it.
    fn drop(&mut self) {
        let _ = writeln!(self.commands, "quit");
        let _ = end(&mut self.child, LONGEST_END);
    }
}

/// Waits for the end of a process, which gets SIGTERM after so long.
fn end(child: &mut Child, longest: Duration) -> io::Result<ExitStatus> {
    let until = Instant::now() + longest;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(END_CHECK);
    }
    kill_process(Pid::from_child(child), Signal::TERM)?;
    child.wait()
}

fn ready_line(replies: &mut impl BufRead) -> Result<Ready, PeerError> {
    serde_json::from_str(&line(replies)?).map_err(PeerError::FirstLine)
}

fn line(replies: &mut impl BufRead) -> Result<String, PeerError> {
    let mut line = String::new();
    if replies.read_line(&mut line)? > 0 { Ok(line) } else { Err(PeerError::Ended) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sh` runs the text.
    fn ended(text: &str, longest: Duration) -> Option<i32> {
        let mut child = Command::new("sh").args(["-c", text]).spawn().unwrap();
        end(&mut child, longest).unwrap().code()
    }

    #[test]
    fn a_process_that_does_not_end_gets_a_signal_and_may_clean_up() {
        let stuck = "trap 'exit 5' TERM; while :; do sleep 0.02; done";
        assert_eq!(ended(stuck, Duration::from_millis(300)), Some(5));
        assert_eq!(ended("sleep 0.1; exit 6", Duration::from_secs(30)), Some(6));
    }
}
