//! The plan of a campaign: randomised complete blocks.
//!
//! Each block contains every cell once in random order, so that a drift over hours (temperature, other work on the
//! machine, the generator) affects all variants equally. If all runs of one variant came before those of the next, drift
//! would appear as a difference: with a drift of two standard deviations, false alarms rise from 5 % to 30 %.

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

/// One run of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRun {
    /// Block, from zero.
    pub block: u32,
    /// Position in the block, from zero.
    pub position: u32,
    /// The cell that is measured.
    pub cell: Cell,
    /// Seed of the subject's random choices. All runs of a block and family have the same seed, so that the variants of a
    /// block get the same traffic and differ only in what is compared.
    pub seed: u64,
}

/// Returns every run of an experiment in the order it is made. The same arguments give the same plan on every machine,
/// and more blocks do not change the first ones.
pub fn plan(variants: usize, families: usize, blocks: u32, seed: u64) -> Vec<PlannedRun> {
    (0..blocks).flat_map(|block| block_runs(variants, families, block, seed)).collect()
}

fn block_runs(variants: usize, families: usize, block: u32, seed: u64) -> Vec<PlannedRun> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(u64::from(block));
    let seeds: Vec<u64> = (0..families).map(|_| random.next_u64()).collect();
    let mut cells: Vec<Cell> =
        (0..variants).flat_map(|variant| (0..families).map(move |family| Cell { variant, family })).collect();
    cells.shuffle(&mut random);
    let numbered = (0..).zip(cells);
    numbered.map(|(position, cell)| PlannedRun { block, position, cell, seed: seeds[cell.family] }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_block_runs_every_cell_once() {
        let runs = plan(3, 2, 5, 7);
        assert_eq!(runs.len(), 30);
        for block in runs.chunks(6) {
            let cells: BTreeSet<Cell> = block.iter().map(|run| run.cell).collect();
            assert_eq!(cells.len(), 6);
            assert!(block.iter().enumerate().all(|(position, run)| run.position as usize == position));
        }
    }

    #[test]
    fn the_order_is_this_one_on_every_machine() {
        let order: Vec<usize> = plan(4, 1, 3, 20_201_126).iter().map(|run| run.cell.variant).collect();
        assert_eq!(order, [0, 1, 2, 3, 3, 2, 0, 1, 3, 0, 2, 1]);
    }

    #[test]
    fn more_blocks_do_not_change_the_first_ones() {
        assert_eq!(plan(4, 2, 3, 1)[..], plan(4, 2, 9, 1)[..24]);
    }

    #[test]
    fn every_variant_comes_first_in_a_block_equally_often() {
        let runs = plan(4, 1, 4_000, 3);
        for variant in 0..4 {
            let first = runs.iter().filter(|run| run.position == 0 && run.cell.variant == variant).count();
            assert!((900..1_100).contains(&first), "variant {variant} came first in {first} of 4000 blocks");
        }
    }

    #[test]
    fn variants_of_a_block_share_the_seed_and_blocks_do_not() {
        let runs = plan(2, 2, 2, 9);
        let seeds: BTreeSet<(u32, usize, u64)> =
            runs.iter().map(|run| (run.block, run.cell.family, run.seed)).collect();
        assert_eq!(seeds.len(), 4);
        assert_eq!(seeds.iter().map(|seed| seed.2).collect::<BTreeSet<_>>().len(), 4);
    }
}
