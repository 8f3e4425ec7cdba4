//! The generator, the receiver and the runs that join them, from outside.

// Functions that are no tests themselves fail the test that calls them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod flows;
mod frames;
mod receiver;
mod runs;
mod support;
