//! The router's metrics, for Prometheus.

pub mod http;
pub mod metrics;
