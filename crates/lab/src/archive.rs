//! The results folder of one campaign.
//!
//! | file | content |
//! | --- | --- |
//! | `campaign.toml` | the experiment as it was run |
//! | `host.json` | the [`Provenance`]: machine, build and command |
//! | `runs.jsonl` | one [`RunRecord`] per line, append-only |
//!
//! The folder also contains the files of the report, which can be rebuilt from these three at any time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ArchiveError, LabError};
use crate::experiment::{Experiment, Settings};
use crate::host::Provenance;
use crate::journal::{Journal, Records};
use crate::record::RunRecord;

pub(crate) const CAMPAIGN: &str = "campaign.toml";
pub(crate) const HOST: &str = "host.json";
pub(crate) const RUNS: &str = "runs.jsonl";
/// The files that a new campaign removes when it replaces an old one: only files that the lab wrote. The journal is
/// emptied instead, because the lock is on it.
const REPLACED: [&str; 6] = [CAMPAIGN, HOST, "README.md", "graph.svg", "graph.png", "report.json"];

/// What to do with a folder that may already contain a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Begin a campaign; refuse a folder that contains one.
    New,
    /// Continue the campaign in the folder, which must have the same experiment.
    Resume,
    /// Begin a campaign and replace the one in the folder, if there is one.
    Force,
}

/// A results folder open for writing, by one process at a time.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    journal: Journal,
    records: Records,
}

impl Archive {
    /// Opens `folder` for this experiment. This shows before the first run whether the folder can be written.
    pub fn open<S: Settings>(
        folder: &Path,
        experiment: &Experiment<S>,
        opening: Opening,
    ) -> Result<Self, LabError> {
        let exists = contains_campaign(folder);
        match opening {
            Opening::New if exists => Err(ArchiveError::Exists { folder: folder.into() }.into()),
            Opening::Resume if !exists => Err(ArchiveError::NothingToResume { folder: folder.into() }.into()),
            Opening::Resume => resume(folder, experiment),
            Opening::New | Opening::Force => begin(folder, experiment, opening),
        }
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All runs that were made so far.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Writes the provenance of a new campaign, or compares it with that of the campaign being resumed.
    pub(crate) fn record_provenance(&self, now: &Provenance) -> Result<(), ArchiveError> {
        let path = self.folder.join(HOST);
        if !path.exists() {
            return write_json(&path, now);
        }
        let before: Provenance = read_json(&path)?;
        let differences = before.differences(now);
        let same = differences.is_empty();
        if same { Ok(()) } else { Err(ArchiveError::Different { folder: self.folder.clone(), differences }) }
    }

    /// Appends one run and returns when it is on the disk.
    pub(crate) fn append(&mut self, run: RunRecord) -> Result<(), ArchiveError> {
        self.journal.append(&run)?;
        self.records.runs.push(run);
        Ok(())
    }
}

fn contains_campaign(folder: &Path) -> bool {
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
    // Another process may have begun and ended a campaign since the first check.
    if opening == Opening::New && contains_campaign(folder) {
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
    let mut before = Experiment::<S>::parse(&path.display().to_string(), &text)?;
    // More blocks do not change the first ones, so a resumed campaign may have more runs than it began with.
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

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ArchiveError> {
    let bytes = fs::read(path).map_err(|source| ArchiveError::read(path, source))?;
    serde_json::from_slice(&bytes).map_err(|error| malformed(path, &error))
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), ArchiveError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| malformed(path, &error))?;
    text.push(b'\n');
    write_file(path, &text)
}

/// Writes a whole file and returns when it is on the disk. A reader never sees a part of it.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let partial = path.with_added_extension("partial");
    let write = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|source| {
        // If this fails too, nothing can be done about it; the caller gets the first error.
        let _ = fs::remove_file(&partial);
        ArchiveError::write(path, source)
    })
}
