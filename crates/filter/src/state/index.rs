//! From hashes to numbers of entries: buckets of one cache line, each with ten slots.
//!
//! A key has a first bucket, and another one that follows from the first and from its tag. It lies in the other one only
//! if the first was full, which the first counts, so that a lookup reads one line unless its bucket overflowed (the idea
//! of Cuckoo++, Le Scouarnec 2018). If both are full, one resident moves to its own other bucket, where another one may
//! have to move first, and no further: 110 buckets at most. There are no tombstones and nothing grows, so no operation takes
//! long.

use crate::memory::LargeArray;

const SLOTS: usize = 10;
/// Set in the tag of each slot in use.
const USED: u16 = 0x8000;
/// Set in the tag of an entry that lies in its other bucket.
const MOVED: u16 = 0x4000;
const TAG: u16 = 0x3fff;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket {
    numbers: [u32; SLOTS],
    tags: [u16; SLOTS],
    /// How many entries whose first bucket this is lie in their other one.
    moved_away: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

const EMPTY: Bucket = Bucket { numbers: [0; SLOTS], tags: [0; SLOTS], moved_away: 0 };

impl Bucket {
    /// One bit for each slot with this tag.
    #[inline(always)]
    fn matching(&self, tag: u16) -> u32 {
        let mut matching = 0;
        for (slot, found) in self.tags.iter().enumerate() {
            matching |= u32::from(*found == tag) << slot;
        }
        matching
    }

    /// Stores an entry, if a slot is free.
    #[inline(always)]
    fn put(&mut self, tag: u16, number: u32) -> bool {
        let free = self.matching(0);
        if free == 0 {
            return false;
        }
        let slot = free.trailing_zeros() as usize;
        self.tags[slot] = tag;
        self.numbers[slot] = number;
        true
    }

    #[inline(always)]
    fn find(&self, tag: u16, mut is_it: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut matching = self.matching(tag);
        while matching != 0 {
            let slot = matching.trailing_zeros() as usize;
            if is_it(self.numbers[slot]) {
                return Some(slot);
            }
            matching &= matching - 1;
        }
        None
    }
}

/// An index with a bounded number of entries.
#[derive(Debug)]
pub(super) struct FlowIndex {
    buckets: LargeArray<Bucket>,
}

/// Neither bucket of a key has a slot, nor has one to make free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketsFull;

impl FlowIndex {
    /// An index for so many entries, of which a fifth more would fit.
    pub fn new(entries: usize) -> Self {
        let buckets = (entries.max(1) * 6 / 5).div_ceil(SLOTS) + 1;
        FlowIndex { buckets: LargeArray::new(EMPTY, buckets) }
    }

    /// The first bucket of a hash, to read it before it is needed. Returns a value that depends on the bucket.
    #[inline(always)]
    pub fn touch(&self, hash: u64) -> u32 {
        self.buckets[self.first(hash)].moved_away
    }

    /// The first two numbers below `hash`'s tag in its first bucket, of which a lookup most often finds one: a flow that
    /// is forwarded has a state for each of its passes. Of one number it gives that number twice.
    #[inline(always)]
    pub fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> {
        let bucket = &self.buckets[self.first(hash)];
        let first = bucket.matching(tag(hash));
        let last = first & first.wrapping_sub(1);
        let second = if last == 0 { first } else { last };
        let number = |matching: u32| bucket.numbers.get(matching.trailing_zeros() as usize).copied();
        number(first).into_iter().chain(number(second))
    }

    /// The first number with this hash that `is_it` confirms.
    #[inline(always)]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let (bucket, slot) = self.place(hash, &mut is_it)?;
        Some(self.buckets[bucket].numbers[slot])
    }

    /// Adds an entry. The caller makes sure that the same number is not added twice with one hash.
    #[inline]
    pub fn insert(&mut self, hash: u64, number: u32) -> Result<(), BucketsFull> {
        let first = self.first(hash);
        if self.buckets[first].put(tag(hash), number) {
            return Ok(());
        }
        let other = self.other(first, tag(hash));
        if self.buckets[other].put(tag(hash) | MOVED, number) {
            self.buckets[first].moved_away += 1;
            return Ok(());
        }
        if !self.make_room(first) {
            return Err(BucketsFull);
        }
        self.insert(hash, number)
    }

    /// Removes the entry, and says whether it was there.
    #[inline]
    pub fn remove(&mut self, hash: u64, number: u32) -> bool {
        let Some((bucket, slot)) = self.place(hash, &mut |found| found == number) else { return false };
        if self.buckets[bucket].tags[slot] & MOVED != 0 {
            let first = self.first(hash);
            self.buckets[first].moved_away -= 1;
        }
        self.buckets[bucket].tags[slot] = 0;
        true
    }

    /// The bytes of the buckets.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    #[inline(always)]
    fn place(&self, hash: u64, is_it: &mut impl FnMut(u32) -> bool) -> Option<(usize, usize)> {
        let first = self.first(hash);
        let bucket = &self.buckets[first];
        if let Some(slot) = bucket.find(tag(hash), &mut *is_it) {
            return Some((first, slot));
        }
        if bucket.moved_away == 0 {
            return None;
        }
        let other = self.other(first, tag(hash));
        self.buckets[other].find(tag(hash) | MOVED, is_it).map(|slot| (other, slot))
    }

    /// Moves one entry of a full bucket to its other bucket. If those are all full, makes room in one of them first.
    #[cold]
    fn make_room(&mut self, bucket: usize) -> bool {
        (0..SLOTS).any(|slot| self.move_away(bucket, slot))
            || (0..SLOTS).any(|slot| {
                let other = self.other(bucket, self.buckets[bucket].tags[slot]);
                (0..SLOTS).any(|further| self.move_away(other, further)) && self.move_away(bucket, slot)
            })
    }

    /// Moves an entry to its other bucket, if that has a slot.
    fn move_away(&mut self, bucket: usize, slot: usize) -> bool {
        let (tag, number) = (self.buckets[bucket].tags[slot], self.buckets[bucket].numbers[slot]);
        let other = self.other(bucket, tag);
        if other == bucket || !self.buckets[other].put(tag ^ MOVED, number) {
            return false;
        }
        self.buckets[bucket].tags[slot] = 0;
        if tag & MOVED == 0 {
            self.buckets[bucket].moved_away += 1;
        } else {
            self.buckets[other].moved_away -= 1;
        }
        true
    }

    #[inline(always)]
    fn first(&self, hash: u64) -> usize {
        spread(hash as u32, self.buckets.len())
    }

    /// The other bucket of an entry in `bucket`; the other one of that is `bucket` again.
    #[inline(always)]
    fn other(&self, bucket: usize, tag: u16) -> usize {
        let sum = spread(u32::from(tag & TAG).wrapping_mul(0x9e37_79b1), self.buckets.len());
        if sum >= bucket { sum - bucket } else { sum + self.buckets.len() - bucket }
    }
}

#[inline(always)]
fn tag(hash: u64) -> u16 {
    (hash >> 48) as u16 & TAG | USED
}

/// A number below `limit`, in proportion to `bits`.
#[inline(always)]
fn spread(bits: u32, limit: usize) -> usize {
    ((u64::from(bits) * limit as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn mixed(number: u64) -> u64 {
        let mut state = number;
        crate::state::hash::split_mix(&mut state)
    }

    proptest! {
        #[test]
        fn it_answers_as_a_map_does(operations in prop::collection::vec((0_u64..300, any::<bool>()), 1..600)) {
            let mut index = FlowIndex::new(200);
            let mut map = BTreeMap::new();
            for (key, insert) in operations {
                if insert && !map.contains_key(&key) && map.len() < 200 {
                    prop_assert!(index.insert(mixed(key), key as u32).is_ok());
                    map.insert(key, ());
                } else if !insert {
                    prop_assert_eq!(index.remove(mixed(key), key as u32), map.remove(&key).is_some());
                }
            }
            for key in 0..300 {
                let found = index.find(mixed(key), |number| number == key as u32);
                prop_assert_eq!(found.is_some(), map.contains_key(&key));
            }
            let moved: u32 = index.buckets.iter().map(|bucket| bucket.moved_away).sum();
            let marked = index.buckets.iter().flat_map(|bucket| bucket.tags).filter(|tag| tag & MOVED != 0).count();
            prop_assert_eq!(moved as usize, marked);
        }
    }

    #[test]
    fn as_many_entries_fit_as_it_was_made_for() {
        for entries in [1, 10, 1000, 1_000_000] {
            let mut index = FlowIndex::new(entries);
            for key in 0..entries as u64 {
                assert_eq!(index.insert(mixed(key), key as u32), Ok(()), "{key} of {entries}");
            }
            for key in 0..entries as u64 {
                assert_eq!(index.find(mixed(key), |number| number == key as u32), Some(key as u32));
            }
        }
    }

    #[test]
    fn a_full_index_refuses_and_goes_on_when_one_leaves() {
        let mut index = FlowIndex::new(1);
        let fitted = (0..).take_while(|key| index.insert(mixed(*key), *key as u32).is_ok()).count() as u64;
        assert!(fitted >= 10);
        assert!(index.remove(mixed(0), 0));
        assert!((0..1000).any(|key| index.insert(mixed(fitted + key), 1).is_ok()));
    }
}
