//! The second flow: packet in → parse → lookup → rewrite → out.
//!
//! [`port`]s bring bursts of packets in, [`forward`] takes each burst from the wire to the wire, and ports send it on.
//! A packet is never copied on its way and never lost: it is an exclusive reference to a slot of an arena
//! ([`burst`]), and what is not forwarded comes back with its [`verdict`].

#[cfg(test)]
mod address_rules;
pub mod adjacency;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod bpf;
pub mod burst;
pub mod counters;
mod egress;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod engine;
pub mod explain;
pub mod forward;
pub mod interface;
pub mod port;
pub mod trace;
pub mod verdict;
pub mod view;
pub mod wire;
pub mod worker;
