//! The results folder of one campaign.
//!
//! | file | content |
//! | --- | --- |
//! | `campaign.toml` | the experiment as it was run |
//! | `host.json` | the [`Provenance`]: machine, build and command |
//! | `panels.jsonl` | one [`PanelRecord`] per line, append-only |
//! | `slices/` | the slices of each panel, compressed columns |
//!
//! The folder also contains the files of the report, which can be rebuilt from these at any time. Campaigns of schema 1
//! have `runs.jsonl` in place of the last two; they can be read, not continued.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ArchiveError, LabError};
use crate::experiment::{Experiment, Settings};
use crate::host::Provenance;
use crate::journal::{Journal, Lines};
use crate::record::PanelRecord;
use crate::slices::Slices;

pub(crate) const CAMPAIGN: &str = "campaign.toml";
pub(crate) const HOST: &str = "host.json";
pub(crate) const PANELS: &str = "panels.jsonl";
pub(crate) const SLICES: &str = "slices";
pub(crate) const SLICES_EXTENSION: &str = "zst";
/// The journal of schema 1.
pub(crate) const RUNS: &str = "runs.jsonl";
/// The files that a new campaign removes when it replaces an old one. Without a campaign in the folder they are not the
/// lab's. The journal is emptied instead, because the lock is on it; `campaign.toml` is removed last, so that a folder is
/// one of a campaign until the others are gone.
const REPLACED: [&str; 11] = [
    HOST,
    RUNS,
    "README.md",
    "graph.svg",
    "graph.png",
    "curves.svg",
    "curves.png",
    "ratios.svg",
    "ratios.png",
    "report.json",
    CAMPAIGN,
];

/// What to do with a folder that may already contain a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Begin a campaign; refuse a folder that contains one.
    New,
    /// Continue the campaign in the folder, which must have the same experiment.
    Resume,
    /// Begin a campaign and replace the one in the folder, if there is one. Files of the same names in a folder without a
    /// campaign are not replaced.
    Force,
}

/// A results folder open for writing, by one process at a time.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    journal: Journal,
    first_look: u32,
    panels: Vec<MeasuredPanel>,
}

/// A panel with its slices.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPanel {
    /// What is known of it.
    pub record: PanelRecord,
    /// Every turn of every arm.
    pub slices: Slices,
}

impl Archive {
    /// Opens `folder` for this experiment. This shows before the first run whether the folder can be written.
    pub fn open<S: Settings>(
        folder: &Path,
        experiment: &Experiment<S>,
        opening: Opening,
    ) -> Result<Self, LabError> {
        Self::check(folder, opening)?;
        match opening {
            Opening::Resume => resume(folder, experiment),
            Opening::New | Opening::Force => begin(folder, experiment, opening),
        }
    }

    /// Refuses a folder that cannot be opened like this, and changes nothing.
    pub fn check(folder: &Path, opening: Opening) -> Result<(), ArchiveError> {
        let folder = folder.to_owned();
        match (opening, contains_campaign(&folder)) {
            (Opening::New, true) => Err(ArchiveError::Exists { folder }),
            (Opening::Resume, false) => Err(ArchiveError::NothingToResume { folder }),
            (Opening::New | Opening::Force, false) => refuse_other_files(&folder),
            _ => Ok(()),
        }
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number of blocks at which the campaign is judged first.
    pub fn first_look(&self) -> u32 {
        self.first_look
    }

    /// All panels that were made so far.
    pub fn panels(&self) -> &[MeasuredPanel] {
        &self.panels
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

    /// Appends one panel and returns when it is on the disk: first its slices, then its record, which names them.
    pub(crate) fn append(&mut self, panel: MeasuredPanel) -> Result<(), ArchiveError> {
        let path = self.folder.join(SLICES).join(&panel.record.slices);
        write_file(&path, &panel.slices.encode())?;
        self.journal.append(&panel.record)?;
        self.panels.push(panel);
        Ok(())
    }
}

/// Reads the panels of a folder with their slices.
pub(crate) fn read_panels(
    folder: &Path,
    lines: Lines<PanelRecord>,
) -> Result<Vec<MeasuredPanel>, ArchiveError> {
    lines.records.into_iter().map(|record| with_slices(folder, record)).collect()
}

fn with_slices(folder: &Path, record: PanelRecord) -> Result<MeasuredPanel, ArchiveError> {
    let path = folder.join(SLICES).join(&record.slices);
    let bytes = fs::read(&path).map_err(|source| ArchiveError::read(&path, source))?;
    let slices = Slices::decode(&bytes).map_err(|message| ArchiveError::Malformed { path, message })?;
    Ok(MeasuredPanel { record, slices })
}

fn contains_campaign(folder: &Path) -> bool {
    let has = |journal| fs::metadata(folder.join(journal)).is_ok_and(|file| file.len() > 0);
    has(PANELS) || has(RUNS) || folder.join(CAMPAIGN).exists()
}

/// Refuses a folder without a campaign that has a file which a campaign would replace: it is the user's.
fn refuse_other_files(folder: &Path) -> Result<(), ArchiveError> {
    let files = REPLACED.iter().map(|name| folder.join(name)).filter(|path| path.exists());
    let slices = fs::read_dir(folder.join(SLICES)).into_iter().flatten().flatten();
    let slices = slices.map(|entry| entry.path()).filter(|path| is_slices(path));
    match files.chain(slices).next() {
        Some(path) => Err(ArchiveError::NotOfCampaign { path }),
        None => Ok(()),
    }
}

fn is_slices(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == SLICES_EXTENSION)
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
    let mut journal = Journal::open(&folder.join(PANELS))?;
    // Another process may have begun and ended a campaign since the first check.
    Archive::check(folder, opening)?;
    journal.clear()?;
    REPLACED.iter().try_for_each(|name| remove(&folder.join(name)))?;
    begin_slices(&folder.join(SLICES))?;
    write_file(&path, campaign.as_bytes())?;
    Ok(Archive { folder: folder.into(), journal, first_look: experiment.first_look(), panels: Vec::new() })
}

/// Makes the folder of slices, and removes those of a campaign that is replaced.
fn begin_slices(folder: &Path) -> Result<(), ArchiveError> {
    let failed = |source| ArchiveError::write(folder, source);
    fs::create_dir_all(folder).map_err(failed)?;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_slices(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}

fn resume<S: Settings>(folder: &Path, now: &Experiment<S>) -> Result<Archive, LabError> {
    if !folder.join(PANELS).exists() {
        return Err(ArchiveError::OldSchema { folder: folder.into() }.into());
    }
    let mut journal = Journal::open(&folder.join(PANELS))?;
    let path = folder.join(CAMPAIGN);
    let text = fs::read_to_string(&path).map_err(|source| ArchiveError::read(&path, source))?;
    let before = Experiment::<S>::read(&path.display().to_string(), &text)?;
    let now = now.continuing(&before);
    let differences =
        before.with_length_of(&now).differences(&now).map_err(|error| malformed(&path, &error))?;
    if !differences.is_empty() {
        return Err(ArchiveError::Different { folder: folder.into(), differences }.into());
    }
    let panels = read_panels(folder, journal.recover()?)?;
    if !before.differences(&now).map_err(|error| malformed(&path, &error))?.is_empty() {
        let text = now.to_text().map_err(|error| malformed(&path, &error))?;
        write_file(&path, text.as_bytes())?;
    }
    Ok(Archive { folder: folder.into(), journal, first_look: now.first_look(), panels })
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

/// Removes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ArchiveError::write(path, error)),
        _ => Ok(()),
    }
}

/// Writes a whole file and returns when it is on the disk. A reader never sees a part of it.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let partial = path.with_added_extension("partial");
    let write = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        // The name too, so that no journal names a file that a power failure has taken.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|source| {
        // If this fails too, nothing can be done about it; the caller gets the first error.
        let _ = fs::remove_file(&partial);
        ArchiveError::write(path, source)
    })
}
