//! The router's metrics, for Prometheus.

mod filter_metrics;
pub mod http;
pub mod metrics;
mod page;
