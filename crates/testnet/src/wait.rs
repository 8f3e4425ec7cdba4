//! Waits with a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// A condition that a test waits for takes a small part of this time even on a busy machine, so that only a test that
/// fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(240);

/// A packet takes a small part of this time even on a busy machine.
pub const ANSWER: Duration = Duration::from_secs(60);

/// Checks the condition every 20 ms until it holds, for at most four minutes. Returns whether it held.
pub fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    condition()
}
