//! The router's metrics for Prometheus, and the encoding of sFlow.

mod filter_metrics;
pub mod http;
pub mod metrics;
mod page;
pub mod sflow;
