//! When IPv6 routes are dumped again, because they changed during their dump.

use std::time::Duration;

use fullview_table::fib::framework::Time;

/// The time to the next dump, doubled each time.
const RETRY: Duration = Duration::from_millis(10);
/// It is doubled so often at most: such changes may never end.
const MOST_DOUBLINGS: u32 = 10;

/// So many of these dumps, one after the other, together list all routes: one lacks some, but the next ones hardly the same.
pub(super) const TOGETHER: u8 = 4;

/// What is known about the dumps.
#[derive(Default)]
pub(super) struct Settling {
    /// When the next one begins.
    again: Option<Time>,
    /// How many there were, one after the other, during which routes changed.
    shifts: u32,
}

impl Settling {
    pub fn next(&self) -> Option<Time> {
        self.again
    }

    /// Whether the next dump is to be waited for before everything counts as known.
    pub fn is_awaited(&self) -> bool {
        self.again.is_some() && !self.is_complete()
    }

    /// Whether the last dumps list all routes.
    fn is_complete(&self) -> bool {
        self.shifts >= u32::from(TOGETHER)
    }

    /// Whether the next dump is due; once.
    pub fn take_due(&mut self, now: Time) -> bool {
        self.again.take_if(|at| *at <= now).is_some()
    }

    /// A dump begins, for whatever reason.
    pub fn begin(&mut self) {
        self.again = None;
    }

    /// Routes changed during the dump. Returns whether the last [`TOGETHER`] dumps list all.
    pub fn shifted(&mut self, now: Time) -> bool {
        self.again = Some(now + RETRY * (1 << self.shifts.min(MOST_DOUBLINGS)));
        self.shifts += 1;
        self.is_complete()
    }

    /// The dump listed everything, or is no use.
    pub fn restart(&mut self) {
        self.shifts = 0;
    }
}
