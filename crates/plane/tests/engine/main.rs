//! The XDP engine's program, packet by packet: it finds the next hops of the RIB, and leaves packets that it does not forward
//! unchanged.
#![cfg(feature = "bpf")]
// Helpers of a test panic on failure, as the test itself does.
#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod attachments;
mod counts;
mod death;
mod dut;
mod frames;
mod limits;
mod link_failures;
mod observed;
mod passes;
mod rules;
mod sources;
mod tags;
mod takeover;
mod updates;
mod verifier;
mod vrfs;
mod watchdog;
