//! The first flow: table feed → RIB → FIB algorithm → published snapshot.
//!
//! ```
//! use fullview_table::{NextHop, Rib, fib::registry};
//!
//! let mut rib = Rib::<u32>::default();
//! rib.announce("198.18.0.0/15".parse()?, NextHop(1));
//! rib.announce("198.19.0.0/16".parse()?, NextHop(2));
//! let linear = registry::find::<u32>("linear").ok_or("no such algorithm")?;
//! let fib = linear.compile(&rib)?.fib();
//! assert_eq!(fib.lookup(0xc613_0001), NextHop(2));
//! assert_eq!(fib.lookup(0xc612_0001), NextHop(1));
//! assert_eq!(fib.lookup(0), NextHop::NONE);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does no I/O outside [`feed`], reads no clock and spawns no thread.

pub mod addr;
pub mod feed;
pub mod fib;
pub mod group;
pub mod nexthop;
pub mod prefix;
pub mod probe;
pub mod rib;
pub mod simd;
mod sync;

pub use addr::{Address, Family};
pub use nexthop::{NextHop, NextHops, Target};
pub use prefix::Prefix;
pub use rib::{Change, Rib, Route};

/// One routing table: the routes of both families and the next hops they share.
#[derive(Clone, Default)]
pub struct Table {
    /// IPv4 routes.
    pub inet: Rib<u32>,
    /// IPv6 routes.
    pub inet6: Rib<u128>,
    /// What their next-hop indices stand for.
    pub next_hops: NextHops,
}
