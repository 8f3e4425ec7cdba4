//! The forwarding path: packet in → parse → lookup → rewrite → out.
//!
//! A [`port`] receives a burst of packets, [`forward`] parses, looks up and rewrites the burst, and ports send it. No
//! packet is copied or lost: a packet is an exclusive reference to a slot of an arena ([`burst`]), and a packet that is
//! not forwarded comes back with its [`verdict`].
//!
//! Modules import downwards in this order: `wire`, `verdict`, `burst`, `counters`, `interface`, `adjacency`, `egress`;
//! then [`view`], [`trace`] and [`sample`]; then [`kernel_flows`], [`forward`], [`port`] and [`worker`]. [`explain`] and the
//! XDP engine read a view and use nothing of the loop.

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
mod filter_time;
pub mod forward;
pub mod interface;
pub mod kernel_flows;
pub mod port;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod report_time;
pub mod sample;
pub mod trace;
pub mod verdict;
pub mod view;
pub mod wire;
pub mod worker;
