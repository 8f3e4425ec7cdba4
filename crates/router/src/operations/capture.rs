//! `--capture-drops`: what is dropped, and why, into a file: bounded in size and rate, written by a thread of its own.

use std::fs;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use fullview_plane::trace::capture::{CaptureError, CommentedCapture};
use fullview_plane::trace::{PacketFilter, TraceRequest, TracedPacket};
use fullview_plane::verdict::Verdict;

use super::hub::{Hub, Session};
use crate::log;

/// How often notes are fetched; so long at most is lost if the router is killed.
const TICK: Duration = Duration::from_millis(50);

/// Where to, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub file: PathBuf,
    /// The file grows no further.
    pub bytes: u64,
    /// More are left out.
    pub packets_per_second: u64,
}

impl Options {
    pub const BYTES: u64 = 64 << 20;
    pub const PACKETS_PER_SECOND: u64 = 1000;
}

/// The file, open.
pub struct File {
    options: Options,
    capture: CommentedCapture<BufWriter<fs::File>>,
}

impl File {
    pub fn create(options: &Options) -> anyhow::Result<File> {
        let path = || options.file.display().to_string();
        let file = fs::File::create(&options.file).with_context(path)?;
        let capture = CommentedCapture::new(BufWriter::new(file), options.bytes).with_context(path)?;
        Ok(File { options: options.clone(), capture })
    }
}

/// A capture at work; it ends, with everything written, when this is dropped.
pub struct Capture {
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Capture {
    /// `ports` are the names of the interfaces, by port.
    pub fn start(file: File, hub: &Arc<Hub>, ports: Vec<String>) -> anyhow::Result<Capture> {
        let first = file.options.packets_per_second;
        let session = hub.watch(Arc::new(TraceRequest::new(PacketFilter::default(), true, first)));
        let session = session.context("dropped packets cannot be watched")?;
        let (end, ended) = sync_channel(0);
        let mut writer = Writer { file, ports, session, written: 0, missed: 0 };
        let thread = Builder::new().name("capture".into()).spawn(move || {
            let mut goes_on = true;
            while goes_on {
                goes_on = ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout);
                goes_on &= writer.turn();
            }
            writer.farewell();
        })?;
        Ok(Capture { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Writer {
    file: File,
    ports: Vec<String>,
    session: Session,
    written: u64,
    missed: u64,
}

impl Writer {
    /// Writes what was noted; returns whether the file takes more.
    fn turn(&mut self) -> bool {
        let per_second = self.file.options.packets_per_second;
        let share = per_second.saturating_mul(TICK.as_millis() as u64).div_ceil(1000);
        let (notes, missed) = self.session.fetch();
        self.missed += missed;
        self.session.watch().refill(share, per_second);
        let written = notes.iter().try_for_each(|note| self.write(note));
        let flushed =
            |()| self.file.capture.flush().map_err(|error: io::Error| CaptureError::Write(error.to_string()));
        match written.and_then(flushed) {
            Ok(()) => true,
            Err(error) => {
                log::line(&format!(
                    "{}: {error}; nothing more is captured",
                    self.file.options.file.display()
                ));
                false
            }
        }
    }

    fn write(&mut self, note: &TracedPacket) -> Result<(), CaptureError> {
        let unknown = String::from("unknown");
        let port = self.ports.get(usize::from(note.port)).unwrap_or(&unknown);
        let Verdict::Drop(reason) = note.verdict else { return Ok(()) };
        self.file.capture.write(port, note.at, note.before.frame(), &format!("dropped: {reason}"))?;
        self.written += 1;
        Ok(())
    }

    fn farewell(&mut self) {
        let (written, missed) = (self.written, self.missed);
        log::line(&format!(
            "{}: {written} dropped packets, {missed} left out",
            self.file.options.file.display()
        ));
    }
}
