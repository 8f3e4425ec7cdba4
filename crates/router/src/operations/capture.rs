//! `--capture-drops`: writes dropped packets and the reasons to a file, which is bounded in size and rate. A thread of its
//! own writes it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

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

const SECOND_NANOS: u128 = 1_000_000_000;

/// The file of a capture, open.
pub struct DropFile {
    /// With the present name of the file.
    options: CaptureOptions,
    /// The name that the file gets once this router has taken another one's place.
    later_name: Option<PathBuf>,
    capture: CommentedCapture<WholeFile>,
}

impl DropFile {
    /// A file beside the one of this name, to which the running router writes until [`DropFile::take_name`] replaces it.
    pub fn beside(options: &CaptureOptions) -> Result<DropFile, OperationsError> {
        if fs::metadata(&options.file).is_ok_and(|found| !found.is_file()) {
            return DropFile::create(options);
        }
        let file = target(&options.file);
        let mut name = file.clone().into_os_string();
        name.push(".new");
        let named = CaptureOptions { file: name.into(), ..options.clone() };
        // It is of a process that was killed, or the running router's if that could not rename it.
        let _ = fs::remove_file(&named.file);
        let mut beside = DropFile::create(&named)?;
        beside.later_name = Some(file);
        Ok(beside)
    }

    /// Replaces the file of the router whose place was taken.
    fn take_name(&mut self) {
        let Some(name) = self.later_name.take() else { return };
        match fs::rename(&self.options.file, &name) {
            Ok(()) => self.options.file = name,
            Err(error) => log::warning(&format!(
                "{}: cannot be renamed to {}, and stays: {error}",
                self.options.file.display(),
                name.display()
            )),
        }
    }

    /// Makes a file without packets.
    pub fn create(options: &CaptureOptions) -> Result<DropFile, OperationsError> {
        let path = || options.file.clone();
        let file = File::create(&options.file)
            .map_err(|source| OperationsError::CreateFile { path: path(), source })?;
        let capture = CommentedCapture::new(WholeFile::new(file), options.bytes);
        let capture = capture.map_err(|source| OperationsError::Capture { path: path(), source })?;
        Ok(DropFile { options: options.clone(), later_name: None, capture })
    }

    fn flush(&mut self) -> Result<(), CaptureError> {
        self.capture.flush().map_err(|error| CaptureError::Write(error.to_string()))
    }
}

/// What a symbolic link leads to: the running router writes there, and the link stays.
fn target(file: &Path) -> PathBuf {
    let is_link = fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink());
    let target = is_link.then(|| fs::canonicalize(file).ok()).flatten();
    target.unwrap_or_else(|| file.to_owned())
}

/// A process that did not take another one's place leaves no file.
impl Drop for DropFile {
    fn drop(&mut self) {
        if self.later_name.is_some() {
            let _ = fs::remove_file(&self.options.file);
        }
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
            // The error that counts is that of the write. If this fails too, the file ends with a part of a block.
            Err(_) => _ = self.file.set_len(self.len),
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
    /// `ports` are the names of the interfaces, by port. This router has taken the place of another one, if there was one.
    pub fn start(
        mut file: DropFile,
        hub: &Arc<WatchHub>,
        ports: Vec<String>,
    ) -> Result<DropCapture, OperationsError> {
        file.take_name();
        let first = file.options.packets_per_second;
        let session = hub.watch(Arc::new(TraceRequest::new(PacketFilter::default(), true, first)));
        let session = session.ok_or(OperationsError::TooManyWatches)?;
        let (end, ended) = sync_channel(0);
        let pace = Pace::new(first, Instant::now());
        let mut writer = DropWriter { file, ports, session, pace, written: 0, missed: 0 };
        let thread = Builder::new().name("capture".into()).spawn(move || {
            let mut goes_on = writer.begin();
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

/// How many packets may be written as time goes on.
struct Pace {
    per_second: u64,
    /// The time for which packets were granted.
    granted_until: Instant,
}

impl Pace {
    fn new(per_second: u64, now: Instant) -> Pace {
        Pace { per_second, granted_until: now }
    }

    /// How many more packets the time since the last call allows. The time of a part of a packet counts in a later call.
    fn more(&mut self, now: Instant) -> u64 {
        let nanos = now.saturating_duration_since(self.granted_until).as_nanos();
        let more = nanos * u128::from(self.per_second) / SECOND_NANOS;
        if more > 0 {
            self.granted_until +=
                Duration::from_nanos((more * SECOND_NANOS).div_ceil(self.per_second.into()) as u64);
        }
        more.try_into().unwrap_or(u64::MAX)
    }
}

struct DropWriter {
    file: DropFile,
    ports: Vec<String>,
    session: WatchSession,
    pace: Pace,
    written: u64,
    missed: u64,
}

impl DropWriter {
    /// Makes the file a valid one without packets; returns whether it takes any. A full disk does not keep the router from
    /// its work.
    fn begin(&mut self) -> bool {
        let begun = self.file.flush();
        self.goes_on(begun)
    }

    /// Writes the notes since the last call; returns whether the file takes more.
    fn write_notes(&mut self) -> bool {
        let (notes, missed) = self.session.fetch();
        self.missed += missed;
        let more = self.pace.more(Instant::now());
        self.session.watch().refill(more, self.pace.per_second);
        let written = notes.iter().try_for_each(|note| self.write(note));
        self.goes_on(written)
    }

    fn goes_on(&self, written: Result<(), CaptureError>) -> bool {
        if let Err(error) = &written {
            let file = self.file.options.file.display();
            log::warning(&format!("{file}: {error}; nothing more is captured"));
        }
        written.is_ok()
    }

    fn write(&mut self, note: &WatchedPacket) -> Result<(), CaptureError> {
        let Some(DroppedFrame { port, at, frame, len, reason }) = DroppedFrame::of(note) else {
            return Ok(());
        };
        let port = self.ports.get(usize::from(port)).map_or("unknown", String::as_str);
        self.file.capture.write(port, at, (frame, len), &format!("dropped: {reason}"))?;
        self.file.flush()?;
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
    fn a_file_replaces_the_one_of_a_running_router_only_when_it_takes_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let (file, beside) = (folder.path().join("drops"), folder.path().join("drops.new"));
        let options = CaptureOptions { file: file.clone(), bytes: 1 << 20, packets_per_second: 10 };
        fs::write(&file, "of the running router").unwrap();
        fs::write(&beside, "of a process that was killed").unwrap();
        let content = || fs::read(&file).unwrap();
        drop(DropFile::beside(&options).unwrap());
        assert_eq!((content(), beside.exists()), (b"of the running router".to_vec(), false));
        let mut new = DropFile::beside(&options).unwrap();
        assert_eq!((content(), beside.exists()), (b"of the running router".to_vec(), true));
        new.take_name();
        drop(new);
        assert_eq!((content() == b"of the running router", beside.exists()), (false, false));
    }

    #[test]
    fn a_link_stays_and_leads_to_the_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("today"), folder.path().join("drops"));
        fs::write(&file, "of the running router").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let options = CaptureOptions { file: link.clone(), bytes: 1 << 20, packets_per_second: 10 };
        let mut new = DropFile::beside(&options).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"of the running router");
        new.take_name();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        new.flush().unwrap();
        // A capture without packets is a capture.
        assert!(fs::read(&file).unwrap().starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    }

    #[test]
    fn no_more_packets_are_granted_than_a_second_has() {
        for per_second in [0, 1, 7, 10, 30, 1000, 123_457, u64::MAX >> 8] {
            let begin = Instant::now();
            let mut pace = Pace::new(per_second, begin);
            let granted: u64 = (1..=200).map(|tick| pace.more(begin + tick * TICK)).sum();
            assert!(granted.abs_diff(10 * per_second) <= 1 + (per_second >> 20), "{per_second}: {granted}");
            assert!(granted <= 10 * per_second, "{per_second}: {granted}");
        }
    }

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

    #[test]
    fn the_error_is_that_of_the_write() {
        let mut whole = WholeFile::new(File::open("/dev/null").unwrap());
        let error = whole.write_all(&[1]).and_then(|()| whole.flush()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }
}
