//! Sets of numbers as ranges.

/// Disjoint ranges in ascending order, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IntervalSet(pub Vec<(u128, u128)>);

impl IntervalSet {
    /// The union of ranges in any order.
    pub fn new(mut ranges: Vec<(u128, u128)>) -> Self {
        ranges.retain(|(first, last)| first <= last);
        ranges.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        IntervalSet(merged)
    }

    /// The numbers up to `most` that do not belong to it.
    pub fn complement(&self, most: u128) -> Self {
        let (mut gaps, mut next) = (Vec::new(), Some(0));
        for (first, last) in &self.0 {
            if let Some(start) = next.filter(|start| start < first) {
                gaps.push((start, first - 1));
            }
            next = last.checked_add(1);
        }
        gaps.extend(next.filter(|start| *start <= most).map(|start| (start, most)));
        IntervalSet(gaps)
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let overlap = |a: &(u128, u128), b: &(u128, u128)| (a.0.max(b.0), a.1.min(b.1));
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| overlap(a, b)));
        IntervalSet::new(pairs.collect())
    }

    /// How many of the numbers from `first` to `last` belong to it, at most `u128::MAX`.
    pub fn count_within(&self, first: u128, last: u128) -> u128 {
        let part = self.intersection(&IntervalSet(vec![(first, last)]));
        part.0.iter().fold(0_u128, |sum, (first, last)| sum.saturating_add((last - first).saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_are_what_their_numbers_say(
            a in prop::collection::vec((0_u128..40, 0_u128..40), 0..6),
            b in prop::collection::vec((0_u128..40, 0_u128..40), 0..6),
        ) {
            let has = |ranges: &[(u128, u128)], n| ranges.iter().any(|(first, last)| (*first..=*last).contains(&n));
            let (set, other) = (IntervalSet::new(a.clone()), IntervalSet::new(b.clone()));
            for n in 0..40 {
                prop_assert_eq!(has(&set.0, n), has(&a, n));
                prop_assert_eq!(has(&set.complement(39).0, n), !has(&a, n));
                prop_assert_eq!(has(&set.intersection(&other).0, n), has(&a, n) && has(&b, n));
            }
            prop_assert_eq!(set.count_within(0, 39), (0..40).filter(|n| has(&a, *n)).count() as u128);
        }
    }
}
