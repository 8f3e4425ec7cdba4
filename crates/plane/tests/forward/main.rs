//! The forwarding loop: frames in, frames out, or the exact reason why not.

// Helpers of a test panic on failure, as the test itself does.
#![allow(clippy::unwrap_used)]

mod filter;
mod flow_program;
mod frames;
mod known_flows;
mod nat;
mod order;
mod parsers;
mod plain;
mod router;
mod shared_flows;
