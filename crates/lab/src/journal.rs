//! The journal of a campaign: one JSON line for each run, appended and synced when the run ends, never rewritten.
//!
//! A crash loses at most the run in progress. It may leave an incomplete last line: reading tolerates that line and
//! reports it. Any other unreadable line is an error, because it means that the file was changed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::ArchiveError;
use crate::record::{RunRecord, SCHEMA};

/// The content of a journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    /// The runs in the order they were made.
    pub runs: Vec<RunRecord>,
    /// Number of the last line, if it is incomplete.
    pub torn_line: Option<usize>,
    /// Bytes of the complete lines: the offset of the next line.
    whole: u64,
    /// Whether the last complete line lacks its line break.
    unterminated: bool,
}

impl Records {
    /// Counts the runs that were made because an earlier run of the same block and cell was invalid.
    pub(crate) fn repeats(&self) -> usize {
        let ended = || self.runs.iter().filter(|run| !run.is_interrupted());
        let cells: BTreeSet<_> = ended().map(|run| (run.block, &run.variant, &run.family)).collect();
        ended().count() - cells.len()
    }

    /// Iterates over the runs of one block and cell in the order they were made.
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
        return Err(malformed(format!(
            "its schema is {}, and this version reads schema {SCHEMA}",
            run.schema
        )));
    }
    Ok(run)
}

/// A journal open for appending. Its lock keeps out a second writer and ends with the process, even after a crash.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens a journal, or creates an empty one.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let failed = |source| ArchiveError::write(path, source);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.into(), file }),
            Err(TryLockError::WouldBlock) => Err(ArchiveError::Locked { path: path.into() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Reads the runs and prepares the journal for more: removes an incomplete last line, which never was a run.
    pub fn recover(&mut self) -> Result<Records, ArchiveError> {
        let records = read(&self.path)?;
        self.repair(&records).map_err(|source| ArchiveError::write(&self.path, source))?;
        Ok(records)
    }

    fn repair(&mut self, records: &Records) -> io::Result<()> {
        if records.torn_line.is_some() {
            self.file.set_len(records.whole)?;
        }
        if records.unterminated {
            self.file.write_all(b"\n")?;
        }
        self.file.sync_all()
    }

    /// Removes every run.
    pub fn clear(&mut self) -> Result<(), ArchiveError> {
        self.file.set_len(0).map_err(|source| ArchiveError::write(&self.path, source))
    }

    /// Appends one run and returns when it is on the disk.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::validity::{Reasons, Validity};

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
        assert!(error.starts_with("runs.jsonl:1: not a run record: its schema is 2"), "{error}");
    }

    #[test]
    fn reading_any_bytes_does_not_panic() {
        for bytes in [&b""[..], b"\n", b"{}\n", b"\xff\xfe", b"\0\0\0\n", b"[1e999]\n"] {
            let read = parse(Path::new("runs.jsonl"), bytes);
            assert_eq!(read.is_ok(), !bytes.ends_with(b"\n"), "{bytes:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_error_of_a_full_disk_contains_advice() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().append(true).open(path).unwrap();
        let error = Journal { path: path.into(), file }.append(&run()).unwrap_err().to_string();
        assert!(error.contains("the runs made before stay in the folder: free some space"), "{error}");
    }
}
