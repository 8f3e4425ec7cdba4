//! Routing tables of both IP families, the feeds they come from, and longest-prefix-match lookup behind one contract.
//!
//! Data flows in this order: table feed → [`Rib`] → [`fib::Algorithm`] → [`fib::Fib`], which readers hold.
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
//! # Where to begin
//!
//! | to | see | run |
//! | --- | --- | --- |
//! | load a table and look up | [`feed::load`], [`Table`] | `cargo run --release --example lookup -- TABLE ADDRESS...` |
//! | look up many addresses at once | [`fib::Fib::lookup_batch`] | `cargo run --release --example batch -- TABLE` |
//! | change routes while others look up | [`fib::framework::Attachment`] | `cargo run --release --example update -- TABLE` |
//! | write an algorithm | [`fib::Algorithm`], [`fib::registry`] | |
//! | prove that a compiled table is right | [`probe::verify`] | |
//!
//! # Units and conventions
//!
//! - An address is an integer in host byte order, `u32` for IPv4 and `u128` for IPv6: the first bit on the wire is the
//!   most significant bit. [`Address::from_ip`] and [`Address::to_ip`] convert from and to the types of [`std::net`].
//! - A prefix length counts bits from the most significant one, 0 to [`Address::BITS`]. A [`Prefix`] is canonical by
//!   construction.
//! - A [`NextHop`] is an index, 1 to [`NextHop::MAX`]; 0 means no route. [`NextHops`] maps an index to what it stands
//!   for.
//! - Sizes are bytes ([`fib::Footprint`]); times in update traces are seconds since 1970 ([`feed::updates::Update`]).
//!
//! # Threads
//!
//! A [`fib::Fib`] is `Send + Sync`, and any number of threads read it without waiting (only `radix` takes a lock, to
//! measure what that costs). One writer owns the [`Rib`] and the [`fib::Instance`]. Each lookup is answered by the
//! table before or after a change, never by a mixture. This crate does no I/O outside [`feed`], reads no clock and
//! spawns no thread.
//!
//! # Errors and panics
//!
//! Errors are types: [`prefix::PrefixError`], [`nexthop::TooManyNextHops`], [`feed::FeedError`],
//! [`feed::write::WriteError`], [`feed::synthetic::SyntheticError`], [`fib::CompileError`], [`probe::Mismatch`]. Each
//! message names the place, the fault and how to fix it.
//!
//! No input makes this crate panic: no file, text, prefix, address, next hop or sequence of changes. Three rules
//! ensure this:
//!
//! - In the whole crate clippy refuses `unwrap`, `expect`, `panic!`, `unreachable!`, `todo!` and `unimplemented!`. Each
//!   of the few `expect`s has an `allow` and a message that argues why it cannot fail.
//! - In [`feed`] and [`prefix`], which read untrusted input, clippy refuses indexing and slicing as well.
//! - Elsewhere indices come from structures that this crate has built, and the compiler checks their bounds.
//!   Conformance and churn tests of every algorithm, and fuzzing of all parsers and of sequences of changes, test that
//!   no such check fails; it is not proven.
//!
//! A call that breaks a documented precondition may still panic ([`Address::bits`] has one). A process that runs out of
//! memory aborts, as in all of Rust, but the large tables check their allocation and return
//! [`fib::CompileError::Memory`].
#![warn(missing_docs)]
#![warn(clippy::unreachable, clippy::unimplemented)]

pub mod addr;
pub mod feed;
pub mod fib;
pub mod group;
mod memory;
pub mod nexthop;
pub mod prefix;
pub mod probe;
pub mod rib;
pub mod simd;
mod sync;
mod table;

pub use addr::{Address, Family};
pub use memory::prefetch_value;
pub use nexthop::{NextHop, NextHops, Target};
pub use prefix::Prefix;
pub use rib::{Change, Rib, Route};
pub use table::Table;
