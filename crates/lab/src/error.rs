//! The errors of the lab.

use std::io;
use std::path::{Path, PathBuf};

use crate::experiment::ExperimentError;

/// Why a member of a panel could not be prepared, verified or measured.
pub type SubjectError = Box<dyn std::error::Error + Send + Sync>;

/// Any failure of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment file is wrong, or the archive's copy of it.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The archive folder cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The bed of a panel failed. The campaign stops, and the panels made so far stay in the archive.
    #[error("{family}: {step} failed: {source}")]
    Bed {
        /// Name of the family.
        family: String,
        /// The step that failed.
        step: RunStep,
        /// The error of the bench.
        source: SubjectError,
    },
    /// A subject failed. The campaign stops, and the panels made so far stay in the archive.
    #[error("{variant}, {family}: {step} failed: {source}")]
    Subject {
        /// Name of the variant.
        variant: String,
        /// Name of the family.
        family: String,
        /// The step that failed.
        step: RunStep,
        /// The error of the subject.
        source: SubjectError,
    },
    /// A subject returned a figure that the statistics cannot use.
    #[error(
        "{variant}, {family}: the subject returned {what} = {value}, which is not a finite number of at least zero"
    )]
    Figure {
        /// Name of the variant.
        variant: String,
        /// Name of the family.
        family: String,
        /// Which figure of the measurement.
        what: String,
        /// The figure.
        value: f64,
    },
    /// A panel in the archive does not fit the experiment.
    #[error(
        "{path}: the panel of block {block}, {family}, does not have the variants of campaign.toml in the same folder"
    )]
    UnknownPanel {
        /// The journal.
        path: PathBuf,
        /// Block of the panel.
        block: u32,
        /// Family of the panel.
        family: String,
    },
    /// The archive contains a run of a variant or family that the experiment does not name.
    #[error(
        "{path}: block {block} has a run of {variant}, {family}, which campaign.toml in the same folder does not name"
    )]
    UnknownRun {
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
        /// The error of ministat.
        message: String,
    },
    /// The graph could not be drawn.
    #[error("drawing the graph: {0}")]
    Chart(String),
}

/// A step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStep {
    /// Preparing the subject.
    Prepare,
    /// Verifying its results.
    Verify,
    /// Measuring it.
    Measure,
}

impl std::fmt::Display for RunStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prepare => "preparing",
            Self::Verify => "verifying",
            Self::Measure => "measuring",
        })
    }
}

/// Errors of the results folder.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file or folder cannot be written.
    #[error("{}: cannot write: {source}; the runs made before stay in the folder{}", path.display(), advice(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{}: cannot read: {source}{}", path.display(), other_folder(path, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder already contains a campaign.
    #[error(
        "{} already contains a campaign: continue it with --resume, replace it with --force, or choose another folder \
         with --out",
        folder.display()
    )]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has no campaign, and a file that a campaign would replace.
    #[error(
        "{} is not a file of a campaign, and a campaign would replace it: move it elsewhere, or choose another folder \
         with --out",
        path.display()
    )]
    NotOfCampaign {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no campaign to resume.
    #[error("{} contains no campaign to resume: leave out --resume to begin one", folder.display())]
    NothingToResume {
        /// The folder.
        folder: PathBuf,
    },
    /// The campaign in the folder was measured run by run.
    #[error(
        "{} contains a campaign of an older version, without panels: its report can be made, but it cannot be continued",
        folder.display()
    )]
    OldSchema {
        /// The folder.
        folder: PathBuf,
    },
    /// The campaign in the folder has no panels, which an analysis needs.
    #[error(
        "{} contains a campaign of an older version, measured run by run without a control: it cannot be used here; \
         measure the experiment again",
        folder.display()
    )]
    WithoutPanels {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process writes to the journal.
    #[error("{} is being written by another process: wait until it ends, or choose another folder with --out", path.display())]
    Locked {
        /// The journal.
        path: PathBuf,
    },
    /// The campaign in the folder has another experiment, or was measured on another machine.
    #[error(
        "{} cannot be resumed, because its runs would not be comparable: {}; begin a new campaign in another \
         folder with --out",
        folder.display(), differences.join("; ")
    )]
    Different {
        /// The folder.
        folder: PathBuf,
        /// Each difference, as "what: before → now".
        differences: Vec<String>,
    },
    /// A line of the journal is not a record.
    #[error("{}:{line}: not {what}: {message}; restore the file, or remove that line", path.display())]
    Record {
        /// The journal.
        path: PathBuf,
        /// Line, from one.
        line: usize,
        /// What a line holds.
        what: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// Another file of the archive is malformed.
    #[error("{}: {message}; restore the file from the machine that measured the campaign", path.display())]
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

/// What to do where the record of a campaign is missing.
fn other_folder(path: &Path, source: &io::Error) -> &'static str {
    let is_record = path.file_name().is_some_and(|name| name == "campaign.toml");
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if is_record => {
            "; give a results folder of `fullview bench`"
        }
        _ => "",
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space; `fullview bench` then goes on with --resume"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a folder that you may write to"
        }
        io::ErrorKind::AlreadyExists => ": it is a file; choose a folder",
        io::ErrorKind::NotADirectory => ": a part of the path is a file",
        _ => "",
    }
}
