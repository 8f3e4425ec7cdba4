//! Disjoint ranges of numbers with a value each.
//!
//! A first level, which the upper bits select, leaves few ranges to search by halves: about one and a half on average for
//! evenly spread ranges, whatever their number. It has as many slots as there are ranges, at most 65,536.

/// A number that ranges are made of.
pub trait RangeKey: Copy + Ord + Default {
    /// The distance from `base` in steps of `2^shift`, at most `limit`; zero below the base.
    fn slot(self, base: Self, shift: u32, limit: usize) -> usize;
    /// The bits that a distance from `base` needs.
    fn bits_above(self, base: Self) -> u32;
    /// The first number of a slot.
    fn of_slot(base: Self, shift: u32, slot: usize) -> Self;
}

macro_rules! range_key {
    ($type:ty) => {
        impl RangeKey for $type {
            #[inline(always)]
            fn slot(self, base: Self, shift: u32, limit: usize) -> usize {
                let steps = self.saturating_sub(base) >> shift;
                if steps >= limit as $type { limit } else { steps as usize }
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

range_key!(u16);
range_key!(u32);
range_key!(u128);

/// The value of the range that a number belongs to.
#[derive(Clone, Debug)]
pub struct RangeMap<K> {
    starts: Box<[K]>,
    values: Box<[u32]>,
    /// For each slot the range that its first number belongs to; one more at the end.
    slots: Box<[u32]>,
    base: K,
    shift: u32,
}

impl<K: RangeKey> RangeMap<K> {
    /// The ranges from each start to the next one. The first start is zero, and starts ascend.
    pub fn new(ranges: Vec<(K, u32)>) -> Self {
        const MOST_BITS: u32 = 16;
        let (starts, values): (Vec<K>, Vec<u32>) = ranges.into_iter().unzip();
        let base = starts.get(1).copied().unwrap_or_default();
        let span = starts.last().map_or(0, |last| last.bits_above(base));
        let level = starts.len().ilog2().clamp(1, MOST_BITS);
        let shift = span.saturating_sub(level);
        let count = 1 << level.min(span);
        let range_at = |slot| starts.partition_point(|start| *start <= K::of_slot(base, shift, slot)) as u32;
        let mut slots: Vec<_> = (0..=count).map(|slot| range_at(slot).saturating_sub(1)).collect();
        // Numbers below the base share the first slot; those after the last start the last one.
        slots[0] = 0;
        slots.push(starts.len() as u32 - 1);
        RangeMap { starts: starts.into(), values: values.into(), slots: slots.into(), base, shift }
    }

    /// The value of the range that the number belongs to.
    #[inline]
    pub fn get(&self, key: K) -> u32 {
        let slot = key.slot(self.base, self.shift, self.slots.len() - 2);
        let (low, high) = (self.slots[slot] as usize, self.slots[slot + 1] as usize);
        let within = self.starts[low + 1..=high].partition_point(|start| *start <= key);
        self.values[low + within]
    }
}
