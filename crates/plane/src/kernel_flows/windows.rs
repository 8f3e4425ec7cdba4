//! The windows of connections with which a program compares segments: `struct flow_windows` in known_flow.h. The worker and any
//! number of programs move them, each by one atomic operation a word, and only forward. So what is read may be of several
//! moments, each while the segment that is compared was there.

use std::sync::atomic::{AtomicU64, Ordering};

use fullview_filter::state::{FlowWindows, WindowEnd};

/// The words of the windows of one connection.
pub(super) const WINDOWS: usize = 8;
/// Their places, each for the first of two ends: what its segments move, its largest window, the shift of its windows, and what
/// the worker has seen of the first.
const MOVED: usize = 0;
const WINDOW: usize = 2;
const SHIFT: usize = 4;
const SEEN: usize = 6;

/// The windows of one connection.
pub(super) struct SharedWindows<'m>(pub &'m [AtomicU64; WINDOWS]);

impl SharedWindows<'_> {
    /// Writes windows that no program can find. The flow's segments come from this end.
    pub fn fill(&self, end: u16, windows: &FlowWindows) {
        let FlowWindows(ends) = turned(end, windows);
        for (at, [moved, window, shift]) in words(&ends).into_iter().enumerate() {
            self.0[MOVED + at].store(moved, Ordering::Relaxed);
            self.0[WINDOW + at].store(window, Ordering::Relaxed);
            self.0[SHIFT + at].store(shift, Ordering::Relaxed);
            self.0[SEEN + at].store(moved, Ordering::Relaxed);
        }
    }

    /// Moves the windows forward to where others are.
    pub fn raise(&self, end: u16, windows: &FlowWindows) {
        let FlowWindows(ends) = turned(end, windows);
        for (at, [moved, window, _]) in words(&ends).into_iter().enumerate() {
            self.0[WINDOW + at].fetch_max(window, Ordering::AcqRel);
            let advance = |present| Some(later_of_both(present, moved)).filter(|next| *next != present);
            // A word that stays as it is was far enough already.
            let _ = self.0[MOVED + at].fetch_update(Ordering::AcqRel, Ordering::Acquire, advance);
        }
    }

    /// Takes the windows as a flow sees them whose segments come from this end, for its states. Sequence numbers are ordered within
    /// a distance of 2^31 only, so a program moves them no further than three quarters of that from what was taken.
    pub fn take(&self, end: u16) -> FlowWindows {
        let word = |at: usize| self.0[at].load(Ordering::Acquire);
        let moved = [0, 1].map(|at| word(MOVED + at));
        (SEEN..).zip(moved).for_each(|(at, moved)| self.0[at].store(moved, Ordering::Release));
        let end_at = |at: usize| WindowEnd {
            sent: moved[at] as u32,
            limit: (moved[at ^ 1] >> 32) as u32,
            window: word(WINDOW + at) as u16,
            shift: word(SHIFT + at) as u8,
        };
        turned(end, &FlowWindows([end_at(0), end_at(1)]))
    }
}

/// The words of both ends. The segments of an end move how far it has sent, in the lower half of a word, and how far the other one
/// may send, in the upper half.
fn words(ends: &[WindowEnd; 2]) -> [[u64; 3]; 2] {
    [0, 1].map(|at| {
        let (end, other): (&WindowEnd, &WindowEnd) = (&ends[at], &ends[at ^ 1]);
        [u64::from(end.sent) | u64::from(other.limit) << 32, end.window.into(), end.shift.into()]
    })
}

/// The windows with the ends in the other order, if the flow's segments come from the second one.
fn turned(end: u16, FlowWindows([first, second]): &FlowWindows) -> FlowWindows {
    if end == 0 { FlowWindows([*first, *second]) } else { FlowWindows([*second, *first]) }
}

/// The later sequence number of each half (RFC 9293, section 3.4).
fn later_of_both(present: u64, other: u64) -> u64 {
    let later =
        |present: u32, other: u32| if (other.wrapping_sub(present) as i32) > 0 { other } else { present };
    let halves = |shift: u32| u64::from(later((present >> shift) as u32, (other >> shift) as u32)) << shift;
    halves(0) | halves(32)
}

/// Which windows a worker's entries have, and which are free.
#[derive(Debug)]
pub(super) struct WindowRecords {
    first: u32,
    /// How many entries have each: one for each direction of its connection.
    users: Box<[u32]>,
    free: Vec<u32>,
}

impl WindowRecords {
    /// As many as these entries, so that there is one whenever there is an entry.
    pub fn new(entries: std::ops::Range<u32>) -> WindowRecords {
        WindowRecords {
            first: entries.start,
            users: vec![0; entries.len()].into(),
            free: entries.rev().collect(),
        }
    }

    /// A free one, for one entry.
    pub fn take(&mut self) -> Option<u32> {
        let record = self.free.pop()?;
        self.add_user(record);
        Some(record)
    }

    /// Has one more entry use it.
    pub fn add_user(&mut self, record: u32) {
        self.users[(record - self.first) as usize] += 1;
    }

    /// Has one entry less use it, which no program has any more.
    pub fn release(&mut self, record: u32) {
        let users = &mut self.users[(record - self.first) as usize];
        *users -= 1;
        if *users == 0 {
            self.free.push(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(sent: u32, limit: u32, window: u16) -> WindowEnd {
        WindowEnd { sent, limit, window, shift: 2 }
    }

    #[test]
    fn each_end_sees_its_own_windows_first() {
        let memory = [const { AtomicU64::new(0) }; WINDOWS];
        let windows = FlowWindows([end(1, 2, 3), WindowEnd { shift: 7, ..end(4, 5, 6) }]);
        let FlowWindows([first, second]) = windows;
        let shared = SharedWindows(&memory);
        for side in [0, 1] {
            shared.fill(side, &windows);
            assert_eq!(shared.take(side), windows);
            assert_eq!(shared.take(side ^ 1), FlowWindows([second, first]));
        }
    }

    #[test]
    fn windows_move_forward_only_and_around_zero() {
        let memory = [const { AtomicU64::new(0) }; WINDOWS];
        let shared = SharedWindows(&memory);
        shared.fill(0, &FlowWindows([end(u32::MAX, 10, 300), end(100, u32::MAX - 5, 2)]));
        shared.raise(1, &FlowWindows([end(90, 3, 5), end(7, 9, 200)]));
        assert_eq!(shared.take(0), FlowWindows([end(7, 10, 300), end(100, 3, 5)]));
    }

    #[test]
    fn windows_are_free_when_neither_direction_has_them() {
        let mut records = WindowRecords::new(4..6);
        let (first, second) = (records.take().unwrap(), records.take().unwrap());
        assert_eq!([first, second, 0], [4, 5, 0]);
        records.add_user(first);
        records.release(first);
        assert_eq!(records.take(), None);
        records.release(first);
        assert_eq!(records.take(), Some(first));
    }
}
