//! A session on a host, of which each side reads lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::error::RemoteError;
use super::protocol::ALIVE;
use super::ssh::start;

/// How long a session may take to end by itself when its input has ended.
const END: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// How often the other side learns that the connection is alive.
const EVERY: Duration = Duration::from_secs(5);

/// A running session. Dropping it ends its input, and waits until the host has cleaned up.
pub struct Session {
    node: String,
    child: Child,
    input: Arc<Mutex<Option<ChildStdin>>>,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
}

impl Session {
    pub fn start(node: &str, command: Command) -> Result<Session, RemoteError> {
        let mut child = start(command, "ssh")?;
        let ((sender, lines), log) = (channel(), Arc::<Mutex<String>>::default());
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            thread::spawn(move || {
                std::iter::from_fn(|| next_line(&mut output)).try_for_each(|line| sender.send(line))
            });
        }
        if let Some(errors) = child.stderr.take() {
            let kept = Arc::clone(&log);
            thread::spawn(move || keep(errors, &kept));
        }
        let input = Arc::new(Mutex::new(child.stdin.take()));
        Ok(Session { node: node.into(), child, input, lines, log })
    }

    /// Sends a line every few seconds, while the session runs.
    pub fn keep_alive(&self) {
        let input = Arc::downgrade(&self.input);
        thread::spawn(move || {
            while let Some(input) = input.upgrade() {
                if write(&input, &format!("{ALIVE}\n")).is_err() {
                    break;
                }
                drop(input);
                thread::sleep(EVERY);
            }
        });
    }

    pub fn send(&self, text: &str) -> Result<(), RemoteError> {
        write(&self.input, text).map_err(|_| self.lost())
    }

    /// The next line.
    pub fn line(&self, within: Duration) -> Result<String, RemoteError> {
        self.lines.recv_timeout(within).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                RemoteError::Silent { node: self.node.clone(), seconds: within.as_secs() }
            }
            RecvTimeoutError::Disconnected => self.lost(),
        })
    }

    /// Refuses to go on with a session that has ended. It must not have anything to say.
    pub fn check(&self) -> Result<(), RemoteError> {
        match self.lines.try_recv() {
            Err(TryRecvError::Disconnected) => Err(self.lost()),
            _ => Ok(()),
        }
    }

    /// Ends its input; what it still prints can be read.
    pub fn end_input(&self) {
        drop(self.input.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The end of what it wrote to standard error.
    pub fn said(&self) -> String {
        // The thread that reads it may be a moment late.
        thread::sleep(POLL);
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join("; ")
    }

    fn lost(&self) -> RemoteError {
        let said = self.said();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        RemoteError::Lost { node: self.node.clone(), said }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_input();
        let began = Instant::now();
        while began.elapsed() < END && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(input: &Mutex<Option<ChildStdin>>, text: &str) -> std::io::Result<()> {
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let pipe = input.as_mut().ok_or_else(ended)?;
    pipe.write_all(text.as_bytes()).and_then(|()| pipe.flush())
}

/// A line; nothing at the end. Programs print bytes that are not UTF-8, which end no connection.
fn next_line(output: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    output.read_until(b'\n', &mut bytes).ok().filter(|count| *count > 0)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Some(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned())
}

fn keep(mut errors: impl Read, kept: &Mutex<String>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut chunk) {
        let text = String::from_utf8_lossy(&chunk[..count]);
        kept.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn bytes_that_are_no_text_end_no_session() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf 'caf\\351\\nnext\\r\\nlast'; read -r end"]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let session = Session::start("dut", shell).unwrap();
        let line = || session.line(END).unwrap();
        assert_eq!([line(), line()], ["caf\u{fffd}", "next"]);
        session.check().unwrap();
        session.end_input();
        assert_eq!(line(), "last");
    }
}
