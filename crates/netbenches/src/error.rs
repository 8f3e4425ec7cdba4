//! Why a file is not read, and where.

use std::io;
use std::path::PathBuf;

/// What is wrong with a text, at a line counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    pub line: usize,
    pub problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the file is empty: make the run again")]
    Empty,
    #[error("the file is cut off here: copy it again, or make the run again")]
    CutOff,
    #[error("no rate remains without the first 15 and the last 10 lines: make a longer run")]
    TooShort,
    #[error(
        "no packet came in any second between the first 15 and the last 10 lines: find out why, and make the run again"
    )]
    NoPackets,
    #[error("this is not {expected}: move the file elsewhere")]
    Foreign { expected: &'static str },
    #[error("\"{token}\" is not a number: correct it")]
    Number { token: String },
}

/// Why a directory cannot be imported or a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{path}: cannot read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path}: cannot write: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{path}: no series of runs here: give a directory with .pps files or with RAW/bench.*.receiver{skipped}"
    )]
    NoSeries { path: PathBuf, skipped: String },
    #[error("{path} is not empty: give another folder with --out, or --force to replace the report in it")]
    NotEmpty { path: PathBuf },
    #[error("{path} is a file: give a folder with --out")]
    NoFolder { path: PathBuf },
    #[error("{path} exists: give another folder with --to, or --force to replace what was exported before")]
    Exists { path: PathBuf },
    #[error(
        "two series would have the name {name}: give their families names that differ in more than a dot"
    )]
    EqualNames { name: String },
    #[error("cannot draw the graph: {0}")]
    Chart(String),
    #[error("cannot write the figures as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

pub(crate) fn at<T>(line: usize, problem: Problem) -> Result<T, LineError> {
    Err(LineError { line, problem })
}

/// Refuses a text that is empty, or whose last line has no end.
pub(crate) fn whole(text: &str) -> Result<(), LineError> {
    match text {
        "" => at(1, Problem::Empty),
        _ if !text.ends_with('\n') => at(text.lines().count(), Problem::CutOff),
        _ => Ok(()),
    }
}
