//! `fullview testbed`, and `fullview rates` between hosts that are reached by ssh.
#![cfg(all(feature = "bpf", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also in helpers: a test fails by panicking

mod agent;
mod clean;
mod examples;
mod hooks;
mod hosts;
mod images;
mod phases;
mod pkt_gen;
mod prepared;
mod questions;
mod remote;
