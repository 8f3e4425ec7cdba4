//! The tail: the few routes longer than the bulk of their family (host routes and link networks), concentrated in few
//! blocks.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashSet;

use crate::addr::Address;
use crate::prefix::Prefix;

use super::grow::per_mille;
use super::parameters::{Shape, special};

/// Adds routes of the given lengths, all longer than the bulk, inside routes made before.
///
/// The number of routes in a block follows a Yule process (H. A. Simon, "On a class of skew distribution functions",
/// 1955): each route opens a new block or joins the block of an evenly drawn earlier route, so that full blocks fill
/// further. The parts of a block are filled in the same way.
pub(super) fn add<A: Address>(
    shape: &'static Shape,
    mut lengths: Vec<u8>,
    rng: &mut ChaCha8Rng,
    prefixes: &mut Vec<Prefix<A>>,
) {
    lengths.shuffle(rng);
    let hosts = prefixes.clone();
    let (mut taken, mut known) = (FxHashSet::default(), Vec::new());
    for len in lengths {
        let joined = choose(&known, rng).filter(|_| !per_mille(shape.new_block, rng));
        let place = joined.map(|known| part(shape, known, len, rng));
        let mut prefix = within(place.unwrap_or_else(|| new_block(shape, &hosts, rng)), len, rng);
        // A full block has no room for another route, and special-use space for none: draw new blocks until there is
        // room.
        while special(shape).any(|special| special.covers(prefix)) || !taken.insert(prefix) {
            prefix = within(new_block(shape, &hosts, rng), len, rng);
        }
        known.push(prefix);
    }
    prefixes.extend(known);
}

/// The place where a route of length `len` joins an earlier one: in its part of the block, or anywhere in the block.
fn part<A: Address>(shape: &Shape, known: Prefix<A>, len: u8, rng: &mut ChaCha8Rng) -> Prefix<A> {
    let new = per_mille(shape.new_part, rng) || len <= shape.part_len;
    Prefix::containing(known.first(), if new { shape.bulk_len } else { shape.part_len })
}

fn choose<T: Copy>(of: &[T], rng: &mut ChaCha8Rng) -> Option<T> {
    let last = of.len().checked_sub(1)?;
    of.get(rng.random_range(0..=last as u64) as usize).copied()
}

/// Draws a block of the bulk length inside a route of the bulk or, in a table with tail routes only, in a block of the
/// shape.
fn new_block<A: Address>(shape: &Shape, hosts: &[Prefix<A>], rng: &mut ChaCha8Rng) -> Prefix<A> {
    let host = choose(hosts, rng)
        .unwrap_or_else(|| shape.block(choose(&shape.counted.blocks, rng).map_or(0, |(head, _)| head)));
    within(host, shape.bulk_len, rng)
}

/// Draws a prefix of length `len` in `block`.
fn within<A: Address>(block: Prefix<A>, len: u8, rng: &mut ChaCha8Rng) -> Prefix<A> {
    let random = (0..A::BITS / 32).fold(A::zero(), |random, word| {
        random | (A::from(rng.next_u32()).unwrap_or_default() << (32 * usize::from(word)))
    });
    Prefix::containing(block.first() | (random & !A::mask(block.len())), len.max(block.len()))
}
