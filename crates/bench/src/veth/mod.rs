//! Real clients over a router between two hosts, all in network namespaces joined by veth pairs:
//!
//! ```text
//!   namespace l: eth0 ── eth1 :namespace d: eth2 ── eth0 :namespace r
//!   iperf3 or curl      the kernel, or fullview on it     iperf3, or the server of `server.rs`
//! ```
//!
//! Each variant has a bed of its own, whose router runs all the time, and one bed at a time carries traffic: a router
//! without packets sleeps. The control is a bed without a router, whose hosts share a cable.

mod bed;
mod clients;
mod error;
mod iperf;
mod load;
mod router;
mod server;

pub use bed::VethBed;
pub use clients::Clients;
pub use error::VethError;
pub use load::{ClientLoad, ClientTurn, programs_of};
pub use router::{RouterProcess, RouterProgram};
