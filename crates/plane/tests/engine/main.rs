//! The forwarding program in the kernel, packet by packet: what it answers is what the RIB says, and what it does not
//! forward it leaves as it came.
#![cfg(feature = "bpf")]
// A helper of a test fails by panicking, as the test itself does.
#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod counts;
mod death;
mod dut;
mod frames;
mod passes;
mod sources;
mod updates;
mod vrfs;
