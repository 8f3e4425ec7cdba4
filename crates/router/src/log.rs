//! Lines on standard error. Once [`start`] has run, no caller waits for the reader of standard error: lines wait in a
//! queue of bounded length, and a thread of its own writes them. Lines that find the queue full are dropped and counted,
//! and the count is written in their place.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use clap::ValueEnum;
use serde::Deserialize;

/// How many lines the queue holds.
const MAX_LINES: usize = 1024;

/// The end of the program waits for a reader that reads nothing for this long.
const PATIENCE: Duration = Duration::from_millis(200);

static WRITER: OnceLock<LogWriter> = OnceLock::new();

/// How much is written. The comments of the variants are help text of `--log-level`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// What needs attention
    Warning,
    /// What the router does, too
    #[default]
    Notice,
    /// Every decision of the framework that compiles tables, too
    Debug,
}

/// The level of this process, as a number.
static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Notice as u8);

/// Sets how much the process writes.
pub fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Writes a line to standard error. A failure is ignored: a closed standard error does not stop the router.
pub fn line(line: &str) {
    at(LogLevel::Notice, line);
}

/// Writes a line that needs attention.
pub fn warning(line: &str) {
    at(LogLevel::Warning, line);
}

/// Writes a line, if that much is to be written.
pub fn at(level: LogLevel, line: &str) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    match WRITER.get() {
        Some(writer) => writer.push(line),
        None => _ = writeln!(io::stderr(), "{line}"),
    }
}

/// Starts the thread that writes lines from now on.
pub fn start() -> io::Result<()> {
    let writer = LogWriter::new(io::stderr())?;
    // If another call was first, its thread serves as well.
    let _ = WRITER.set(writer);
    Ok(())
}

/// Waits until all lines are written, or standard error takes none for a fifth of a second.
pub fn finish() {
    WRITER.get().into_iter().for_each(|writer| writer.finish(PATIENCE));
}

/// The end of the queue that callers push lines to.
struct LogWriter(Arc<LogQueue>);

#[derive(Default)]
struct LogQueue {
    waiting: Mutex<WaitingLines>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingLines {
    lines: VecDeque<String>,
    /// How many lines were dropped after the last of `lines`.
    dropped: u64,
    /// Whether the thread has taken a line that it has not yet written.
    is_writing: bool,
}

impl LogWriter {
    /// Starts a thread that writes the queue's lines to `out`.
    fn new(mut out: impl Write + Send + 'static) -> io::Result<LogWriter> {
        let queue = Arc::<LogQueue>::default();
        let lines = Arc::clone(&queue);
        let write = move || {
            loop {
                let _ = writeln!(out, "{}", lines.next());
            }
        };
        Builder::new().name("log".into()).spawn(write)?;
        Ok(LogWriter(queue))
    }

    fn push(&self, line: &str) {
        let mut waiting = self.0.lock();
        if waiting.lines.len() < MAX_LINES && waiting.dropped == 0 {
            waiting.lines.push_back(line.to_owned());
        } else {
            waiting.dropped += 1;
        }
        self.0.changed.notify_all();
    }

    /// Waits until all lines are written, or none is for as long as `patience`.
    fn finish(&self, patience: Duration) {
        let mut waiting = self.0.lock();
        loop {
            let before = waiting.lines.len();
            let is_stuck = |waiting: &mut WaitingLines| {
                (waiting.is_writing || !waiting.is_empty()) && waiting.lines.len() == before
            };
            let waited = self.0.changed.wait_timeout_while(waiting, patience, is_stuck);
            let (now, result) = waited.unwrap_or_else(PoisonError::into_inner);
            if result.timed_out() || now.is_empty() && !now.is_writing {
                return;
            }
            waiting = now;
        }
    }
}

impl LogQueue {
    /// No code that holds the lock panics, so a poisoned lock guards whole values.
    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next line. A call means that the line before is written.
    fn next(&self) -> String {
        let mut waiting = self.lock();
        waiting.is_writing = false;
        self.changed.notify_all();
        let waited = self.changed.wait_while(waiting, |waiting| waiting.is_empty());
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.is_writing = true;
        waiting.take()
    }
}

impl WaitingLines {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0
    }

    fn take(&mut self) -> String {
        let dropped =
            || format!("{} lines were left out here: they were not read", std::mem::take(&mut self.dropped));
        self.lines.pop_front().unwrap_or_else(dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    #[test]
    fn a_reader_that_stops_delays_no_caller_and_reads_how_many_lines_are_missing() {
        const PUSHED: usize = 9_000;
        let (reader, writer) = io::pipe().unwrap();
        let log = LogWriter::new(writer).unwrap();
        let text = "x".repeat(100);
        (0..PUSHED).for_each(|number| log.push(&format!("{number} {text}")));
        log.finish(Duration::ZERO);
        let mut lines = BufReader::new(reader).lines().map(|line| line.unwrap());
        let read: Vec<_> = lines.by_ref().take_while(|line| !line.contains("left out")).collect();
        assert!((MAX_LINES..PUSHED).contains(&read.len()), "{}", read.len());
        assert!(read.iter().enumerate().all(|(number, line)| line.starts_with(&format!("{number} "))));
        log.push("again");
        log.push("and again");
        assert_eq!(lines.next().as_deref(), Some("again"));
        assert_eq!(lines.next().as_deref(), Some("and again"));
        log.finish(Duration::from_secs(60));
        assert!(log.0.lock().is_empty());
    }
}
