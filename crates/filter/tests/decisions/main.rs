//! What compiled rule sets decide.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

mod common;
mod full_table;
mod last_match;
mod limits;
mod nat;
mod oracle;
mod pf_states;
mod tcp;
