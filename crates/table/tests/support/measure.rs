//! Counts the parameters of the synthetic model from a table.

use fullview_table::feed::synthetic::parameters::{
    CASES, Counted, Halves, Level, NEAR, Own, SHARES, Shape, case, neighbours, share, tells_neighbours,
};
use fullview_table::{Address, Prefix, Rib};

/// Counts among blocks of one length and case. In each pair the second number counts the blocks for which the answer is
/// yes.
#[derive(Clone, Copy, Default)]
struct Tally {
    own: [[u32; 2]; 2],
    emptier: [u32; SHARES],
    lower: [u32; 2],
    alike: [u32; 2],
}

/// A tally for each case.
type Tallies = Vec<Tally>;

/// Counts the parameters of one family.
pub fn measure<A: Address>(rib: &Rib<A>, shape: &Shape) -> Counted {
    let all = rib.iter().map(|route| route.prefix);
    let (bulk, beyond): (Vec<_>, Vec<_>) = all.partition(|prefix| prefix.len() <= shape.bulk_len);
    let levels = usize::from(shape.bulk_len - shape.block_len) + 1;
    let mut tallies = vec![vec![Tally::default(); CASES]; levels];
    let head = |prefix: &Prefix<A>| prefix.first().bits(0, shape.block_len) as u16;
    let mut blocks = Vec::new();
    for routes in bulk.chunk_by(|a, b| head(a) == head(b)) {
        let block = shape_block(&routes[0], shape);
        blocks.push((head(&routes[0]), routes.len() as u32));
        count(Block { routes, block, depth: 0, copied: false }, &bulk, &mut tallies);
    }
    let of_length =
        |len, among: &[Prefix<A>]| among.iter().filter(|prefix| prefix.len() == len).count() as u32;
    let tail = (shape.bulk_len + 1..=A::BITS).map(|len| (len, of_length(len, &beyond)));
    Counted {
        blocks,
        levels: tallies.iter().map(rows).collect(),
        lengths: (shape.block_len..=shape.bulk_len).map(|len| of_length(len, &bulk)).collect(),
        tail: tail.filter(|(_, routes)| *routes > 0).collect(),
    }
}

fn shape_block<A: Address>(route: &Prefix<A>, shape: &Shape) -> Prefix<A> {
    Prefix::containing(route.first(), shape.block_len)
}

/// A block with at least one route.
struct Block<'a, A: Address> {
    routes: &'a [Prefix<A>],
    block: Prefix<A>,
    /// The number of routes around it.
    depth: u8,
    /// Whether its sibling is a copy of it.
    copied: bool,
}

/// Counts a block, at the first of `levels`, and the blocks in it; `all` are the routes of the table.
fn count<A: Address>(of: Block<A>, all: &[Prefix<A>], levels: &mut [Tallies]) {
    let Block { mut routes, block, mut depth, copied } = of;
    let [level, deeper @ ..] = levels else { return };
    let beside = if deeper.len() <= NEAR { beside(block, all) } else { 0 };
    let own = routes[0].len() == block.len();
    let tally = &mut level[case(routes.len() as u32, depth, beside)];
    tally.own[usize::from(copied)][usize::from(own)] += 1;
    if own {
        routes = &routes[1..];
        depth += 1;
    }
    if routes.is_empty() {
        return;
    }
    let in_lower = |prefix: &Prefix<A>| prefix.first().bits(block.len(), 1) == 0;
    let (low, high) = routes.split_at(routes.partition_point(in_lower));
    let copied = copies(low, high, block.len());
    let tally = &mut level[case(routes.len() as u32, depth, beside)];
    count_halves(tally, (low.len() as u32, high.len() as u32), copied);
    for routes in [low, high].into_iter().filter(|half| !half.is_empty()) {
        let block = Prefix::containing(routes[0].first(), block.len() + 1);
        count(Block { routes, block, depth, copied }, all, deeper);
    }
}

/// The class of the neighbours of a block that hold routes.
fn beside<A: Address>(block: Prefix<A>, all: &[Prefix<A>]) -> usize {
    let holds = |addr: Option<A>| {
        let Some(other) = addr.map(|addr| Prefix::containing(addr, block.len())) else { return false };
        let from = all.partition_point(|prefix| prefix.first() < other.first());
        let inside = all[from..].iter().take_while(|prefix| prefix.first() <= other.last());
        inside.into_iter().any(|prefix| prefix.len() >= block.len())
    };
    neighbours(holds(block.first().checked_sub(&A::one())), holds(block.last().checked_add(&A::one())))
}

fn count_halves(tally: &mut Tally, (low, high): (u32, u32), copied: bool) {
    tally.emptier[share(low.min(high), low + high)] += 1;
    if low == high {
        tally.alike[usize::from(copied)] += 1;
    } else {
        tally.lower[usize::from(low > high)] += 1;
    }
}

/// Whether the halves of a block of length `len` are copies of each other.
fn copies<A: Address>(low: &[Prefix<A>], high: &[Prefix<A>], len: u8) -> bool {
    let bit = A::one() << usize::from(A::BITS - len - 1);
    let same =
        |(low, high): (&Prefix<A>, &Prefix<A>)| low.first() | bit == high.first() && low.len() == high.len();
    low.len() == high.len() && low.iter().zip(high).all(same)
}

/// Cases of few routes that occur less often are left out; blocks of many routes are always counted, because they are
/// rare and have more weight.
const RARE: u32 = 5;

fn rows(level: &Tallies) -> Level {
    let (mut own, mut halves) = (Vec::new(), Vec::new());
    for (case, tally) in (0..).zip(level) {
        let fewest = if tells_neighbours(case.into()) { RARE } else { 1 };
        if tally.own.iter().flatten().sum::<u32>() >= fewest {
            own.push(Own { case, share: own_shares(tally) });
        }
        if tally.emptier.iter().sum::<u32>() >= fewest {
            let [lower, alike] = [tally.lower, tally.alike].map(|counts| per_mille(counts)[1]);
            halves.push(Halves { case, emptier: trimmed(&per_mille(tally.emptier)).into(), lower, alike });
        }
    }
    Level { own, halves }
}

/// Removes the zeros at the end.
fn trimmed(weights: &[u16]) -> Vec<u16> {
    let used = weights.iter().rposition(|weight| *weight > 0).map_or(0, |last| last + 1);
    weights[..used].to_vec()
}

/// The shares of blocks that are a route; where no block of one kind occurs, the share of both kinds is used.
fn own_shares(tally: &Tally) -> [u16; 2] {
    let [single, copied] = tally.own;
    let any = [single[0] + copied[0], single[1] + copied[1]];
    tally.own.map(|counts| per_mille(if counts == [0, 0] { any } else { counts })[1])
}

fn per_mille<const N: usize>(counts: [u32; N]) -> [u16; N] {
    let all = counts.iter().sum::<u32>().max(1);
    counts.map(|count| ((u64::from(count) * 1000 + u64::from(all) / 2) / u64::from(all)) as u16)
}
