//! The published MLRsearch, a Python package, in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fullview_lab::search::SearchGoal;
use fullview_testnet::has;
use serde::{Deserialize, Serialize};

use super::device::Device;

/// A search on a simulated device.
#[derive(Debug, Clone, Serialize)]
pub struct Question {
    pub device: Device,
    pub goals: Vec<SearchGoal>,
    pub min_load: f64,
    pub max_load: f64,
    pub warmup_duration: f64,
}

/// What the published search found.
#[derive(Debug, Deserialize)]
pub struct Answer {
    /// Load, duration and loss ratio of each trial.
    pub trials: Vec<(f64, f64, f64)>,
    /// What it found for each goal; `None` if the search failed.
    pub goals: Option<Vec<PublishedResult>>,
    pub error: Option<String>,
}

/// What the published search found for a goal: lower bound, upper bound, conditional throughput, and the latter without
/// rounding errors.
pub type PublishedResult = (Option<f64>, Option<f64>, Option<f64>, Option<f64>);

/// The package, as `./ci.sh tools` installs it.
const FOLDER: &str = "tools/mlrsearch-1.2.1";

/// The interpreter that has the package; `None`, with a printed reason, where it is not installed.
pub fn interpreter() -> Option<PathBuf> {
    let program = std::env::current_exe().expect("the test has a path");
    let found =
        program.ancestors().map(|folder| folder.join(FOLDER).join("bin/python")).find(|at| at.exists());
    has(found.is_some(), "the Python package MLRsearch 1.2.1: run `./ci.sh tools`").then_some(found).flatten()
}

/// Asks all questions, in two processes.
pub fn ask(interpreter: &Path, questions: &[Question]) -> Vec<Answer> {
    let (first, second) = questions.split_at(questions.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| ask_one(interpreter, first));
        let answers = ask_one(interpreter, second);
        other.join().expect("it asked").into_iter().chain(answers).collect()
    })
}

fn ask_one(interpreter: &Path, questions: &[Question]) -> Vec<Answer> {
    let mut driver = start(interpreter);
    let mut asked = driver.stdin.take().expect("piped");
    let answers = BufReader::new(driver.stdout.take().expect("piped"));
    let found = std::thread::scope(|scope| {
        scope.spawn(move || {
            for question in questions {
                let line = serde_json::to_string(question).expect("a question is JSON");
                writeln!(asked, "{line}").expect("the driver reads");
            }
        });
        let read = |line: std::io::Result<String>| serde_json::from_str(&line.expect("read")).expect("JSON");
        answers.lines().map(read).collect()
    });
    assert!(driver.wait().expect("it ended").success(), "the driver failed");
    found
}

fn start(interpreter: &Path) -> Child {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mlrsearch/driver.py");
    let mut command = Command::new(interpreter);
    command.arg(driver).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("the interpreter runs")
}
