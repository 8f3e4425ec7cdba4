//! The plan of a campaign: blocks, and in each block a panel of every family in random order.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One combination of variant and family, by their positions in the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Position in [`Experiment::variants`](crate::Experiment::variants).
    pub variant: usize,
    /// Position in [`Experiment::families`](crate::Experiment::families).
    pub family: usize,
}

/// One panel of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedPanel {
    /// Block, from zero.
    pub block: u32,
    /// Position of the family in [`Experiment::families`](crate::Experiment::families).
    pub family: usize,
    /// Seed of the subjects' random choices and of the order of turns. All members of a panel get the same traffic.
    pub seed: u64,
}

/// Returns the panels of one block in the order they are made. The same arguments give the same plan on every machine, and
/// no block depends on the number of blocks.
pub fn block(families: usize, block: u32, seed: u64) -> Vec<PlannedPanel> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(u64::from(block));
    let mut panels: Vec<PlannedPanel> =
        (0..families).map(|family| PlannedPanel { block, family, seed: random.next_u64() }).collect();
    panels.shuffle(&mut random);
    panels
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_block_has_every_family_once() {
        for number in 0..50 {
            let families: BTreeSet<usize> = block(4, number, 7).iter().map(|panel| panel.family).collect();
            assert_eq!(families.len(), 4);
        }
    }

    #[test]
    fn the_order_is_this_one_on_every_machine() {
        let order: Vec<usize> =
            (0..3).flat_map(|number| block(4, number, 20_201_126)).map(|panel| panel.family).collect();
        assert_eq!(order, [1, 3, 2, 0, 1, 0, 3, 2, 2, 3, 0, 1]);
    }

    #[test]
    fn every_family_comes_first_equally_often() {
        let firsts = (0..4_000).map(|number| block(4, number, 3)[0].family);
        let count = |family| firsts.clone().filter(|first| *first == family).count();
        assert!((0..4).all(|family| (900..1_100).contains(&count(family))));
    }

    #[test]
    fn every_panel_has_a_seed_of_its_own() {
        let seeds: BTreeSet<u64> =
            (0..100).flat_map(|number| block(3, number, 9)).map(|panel| panel.seed).collect();
        assert_eq!(seeds.len(), 300);
    }
}
