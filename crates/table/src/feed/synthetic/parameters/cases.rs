//! The cases that the model distinguishes: classes of density, cover and neighbours, and the shares of the halves.

/// Number of density classes.
pub const DENSITIES: usize = FEW as usize + DENSITY_BOUNDS.len() + 1;

/// Up to this many routes each count is a density class of its own: near the number of routes that fill a block, one
/// more or less determines whether some must cover others.
pub(in super::super) const FEW: u32 = 32;

/// The first counts of the other classes. Powers of two are classes of their own, because blocks announced whole, in
/// parts of one length, have so many routes.
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

/// The class of a block by whether the blocks of its length before and after it hold routes: announced space continues
/// across the boundaries of blocks, so that routes lie on the side of a neighbour.
pub fn neighbours(before: bool, after: bool) -> usize {
    usize::from(before) + 2 * usize::from(after)
}

/// Neighbours are distinguished up to this many routes, in blocks of the last lengths.
const LONELY: u32 = 16;
/// Neighbours are distinguished from so many lengths before the bulk length on. In shorter blocks they have no
/// influence, and the routes would concentrate in too few blocks.
pub const NEAR: usize = 8;

/// Number of cases.
pub const CASES: usize = DENSITIES * COVERS * NEIGHBOURS;

/// The case of a block: its density, its cover and, where it holds few routes, its neighbours.
pub fn case(routes: u32, depth: u8, neighbours: usize) -> usize {
    let neighbours = if routes <= LONELY { neighbours } else { 0 };
    (density(routes) * COVERS + cover(depth)) * NEIGHBOURS + neighbours
}

/// Whether this is a case of so few routes that neighbours are distinguished.
pub fn tells_neighbours(case: usize) -> bool {
    case < density(LONELY + 1) * COVERS * NEIGHBOURS
}

/// The distance of two cases, in density classes.
pub(in super::super) fn distance(one: usize, other: usize) -> usize {
    let parts = |case: usize| (case / NEIGHBOURS / COVERS, case / NEIGHBOURS % COVERS, case % NEIGHBOURS);
    let (one, other) = (parts(one), parts(other));
    let unlike = |differ: bool, by: usize| if differ { by } else { 0 };
    one.0.abs_diff(other.0)
        + unlike(one.1 != other.1, OTHER_COVER)
        + unlike(one.2 != other.2, OTHER_NEIGHBOURS)
}

/// The distance of another cover and of other neighbours, in density classes.
const OTHER_COVER: usize = 4;
const OTHER_NEIGHBOURS: usize = 2;

/// Number of shares.
pub const SHARES: usize = FEW as usize / 2 + 1;

/// Upper bounds of the shares of many routes, in 64ths of all routes; a share below one half and one of a half follow.
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
