//! `--capture-drops`: writes dropped packets and the reasons to a file, which is bounded in size and rate. A thread of its
//! own writes it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime};

use fullview_plane::observed::ObservedPacket;
use fullview_plane::trace::capture::{CaptureError, CommentedCapture};
use fullview_plane::trace::{PacketFilter, TraceRequest, TracedPacket};
use fullview_plane::verdict::{Reason, Verdict};

use super::error::OperationsError;
use crate::daemon::{WatchHub, WatchSession, WatchedPacket};
use crate::log;
use crate::options::CaptureOptions;

/// How often notes are fetched. If the router is killed, the notes of this time are lost.
const TICK: Duration = Duration::from_millis(50);

/// The file of a capture, open.
pub struct DropFile {
    options: CaptureOptions,
    capture: CommentedCapture<WholeFile>,
}

impl DropFile {
    /// Another router may still write to a file of this name: it keeps that file, which loses its name.
    pub fn replace(options: &CaptureOptions) -> Result<DropFile, OperationsError> {
        if fs::symlink_metadata(&options.file).is_ok_and(|found| found.is_file()) {
            let removed = fs::remove_file(&options.file);
            removed.map_err(|source| OperationsError::CreateFile { path: options.file.clone(), source })?;
        }
        DropFile::create(options)
    }

    pub fn create(options: &CaptureOptions) -> Result<DropFile, OperationsError> {
        let path = || options.file.clone();
        let file = File::create(&options.file)
            .map_err(|source| OperationsError::CreateFile { path: path(), source })?;
        let capture = CommentedCapture::new(WholeFile::new(file), options.bytes)
            .map_err(|source| OperationsError::Capture { path: path(), source })?;
        Ok(DropFile { options: options.clone(), capture })
    }
}

/// A file that ends with a whole block also where the disk has no room for the next: what is written waits for
/// [`Write::flush`], which writes all of it or nothing.
struct WholeFile {
    file: File,
    waiting: Vec<u8>,
    /// The length of the file.
    len: u64,
}

impl WholeFile {
    fn new(file: File) -> WholeFile {
        WholeFile { file, waiting: Vec::new(), len: 0 }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.waiting);
        match &written {
            Ok(()) => self.len += self.waiting.len() as u64,
            Err(_) => self.file.set_len(self.len)?,
        }
        self.waiting.clear();
        written
    }
}

/// A running capture. It ends when this is dropped, after it has written all notes.
pub struct DropCapture {
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DropCapture {
    /// `ports` are the names of the interfaces, by port.
    pub fn start(
        file: DropFile,
        hub: &Arc<WatchHub>,
        ports: Vec<String>,
    ) -> Result<DropCapture, OperationsError> {
        let first = file.options.packets_per_second;
        let session = hub.watch(Arc::new(TraceRequest::new(PacketFilter::default(), true, first)));
        let session = session.ok_or(OperationsError::TooManyWatches)?;
        let (end, ended) = sync_channel(0);
        let mut writer = DropWriter { file, ports, session, written: 0, missed: 0 };
        let thread = Builder::new().name("capture".into()).spawn(move || {
            let mut goes_on = true;
            while goes_on {
                goes_on = ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout);
                goes_on &= writer.write_notes();
            }
            writer.summary();
        });
        let thread = thread.map_err(OperationsError::Thread)?;
        Ok(DropCapture { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for DropCapture {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct DropWriter {
    file: DropFile,
    ports: Vec<String>,
    session: WatchSession,
    written: u64,
    missed: u64,
}

impl DropWriter {
    /// Writes the notes since the last call; returns whether the file takes more.
    fn write_notes(&mut self) -> bool {
        let per_second = self.file.options.packets_per_second;
        let share = per_second.saturating_mul(TICK.as_millis() as u64).div_ceil(1000);
        let (notes, missed) = self.session.fetch();
        self.missed += missed;
        self.session.watch().refill(share, per_second);
        match notes.iter().try_for_each(|note| self.write(note)) {
            Ok(()) => true,
            Err(error) => {
                log::warning(&format!(
                    "{}: {error}; nothing more is captured",
                    self.file.options.file.display()
                ));
                false
            }
        }
    }

    fn write(&mut self, note: &WatchedPacket) -> Result<(), CaptureError> {
        let Some(DroppedFrame { port, at, frame, len, reason }) = DroppedFrame::of(note) else {
            return Ok(());
        };
        let port = self.ports.get(usize::from(port)).map_or("unknown", String::as_str);
        self.file.capture.write(port, at, (frame, len), &format!("dropped: {reason}"))?;
        self.file.capture.flush().map_err(|error: io::Error| CaptureError::Write(error.to_string()))?;
        self.written += 1;
        Ok(())
    }

    fn summary(&mut self) {
        let (written, missed) = (self.written, self.missed);
        log::line(&format!(
            "{}: {written} dropped packets, {missed} left out",
            self.file.options.file.display()
        ));
    }
}

/// A frame that was dropped, and why.
struct DroppedFrame<'n> {
    port: u16,
    at: SystemTime,
    frame: &'n [u8],
    /// The length of the whole frame.
    len: u32,
    reason: String,
}

impl DroppedFrame<'_> {
    fn of(note: &WatchedPacket) -> Option<DroppedFrame<'_>> {
        match note {
            WatchedPacket::Loop(note) => DroppedFrame::by_loop(note),
            WatchedPacket::Program(note) => DroppedFrame::by_program(note),
        }
    }

    fn by_loop(note: &TracedPacket) -> Option<DroppedFrame<'_>> {
        let reason = match note.verdict {
            Verdict::Drop(reason) => reason.to_string(),
            Verdict::Reject(answer) => format!("{}, answered by {answer}", Reason::FilterRule),
            Verdict::Forward | Verdict::Punt(_) => return None,
        };
        let frame = note.before.frame();
        Some(DroppedFrame { port: note.port, at: note.at, frame, len: frame.len() as u32, reason })
    }

    fn by_program(note: &ObservedPacket) -> Option<DroppedFrame<'_>> {
        let ObservedPacket { port, at, ref frame, frame_len: len, verdict, .. } = *note;
        Some(DroppedFrame { port, at, frame, len, reason: verdict.discard()?.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;

    #[test]
    fn a_file_that_cannot_grow_ends_with_what_was_flushed_whole() {
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
        let file = File::from(memfd_create("full disk", flags).unwrap());
        let kept = file.try_clone().unwrap();
        kept.set_len(2 * 4096).unwrap();
        fcntl_add_seals(&kept, SealFlags::GROW).unwrap();
        let mut whole = WholeFile::new(file);
        let mut add = |bytes: &[u8]| whole.write_all(bytes).and_then(|()| whole.flush());
        add(&[1; 100]).unwrap();
        assert!(add(&[2; 3 * 4096]).is_err());
        assert_eq!(kept.metadata().unwrap().len(), 100);
    }
}
