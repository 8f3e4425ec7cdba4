//! What the model knows of the real table: how often a block with so many routes is filled in which way.
//!
//! The numbers, in `counted_inet.txt` and `counted_inet6.txt`, were counted from a full view of October 2025 (901,899
//! and 160,147 routes) by `examples/synthetic_parameters.rs`, which prints those two files; `tests/feed_synthetic.rs`
//! counts them again and compares.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::addr::Address;
use crate::prefix::Prefix;
pub use counted::Counted;

mod counted;

const COUNTED_INET: &str = include_str!("parameters/counted_inet.txt");
const COUNTED_INET6: &str = include_str!("parameters/counted_inet6.txt");

/// The parameters of one family.
pub struct Shape {
    /// The longest length that blocks are divided down to; longer routes are the tail.
    pub bulk_len: u8,
    /// The length of the blocks that the routes are shared out to.
    pub block_len: u8,
    /// What the real table has.
    pub counted: Counted,
    /// Blocks that no route lies in, disjoint and none longer than the bulk length.
    pub special: &'static [(u128, u8)],
    /// Routes of the tail, in a thousand, that open a new block of the bulk length.
    pub new_block: u16,
    /// Length of the parts of such a block that routes of the tail gather in.
    pub part_len: u8,
    /// Of the other routes of the tail, those in a thousand that open a new part.
    pub new_part: u16,
}

/// How blocks of one length are filled: a row for each [`case`] that the real table has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Which blocks are routes.
    pub own: Vec<Own>,
    /// How the routes inside fall on the halves of a block.
    pub halves: Vec<Halves>,
}

/// Which blocks are routes, among those with so many routes and so covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// The [`case`] of these blocks, their own routes included.
    pub case: u16,
    /// Those in a thousand that are a route: first of the blocks unlike their sibling, then of its copies.
    pub share: [u16; 2],
}

/// How the routes inside fall on the halves, in blocks with so many and so covered; all in per mille.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halves {
    /// The [`case`] of these blocks without their own routes.
    pub case: u16,
    /// Those whose emptier half has which [`share`].
    pub emptier: Cow<'static, [u16]>,
    /// Of those with uneven halves, those whose lower half is the fuller one.
    pub lower: u16,
    /// Of those with equally full halves, those whose halves are exact copies of each other.
    pub alike: u16,
}

/// Number of density classes.
pub const DENSITIES: usize = FEW as usize + DENSITY_BOUNDS.len() + 1;

/// Up to this many routes each count is a density class of its own: near the number of routes that fill a block, one
/// more or less decides whether some must cover others.
pub(super) const FEW: u32 = 32;

/// The first counts of the classes beyond. Powers of two stand alone: blocks announced whole, in parts of one length,
/// hold so many.
const DENSITY_BOUNDS: [u32; 18] =
    [34, 37, 41, 49, 64, 65, 73, 97, 128, 129, 145, 193, 256, 257, 385, 512, 1024, 4096];

/// The density class of a block with `count` routes.
pub fn density(count: u32) -> usize {
    let beyond = DENSITY_BOUNDS.partition_point(|bound| *bound <= count);
    if count <= FEW { count as usize - 1 } else { FEW as usize + beyond }
}

/// Number of cover classes.
pub const COVERS: usize = 3;

/// The cover class of a block with `depth` routes around it: none, one, more.
pub fn cover(depth: u8) -> usize {
    usize::from(depth).min(COVERS - 1)
}

/// Number of neighbour classes.
pub const NEIGHBOURS: usize = 4;

/// The class of a block by whether the blocks of its length before and behind it hold routes: announced space goes on
/// across the boundaries of blocks, so that routes lie on the side of a neighbour.
pub fn neighbours(before: bool, behind: bool) -> usize {
    usize::from(before) + 2 * usize::from(behind)
}

/// Neighbours are told apart up to this many routes, in blocks of the last lengths.
const LONELY: u32 = 16;
/// So many lengths before the bulk length. Above these it is not where announced space goes on that decides, and the
/// routes would gather in too few blocks.
pub const NEAR: usize = 8;

/// Number of cases.
pub const CASES: usize = DENSITIES * COVERS * NEIGHBOURS;

/// The case of a block: its density, its cover and, where it holds few routes, its neighbours.
pub fn case(routes: u32, depth: u8, neighbours: usize) -> usize {
    let neighbours = if routes <= LONELY { neighbours } else { 0 };
    (density(routes) * COVERS + cover(depth)) * NEIGHBOURS + neighbours
}

/// Whether this is a case of so few routes that neighbours are told apart.
pub fn tells_neighbours(case: usize) -> bool {
    case < density(LONELY + 1) * COVERS * NEIGHBOURS
}

/// How unlike two cases are, in density classes.
pub(super) fn distance(one: usize, other: usize) -> usize {
    let parts = |case: usize| (case / NEIGHBOURS / COVERS, case / NEIGHBOURS % COVERS, case % NEIGHBOURS);
    let (one, other) = (parts(one), parts(other));
    let unlike = |differ: bool, by: usize| if differ { by } else { 0 };
    one.0.abs_diff(other.0)
        + unlike(one.1 != other.1, OTHER_COVER)
        + unlike(one.2 != other.2, OTHER_NEIGHBOURS)
}

/// Another cover is as far off as that many density classes, other neighbours as this many.
const OTHER_COVER: usize = 4;
const OTHER_NEIGHBOURS: usize = 2;

/// Number of shares.
pub const SHARES: usize = FEW as usize / 2 + 1;

/// Upper bounds, in 64ths of all routes, of the shares of many routes; one below and one at a half follow.
const SHARE_BOUNDS: [u32; 9] = [0, 2, 4, 8, 16, 24, 28, 30, 31];

/// The share class of the emptier half with `emptier` of `all` routes.
pub fn share(emptier: u32, all: u32) -> usize {
    if all <= FEW {
        return emptier as usize;
    }
    let bound = SHARE_BOUNDS.iter().position(|bound| emptier <= bound * all / 64);
    bound.unwrap_or(SHARE_BOUNDS.len() + usize::from(emptier == all / 2))
}

/// The lowest and the highest count of the emptier half in a share class, for `all` routes.
pub fn counts(share: usize, all: u32) -> (u32, u32) {
    let half = all / 2;
    if all <= FEW {
        return ((share as u32).min(half), (share as u32).min(half));
    }
    let bound = |share: usize| SHARE_BOUNDS[share] * all / 64;
    let last = SHARE_BOUNDS.len() - 1;
    match share {
        0 => (0, 0),
        share if share <= last => ((bound(share - 1) + 1).min(bound(share)), bound(share)),
        share if share == last + 1 => ((bound(last) + 1).min(half - 1), half - 1),
        _ => (half, half),
    }
}

/// IPv4.
pub static INET: LazyLock<Shape> = LazyLock::new(|| Shape {
    bulk_len: 24,
    block_len: 8,
    counted: read(COUNTED_INET),
    special: &SPECIAL_INET,
    new_block: 469,
    part_len: 30,
    new_part: 463,
});

/// IPv6.
pub static INET6: LazyLock<Shape> = LazyLock::new(|| Shape {
    bulk_len: 48,
    block_len: 16,
    counted: read(COUNTED_INET6),
    special: &SPECIAL_INET6,
    new_block: 317,
    part_len: 60,
    new_part: 133,
});

/// IANA's registry of special-purpose addresses (RFC 6890, RFC 8190), IPv4.
const SPECIAL_INET: [(u128, u8); 18] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 31, 196, 0], 24),
    v4([192, 52, 193, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([192, 175, 48, 0], 24),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// The same for IPv6, as far as it lies in 2000::/3.
const SPECIAL_INET6: [(u128, u8); 5] = [
    (0x2001_0000 << 96, 23),
    (0x2001_0db8 << 96, 32),
    (0x2002_0000 << 96, 16),
    (0x2620_004f_8000 << 80, 48),
    (0x3fff_0000 << 96, 20),
];

const fn v4(octets: [u8; 4], len: u8) -> (u128, u8) {
    (u32::from_be_bytes(octets) as u128, len)
}

/// Where no route may lie.
pub(super) fn special<A: Address>(shape: &'static Shape) -> impl Iterator<Item = Prefix<A>> {
    shape.special.iter().map(|(first, len)| Prefix::containing(A::from(*first).unwrap_or_default(), *len))
}

/// It is part of this program, and a test reads it.
#[allow(clippy::expect_used)]
fn read(text: &str) -> Counted {
    text.parse().expect("the counts that were printed")
}

impl Shape {
    /// The block with the given first bits.
    pub(super) fn block<A: Address>(&self, head: u16) -> Prefix<A> {
        let first = A::from(head).unwrap_or_default() << usize::from(A::BITS - self.block_len);
        Prefix::containing(first, self.block_len)
    }
}
