//! The requests of an agent, and whether the program that measures is still there.

use std::io::{self, Read};
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
    /// Set when the input has ended, also while a request is worked on.
    pub lost: Arc<AtomicBool>,
}

impl RequestLines {
    /// Reads standard input in a thread of its own.
    pub fn read() -> RequestLines {
        let ((sender, lines), lost) = (channel(), Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&lost);
        thread::spawn(move || {
            // An input that fails has ended.
            let _ = forward_lines(&sender);
            flag.store(true, Ordering::Relaxed);
        });
        RequestLines { lines, lost }
    }
}

fn forward_lines(sender: &Sender<String>) -> io::Result<()> {
    let (mut input, mut kept) = (io::stdin().lock(), Vec::new());
    let mut chunk = [0; 4096];
    while is_ready(&io::stdin())? {
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

/// Waits for input; false after a long silence.
fn is_ready(input: &impl AsFd) -> io::Result<bool> {
    let silence = Timespec::try_from(LONGEST_SILENCE).map_err(io::Error::other)?;
    let mut waiting = [PollFd::new(input, PollFlags::IN)];
    loop {
        match poll(&mut waiting, Some(&silence)) {
            Err(rustix::io::Errno::INTR) => {}
            found => return Ok(found? > 0),
        }
    }
}
