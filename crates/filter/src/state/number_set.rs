//! A set of numbers in which the next one after any number is found in a few steps.

use crate::memory::LargeArray;

const BITS: u32 = u64::BITS;

/// A set of numbers below a bound. Each bit of a level says whether a word of the level before has one, so that for five
/// million numbers no operation reads more than four words up and four down. It takes little more than one bit a number.
#[derive(Debug)]
pub(super) struct NumberSet {
    levels: Vec<LargeArray<u64>>,
}

impl NumberSet {
    /// An empty set for numbers below this one.
    pub fn new(bound: u32) -> Self {
        let words = |numbers: &u32| (*numbers > 1).then(|| numbers.div_ceil(BITS));
        let lengths = std::iter::successors(Some(bound.div_ceil(BITS).max(1)), words);
        NumberSet { levels: lengths.map(|len| LargeArray::new(0, len as usize)).collect() }
    }

    /// The bytes of the levels.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| size_of_val(&**level)).sum()
    }

    /// Adds a number.
    pub fn insert(&mut self, mut number: u32) {
        for level in &mut self.levels {
            let word = &mut level[(number / BITS) as usize];
            let was_empty = *word == 0;
            *word |= 1 << (number % BITS);
            if !was_empty {
                return;
            }
            number /= BITS;
        }
    }

    /// Takes a number out.
    pub fn remove(&mut self, mut number: u32) {
        for level in &mut self.levels {
            let word = &mut level[(number / BITS) as usize];
            *word &= !(1 << (number % BITS));
            if *word != 0 {
                return;
            }
            number /= BITS;
        }
    }

    /// The least number that is not below `from`.
    pub fn next(&self, from: u32) -> Option<u32> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get((at / BITS) as usize)? & (u64::MAX << (at % BITS));
            if word != 0 {
                return Some(self.least_below(height, at / BITS * BITS + word.trailing_zeros()));
            }
            at = at / BITS + 1;
        }
        None
    }

    /// All numbers: first those that are not below `from`.
    pub fn iter_from(&self, from: u32) -> impl Iterator<Item = u32> {
        let after = |number: &u32| self.next(number + 1);
        let upper = std::iter::successors(self.next(from), after);
        upper.chain(std::iter::successors(self.next(0), after).take_while(move |number| *number < from))
    }

    /// The least number that a bit of this level stands for.
    fn least_below(&self, height: usize, bit: u32) -> u32 {
        let lower = self.levels[..height].iter().rev();
        lower.fold(bit, |at, level| at * BITS + level[at as usize].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_answers_as_a_tree_does(
            bound in prop_oneof![1_u32..200, 4000_u32..4200, 262_000_u32..263_000],
            operations in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..200),
        ) {
            let (mut set, mut tree) = (NumberSet::new(bound), BTreeSet::new());
            for (number, adds) in operations {
                let number = number.index(bound as usize) as u32;
                if adds {
                    set.insert(number);
                    tree.insert(number);
                } else {
                    set.remove(number);
                    tree.remove(&number);
                }
                prop_assert_eq!(set.next(number), tree.range(number..).next().copied());
                prop_assert_eq!(set.next(number + 1), tree.range(number + 1..).next().copied());
                let round: Vec<u32> = tree.range(number..).chain(tree.range(..number)).copied().collect();
                prop_assert_eq!(set.iter_from(number).collect::<Vec<_>>(), round);
            }
        }
    }

    #[test]
    fn it_takes_little_more_than_a_bit_a_number() {
        let bytes = NumberSet::new(5_000_000).bytes();
        assert!((625_000..635_000).contains(&bytes), "{bytes}");
    }
}
