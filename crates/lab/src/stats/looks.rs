//! The block counts at which a campaign is judged, and how much of the error rate each of them spends.

use serde::{Deserialize, Serialize};

/// One time at which the comparisons are judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Number of the look, from 1.
    pub number: u32,
    /// Number of blocks that it judges: the first ones, and no later ones.
    pub blocks: u32,
    /// The fraction of alpha that it spends.
    pub spends: f64,
}

impl Look {
    /// The only look at a set of runs that is complete: it spends the whole alpha.
    pub(super) fn only(blocks: usize) -> Look {
        Look { number: 1, blocks: u32::try_from(blocks).unwrap_or(u32::MAX), spends: 1.0 }
    }

    /// The error rate of one of `intervals` simultaneous intervals at this look.
    pub(super) fn level(&self, alpha: f64, intervals: usize) -> f64 {
        alpha * self.spends / intervals.max(1) as f64
    }
}

/// The looks of a campaign: at the first number of blocks, and then each time that the number grew by √2, rounded down
/// (5, 7, 10, 14, 20, 28, 40, …).
///
/// Look k spends alpha / (k (k + 1)). All looks together, however many, spend alpha, so that a campaign may be extended
/// for as long as one likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    first: u32,
}

impl Looks {
    /// Looks from this number of blocks on. The first look has at least two blocks, because one block has no spread.
    pub const fn starting_at(first: u32) -> Looks {
        Looks { first: if first < 2 { 2 } else { first } }
    }

    /// The last look that this number of blocks allows; `None` before the first.
    pub fn last(&self, blocks: u32) -> Option<Look> {
        self.all().take_while(|look| look.blocks <= blocks).last()
    }

    /// The number of blocks at the next look after this number of blocks.
    pub fn next_after(&self, blocks: u32) -> u32 {
        self.after(blocks).next().map_or(u32::MAX, |look| look.blocks)
    }

    /// The looks at more than this number of blocks.
    pub(super) fn after(&self, blocks: u32) -> impl Iterator<Item = Look> {
        self.all().skip_while(move |look| look.blocks <= blocks)
    }

    fn all(&self) -> impl Iterator<Item = Look> {
        let mut before = 0;
        let first = u64::from(self.first);
        (0..).map_while(move |index: u32| {
            let doubled = first << (index / 2);
            let grown = || (2 * u128::from(doubled).pow(2)).isqrt();
            let blocks = if index.is_multiple_of(2) { u128::from(doubled) } else { grown() };
            // Few blocks times √2 can round to the same number; the next look is always later.
            before = u32::try_from(blocks).ok()?.max(before + 1);
            let number = index + 1;
            Some(Look { number, blocks: before, spends: 1.0 / (f64::from(number) * f64::from(number + 1)) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Looks;
    use proptest::prelude::*;

    fn blocks(first: u32, count: usize) -> Vec<u32> {
        Looks::starting_at(first).all().take(count).map(|look| look.blocks).collect()
    }

    #[test]
    fn each_second_look_has_twice_the_blocks() {
        assert_eq!(blocks(5, 8), [5, 7, 10, 14, 20, 28, 40, 56]);
        assert_eq!(blocks(2, 7), [2, 3, 4, 5, 8, 11, 16]);
        assert_eq!(blocks(0, 2), [2, 3]);
    }

    #[test]
    fn between_looks_the_last_one_holds() {
        let looks = Looks::starting_at(5);
        assert_eq!(looks.last(4), None);
        for (made, number, at) in [(5, 1, 5), (6, 1, 5), (7, 2, 7), (39, 6, 28), (40, 7, 40)] {
            assert_eq!(looks.last(made).map(|look| (look.number, look.blocks)), Some((number, at)));
        }
        assert_eq!([0, 4, 5, 6, 7, 40].map(|made| looks.next_after(made)), [5, 5, 7, 7, 10, 56]);
    }

    proptest! {
        #[test]
        fn the_number_of_blocks_grows_and_the_spending_stays_within_alpha(first in 0..u32::MAX) {
            let looks: Vec<_> = Looks::starting_at(first).all().collect();
            prop_assert!(looks.is_sorted_by(|one, next| one.blocks < next.blocks));
            prop_assert!(looks.iter().map(|look| look.spends).sum::<f64>() < 1.0);
            prop_assert!(looks.windows(2).all(|pair| f64::from(pair[1].blocks) <= 1.6 * f64::from(pair[0].blocks)));
        }

        #[test]
        fn a_look_is_the_last_one_exactly_from_its_blocks_on(first in 2..200_u32, made in 0..5000_u32) {
            let looks = Looks::starting_at(first);
            let next = looks.next_after(made);
            prop_assert!(next > made);
            prop_assert_eq!(looks.last(next - 1), looks.last(made));
            prop_assert_eq!(looks.last(next).map(|look| look.blocks), Some(next));
        }
    }
}
