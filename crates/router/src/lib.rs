//! The router as a library: what the kernel or a configuration says becomes tables and views that workers forward by,
//! and operators' questions come back with answers.

pub mod algorithm;
pub mod config;
pub mod control;
pub mod daemon;
pub mod error;
pub mod feed;
pub mod follow;
pub mod host;
pub mod log;
pub mod mirror;
pub mod netlink;
pub mod operations;
pub mod preferences;
pub mod privileges;
pub mod progress;
pub mod route;
pub mod service;
pub mod telemetry;
