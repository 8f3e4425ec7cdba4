//! The raw record: one JSON line a run, appended and synced as soon as the run is over, never rewritten.
//!
//! A crash loses at most the run in progress. It may leave half a line at the end of the file: reading tolerates that
//! one line and says so; any other line that cannot be read is an error, because it means the evidence was changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::validity::{Reasons, Validity};

/// Version of the record's fields; a reader refuses any other.
pub const SCHEMA: u32 = 1;

/// What is kept of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Block, from zero.
    pub block: u32,
    /// Place in the block's plan, from zero.
    pub position: u32,
    /// How many runs of the same block and cell came before this one.
    pub attempt: u32,
    /// Name of the variant.
    pub variant: String,
    /// Name of the family.
    pub family: String,
    /// Seed the subject was given.
    pub seed: u64,
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// Value of the run, in the experiment's metric.
    pub value: f64,
    /// Rate in each sample, in order of time.
    pub samples: Vec<f64>,
    /// Counts and secondary rates by name.
    pub counters: BTreeMap<String, f64>,
    /// What speaks for or against the run.
    pub validity: Reasons,
    /// Log lines of the subject.
    pub events: Vec<String>,
}

impl RunRecord {
    /// Whether the run enters the statistics.
    pub fn is_valid(&self) -> bool {
        self.validity.is_ok()
    }

    /// Whether it was cut short: such a run is no evidence against the subject and costs no retry.
    pub fn is_interrupted(&self) -> bool {
        self.validity.iter().any(|reason| reason == Validity::Interrupted)
    }
}

/// Everything a journal holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    /// The runs, in the order they were made.
    pub runs: Vec<RunRecord>,
    /// Number of a last line that was cut off in the middle, if there is one.
    pub torn_line: Option<usize>,
    /// Bytes of whole lines: where the next one belongs.
    whole: u64,
    /// Whether the last whole line lacks only its line break.
    unterminated: bool,
}

impl Records {
    /// Runs that were made because an earlier one of the same block and cell was invalid.
    pub(crate) fn repeats(&self) -> usize {
        let ended = || self.runs.iter().filter(|run| !run.is_interrupted());
        let cells: BTreeSet<_> = ended().map(|run| (run.block, &run.variant, &run.family)).collect();
        ended().count() - cells.len()
    }
}

/// Reads all runs of a journal.
pub fn read(path: &Path) -> Result<Records, ArchiveError> {
    let bytes = std::fs::read(path).map_err(|source| ArchiveError::read(path, source))?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Records, ArchiveError> {
    let mut records = Records::default();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let terminated = line.ends_with(b"\n");
        match parse_line(path, index + 1, line) {
            Ok(run) => records.runs.push(run),
            Err(_) if !terminated => {
                records.torn_line = Some(index + 1);
                break;
            }
            Err(error) => return Err(error),
        }
        records.whole += line.len() as u64;
        records.unterminated = !terminated;
    }
    Ok(records)
}

fn parse_line(path: &Path, line: usize, bytes: &[u8]) -> Result<RunRecord, ArchiveError> {
    let malformed = |message: String| ArchiveError::Record { path: path.into(), line, message };
    let run: RunRecord = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    if run.schema != SCHEMA {
        return Err(malformed(format!("schema {} is not the one this version reads, {SCHEMA}", run.schema)));
    }
    Ok(run)
}

/// The open end of a journal, locked against a second writer as long as it is open, however the process ends.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens a journal, or begins an empty one.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let failed = |source| ArchiveError::write(path, source);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.into(), file }),
            Err(TryLockError::WouldBlock) => Err(ArchiveError::Locked { path: path.into() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Reads the runs so far and makes the journal ready to go on: a torn last line is cut off, it never was a run.
    pub fn recover(&mut self) -> Result<Records, ArchiveError> {
        let records = read(&self.path)?;
        self.mend(&records).map_err(|source| ArchiveError::write(&self.path, source))?;
        Ok(records)
    }

    fn mend(&mut self, records: &Records) -> io::Result<()> {
        if records.torn_line.is_some() {
            self.file.set_len(records.whole)?;
        }
        if records.unterminated {
            self.file.write_all(b"\n")?;
        }
        self.file.sync_all()
    }

    /// Forgets every run.
    pub fn clear(&mut self) -> Result<(), ArchiveError> {
        self.file.set_len(0).map_err(|source| ArchiveError::write(&self.path, source))
    }

    /// Appends one run and returns when the disk has it.
    pub fn append(&mut self, run: &RunRecord) -> Result<(), ArchiveError> {
        self.append_line(run).map_err(|source| ArchiveError::write(&self.path, source))
    }

    fn append_line(&mut self, run: &RunRecord) -> io::Result<()> {
        let mut line = serde_json::to_vec(run)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()
    }
}

impl Records {
    /// The runs of one block and cell, in the order they were made.
    pub(crate) fn of<'a>(
        &'a self,
        block: u32,
        variant: &'a str,
        family: &'a str,
    ) -> impl Iterator<Item = &'a RunRecord> {
        let matches =
            move |run: &&RunRecord| run.block == block && run.variant == variant && run.family == family;
        self.runs.iter().filter(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunRecord {
        RunRecord {
            schema: SCHEMA,
            block: 0,
            position: 1,
            attempt: 0,
            variant: "before".into(),
            family: "inet".into(),
            seed: u64::MAX,
            started: "2026-11-21T08:00:00Z".into(),
            value: 1.0 / 3.0,
            samples: vec![0.1, 0.2, 0.3],
            counters: BTreeMap::from([("lost".into(), 1e-300)]),
            validity: Reasons::from_iter([Validity::NoisyCores]),
            events: vec!["a \"line\"\nand another".into()],
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        Journal::open(&path).unwrap().append(&run()).unwrap();
        assert_eq!(read(&path).unwrap().runs, [run()]);
    }

    #[test]
    fn another_schema_is_refused() {
        let line = serde_json::to_string(&RunRecord { schema: SCHEMA + 1, ..run() }).unwrap() + "\n";
        let error = parse(Path::new("runs.jsonl"), line.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("runs.jsonl:1: not a run record: schema 2"), "{error}");
    }

    #[test]
    fn no_bytes_whatever_make_reading_panic() {
        for bytes in [&b""[..], b"\n", b"{}\n", b"\xff\xfe", b"\0\0\0\n", b"[1e999]\n"] {
            let read = parse(Path::new("runs.jsonl"), bytes);
            assert_eq!(read.is_ok(), !bytes.ends_with(b"\n"), "{bytes:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_with_its_mend() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().append(true).open(path).unwrap();
        let error = Journal { path: path.into(), file }.append(&run()).unwrap_err().to_string();
        assert!(error.contains("what was measured before stays in the folder: free some space"), "{error}");
    }
}
