//! Nested ranges as disjoint ones.

/// A number whose successor can be asked for.
pub trait RangeEnds: Copy + Ord {
    const FIRST: Self;
    /// The next number, if there is one.
    fn next(self) -> Option<Self>;
}

impl RangeEnds for u32 {
    const FIRST: Self = 0;
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl RangeEnds for u128 {
    const FIRST: Self = 0;
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

/// The starts of disjoint ranges with their values, the first of which starts at zero. Of ranges that contain each other the
/// smallest decides, of equal ones the last; `outside` stands where no range is. Ranges that overlap must contain each other,
/// as prefixes do.
pub fn flatten<K: RangeEnds>(ranges: impl Iterator<Item = (K, K, u32)>, outside: u32) -> Vec<(K, u32)> {
    let mut sorted: Vec<_> = ranges.collect();
    // The larger range first; of equal ones the order given.
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut sweep = Sweep { starts: vec![(K::FIRST, outside)], open: Vec::new(), outside };
    for (first, last, value) in sorted {
        sweep.close_before(Some(first));
        sweep.start(first, value);
        sweep.open.push((last, value));
    }
    sweep.close_before(None);
    sweep.starts
}

struct Sweep<K> {
    starts: Vec<(K, u32)>,
    /// The ranges that contain the current place, the smallest last.
    open: Vec<(K, u32)>,
    outside: u32,
}

impl<K: RangeEnds> Sweep<K> {
    /// Ends the ranges that lie before `next`; all if there is none.
    fn close_before(&mut self, next: Option<K>) {
        while let Some(&(last, _)) = self.open.last().filter(|(last, _)| next.is_none_or(|next| *last < next))
        {
            self.open.pop();
            let below = self.open.last().map_or(self.outside, |(_, value)| *value);
            if let Some(after) = last.next() {
                self.start(after, below);
            }
        }
    }

    fn start(&mut self, at: K, value: u32) {
        match self.starts.last_mut() {
            Some(last) if last.0 == at => last.1 = value,
            Some(last) if last.1 == value => {}
            _ => self.starts.push((at, value)),
        }
    }
}
