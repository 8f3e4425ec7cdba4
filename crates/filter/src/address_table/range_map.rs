//! Disjoint ranges of numbers with a value each.
//!
//! A first level, which the upper bits select, leaves few ranges to compare with: of up to 65,536 that are evenly spread fewer than
//! four on average. It has as many slots as there are ranges, or up to half as many, at most 65,536. Numbers before the second start
//! or behind the last slot, and those of a slot in which no range starts, are compared with none.

use std::hint::select_unpredictable;

/// A number that ranges are made of.
pub trait RangeKey: Copy + Ord + Default {
    /// The largest number.
    const MOST: Self;
    /// The distance from `base` in steps of `2^shift`; `None` below the base and from `count` steps on.
    fn slot(self, base: Self, shift: u32, count: usize) -> Option<usize>;
    /// The bits that a distance from `base` needs.
    fn bits_above(self, base: Self) -> u32;
    /// The first number of a slot.
    fn of_slot(base: Self, shift: u32, slot: usize) -> Self;
}

macro_rules! range_key {
    ($type:ty, $steps:expr) => {
        impl RangeKey for $type {
            const MOST: Self = Self::MAX;

            #[inline(always)]
            fn slot(self, base: Self, shift: u32, count: usize) -> Option<usize> {
                let steps = $steps(self.checked_sub(base)?, shift);
                (steps < count as u64).then_some(steps as usize)
            }

            fn bits_above(self, base: Self) -> u32 {
                <$type>::BITS - self.saturating_sub(base).leading_zeros()
            }

            fn of_slot(base: Self, shift: u32, slot: usize) -> Self {
                base.saturating_add(
                    (slot as $type).saturating_mul((1 as $type).checked_shl(shift).unwrap_or(<$type>::MAX)),
                )
            }
        }
    };
}

range_key!(u32, |distance: u32, shift| u64::from(distance >> shift));
range_key!(u128, |distance: u128, shift: u32| match shift.checked_sub(64) {
    // A shift of one half is several instructions shorter, and most tables need no other.
    Some(rest) => ((distance >> 64) as u64) >> rest,
    None => u64::try_from(distance >> shift).unwrap_or(u64::MAX),
});

/// The value of the range that a number belongs to.
#[derive(Clone, Debug)]
pub struct RangeMap<K: Copy> {
    /// In ascending order, and [`WINDOW`] more at the end with the value of the last one.
    ranges: Box<[Range<K>]>,
    /// For each slot the range that its first number belongs to; one more at the end.
    slots: Box<[u32]>,
    base: K,
    shift: u32,
    /// The values before the base and behind the last slot.
    below: u32,
    above: u32,
}

/// Start and value are neighbours, and take no more room than they need.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Range<K: Copy> {
    start: K,
    value: u32,
}

/// So many starts are compared at once, without a branch for each; most slots have fewer.
const WINDOW: usize = 4;

impl<K: RangeKey> RangeMap<K> {
    /// The ranges from each start to the next one. The first start is zero, and starts ascend.
    pub fn new(ranges: Vec<(K, u32)>) -> Self {
        const MOST_BITS: u32 = 16;
        let base = ranges.get(1).map_or(K::default(), |range| range.0);
        let span = ranges.last().map_or(0, |last| last.0.bits_above(base));
        let level = ranges.len().ilog2().clamp(1, MOST_BITS);
        let shift = span.saturating_sub(level);
        let count = 1 << level.min(span);
        let range_at = |slot| ranges.partition_point(|range| range.0 <= K::of_slot(base, shift, slot)) as u32;
        let slots = (0..=count).map(|slot| range_at(slot).saturating_sub(1)).collect();
        let [below, above] = [ranges.first(), ranges.last()].map(|range| range.map_or(0, |range| range.1));
        let after = ranges.last().into_iter().flat_map(|last| std::iter::repeat_n((K::MOST, last.1), WINDOW));
        let ranges =
            ranges.iter().copied().chain(after).map(|(start, value)| Range { start, value }).collect();
        RangeMap { ranges, slots, base, shift, below, above }
    }

    /// The value of the range that the number belongs to.
    #[inline]
    pub fn get(&self, key: K) -> u32 {
        let Some(slot) = self.slot(key) else { return if key < self.base { self.below } else { self.above } };
        let [low, high] = [self.slots[slot] as usize, self.slots[slot + 1] as usize];
        if low == high {
            return self.ranges[low].value;
        }
        // Starts behind the slot are above the number.
        let (range, window) = (&self.ranges[low], &self.ranges[low + 1..low + 1 + WINDOW]);
        if { window[WINDOW - 1].start } <= key {
            return self.get_behind(low + WINDOW, high, key);
        }
        let nearer =
            |value, range: &Range<K>| select_unpredictable({ range.start } <= key, range.value, value);
        window[..WINDOW - 1].iter().fold(range.value, nearer)
    }

    /// The same for a number that does not lie before the range `low`, nor behind the range `high`.
    #[inline(never)]
    fn get_behind(&self, low: usize, high: usize, key: K) -> u32 {
        let rest = self.ranges.get(low + 1..=high).unwrap_or_default();
        self.ranges[low + rest.partition_point(|range| { range.start } <= key)].value
    }

    /// Reads what [`Self::get`] most likely reads, so that it is near then.
    #[inline(always)]
    pub fn touch(&self, key: K) -> u32 {
        self.slot(key).map_or(0, |slot| self.ranges[self.slots[slot] as usize + 1].value)
    }

    #[inline(always)]
    fn slot(&self, key: K) -> Option<usize> {
        key.slot(self.base, self.shift, self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts() -> impl Strategy<Value = Vec<u32>> {
        let start = prop_oneof![any::<u32>(), 0_u32..64, 1_000_000_u32..1_000_200, u32::MAX - 3..=u32::MAX];
        let of_few = prop::collection::btree_set(start.clone(), 0..4);
        prop_oneof![of_few, prop::collection::btree_set(start, 0..200)].prop_map(|starts| {
            let others = starts.into_iter().filter(|start| *start > 0);
            std::iter::once(0).chain(others).collect()
        })
    }

    proptest! {
        /// Slots with many ranges, with one, and with none; the ranges at both ends.
        #[test]
        fn the_last_start_that_is_not_above_a_number_has_its_value(
            starts in starts(),
            others in prop::collection::vec(any::<u32>(), 100),
            shift in prop_oneof![Just(0_u32), Just(64), Just(96)],
        ) {
            let map = RangeMap::new(starts.iter().copied().zip(100..).collect());
            // The last one is the largest number.
            let widened = |start: &u32| u128::from(*start) << shift;
            let wide: Vec<u128> = starts.iter().map(widened).filter(|start| *start < u128::MAX).chain([u128::MAX]).collect();
            let wide_map = RangeMap::new(wide.iter().copied().zip(100..).collect());
            let near = starts.iter().flat_map(|start| [start.saturating_sub(1), *start, start.saturating_add(1)]);
            for number in near.chain(others).chain([u32::MAX]) {
                let expected = 99 + starts.iter().filter(|start| **start <= number).count() as u32;
                prop_assert_eq!(map.get(number), expected);
                let number = widened(&number);
                for number in [number.saturating_sub(1), number, number + 1, u128::MAX - 1, u128::MAX] {
                    let expected = 99 + wide.iter().filter(|start| **start <= number).count() as u32;
                    prop_assert_eq!(wide_map.get(number), expected);
                }
            }
        }
    }
}
