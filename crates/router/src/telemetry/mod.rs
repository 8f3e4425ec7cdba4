//! Figures for those who watch many routers, and what happened lately for those who look at one.

pub mod events;
pub mod http;
pub mod metrics;
