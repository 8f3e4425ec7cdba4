//! The requests of an agent, and whether the program that measures is still there.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::protocol::ALIVE;

/// A connection that says nothing for so long is lost; the other side sends a line every few seconds.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(20);

/// Lines of standard input.
pub struct RequestLines {
    pub lines: Receiver<String>,
    /// Set when the input has ended, or a signal asks for the end, also while a request is worked on.
    pub lost: Arc<AtomicBool>,
}

impl RequestLines {
    /// Reads standard input in a thread of its own. SIGINT, SIGTERM and SIGHUP end it, so that what was changed is put back.
    pub fn read() -> io::Result<RequestLines> {
        let ((sender, lines), lost) = (channel(), Arc::new(AtomicBool::new(false)));
        let (signalled, until) = io::pipe()?;
        let mut until = Some(until);
        ctrlc::set_handler(move || drop(until.take())).map_err(io::Error::other)?;
        let flag = Arc::clone(&lost);
        thread::spawn(move || {
            // An input that fails has ended.
            let _ = forward_lines(&sender, &signalled);
            flag.store(true, Ordering::Relaxed);
        });
        Ok(RequestLines { lines, lost })
    }
}

fn forward_lines(sender: &Sender<String>, signalled: &PipeReader) -> io::Result<()> {
    let (mut input, mut kept) = (io::stdin().lock(), Vec::new());
    let mut chunk = [0; 4096];
    while is_ready(&io::stdin(), signalled)? {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&chunk[..count]);
        while let Some(end) = kept.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = kept.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if text != ALIVE && sender.send(text).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Waits for input; false after a signal, whose pipe has lost its other end, and after a long silence.
fn is_ready(input: &impl AsFd, signalled: &PipeReader) -> io::Result<bool> {
    let silence = Timespec::try_from(LONGEST_SILENCE).map_err(io::Error::other)?;
    let mut waiting = [PollFd::new(input, PollFlags::IN), PollFd::new(signalled, PollFlags::IN)];
    loop {
        match poll(&mut waiting, Some(&silence)) {
            Err(rustix::io::Errno::INTR) => {}
            found => return Ok(found? > 0 && waiting[1].revents().is_empty()),
        }
    }
}
