//! Another implementation of lookup, measured through a process that answers `peers/README.md`'s protocol.
//!
//! It gets the same table and keys as our own algorithms, has verified every answer before it says it is ready, and
//! takes its turns in the same randomised blocks: the comparison is side by side or it is none.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use fullview_lab::{Measurement, Subject, SubjectError, Window};
use fullview_table::{Address, NextHop, Rib, Table};
use serde::Deserialize;
use tempfile::TempDir;

use super::lookup::Keys;

/// The name of the one stream we hand over.
const STREAM: &str = "keys";

/// A running peer. It ends with this value.
pub struct Process {
    child: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
    ready: Ready,
    _inputs: TempDir,
}

/// The line a peer prints once it has loaded the table and verified every answer.
#[derive(Debug, Deserialize)]
struct Ready {
    contestants: Vec<String>,
    pages: String,
}

/// Lookups a second, and the share of the time during which the peer had the core.
struct Sample {
    rate: f64,
    on_cpu: f64,
}

#[derive(Debug, Deserialize)]
struct Reply {
    mlps: Option<f64>,
    on_cpu: Option<f64>,
    error: Option<String>,
}

/// What a peer is given: the table and, for each family, the keys with the answers expected.
pub struct Inputs<'a> {
    pub table: &'a Table,
    pub inet: &'a Keys<u32>,
    pub inet6: &'a Keys<u128>,
}

impl Process {
    /// Starts `program` with only these contestants and waits until it is ready.
    pub fn start(
        program: &Path,
        contestants: &[String],
        inputs: &Inputs<'_>,
        core: usize,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no folder for the peer's inputs")?;
        inputs.write(folder.path())?;
        let mut child = Command::new(program)
            .env("CORE", core.to_string())
            .args(["--only", &contestants.join(","), "--serve"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{}: cannot start the peer", program.display()))?;
        let (Some(commands), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("{}: no pipes to the peer", program.display());
        };
        let mut replies = BufReader::new(replies);
        let ready = serde_json::from_str(&line(&mut replies)?).context("the peer's first line")?;
        Ok(Process { child, commands, replies, ready, _inputs: folder })
    }

    /// One sample of `contestant` over `length`.
    fn sample(&mut self, contestant: &str, length: Duration) -> anyhow::Result<Sample> {
        writeln!(self.commands, "run {contestant} {STREAM} {}", length.as_secs_f64())?;
        let reply: Reply = serde_json::from_str(&line(&mut self.replies)?).context("the peer's answer")?;
        match reply {
            Reply { error: Some(error), .. } => bail!("the peer refused: {error}"),
            Reply { mlps: Some(mlps), on_cpu: Some(on_cpu), .. } => Ok(Sample { rate: mlps * 1e6, on_cpu }),
            Reply { .. } => bail!("the peer's answer has no rate"),
        }
    }
}

impl Drop for Process {
    /// The peer ends by itself when its commands end; its script then gives back the huge pages it took, so it is
    /// waited for and not killed.
    fn drop(&mut self) {
        let _ = writeln!(self.commands, "quit");
        let _ = self.child.wait();
    }
}

fn line(replies: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    ensure!(replies.read_line(&mut line)? > 0, "the peer ended; its own message stands above");
    Ok(line)
}

impl Inputs<'_> {
    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let mut table = BufWriter::new(File::create(folder.join("table.txt"))?);
        write_routes(&mut table, &self.table.inet)?;
        write_routes(&mut table, &self.table.inet6)?;
        table.flush()?;
        write_stream(folder, "inet", self.inet, |key| key.to_le_bytes().to_vec())?;
        write_stream(folder, "inet6", self.inet6, |key| key.to_be_bytes().to_vec())
    }
}

fn write_routes<A: Address>(to: &mut impl Write, rib: &Rib<A>) -> std::io::Result<()> {
    rib.iter().try_for_each(|route| writeln!(to, "{} {}", route.prefix, route.next_hop.0))
}

fn write_stream<A: Address>(
    folder: &Path,
    family: &str,
    keys: &Keys<A>,
    bytes: impl Fn(&A) -> Vec<u8>,
) -> anyhow::Result<()> {
    let create =
        |what: &str| File::create(folder.join(format!("{STREAM}.{family}.{what}"))).map(BufWriter::new);
    let (mut addrs, mut answers) = (create("keys")?, create("answers")?);
    keys.addrs.iter().try_for_each(|key| addrs.write_all(&bytes(key)))?;
    keys.expected.iter().try_for_each(|NextHop(hop)| answers.write_all(&hop.to_le_bytes()))?;
    addrs.flush()?;
    Ok(answers.flush()?)
}

/// One contestant of a running peer.
pub struct Contestant {
    pub process: Rc<RefCell<Process>>,
    pub name: String,
}

impl Subject for Contestant {
    /// The peer verified every answer before it was ready; what it could not run it left out.
    fn verify(&mut self) -> Result<(), SubjectError> {
        let process = self.process.borrow();
        let ready = &process.ready.contestants;
        if ready.contains(&self.name) {
            return Ok(());
        }
        Err(format!("the peer does not offer {}, only {}", self.name, ready.join(", ")).into())
    }

    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        let mut process = self.process.borrow_mut();
        let mut samples = Vec::new();
        let lengths = super::sample_lengths(window);
        for length in lengths.take_while(|_| !stop.load(Ordering::Relaxed)) {
            samples.push(process.sample(&self.name, length)?);
        }
        let counted = samples.split_off(1.min(samples.len()));
        let mut measurement = super::measurement(counted.iter().map(|sample| sample.rate).collect());
        let share = counted.iter().map(|sample| sample.on_cpu).fold(1.0, f64::min);
        super::judge_share(&mut measurement, share);
        measurement.interrupted = stop.load(Ordering::Relaxed);
        Ok(measurement)
    }

    fn events(&self) -> Vec<String> {
        vec![format!("{} on {} pages", self.name, self.process.borrow().ready.pages)]
    }
}
