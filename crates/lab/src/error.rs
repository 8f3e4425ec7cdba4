//! What can go wrong between the question and the report.

use std::io;
use std::path::{Path, PathBuf};

use crate::experiment::ExperimentError;
use crate::subject::SubjectError;

/// Any failure of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment file, or the archive's copy of it.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The archive folder.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The subject failed: the campaign stops, and what was measured stays in the archive.
    #[error("{variant}, {family}: {step} failed: {source}")]
    Subject {
        /// Name of the variant.
        variant: String,
        /// Name of the family.
        family: String,
        /// What the subject was asked to do.
        step: Step,
        /// The subject's own words.
        source: SubjectError,
    },
    /// A subject returned a figure no statistics can use.
    #[error(
        "{variant}, {family}: the subject returned {what} = {value}, and that is no finite number from zero up"
    )]
    Figure {
        /// Name of the variant.
        variant: String,
        /// Name of the family.
        family: String,
        /// Which figure of the measurement.
        what: String,
        /// What it returned.
        value: f64,
    },
    /// The archive holds a run of something the experiment does not name.
    #[error(
        "{path}: block {block} has a run of {variant}, {family}, which campaign.toml beside it does not name"
    )]
    Stranger {
        /// The journal.
        path: PathBuf,
        /// Block of the run.
        block: u32,
        /// Variant of the run.
        variant: String,
        /// Family of the run.
        family: String,
    },
    /// ministat refused the values.
    #[error("ministat of {family}: {message}")]
    Ministat {
        /// Name of the family.
        family: String,
        /// ministat's own words.
        message: String,
    },
    /// The graph could not be drawn.
    #[error("drawing the graph: {0}")]
    Chart(String),
}

/// What a subject was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Making the subject ready.
    Prepare,
    /// Proving it right.
    Verify,
    /// Running it.
    Measure,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prepare => "preparing",
            Self::Verify => "verifying",
            Self::Measure => "measuring",
        })
    }
}

/// Failures of the results folder.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file or folder cannot be written.
    #[error("{}: cannot write: {source}; what was measured before stays in the folder{}", path.display(), mend(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The folder already holds a campaign.
    #[error(
        "{} already holds a campaign: go on with --resume, replace it with --force, or choose another label",
        folder.display()
    )]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// There is nothing to go on with.
    #[error("{} holds no campaign to resume: leave out --resume to begin one", folder.display())]
    NothingToResume {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process writes into the journal.
    #[error("{} is being written by another process: wait for it, or choose another label", path.display())]
    Locked {
        /// The journal.
        path: PathBuf,
    },
    /// The campaign in the folder asks something else, or was measured elsewhere.
    #[error(
        "{} cannot be resumed, because its runs would not be comparable: {}; begin a new campaign under another label",
        folder.display(), differences.join("; ")
    )]
    Different {
        /// The folder.
        folder: PathBuf,
        /// Each difference, as "what: before → now".
        differences: Vec<String>,
    },
    /// A line of the journal cannot be read.
    #[error("{}:{line}: not a run record: {message}; restore the file, or remove that line", path.display())]
    Record {
        /// The journal.
        path: PathBuf,
        /// Line, from one.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Another file of the archive is malformed.
    #[error("{}: {message}; restore the file from where the campaign was measured", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

impl ArchiveError {
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.into(), source }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.into(), source }
    }
}

fn mend(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space and go on with --resume"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a folder you may write to"
        }
        io::ErrorKind::AlreadyExists => ": it is a file; choose a folder",
        io::ErrorKind::NotADirectory => ": a part of the path is a file",
        _ => "",
    }
}
