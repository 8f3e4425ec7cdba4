//! The allocation of places in a table: runs of up to 64 places, for the children and the leaves of a node.

/// The longest run: as many places as a node has slots.
const LONGEST: usize = 64;

/// The places of one table.
pub(super) struct RunSpace {
    capacity: u32,
    /// The first place that was never used.
    next: u32,
    /// Starts of free runs, by length.
    free: Vec<Vec<u32>>,
}

impl RunSpace {
    pub(super) fn new(capacity: u32) -> Self {
        RunSpace { capacity, next: 0, free: vec![Vec::new(); LONGEST + 1] }
    }

    /// Takes a run of `len` places, 1 to 64: one that was given back, otherwise a new one, otherwise a part of a longer
    /// one. `None` if there is none.
    pub(super) fn take(&mut self, len: usize) -> Option<u32> {
        self.free[len].pop().or_else(|| self.take_new(len)).or_else(|| self.split(len))
    }

    fn take_new(&mut self, len: usize) -> Option<u32> {
        let start = self.next;
        let next = start.checked_add(len as u32).filter(|next| *next <= self.capacity)?;
        self.next = next;
        Some(start)
    }

    fn split(&mut self, len: usize) -> Option<u32> {
        let longer = (len + 1..=LONGEST).find(|longer| !self.free[*longer].is_empty())?;
        let start = self.free[longer].pop()?;
        self.free[longer - len].push(start + len as u32);
        Some(start)
    }

    /// Frees a run that [`Self::take`] returned.
    pub(super) fn give_back(&mut self, start: u32, len: usize) {
        self.free[len].push(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_given_back_are_used_again_and_split_if_no_other_is_left() {
        let mut space = RunSpace::new(100);
        assert_eq!([space.take(64), space.take(30)], [Some(0), Some(64)]);
        space.give_back(0, 64);
        assert_eq!(space.take(5), Some(94), "new places first");
        assert_eq!(space.take(2), Some(0), "then a part of a longer run");
        assert_eq!(space.take(62), Some(2), "whose rest stays free");
        assert_eq!((space.take(2), space.take(1)), (None, Some(99)));
    }
}
