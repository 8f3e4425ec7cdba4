//! The router's metrics for Prometheus, and the encodings of sFlow and IPFIX.

mod filter_metrics;
pub mod http;
pub mod ipfix;
pub mod metrics;
mod page;
mod sampled_packet;
pub mod sflow;
