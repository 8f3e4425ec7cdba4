//! Divides blocks with their routes, one length after another: decides which blocks are routes, and how the routes
//! inside are divided between the two halves.
//!
//! All blocks of one length and density draw from one histogram without replacement, as from a deck of cards. So the
//! result follows the histogram closely for every seed, and the seed decides which block gets which card.

use std::borrow::Cow;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::addr::Address;
use crate::prefix::Prefix;

use super::parameters::{
    CASES, FEW, Halves, NEAR, Own, SHARES, Shape, case, counts, distance, neighbours, special,
};

/// A block that holds routes.
#[derive(Clone, Copy)]
pub(super) struct Block<A> {
    /// The lowest address.
    pub(super) first: A,
    /// The number of routes in it, its own included; at least 1.
    pub(super) routes: u32,
    /// The number of routes around it.
    pub(super) depth: u8,
    /// Whether it is one of two halves that are copies of each other.
    pub(super) copied: bool,
    /// Address bits of which every combination has a copy of this block: the block stands for all of them.
    pub(super) copies: A,
    /// The class of its neighbours that hold routes: see [`neighbours`].
    beside: usize,
    /// Whether it contains special-use space.
    special: bool,
}

impl<A: Address> Block<A> {
    pub(super) fn new(prefix: Prefix<A>, routes: u32) -> Self {
        Block {
            first: prefix.first(),
            routes,
            depth: 0,
            copied: false,
            copies: A::zero(),
            beside: 0,
            special: true,
        }
    }

    /// The number of blocks that this one stands for.
    fn weight(&self) -> u64 {
        1 << self.copies.count_ones()
    }

    /// The case whose histogram it draws from.
    fn case(&self) -> usize {
        case(self.routes, self.depth, self.beside)
    }

    fn prefixes(&self, len: u8) -> impl Iterator<Item = Prefix<A>> + use<A> {
        let Block { first, copies, .. } = *self;
        // Enumerates the combinations: the gaps are filled with ones, so that the carry skips them.
        let next = move |bits: &A| (*bits != copies).then(|| ((*bits | !copies) + A::one()) & copies);
        std::iter::successors(Some(A::zero()), next).map(move |bits| Prefix::containing(first | bits, len))
    }
}

/// The most routes a block of length `len` can hold: itself, its halves, their halves, down to the bulk length. Limited
/// to 2^30, more than any table has, so that sums do not overflow.
fn capacity(shape: &Shape, len: u8) -> u32 {
    (1 << (shape.bulk_len + 1).saturating_sub(len).min(30)) - 1
}

/// Adds the routes of blocks of the shape's block length to `prefixes`: `lengths` has their number for each length,
/// from the shape's block length on.
pub(super) fn grow<A: Address>(
    shape: &'static Shape,
    mut blocks: Vec<Block<A>>,
    lengths: &[u32],
    rng: &mut ChaCha8Rng,
    prefixes: &mut Vec<Prefix<A>>,
) {
    for ((len, level), wanted) in (shape.block_len..).zip(&shape.counted.levels).zip(lengths) {
        let own = by_case(&level.own, &ALWAYS, |row| row.case.into());
        let halves = by_case(&level.halves, &EVENLY, |row| row.case.into());
        let level = LevelGrower { shape, len, inside: capacity(shape, len + 1), own, halves };
        if usize::from(shape.bulk_len - len) <= NEAR {
            find_neighbours(&mut blocks, len);
        }
        level.take_own(&mut blocks, *wanted, rng, prefixes);
        blocks = level.halve(blocks, rng);
    }
    debug_assert!(blocks.is_empty(), "blocks of the bulk length cannot hold other routes");
}

/// Finds for each block which of its neighbours hold routes, copies included.
fn find_neighbours<A: Address>(blocks: &mut [Block<A>], len: u8) {
    let copies =
        |(index, block): (usize, &Block<A>)| block.prefixes(len).map(move |copy| (copy.first(), copy, index));
    let mut all: Vec<_> = blocks.iter().enumerate().flat_map(copies).collect();
    all.sort_unstable_by_key(|(first, ..)| *first);
    let adjoin = |one: Option<&(A, Prefix<A>, usize)>, next: Option<&(A, Prefix<A>, usize)>| {
        let (Some((_, one, _)), Some((next, ..))) = (one, next) else { return false };
        one.last().checked_add(&A::one()) == Some(*next)
    };
    for (place, this) in all.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| all.get(place));
        let block = &mut blocks[this.2];
        // The lowest copy stands for the others.
        if block.first == this.0 {
            block.beside = neighbours(adjoin(before, Some(this)), adjoin(Some(this), all.get(place + 1)));
        }
    }
}

/// A row of the histograms for each [`Block::case`].
type ByCase<T> = [&'static T; CASES];

/// The row for cases that the real table does not have at any density: every block is a route.
static ALWAYS: Own = Own { case: 0, share: [1000, 1000] };

/// The shares for blocks whose halves are equally full.
const EVEN: [u16; SHARES] = {
    let mut shares = [0; SHARES];
    shares[SHARES - 1] = 1000;
    shares
};

/// The row for such cases: routes inside are divided evenly.
static EVENLY: Halves = Halves { case: 0, emptier: Cow::Borrowed(&EVEN), lower: 500, alike: 0 };

/// The row of each case, or the row of the nearest density that the real table has at this length, of the same cover if
/// there is a near one.
fn by_case<T>(rows: &'static [T], unknown: &'static T, case_of: impl Fn(&T) -> usize) -> ByCase<T> {
    std::array::from_fn(|case| rows.iter().min_by_key(|row| distance(case_of(row), case)).unwrap_or(unknown))
}

/// For a length with fewer routes than this the cards decide, because each route may lie around thousands of others.
const FEW_OF_A_LENGTH: u64 = 100;

/// The division of the blocks of one length.
struct LevelGrower {
    shape: &'static Shape,
    len: u8,
    /// The most routes one half can hold.
    inside: u32,
    own: ByCase<Own>,
    halves: ByCase<Halves>,
}

impl LevelGrower {
    /// Makes `wanted` blocks routes, if that many are possible, and leaves the routes inside them in the blocks.
    fn take_own<A: Address>(
        &self,
        blocks: &mut Vec<Block<A>>,
        wanted: u32,
        rng: &mut ChaCha8Rng,
        prefixes: &mut Vec<Prefix<A>>,
    ) {
        let mut taken = self.draw_own(blocks, rng);
        self.settle(blocks, &mut taken, wanted.into(), rng);
        for (block, _) in blocks.iter_mut().zip(taken).filter(|(_, taken)| *taken) {
            prefixes.extend(block.prefixes(self.len));
            block.routes -= 1;
            block.depth = block.depth.saturating_add(1);
        }
        blocks.retain(|block| block.routes > 0);
    }

    /// Draws which blocks are routes, after ordering them by their cases.
    fn draw_own<A: Address>(&self, blocks: &mut [Block<A>], rng: &mut ChaCha8Rng) -> Vec<bool> {
        let case = |block: &Block<A>| block.case() * 2 + usize::from(block.copied);
        let mut taken = Vec::with_capacity(blocks.len());
        for group in shuffled_groups(blocks, case, rng) {
            let own = self.own_share(&group[0]);
            let weights = [1000 - own, own];
            let mut deck = Deck::new(group, &weights, rng);
            // A block with more routes than its halves can hold is a route itself, whatever the card.
            taken.extend(group.iter().map(|block| deck.draw(block.weight()) == 1 || self.is_full(block)));
        }
        taken
    }

    fn own_share<A: Address>(&self, block: &Block<A>) -> u16 {
        self.own[block.case()].share[usize::from(block.copied)]
    }

    fn is_full<A: Address>(&self, block: &Block<A>) -> bool {
        let [lower, upper] = self.rooms(block);
        block.routes > lower + upper
    }

    /// Reverses some decisions of the cards, those nearest to chance first, until as many routes are taken as wanted.
    fn settle<A: Address>(&self, blocks: &[Block<A>], taken: &mut [bool], wanted: u64, rng: &mut ChaCha8Rng) {
        let chosen = blocks.iter().zip(taken.iter()).filter(|(_, taken)| **taken);
        let made: u64 = chosen.map(|(block, _)| block.weight()).sum();
        let (more, mut missing) = (made < wanted, made.abs_diff(wanted));
        if wanted < FEW_OF_A_LENGTH {
            return;
        }
        let mut open: Vec<(u64, usize)> = Vec::new();
        for (index, block) in blocks.iter().enumerate().filter(|_| missing > 0) {
            let share = u64::from(self.own_share(block));
            // A route around many others has a large effect, and a block of one route has no other: the weight is
            // between.
            let weight =
                share * (1000 - share) / u64::from(block.routes.isqrt()) + 1000 / u64::from(block.routes);
            let rank = u64::from(rng.random::<u32>()) * 1_000_000 / (weight + 1);
            if taken[index] != more && (more || !self.is_full(block)) {
                open.push((rank, index));
            }
        }
        open.sort_unstable();
        for (_, index) in open {
            if blocks[index].weight() <= missing {
                missing -= blocks[index].weight();
                taken[index] = more;
            }
        }
    }

    /// Divides the blocks; returns the halves that hold routes.
    fn halve<A: Address>(&self, mut blocks: Vec<Block<A>>, rng: &mut ChaCha8Rng) -> Vec<Block<A>> {
        let mut halves = Vec::with_capacity(blocks.len() * 3 / 2);
        for group in shuffled_groups(&mut blocks, Block::case, rng) {
            let row = self.halves[group[0].case()];
            let mut deck = Deck::new(group, &row.emptier, rng);
            for block in group {
                let (low, high) = counts(deck.draw(block.weight()), block.routes);
                let emptier =
                    rng.random_range(low..=high).max(block.routes.saturating_sub(self.room(block.routes)));
                self.divide(*block, emptier, row, rng, &mut halves);
            }
        }
        halves
    }

    /// The most routes of `routes` that one half takes. Shares of many routes are coarse: without this limit a half
    /// that is announced whole, in routes of the bulk length, could get some more, which would then have to cover
    /// others.
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
        let fuller = block.routes - emptier;
        if emptier == fuller && per_mille(row.alike, rng) && !block.special {
            let copies = block.copies | self.half_bit();
            halves.push(Block { routes: emptier, copied: true, copies, ..block });
            return;
        }
        let upper = !per_mille(row.lower, rng);
        let [lower_room, upper_room] = self.rooms(&block);
        let lower = if upper { emptier } else { fuller };
        let lower = lower.min(lower_room).max(block.routes.saturating_sub(upper_room));
        let routes = [lower, block.routes - lower];
        halves.extend([false, true].into_iter().zip(routes).filter(|(_, routes)| *routes > 0).map(
            |(upper, routes)| {
                let half = self.half(&block, upper);
                let special = block.special && special::<A>(self.shape).any(|special| half.covers(special));
                Block { first: half.first(), routes, copied: false, special, ..block }
            },
        ));
    }

    /// The address bit that distinguishes the halves.
    fn half_bit<A: Address>(&self) -> A {
        A::one() << usize::from(A::BITS - self.len - 1)
    }

    fn half<A: Address>(&self, block: &Block<A>, upper: bool) -> Prefix<A> {
        let first = if upper { block.first | self.half_bit() } else { block.first };
        Prefix::containing(first, self.len + 1)
    }

    /// The most routes that the lower and the upper half can hold outside special-use space.
    fn rooms<A: Address>(&self, block: &Block<A>) -> [u32; 2] {
        if !block.special || self.inside == 0 {
            return [self.inside; 2];
        }
        [false, true].map(|upper| {
            let half = self.half(block, upper);
            let lost = special::<A>(self.shape).filter_map(|special| match special.covers(half) {
                true => Some(self.inside),
                false => half.covers(special).then(|| capacity(self.shape, special.len())),
            });
            self.inside.saturating_sub(lost.sum())
        })
    }
}

/// Draws true with this probability, in per mille.
pub(super) fn per_mille(share: u16, rng: &mut ChaCha8Rng) -> bool {
    rng.random_range(0..1000u16) < share
}

/// Shuffles the blocks and sorts them by their case; returns the blocks of each case.
fn shuffled_groups<'a, A: Address, F: Fn(&Block<A>) -> usize>(
    blocks: &'a mut [Block<A>],
    case: F,
    rng: &mut ChaCha8Rng,
) -> impl Iterator<Item = &'a mut [Block<A>]> + use<'a, A, F> {
    blocks.shuffle(rng);
    blocks.sort_by_key(&case);
    blocks.chunk_by_mut(move |a, b| case(a) == case(b))
}

/// Cards in the proportions of a histogram, one for each block: the number of each kind is proportional to its weight,
/// rounded up or down at random (systematic sampling). Blocks must draw in random order.
struct Deck<'a> {
    weights: &'a [u16],
    /// Sum of the weights.
    sum: u64,
    /// The number of blocks; and the blocks that have drawn, times `sum`, plus a random start.
    blocks: u64,
    at: u64,
}

impl<'a> Deck<'a> {
    fn new<A: Address>(group: &[Block<A>], weights: &'a [u16], rng: &mut ChaCha8Rng) -> Self {
        let sum = weights.iter().map(|weight| u64::from(*weight)).sum::<u64>().max(1);
        let blocks = group.iter().map(Block::weight).sum();
        Deck { weights, sum, blocks, at: rng.random_range(0..sum) }
    }

    /// Draws a card and returns its kind. A block that stands for `weight` blocks draws as many, all of the first one's
    /// kind.
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
