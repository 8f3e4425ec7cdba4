//! Synthetic tables of any size that resemble a real full view, as far as a lookup structure is concerned.
//!
//! A real table can be neither shipped nor resized. Random prefixes are no substitute, because the size and the speed
//! of every structure depend on how routes cluster. Here a table is grown as real address space was allocated: a block
//! with its routes is halved again and again, and at each halving the routes are divided between the two sides as
//! unevenly as in the real table at that depth and density ([`parameters`]). `docs/explanation/synthetic.md` describes the method
//! and its accuracy.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::addr::{Address, Family};
use crate::prefix::Prefix;
use crate::table::Table;

use super::builder::{BuilderFamily, TableBuilder, Via};
use super::error::{Fault, Located};
use super::{Compression, Format, NextHopModel, Options};

mod grow;
// Public for the example and the test that count them again; this is no stable interface.
#[doc(hidden)]
pub mod parameters;
mod tail;

use grow::Block;
use parameters::{Shape, special};

/// The parameters of a synthetic table; they give the same table on every platform.
///
/// ```
/// use fullview_table::feed::synthetic::Synthetic;
///
/// let table = Synthetic { inet: 1000, inet6: 200, ..Synthetic::default() }.table()?;
/// assert_eq!((table.inet.len(), table.inet6.len()), (1000, 200));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// IPv4 routes, at most [`Synthetic::MAX_INET`].
    pub inet: usize,
    /// IPv6 routes, at most [`Synthetic::MAX_INET6`].
    pub inet6: usize,
    /// The next hops of the routes.
    pub next_hops: NextHopModel,
    /// Seed of the prefixes; the next hops have their own seed.
    pub seed: u64,
}

impl Default for Synthetic {
    /// The size of a full view in December 2020: 712,793 and 104,034 routes.
    fn default() -> Self {
        Synthetic { inet: 712_793, inet6: 104_034, next_hops: NextHopModel::default(), seed: 0 }
    }
}

/// Why a table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SyntheticError {
    /// The table would be larger than the model permits.
    #[error("{asked} {family} routes are too many; a synthetic table has at most {limit}")]
    Size {
        /// The family.
        family: Family,
        /// The size asked for.
        asked: usize,
        /// The largest size possible.
        limit: usize,
    },
    /// The table would have no route, or the next-hop model is impossible.
    #[error("synthetic table {0}")]
    Fault(Fault),
}

impl From<Located> for SyntheticError {
    fn from(located: Located) -> Self {
        SyntheticError::Fault(located.fault)
    }
}

impl Synthetic {
    /// The largest IPv4 table.
    pub const MAX_INET: usize = 2_000_000;
    /// The largest IPv6 table.
    pub const MAX_INET6: usize = 500_000;

    /// Makes the table. It has exactly the sizes asked for, no prefix twice, and no prefix in the blocks of IANA's
    /// special-purpose registries (RFC 6890, RFC 8190), in 224.0.0.0/3 or outside 2000::/3.
    ///
    /// # Errors
    /// A [`SyntheticError`] for a size out of bounds, a table without routes, or an impossible next-hop model.
    pub fn table(&self) -> Result<Table, SyntheticError> {
        check_size(Family::Inet, self.inet, Self::MAX_INET)?;
        check_size(Family::Inet6, self.inet6, Self::MAX_INET6)?;
        let options = Options { next_hops: self.next_hops, ..Options::default() };
        let mut builder = TableBuilder::new(&options, Format::Text, Compression::None);
        self.fill::<u32>(&parameters::INET, self.inet, &mut builder)?;
        self.fill::<u128>(&parameters::INET6, self.inet6, &mut builder)?;
        Ok(builder.finish()?.table)
    }

    fn fill<A: BuilderFamily>(
        &self,
        shape: &'static Shape,
        size: usize,
        builder: &mut TableBuilder,
    ) -> Result<(), SyntheticError> {
        for prefix in prefixes::<A>(shape, size, self.seed) {
            builder.add(prefix, Via::Unspecified, 0).map_err(SyntheticError::Fault)?;
        }
        Ok(())
    }
}

fn check_size(family: Family, asked: usize, limit: usize) -> Result<(), SyntheticError> {
    if asked <= limit { Ok(()) } else { Err(SyntheticError::Size { family, asked, limit }) }
}

fn prefixes<A: Address>(shape: &'static Shape, size: usize, seed: u64) -> Vec<Prefix<A>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(A::BITS.into());
    let usable = |head: u16| !special(shape).any(|special| special.covers(shape.block::<A>(head)));
    let heads: Vec<(u16, u32)> =
        shape.counted.blocks.iter().copied().filter(|(head, _)| usable(*head)).collect();
    let bulk = heads.iter().map(|(_, routes)| *routes);
    let counts = scale(bulk.chain(shape.counted.tail.iter().map(|(_, routes)| *routes)).collect(), size);
    let (bulk, tail) = counts.split_at(heads.len());
    let lengths = scale(shape.counted.lengths.to_vec(), bulk.iter().map(|routes| *routes as usize).sum());
    let blocks = heads.iter().zip(bulk).filter(|(_, routes)| **routes > 0);
    let blocks = blocks.map(|((head, _), routes)| Block::new(shape.block(*head), *routes)).collect();
    let mut prefixes = Vec::with_capacity(size);
    grow::grow(shape, blocks, &lengths, &mut rng, &mut prefixes);
    let lengths = shape.counted.tail.iter().zip(tail);
    let lengths = lengths.flat_map(|((len, _), routes)| std::iter::repeat_n(*len, *routes as usize));
    tail::add(shape, lengths.collect(), &mut rng, &mut prefixes);
    prefixes
}

/// Scales `counts` to another sum by largest remainders, so that the sum is exact.
fn scale(counts: Vec<u32>, size: usize) -> Vec<u32> {
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let share = |count: u32| u64::from(count) * size as u64;
    let mut scaled: Vec<u32> = counts.iter().map(|count| (share(*count) / all) as u32).collect();
    let missing = size as u64 - scaled.iter().map(|count| u64::from(*count)).sum::<u64>();
    let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
    by_remainder.sort_by_key(|index| std::cmp::Reverse(share(counts[*index]) % all));
    by_remainder.iter().take(missing as usize).for_each(|index| scaled[*index] += 1);
    scaled
}
