//! The memory of compiled tables: atomic words that readers load while one writer stores, huge pages to keep them on,
//! prefetches, and the point in time at which a replaced part may be written again.
//!
//! Words and pages need `unsafe`, because lookups load entries without bounds checks; everything that they return is
//! safe to use. `simd` reads this memory with vectors.
#![allow(unsafe_code)]

mod cache_padded;
mod pages;
mod prefetch;
mod reclaim;
mod ring;
mod top;
mod tracking;
mod word;

pub(crate) use cache_padded::CachePadded;
pub(crate) use pages::Pages;
pub use prefetch::prefetch_value;
pub(crate) use prefetch::{prefetch, prefetch_beyond, prefetch_from, prefetch_unchecked};
pub(crate) use reclaim::{Reclaim, Token};
pub(crate) use ring::Ring;
pub(crate) use top::Top;
pub use tracking::{BLOCK, Mark, Section};
pub(crate) use word::{AtomicEntry, Word, Word8, Word16, Word32, Words, entries};

/// A table's memory has no place left for what a change needs.
#[derive(Debug)]
pub(crate) struct Full;
