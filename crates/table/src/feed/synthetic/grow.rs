//! Dividing blocks with their routes, one length after another: which blocks are routes, and how the routes inside fall on
//! the two halves.
//!
//! All blocks of one length and density draw from one histogram without replacement, as from a deck of cards: so the whole
//! follows the histogram closely whatever the seed, and the seed decides which block gets which card.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::addr::Address;
use crate::prefix::Prefix;

use super::parameters::{COVERS, DENSITIES, FEW, Halves, Own, SHARES, Shape, counts, cover, density};

/// A block that holds routes.
#[derive(Clone, Copy)]
pub(super) struct Block<A> {
    /// Its lowest address.
    pub(super) first: A,
    /// Routes in it, its own included; at least 1.
    pub(super) routes: u32,
    /// Routes around it.
    pub(super) depth: u8,
    /// Whether it is one of two halves that are copies of each other.
    pub(super) copied: bool,
    /// Address bits in any combination of which there is a copy of this block: it stands for them all.
    pub(super) copies: A,
}

impl<A: Address> Block<A> {
    pub(super) fn new(prefix: Prefix<A>, routes: u32) -> Self {
        Block { first: prefix.first(), routes, depth: 0, copied: false, copies: A::zero() }
    }

    /// How many blocks this one stands for.
    fn weight(&self) -> u64 {
        1 << self.copies.count_ones()
    }

    /// Which histogram it draws from.
    fn case(&self) -> usize {
        density(self.routes) * COVERS + cover(self.depth)
    }

    fn prefixes(&self, len: u8) -> impl Iterator<Item = Prefix<A>> + use<A> {
        let Block { first, copies, .. } = *self;
        // Counts through the combinations: filling the gaps with ones lets the carry pass over them.
        let next = move |bits: &A| (*bits != copies).then(|| ((*bits | !copies) + A::one()) & copies);
        std::iter::successors(Some(A::zero()), next).map(move |bits| Prefix::containing(first | bits, len))
    }
}

/// The most routes a block of length `len` can hold: itself, its halves, their halves, down to the bulk length. Cut to 2^30,
/// beyond any table, so that sums do not overflow.
fn capacity(shape: &Shape, len: u8) -> u32 {
    (1 << (shape.bulk_len + 1).saturating_sub(len).min(30)) - 1
}

/// Adds the routes of blocks of the shape's block length to `prefixes`.
pub(super) fn grow<A: Address>(
    shape: &Shape,
    mut blocks: Vec<Block<A>>,
    rng: &mut ChaCha8Rng,
    prefixes: &mut Vec<Prefix<A>>,
) {
    for (len, level) in (shape.block_len..).zip(shape.levels) {
        let own = by_case(level.own, &ALWAYS, |row| (row.density, row.cover));
        let halves = by_case(level.halves, &EVENLY, |row| (row.density, row.cover));
        let level = Level { len, inside: capacity(shape, len + 1), own, halves };
        level.take_own(&mut blocks, rng, prefixes);
        blocks = level.halve(blocks, rng);
    }
    debug_assert!(blocks.is_empty(), "blocks of the bulk length have no room inside");
}

/// Rows by [`Block::case`].
type ByCase<T> = [&'static T; DENSITIES * COVERS];

/// Where the real table has no block to learn from: every block is a route.
static ALWAYS: Own = Own { density: 0, cover: 0, share: [1000, 1000] };

/// All blocks in the last share.
const EVEN: [u16; SHARES] = {
    let mut shares = [0; SHARES];
    shares[SHARES - 1] = 1000;
    shares
};

/// And routes inside fall on both halves evenly.
static EVENLY: Halves = Halves { density: 0, cover: 0, emptier: &EVEN, lower: 500, alike: 0 };

/// For each case its row, or that of the nearest density the real table has at this length, of the same cover if it has
/// a near one.
fn by_case<T>(rows: &'static [T], unknown: &'static T, key: impl Fn(&T) -> (u8, u8)) -> ByCase<T> {
    std::array::from_fn(|case| {
        let distance = |row: &&T| {
            let (density, cover) = key(row);
            let other = cover as usize != case % COVERS;
            usize::from(density).abs_diff(case / COVERS) + if other { OTHER_COVER } else { 0 }
        };
        rows.iter().min_by_key(distance).unwrap_or(unknown)
    })
}

/// Another cover is as far off as that many density classes.
const OTHER_COVER: usize = 4;

/// The blocks of one length.
struct Level {
    len: u8,
    /// The most routes one half can hold.
    inside: u32,
    own: ByCase<Own>,
    halves: ByCase<Halves>,
}

impl Level {
    /// Makes some blocks routes, and leaves in the blocks what lies inside them.
    fn take_own<A: Address>(
        &self,
        blocks: &mut Vec<Block<A>>,
        rng: &mut ChaCha8Rng,
        prefixes: &mut Vec<Prefix<A>>,
    ) {
        let case = |block: &Block<A>| block.case() * 2 + usize::from(block.copied);
        for group in shuffled_groups(blocks, case, rng) {
            let own = self.own[group[0].case()].share[usize::from(group[0].copied)];
            let weights = [1000 - own, own];
            let mut deck = Deck::new(group, &weights, rng);
            for block in group {
                // A block too full for its halves, or full of one route, is that route whatever the card says.
                let full = block.routes > 2 * self.inside;
                if deck.draw(block.weight()) == 1 || full {
                    prefixes.extend(block.prefixes(self.len));
                    block.routes -= 1;
                    block.depth = block.depth.saturating_add(1);
                }
            }
        }
        blocks.retain(|block| block.routes > 0);
    }

    /// The halves that hold routes.
    fn halve<A: Address>(&self, mut blocks: Vec<Block<A>>, rng: &mut ChaCha8Rng) -> Vec<Block<A>> {
        let mut halves = Vec::with_capacity(blocks.len() * 3 / 2);
        for group in shuffled_groups(&mut blocks, Block::case, rng) {
            let row = self.halves[group[0].case()];
            let mut deck = Deck::new(group, row.emptier, rng);
            for block in group {
                let (low, high) = counts(deck.draw(block.weight()), block.routes);
                let emptier =
                    rng.random_range(low..=high).max(block.routes.saturating_sub(self.room(block.routes)));
                self.divide(*block, emptier, row, rng, &mut halves);
            }
        }
        halves
    }

    /// The most routes one half takes of `routes`: drawn shares of many are too coarse to keep a half that is announced
    /// whole, in routes of the bulk length, from taking some more, which would then have to cover others.
    fn room(&self, routes: u32) -> u32 {
        let whole = self.inside / 2 + 1;
        if routes > FEW && routes <= 2 * whole { whole } else { self.inside }
    }

    fn divide<A: Address>(
        &self,
        block: Block<A>,
        emptier: u32,
        row: &Halves,
        rng: &mut ChaCha8Rng,
        halves: &mut Vec<Block<A>>,
    ) {
        let bit = A::one() << usize::from(A::BITS - self.len - 1);
        let fuller = block.routes - emptier;
        let half = |upper: bool, routes| {
            let first = if upper { block.first | bit } else { block.first };
            Block { first, routes, copied: false, ..block }
        };
        if emptier == fuller && per_mille(row.alike, rng) {
            halves.push(Block { routes: emptier, copied: true, copies: block.copies | bit, ..block });
            return;
        }
        let upper = !per_mille(row.lower, rng);
        halves
            .extend([half(upper, fuller), half(!upper, emptier)].into_iter().filter(|half| half.routes > 0));
    }
}

/// True that often in a thousand.
pub(super) fn per_mille(share: u16, rng: &mut ChaCha8Rng) -> bool {
    rng.random_range(0..1000u16) < share
}

/// Shuffles the blocks and sorts them by their case, and gives the blocks of each case.
fn shuffled_groups<'a, A: Address, F: Fn(&Block<A>) -> usize>(
    blocks: &'a mut [Block<A>],
    case: F,
    rng: &mut ChaCha8Rng,
) -> impl Iterator<Item = &'a mut [Block<A>]> + use<'a, A, F> {
    blocks.shuffle(rng);
    blocks.sort_by_key(&case);
    blocks.chunk_by_mut(move |a, b| case(a) == case(b))
}

/// Cards in the proportions of a histogram, as many as there are blocks to draw: each kind occurs as often as its weight
/// says, but for a rest below one that chance rounds up or down (systematic sampling). Blocks must come in random order.
struct Deck<'a> {
    weights: &'a [u16],
    /// Sum of the weights.
    sum: u64,
    /// Blocks in all, and, times `sum`, plus a random start, blocks drawn.
    blocks: u64,
    at: u64,
}

impl<'a> Deck<'a> {
    fn new<A: Address>(group: &[Block<A>], weights: &'a [u16], rng: &mut ChaCha8Rng) -> Self {
        let sum = weights.iter().map(|weight| u64::from(*weight)).sum::<u64>().max(1);
        let blocks = group.iter().map(Block::weight).sum();
        Deck { weights, sum, blocks, at: rng.random_range(0..sum) }
    }

    /// The kind of the next card; a block that stands for `weight` ones takes as many, all of the first one's kind.
    fn draw(&mut self, weight: u64) -> usize {
        let mut left = self.at / self.blocks % self.sum;
        self.at += self.sum * weight;
        self.weights
            .iter()
            .position(|kind| {
                let found = left < u64::from(*kind);
                left = left.saturating_sub((*kind).into());
                found
            })
            .unwrap_or(0)
    }
}
