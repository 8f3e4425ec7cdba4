//! The parameters of the model, counted in a real table: how often a block with so many routes is filled in which way.
//!
//! The numbers are data: `parameters/inet.txt` and `inet6.txt`, whose heads state their format. They were counted from
//! a full view of October 2025 (901,899 and 160,147 routes) by `examples/synthetic_parameters.rs`, which prints them;
//! `tests/feed_synthetic.rs` counts them again and compares.

use std::sync::LazyLock;

use crate::addr::Address;
use crate::prefix::Prefix;

mod cases;
mod counted;

pub use cases::{
    CASES, COVERS, DENSITIES, NEAR, NEIGHBOURS, SHARES, case, counts, cover, density, neighbours, share,
    tells_neighbours,
};
pub(super) use cases::{FEW, distance};
pub use counted::{Counted, Halves, Level, Own};

const COUNTED_INET: &str = include_str!("parameters/inet.txt");
const COUNTED_INET6: &str = include_str!("parameters/inet6.txt");

/// The parameters of one family.
pub struct Shape {
    /// The longest length that blocks are divided down to; longer routes are the tail.
    pub bulk_len: u8,
    /// The length of the blocks over which the routes are distributed.
    pub block_len: u8,
    /// The counts of the real table.
    pub counted: Counted,
    /// Blocks in which no route may lie, disjoint and none longer than the bulk length.
    pub special: &'static [(u128, u8)],
    /// The share of tail routes that open a new block of the bulk length, in per mille.
    pub new_block: u16,
    /// The length of the parts of such a block in which routes of the tail concentrate.
    pub part_len: u8,
    /// The share of the other tail routes that open a new part, in per mille.
    pub new_part: u16,
}

/// The parameters of IPv4.
pub static INET: LazyLock<Shape> = LazyLock::new(|| Shape {
    bulk_len: 24,
    block_len: 8,
    counted: read(COUNTED_INET),
    special: &SPECIAL_INET,
    new_block: 469,
    part_len: 30,
    new_part: 463,
});

/// The parameters of IPv6.
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

/// IANA's registry of special-purpose addresses, the part of IPv6 inside 2000::/3.
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

/// The blocks in which no route may lie.
pub(super) fn special<A: Address>(shape: &'static Shape) -> impl Iterator<Item = Prefix<A>> {
    shape.special.iter().map(|(first, len)| Prefix::containing(A::from(*first).unwrap_or_default(), *len))
}

/// Reads one of the files above. It is compiled in, and a test reads it too.
#[allow(clippy::expect_used)]
fn read(text: &str) -> Counted {
    text.parse().expect("a test has read this file without an error")
}

impl Shape {
    /// The block with the given first bits.
    pub(super) fn block<A: Address>(&self, head: u16) -> Prefix<A> {
        let first = A::from(head).unwrap_or_default() << usize::from(A::BITS - self.block_len);
        Prefix::containing(first, self.block_len)
    }
}
