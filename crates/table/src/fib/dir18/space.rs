//! The allocation of leaves: arrays of 2, 4, … 512 leaves, with a free list for each size.

/// An array of `2^class` leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) class: u8,
    pub(super) place: u32,
}

/// The largest array.
const LARGEST: u8 = 9;

/// The leaves of one table.
pub(super) struct LeafSpace {
    free: [Vec<u32>; LARGEST as usize + 1],
    /// Leaves from here on were never used.
    top: u32,
    end: u32,
    /// Leaves in use.
    taken: usize,
    /// The class of an array of one cache line. Arrays up to this size lie inside one line, larger ones begin with one.
    line: u8,
}

impl LeafSpace {
    /// The leaves from `start`, where a line of `2^line` leaves begins, up to `end`.
    pub(super) fn new(line: u8, start: u32, end: u32) -> Self {
        LeafSpace { free: Default::default(), top: start, end, taken: start as usize, line }
    }

    /// Takes an array of `2^class` leaves with arbitrary content; `None` if there is no room.
    pub(super) fn take(&mut self, class: u8) -> Option<u32> {
        let place = self.find(class)?;
        self.taken += 1 << class;
        Some(place)
    }

    fn find(&mut self, class: u8) -> Option<u32> {
        if let Some(place) = self.free[usize::from(class)].pop() {
            return Some(place);
        }
        if class < self.line { self.halve(class + 1) } else { self.fresh(class) }
    }

    /// Takes the lower half of a larger array; the upper half stays free.
    fn halve(&mut self, class: u8) -> Option<u32> {
        let place = self.find(class)?;
        self.free[usize::from(class - 1)].push(place + (1 << (class - 1)));
        Some(place)
    }

    fn fresh(&mut self, class: u8) -> Option<u32> {
        let place = self.top;
        let top = place + (1 << class);
        (top <= self.end).then(|| self.top = top)?;
        Some(place)
    }

    /// Records that no entry leads to this array any more; a reader may still be in it.
    pub(super) fn leave(&mut self, array: Array) {
        self.taken -= 1 << array.class;
    }

    /// Frees an array that was left and that no reader is in.
    pub(super) fn give_back(&mut self, array: Array) {
        self.free[usize::from(array.class)].push(array.place);
    }

    /// The number of leaves in arrays that lookups reach.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_do_not_overlap_and_stay_inside_their_lines() {
        let mut space = LeafSpace::new(5, 64, 8192);
        let mut used = vec![false; 8192];
        let classes = (1..=LARGEST).cycle().map_while(|class| Some((class, space.take(class)?)));
        for (class, place) in classes.collect::<Vec<_>>() {
            let leaves = place as usize..place as usize + (1 << class);
            assert_eq!(place % (1 << class.min(5)), 0, "class {class}");
            assert!(used[leaves.clone()].iter().all(|used| !used), "class {class} at {place}");
            used[leaves].fill(true);
        }
        assert!(
            used[..64].iter().all(|used| !used) && used[64..].iter().filter(|used| **used).count() > 7_000
        );
    }

    #[test]
    fn an_array_given_back_is_used_again() {
        let mut space = LeafSpace::new(5, 0, 256);
        let place = space.take(8).unwrap();
        assert!(space.take(8).is_none() && space.take(1).is_none());
        let array = Array { class: 8, place };
        space.leave(array);
        assert!(space.take(8).is_none(), "a reader may be in it");
        space.give_back(array);
        assert_eq!((space.take(8), space.taken()), (Some(place), 256));
    }
}
