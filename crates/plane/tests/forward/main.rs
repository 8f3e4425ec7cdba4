//! The forwarding loop: frames in, frames out, or the exact reason why not.

// A helper of a test fails by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod frames;
mod order;
mod plain;
mod router;
