//! The forwarding path: packet in → parse → lookup → rewrite → out.
//!
//! A [`port`] receives a burst of packets, [`forward`] parses, looks up and rewrites the burst, and ports send it. No
//! packet is copied or lost: a packet is an exclusive reference to a slot of an arena ([`burst`]), and a packet that is
//! not forwarded comes back with its [`verdict`].
//!
//! Modules import downwards in this order: `wire`, `verdict`, `program_verdict`, `burst`, `counters`, `policy`, `flow_hash`,
//! [`flow_owner`], `interface`, `adjacency`, `egress`; then [`view`], [`trace`], [`sample`] and [`observed`]; then [`kernel_flows`], `link_program`, [`port`],
//! [`noted_links`], [`forward`] and [`worker`]. [`explain`] and the XDP engine read a view and use nothing of the loop.

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
pub mod flow_hash;
pub mod flow_owner;
pub mod forward;
pub mod interface;
pub mod kernel_flows;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod link_program;
pub mod noted_links;
pub mod observed;
pub mod policy;
pub mod port;
mod port_losses;
pub mod program_verdict;
pub mod report_time;
pub mod sample;
pub mod sample_backlog;
pub mod trace;
pub mod verdict;
pub mod view;
pub mod wire;
pub mod worker;
