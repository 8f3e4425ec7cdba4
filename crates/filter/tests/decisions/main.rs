//! What compiled rule sets decide.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

mod common;
mod limits;
mod nat;
mod pf_states;
mod tcp;
