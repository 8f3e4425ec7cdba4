//! A test bed for forwarding in the kernel: generator, router and receiver in network namespaces, joined by veth pairs.
//!
//! ```text
//!   namespace g: g0 ── d0 :namespace d: out ── r0 :namespace r
//!                g1 ── d1
//!                beside ──────────────────── r1
//!   live frames ──▶ the forwarders under test ──▶ counted, dropped
//! ```
//!
//! Each forwarder has a link of its own, so that all are ready together and take turns of milliseconds; the link `beside`
//! joins generator and receiver without a router.
//!
//! Generator, router and receiver run to completion on one processor: a batch of frames is made, forwarded and received
//! before the next one, so no queue overflows and the counters show what one processor does for all three.

mod bed;
mod command;
mod core_wait;
mod error;
mod fib_lookup;
mod forwarders;
mod frames;
mod leftovers;
mod marker;
mod namespace;
mod owner;
mod programs;
mod records;
mod tied;

pub use bed::{BEHIND_ROUTER, BESIDE, BESIDE_ROUTER, TO_RECEIVER, Testbed};
pub use command::run;
pub use error::TestbedError;
pub use fib_lookup::attach_fib_lookup;
pub use forwarders::{Forwarder, Forwarders, Turn};
pub use frames::{EGRESS, GENERATOR, INGRESS, STATIONS, TestbedHeaders, station_mac, station_of};
pub use leftovers::{Leftover, LeftoverKind, remove_leftovers};
pub use namespace::Namespace;
pub use owner::OwnerFolder;
pub use programs::{Counted, MOST_PACKETS, TestbedPath, TestbedPrograms};
pub use tied::{end_tied, exit_of, start_tied, tied};
