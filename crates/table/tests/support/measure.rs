//! Counts the parameters of the synthetic model from a table.

use fullview_table::feed::synthetic::parameters::{
    COVERS, DENSITIES, Halves, Own, SHARES, Shape, cover, density, share,
};
use fullview_table::{Address, Prefix, Rib};

/// The rows of one level.
pub type Rows = (Vec<Own>, Vec<Halves<Vec<u16>>>);

/// All counts of one family, as `Shape` has them.
pub struct Measured {
    pub blocks: Vec<(u16, u32)>,
    pub levels: Vec<Rows>,
    pub tail: Vec<(u8, u32)>,
}

/// How often each case was met, the case asked for being the second of each pair, among blocks of one length, density
/// and cover.
#[derive(Clone, Copy, Default)]
struct Tally {
    own: [[u32; 2]; 2],
    emptier: [u32; SHARES],
    lower: [u32; 2],
    alike: [u32; 2],
}

/// By density and cover.
type Tallies = [[Tally; COVERS]; DENSITIES];

/// Counts the parameters of one family.
pub fn measure<A: Address>(rib: &Rib<A>, shape: &Shape) -> Measured {
    let all = rib.iter().map(|route| route.prefix);
    let (bulk, beyond): (Vec<_>, Vec<_>) = all.partition(|prefix| prefix.len() <= shape.bulk_len);
    let levels = usize::from(shape.bulk_len - shape.block_len) + 1;
    let mut tallies = vec![[[Tally::default(); COVERS]; DENSITIES]; levels];
    let head = |prefix: &Prefix<A>| prefix.first().bits(0, shape.block_len) as u16;
    let mut blocks = Vec::new();
    for routes in bulk.chunk_by(|a, b| head(a) == head(b)) {
        blocks.push((head(&routes[0]), routes.len() as u32));
        count(Block { routes, len: shape.block_len, depth: 0, copied: false }, &mut tallies);
    }
    let lengths = shape.bulk_len + 1..=A::BITS;
    let tail = lengths.map(|len| (len, beyond.iter().filter(|prefix| prefix.len() == len).count() as u32));
    Measured {
        blocks,
        levels: tallies.iter().map(rows).collect(),
        tail: tail.filter(|(_, routes)| *routes > 0).collect(),
    }
}

/// One block, never without routes.
struct Block<'a, A: Address> {
    routes: &'a [Prefix<A>],
    len: u8,
    /// Routes around it.
    depth: u8,
    /// Whether its sibling is a copy of it.
    copied: bool,
}

/// Counts a block, at the first of `levels`, and the blocks in it.
fn count<A: Address>(block: Block<A>, levels: &mut [Tallies]) {
    let Block { mut routes, len, mut depth, copied } = block;
    let [level, deeper @ ..] = levels else { return };
    let own = routes[0].len() == len;
    let tally = &mut level[density(routes.len() as u32)][cover(depth)];
    tally.own[usize::from(copied)][usize::from(own)] += 1;
    if own {
        routes = &routes[1..];
        depth += 1;
    }
    if routes.is_empty() {
        return;
    }
    let (low, high) = routes.split_at(routes.partition_point(|prefix| prefix.first().bits(len, 1) == 0));
    let copied = copies(low, high, len);
    let tally = &mut level[density(routes.len() as u32)][cover(depth)];
    count_halves(tally, (low.len() as u32, high.len() as u32), copied);
    for routes in [low, high].into_iter().filter(|half| !half.is_empty()) {
        count(Block { routes, len: len + 1, depth, copied }, deeper);
    }
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

fn rows(level: &Tallies) -> Rows {
    let keys = (0..DENSITIES).flat_map(|density| (0..COVERS).map(move |cover| (density, cover)));
    let (mut own, mut halves) = (Vec::new(), Vec::new());
    for (density, cover) in keys {
        let tally = &level[density][cover];
        let (density, cover) = (density as u8, cover as u8);
        if tally.own != [[0, 0]; 2] {
            own.push(Own { density, cover, share: own_shares(tally) });
        }
        if tally.emptier != [0; SHARES] {
            let [lower, alike] = [tally.lower, tally.alike].map(|counts| per_mille(counts)[1]);
            halves.push(Halves { density, cover, emptier: trimmed(&per_mille(tally.emptier)), lower, alike });
        }
    }
    (own, halves)
}

/// Without the zeros at the end.
fn trimmed(weights: &[u16]) -> Vec<u16> {
    let used = weights.iter().rposition(|weight| *weight > 0).map_or(0, |last| last + 1);
    weights[..used].to_vec()
}

/// Where only copies were met, or none, the others are like them.
fn own_shares(tally: &Tally) -> [u16; 2] {
    let [single, copied] = tally.own;
    let any = [single[0] + copied[0], single[1] + copied[1]];
    tally.own.map(|counts| per_mille(if counts == [0, 0] { any } else { counts })[1])
}

fn per_mille<const N: usize>(counts: [u32; N]) -> [u16; N] {
    let all = counts.iter().sum::<u32>().max(1);
    counts.map(|count| ((u64::from(count) * 1000 + u64::from(all) / 2) / u64::from(all)) as u16)
}
