//! Every trial, one line of JSON each.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use fullview_lab::search::TrialRequest;
use serde::{Deserialize, Serialize};

use super::error::RatesError;
use super::latency_level::LatencyLevel;

/// One trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchivedTrial {
    pub device: String,
    /// From 1.
    pub repetition: u32,
    #[serde(flatten)]
    pub request: TrialRequest,
    /// From 1; a trial that does not count is made again.
    pub attempt: u32,
    pub planned: u64,
    pub sent: u64,
    pub received: u64,
    /// Whether the generator kept its schedule.
    pub counts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<ArchivedProbes>,
}

/// The probes of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchivedProbes {
    pub level: LatencyLevel,
    /// The device, or the cable in its place.
    pub path: String,
    pub probes: u64,
    pub lost: u64,
    /// Delays in three digits, with how often each occurred.
    pub nanoseconds: Vec<(u64, u64)>,
}

/// A line of the file.
#[derive(Serialize)]
struct TrialLine<'t> {
    /// How often the whole turn was given up before, because a host was lost: only the trials of the last time count.
    given_up: usize,
    #[serde(flatten)]
    trial: &'t ArchivedTrial,
}

/// The file of all trials.
pub struct TrialArchive {
    path: PathBuf,
    file: File,
    given_up: usize,
}

impl TrialArchive {
    /// Makes `trials.jsonl` in a folder, which is made too.
    pub fn create(folder: &Path) -> Result<TrialArchive, RatesError> {
        let path = folder.join("trials.jsonl");
        let made = fs::create_dir_all(folder).and_then(|()| File::create(&path));
        let file = made.map_err(|error| RatesError::Archive { path: path.clone(), error })?;
        Ok(TrialArchive { path, file, given_up: 0 })
    }

    /// Goes on with the file of a folder. Only the trials of these turns stay: the others are made again.
    pub fn resume(folder: &Path, turns: &BTreeSet<(String, u32)>) -> Result<TrialArchive, RatesError> {
        let path = folder.join("trials.jsonl");
        let stays = |line: &&str| {
            let trial = serde_json::from_str::<ArchivedTrial>(line);
            trial.is_ok_and(|trial| turns.contains(&(trial.device, trial.repetition)))
        };
        let rewritten = fs::read_to_string(&path).and_then(|text| {
            let kept: String = text.lines().filter(stays).map(|line| format!("{line}\n")).collect();
            replace(&path, &kept)
        });
        let opened = rewritten.and_then(|()| File::options().append(true).open(&path));
        let file = opened.map_err(|error| RatesError::Archive { path: path.clone(), error })?;
        Ok(TrialArchive { path, file, given_up: 0 })
    }

    /// Begins a turn that was given up so often.
    pub fn begin_turn(&mut self, given_up: usize) {
        self.given_up = given_up;
    }

    /// Appends a trial of this turn.
    pub fn add(&mut self, trial: &ArchivedTrial) -> Result<(), RatesError> {
        let written = serde_json::to_string(&TrialLine { given_up: self.given_up, trial })
            .map_err(Into::into)
            .and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|error| RatesError::Archive { path: self.path.clone(), error })
    }
}

/// Replaces a file at once: a process that is killed leaves the old one or the new one.
pub fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use fullview_lab::search::TrialPurpose;
    use serde_json::Value;

    use super::*;

    fn trial(repetition: u32) -> ArchivedTrial {
        ArchivedTrial {
            device: "kernel".into(),
            repetition,
            request: TrialRequest { load: 1000.0, duration: 0.1, purpose: TrialPurpose::Initial },
            attempt: 1,
            planned: 100,
            sent: 100,
            received: 99,
            counts: true,
            latency: None,
        }
    }

    #[test]
    fn trials_of_a_turn_that_was_given_up_are_told_from_those_that_count() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = TrialArchive::create(folder.path()).unwrap();
        for given_up in [0, 1] {
            archive.begin_turn(given_up);
            archive.add(&trial(1)).unwrap();
        }
        archive.begin_turn(0);
        archive.add(&trial(2)).unwrap();
        let turns = [("kernel".to_owned(), 1)].into();
        TrialArchive::resume(folder.path(), &turns).unwrap().add(&trial(3)).unwrap();
        let text = fs::read_to_string(folder.path().join("trials.jsonl")).unwrap();
        let found: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|line| (line["repetition"].as_u64().unwrap(), line["given_up"].as_u64().unwrap()))
            .collect();
        assert_eq!(found, [(1, 0), (1, 1), (3, 0)]);
    }
}
