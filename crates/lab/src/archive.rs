//! The results folder of one campaign: what was asked, where it was measured, every run.
//!
//! | file | holds |
//! | --- | --- |
//! | `campaign.toml` | the experiment, as it was run |
//! | `host.json` | [`Provenance`] |
//! | `runs.jsonl` | one [`RunRecord`] a line, append-only |
//!
//! The report's files stand beside them and can be rebuilt from these three at any time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ArchiveError, LabError};
use crate::experiment::{Experiment, Settings};
use crate::host::Provenance;
use crate::sample::{self, Journal, Records, RunRecord};

pub(crate) const CAMPAIGN: &str = "campaign.toml";
pub(crate) const HOST: &str = "host.json";
pub(crate) const RUNS: &str = "runs.jsonl";
/// What a new campaign removes when it replaces an old one: only files the lab itself wrote. The journal is emptied
/// instead, because it carries the lock.
const REPLACED: [&str; 6] = [CAMPAIGN, HOST, "README.md", "graph.svg", "graph.png", "report.json"];

/// What to do with a folder that may hold a campaign already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Begin; refuse a folder that holds a campaign.
    New,
    /// Go on with the campaign in the folder, which must ask the same.
    Resume,
    /// Replace the campaign in the folder, if there is one.
    Force,
}

/// A results folder open for writing. One process has it at a time.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    journal: Journal,
    records: Records,
}

impl Archive {
    /// Opens `folder` for this experiment and proves, before anything is measured, that it can be written.
    pub fn open<S: Settings>(
        folder: &Path,
        experiment: &Experiment<S>,
        opening: Opening,
    ) -> Result<Self, LabError> {
        let held = holds_campaign(folder);
        match opening {
            Opening::New if held => Err(ArchiveError::Exists { folder: folder.into() }.into()),
            Opening::Resume if !held => Err(ArchiveError::NothingToResume { folder: folder.into() }.into()),
            Opening::Resume => resume(folder, experiment),
            Opening::New | Opening::Force => begin(folder, experiment, opening),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All runs so far.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Writes the provenance of a new campaign, or compares it with that of the campaign being resumed.
    pub(crate) fn describe(&self, now: &Provenance) -> Result<(), ArchiveError> {
        let path = self.folder.join(HOST);
        if !path.exists() {
            return write_json(&path, now);
        }
        let before: Provenance = read_json(&path)?;
        let differences = before.differences(now);
        let same = differences.is_empty();
        if same { Ok(()) } else { Err(ArchiveError::Different { folder: self.folder.clone(), differences }) }
    }

    /// Appends one run; it is on the disk when this returns.
    pub(crate) fn append(&mut self, run: RunRecord) -> Result<(), ArchiveError> {
        self.journal.append(&run)?;
        self.records.runs.push(run);
        Ok(())
    }
}

fn holds_campaign(folder: &Path) -> bool {
    let runs = fs::metadata(folder.join(RUNS)).is_ok_and(|journal| journal.len() > 0);
    runs || folder.join(CAMPAIGN).exists()
}

fn begin<S: Settings>(
    folder: &Path,
    experiment: &Experiment<S>,
    opening: Opening,
) -> Result<Archive, LabError> {
    experiment.check()?;
    let path = folder.join(CAMPAIGN);
    let campaign = experiment.to_text().map_err(|error| malformed(&path, &error))?;
    fs::create_dir_all(folder).map_err(|source| ArchiveError::write(folder, source))?;
    let mut journal = Journal::open(&folder.join(RUNS))?;
    // Another process may have begun and ended since the first look.
    if opening == Opening::New && holds_campaign(folder) {
        return Err(ArchiveError::Exists { folder: folder.into() }.into());
    }
    journal.clear()?;
    REPLACED.iter().try_for_each(|name| remove(&folder.join(name)))?;
    write_file(&path, campaign.as_bytes())?;
    Ok(Archive { folder: folder.into(), journal, records: Records::default() })
}

fn resume<S: Settings>(folder: &Path, now: &Experiment<S>) -> Result<Archive, LabError> {
    let mut journal = Journal::open(&folder.join(RUNS))?;
    let path = folder.join(CAMPAIGN);
    let text = fs::read_to_string(&path).map_err(|source| ArchiveError::read(&path, source))?;
    let before = Experiment::<S>::parse(&path.display().to_string(), &text)?;
    // More blocks leave the first ones as they were, so a campaign may be asked for more runs than it began with.
    let mut before = before;
    let longer = now.runs > before.runs;
    before.runs = before.runs.max(now.runs);
    let differences = before.differences(now).map_err(|error| malformed(&path, &error))?;
    if !differences.is_empty() {
        return Err(ArchiveError::Different { folder: folder.into(), differences }.into());
    }
    let records = journal.recover()?;
    if longer {
        let text = now.to_text().map_err(|error| malformed(&path, &error))?;
        write_file(&path, text.as_bytes())?;
    }
    Ok(Archive { folder: folder.into(), journal, records })
}

fn remove(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(ArchiveError::write(path, source)),
        _ => Ok(()),
    }
}

fn malformed(path: &Path, error: &dyn std::error::Error) -> ArchiveError {
    ArchiveError::Malformed { path: path.into(), message: error.to_string() }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ArchiveError> {
    let bytes = fs::read(path).map_err(|source| ArchiveError::read(path, source))?;
    serde_json::from_slice(&bytes).map_err(|error| malformed(path, &error))
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), ArchiveError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| malformed(path, &error))?;
    text.push(b'\n');
    write_file(path, &text)
}

/// Writes a whole file and returns when the disk has it. A reader never sees half of it.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let partial = path.with_added_extension("partial");
    let write = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|source| {
        // Nothing more can be done if this fails as well, and the first failure is the one to tell.
        let _ = fs::remove_file(&partial);
        ArchiveError::write(path, source)
    })
}

/// What a finished or interrupted campaign left, read without locking: reports are rebuilt from this alone.
#[derive(Debug)]
pub(crate) struct Campaign {
    pub(crate) folder: PathBuf,
    pub(crate) experiment: Experiment<toml::Table>,
    pub(crate) provenance: Provenance,
    pub(crate) records: Records,
}

impl Campaign {
    pub(crate) fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(CAMPAIGN);
        let text = fs::read_to_string(&path).map_err(|source| ArchiveError::read(&path, source))?;
        let experiment = Experiment::parse(&path.display().to_string(), &text)?;
        let provenance = read_json(&folder.join(HOST))?;
        let records = sample::read(&folder.join(RUNS))?;
        Ok(Self { folder: folder.into(), experiment, provenance, records })
    }
}
