//! Standard error where nobody may be held up by it: lines wait in a queue of bounded length for a thread of their own,
//! which alone waits for whoever reads them. What finds no room is left out, counted, and told of in its place.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Lines that wait, at most.
const MOST: usize = 1024;

/// How long the end of the program waits for what was said to be read.
const FAREWELL: Duration = Duration::from_secs(5);

static VOICE: OnceLock<Voice> = OnceLock::new();

/// A line on standard error. Nobody may be listening there, and that stops nothing.
pub fn line(line: &str) {
    match VOICE.get() {
        Some(voice) => voice.say(line),
        None => _ = writeln!(io::stderr(), "{line}"),
    }
}

/// From now on nobody who says something waits for standard error.
pub fn start() -> io::Result<()> {
    let voice = Voice::new(io::stderr())?;
    // Who began before has one that is as good.
    let _ = VOICE.set(voice);
    Ok(())
}

/// Waits until all is said, but not for long.
pub fn finish() {
    VOICE.get().into_iter().for_each(|voice| voice.finish(FAREWELL));
}

/// The queue's end for those who have something to say.
struct Voice(Arc<Queue>);

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<String>,
    /// After the last of these.
    left_out: u64,
    /// Whether the thread has something that it has not written yet.
    is_writing: bool,
}

impl Voice {
    /// What is said is written here.
    fn new(mut out: impl Write + Send + 'static) -> io::Result<Voice> {
        let queue = Arc::<Queue>::default();
        let lines = Arc::clone(&queue);
        let write = move || {
            loop {
                let _ = writeln!(out, "{}", lines.next());
            }
        };
        Builder::new().name("voice".into()).spawn(write)?;
        Ok(Voice(queue))
    }

    fn say(&self, line: &str) {
        let mut waiting = self.0.lock();
        if waiting.lines.len() < MOST && waiting.left_out == 0 {
            waiting.lines.push_back(line.to_owned());
        } else {
            waiting.left_out += 1;
        }
        self.0.changed.notify_all();
    }

    fn finish(&self, patience: Duration) {
        let is_busy = |waiting: &mut Waiting| waiting.is_writing || !waiting.is_empty();
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), patience, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Queue {
    /// Nothing panics while it has the lock.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes next, the line before being written.
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

impl Waiting {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.left_out == 0
    }

    fn take(&mut self) -> String {
        let left_out =
            || format!("{} lines were left out here: nobody read them", std::mem::take(&mut self.left_out));
        self.lines.pop_front().unwrap_or_else(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    #[test]
    fn who_does_not_read_holds_nobody_up_and_hears_what_is_missing() {
        const SAID: usize = 9_000;
        let (reader, writer) = io::pipe().unwrap();
        let voice = Voice::new(writer).unwrap();
        let text = "x".repeat(100);
        (0..SAID).for_each(|number| voice.say(&format!("{number} {text}")));
        voice.finish(Duration::ZERO);
        let mut lines = BufReader::new(reader).lines().map(|line| line.unwrap());
        let told: Vec<_> = lines.by_ref().take_while(|line| !line.contains("left out")).collect();
        assert!((MOST..SAID).contains(&told.len()), "{}", told.len());
        assert!(told.iter().enumerate().all(|(number, line)| line.starts_with(&format!("{number} "))));
        voice.say("again");
        voice.say("and again");
        assert_eq!(lines.next().as_deref(), Some("again"));
        assert_eq!(lines.next().as_deref(), Some("and again"));
        voice.finish(Duration::from_secs(60));
        assert!(voice.0.lock().is_empty());
    }
}
