//! Other implementations of lookup and other routers, measured through processes that answer `peers/README.md`'s protocol.
//!
//! They get the same table and keys as our own algorithms, have verified every answer before they say they are
//! ready, and take their turns in the same randomised blocks: the comparison is side by side or it is none. A
//! contestant that answered wrongly or could not hold the table is not timed; its runs say so.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use fullview_lab::{Measurement, Subject, SubjectError, Validity, Window};
use fullview_table::{Address, Family, NextHop, Rib, Table};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::lookup::{BUILD_MS, BYTES, Keys};

/// A running peer. It ends with this value.
pub struct Process {
    child: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
    ready: Ready,
    _inputs: Rc<Handed>,
}

/// The line a peer prints once it has loaded the table and verified every answer.
#[derive(Debug, Deserialize)]
struct Ready {
    contestants: Vec<String>,
    pages: String,
    facts: Vec<Fact>,
    bad: Vec<Bad>,
    refused: Vec<Refusal>,
}

/// What a contestant can tell about its structure.
#[derive(Debug, Deserialize)]
struct Fact {
    contestant: String,
    bytes: Option<f64>,
    build_s: Option<f64>,
}

/// Wrong answers on one stream.
#[derive(Debug, Deserialize)]
struct Bad {
    contestant: String,
    family: String,
    stream: String,
    bad: usize,
    of: usize,
    first: Option<String>,
}

/// A contestant that cannot take part.
#[derive(Debug, Deserialize)]
struct Refusal {
    contestant: String,
    why: String,
}

/// The answer to one command.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Reply<T> {
    Refused { error: String },
    Done(T),
}

/// A sample of lookups: million a second, and the share of the time during which the peer had the core.
#[derive(Debug, Deserialize)]
struct Lookups {
    mlps: f64,
    on_cpu: f64,
}

impl Process {
    /// Starts `program` with only these contestants and waits until it is ready.
    pub fn start(
        program: &Path,
        contestants: &[&str],
        inputs: Rc<Handed>,
        (core, other): (usize, Option<usize>),
    ) -> anyhow::Result<Self> {
        let other = other.map(|other| ("ROUTER_CORE", other.to_string()));
        let mut child = Command::new(program)
            .env("CORE", core.to_string())
            .envs(other)
            .args(["--only", &contestants.join(","), "--serve"])
            .arg(inputs.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{}: cannot start the peer", program.display()))?;
        let (Some(commands), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("{}: no pipes to the peer", program.display());
        };
        let mut replies = BufReader::new(replies);
        let ready = line(&mut replies).with_context(|| program.display().to_string())?;
        let ready = serde_json::from_str(&ready).with_context(|| {
            format!("{}: its first line is not as peers/README.md says", program.display())
        })?;
        Ok(Process { child, commands, replies, ready, _inputs: inputs })
    }

    /// One sample of `contestant` over `length`.
    fn sample<T: DeserializeOwned>(
        &mut self,
        contestant: &str,
        stream: &str,
        length: Duration,
    ) -> anyhow::Result<T> {
        writeln!(self.commands, "run {contestant} {stream} {}", length.as_secs_f64())?;
        match serde_json::from_str(&line(&mut self.replies)?).context("the peer's answer")? {
            Reply::Refused { error } => bail!("the peer refused: {error}"),
            Reply::Done(sample) => Ok(sample),
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

/// The folder that all peers read: the table and the streams of keys with their answers.
pub struct Handed {
    folder: TempDir,
}

impl Handed {
    pub fn new(table: &Table) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no folder for the peers' inputs")?;
        let mut routes = BufWriter::new(File::create(folder.path().join("table.txt"))?);
        write_routes(&mut routes, &table.inet)?;
        write_routes(&mut routes, &table.inet6)?;
        routes.flush()?;
        Ok(Handed { folder })
    }

    /// Adds a stream. IPv4 keys are little-endian integers, IPv6 keys are in network order.
    pub fn add<A: Address + Into<u128>>(&self, name: &str, keys: &Keys<A>) -> anyhow::Result<()> {
        let create = |what: &str| {
            let name = format!("{name}.{}.{what}", A::FAMILY);
            File::create(self.folder.path().join(name)).map(BufWriter::new)
        };
        let (mut addrs, mut answers) = (create("keys")?, create("answers")?);
        keys.addrs.iter().try_for_each(|key| match A::FAMILY {
            Family::Inet => addrs.write_all(&(*key).into().to_le_bytes()[..4]),
            Family::Inet6 => addrs.write_all(&(*key).into().to_be_bytes()),
        })?;
        keys.expected.iter().try_for_each(|NextHop(hop)| answers.write_all(&hop.to_le_bytes()))?;
        addrs.flush()?;
        Ok(answers.flush()?)
    }
}

fn write_routes<A: Address>(to: &mut impl Write, rib: &Rib<A>) -> std::io::Result<()> {
    rib.iter().try_for_each(|route| writeln!(to, "{} {}", route.prefix, route.next_hop.0))
}

/// One contestant of a running peer, on one stream.
pub struct Contestant {
    pub process: Rc<RefCell<Process>>,
    pub name: String,
    pub family: Family,
    pub stream: String,
}

impl Contestant {
    /// Why it is not timed: the kind of reason, and the sentence for the report.
    pub fn obstacle(&self) -> Option<(Validity, String)> {
        let Ready { bad, refused, .. } = &self.process.borrow().ready;
        if let Some(refusal) = refused.iter().find(|refusal| refusal.contestant == self.name) {
            return Some((Validity::Refused, format!("{}: {}", self.name, refusal.why)));
        }
        let wrong = |bad: &&Bad| {
            (&bad.contestant, bad.family.as_str(), &bad.stream)
                == (&self.name, self.family.name(), &self.stream)
        };
        let Bad { bad, of, first, .. } = bad.iter().find(wrong)?;
        let first = first.as_ref().map(|first| format!(", the first {first}")).unwrap_or_default();
        Some((Validity::Misrouted, format!("{}: {bad} of {of} answers wrong{first}", self.name)))
    }

    /// The peer verified every answer before it was ready. What did not pass is not timed: a run is made of it that
    /// does not count.
    pub fn verify(&self) -> Result<(), SubjectError> {
        let process = self.process.borrow();
        let ready = &process.ready.contestants;
        if ready.contains(&self.name) || self.obstacle().is_some() {
            return Ok(());
        }
        Err(format!("the peer does not offer {}, only {}", self.name, ready.join(", ")).into())
    }

    /// The samples of a window without the lead-in.
    pub fn samples<T: DeserializeOwned>(&self, window: &Window, stop: &AtomicBool) -> anyhow::Result<Vec<T>> {
        let mut process = self.process.borrow_mut();
        let mut samples = Vec::new();
        let lengths = super::sample_lengths(window);
        for length in lengths.take_while(|_| !stop.load(Ordering::Relaxed)) {
            samples.push(process.sample(&self.name, &self.stream, length)?);
        }
        Ok(samples.split_off(1.min(samples.len())))
    }

    /// What the peer knows about its structure, as our own lookups count it.
    fn facts(&self) -> impl Iterator<Item = (String, f64)> {
        let process = self.process.borrow();
        let fact = process.ready.facts.iter().find(|fact| fact.contestant == self.name);
        let bytes = fact.and_then(|fact| fact.bytes).map(|bytes| (BYTES.to_owned(), bytes));
        let build = fact.and_then(|fact| fact.build_s).map(|seconds| (BUILD_MS.to_owned(), seconds * 1e3));
        bytes.into_iter().chain(build)
    }

    pub fn events(&self) -> Vec<String> {
        let pages = format!("{} on {} pages", self.name, self.process.borrow().ready.pages);
        vec![self.obstacle().map_or(pages, |(_, why)| why)]
    }
}

/// A contestant's lookups.
pub struct PeerLookup(pub Contestant);

impl Subject for PeerLookup {
    fn verify(&mut self) -> Result<(), SubjectError> {
        self.0.verify()
    }

    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        if let Some((reason, _)) = self.0.obstacle() {
            return Ok(Measurement { reasons: vec![reason], ..Measurement::default() });
        }
        let counted: Vec<Lookups> = self.0.samples(window, stop)?;
        let mut measurement = super::measurement(counted.iter().map(|sample| sample.mlps * 1e6).collect());
        let share = counted.iter().map(|sample| sample.on_cpu).fold(1.0, f64::min);
        super::judge_share(&mut measurement, share);
        measurement.counters.extend(self.0.facts());
        measurement.interrupted = stop.load(Ordering::Relaxed);
        Ok(measurement)
    }

    fn events(&self) -> Vec<String> {
        self.0.events()
    }
}
