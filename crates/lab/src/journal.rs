//! The journal of a campaign: one JSON line for each panel, appended and synced when the panel ends, never rewritten.
//!
//! A crash loses at most the panel in progress. It may leave an incomplete last line: reading tolerates that line and
//! reports it. Any other unreadable line is an error, because it means that the file was changed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::error::ArchiveError;
use crate::record::{self, PanelRecord};
use crate::run_record::{self, RunRecord};

/// A line of a journal.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// The version of its fields. A reader refuses any other.
    const SCHEMA: u32;
    /// What a line is called in messages.
    const NAME: &'static str;
    fn schema(&self) -> u32;
}

impl Record for PanelRecord {
    const SCHEMA: u32 = record::SCHEMA;
    const NAME: &'static str = "a panel record";
    fn schema(&self) -> u32 {
        self.schema
    }
}

impl Record for RunRecord {
    const SCHEMA: u32 = run_record::SCHEMA;
    const NAME: &'static str = "a run record";
    fn schema(&self) -> u32 {
        self.schema
    }
}

/// The content of a journal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lines<R> {
    /// The records in the order they were made.
    pub(crate) records: Vec<R>,
    /// Number of the last line, if it is incomplete.
    pub(crate) torn_line: Option<usize>,
    /// Bytes of the complete lines: the offset of the next line.
    whole: u64,
    /// Whether the last complete line lacks its line break.
    unterminated: bool,
}

impl<R> Default for Lines<R> {
    fn default() -> Self {
        Self { records: Vec::new(), torn_line: None, whole: 0, unterminated: false }
    }
}

/// Reads all records of a journal.
pub(crate) fn read<R: Record>(path: &Path) -> Result<Lines<R>, ArchiveError> {
    let bytes = std::fs::read(path).map_err(|source| ArchiveError::read(path, source))?;
    parse(path, &bytes)
}

fn parse<R: Record>(path: &Path, bytes: &[u8]) -> Result<Lines<R>, ArchiveError> {
    let mut lines = Lines::default();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let terminated = line.ends_with(b"\n");
        match parse_line(path, index + 1, line) {
            Ok(record) => lines.records.push(record),
            Err(_) if !terminated && serde_json::from_slice::<IgnoredAny>(line).is_err() => {
                lines.torn_line = Some(index + 1);
                break;
            }
            Err(error) => return Err(error),
        }
        lines.whole += line.len() as u64;
        lines.unterminated = !terminated;
    }
    Ok(lines)
}

fn parse_line<R: Record>(path: &Path, line: usize, bytes: &[u8]) -> Result<R, ArchiveError> {
    let malformed =
        |message: String| ArchiveError::Record { path: path.into(), line, what: R::NAME, message };
    let record: R = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    if record.schema() != R::SCHEMA {
        return Err(malformed(format!(
            "its schema is {}, and this version reads schema {}",
            record.schema(),
            R::SCHEMA
        )));
    }
    Ok(record)
}

/// A journal open for appending. Its lock keeps out a second writer and ends with the process, even after a crash.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens a journal, or creates an empty one.
    pub(crate) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let failed = |source| ArchiveError::write(path, source);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.into(), file }),
            Err(TryLockError::WouldBlock) => Err(ArchiveError::Locked { path: path.into() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Reads the records and prepares the journal for more: removes an incomplete last line, which never was a record.
    pub(crate) fn recover<R: Record>(&mut self) -> Result<Lines<R>, ArchiveError> {
        let lines = read(&self.path)?;
        self.repair(&lines).map_err(|source| ArchiveError::write(&self.path, source))?;
        Ok(lines)
    }

    fn repair<R>(&mut self, lines: &Lines<R>) -> io::Result<()> {
        if lines.torn_line.is_some() {
            self.file.set_len(lines.whole)?;
        }
        if lines.unterminated {
            self.file.write_all(b"\n")?;
        }
        self.file.sync_all()
    }

    /// Removes every record.
    pub(crate) fn clear(&mut self) -> Result<(), ArchiveError> {
        self.file.set_len(0).map_err(|source| ArchiveError::write(&self.path, source))
    }

    /// Appends one record and returns when it is on the disk.
    pub(crate) fn append(&mut self, record: &impl Record) -> Result<(), ArchiveError> {
        self.append_line(record).map_err(|source| ArchiveError::write(&self.path, source))
    }

    fn append_line(&mut self, record: &impl Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
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
            schema: run_record::SCHEMA,
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
        assert_eq!(read::<RunRecord>(&path).unwrap().records, [run()]);
    }

    #[test]
    fn another_schema_is_refused() {
        let line =
            serde_json::to_string(&RunRecord { schema: run_record::SCHEMA + 1, ..run() }).unwrap() + "\n";
        for line in [&line, line.trim_end()] {
            let error = parse::<RunRecord>(Path::new("runs.jsonl"), line.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("runs.jsonl:1: not a run record: its schema is 2"), "{error}");
        }
    }

    #[test]
    fn reading_any_bytes_does_not_panic() {
        for bytes in [&b""[..], b"\n", b"{}\n", b"\xff\xfe", b"\0\0\0\n", b"[1e999]\n"] {
            let read = parse::<RunRecord>(Path::new("runs.jsonl"), bytes);
            assert_eq!(read.is_ok(), !bytes.ends_with(b"\n"), "{bytes:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_error_of_a_full_disk_contains_advice() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().append(true).open(path).unwrap();
        let error = Journal { path: path.into(), file }.append(&run()).unwrap_err().to_string();
        assert!(
            error.contains("the runs made before stay in the folder: free some space; `fullview bench`"),
            "{error}"
        );
    }
}
