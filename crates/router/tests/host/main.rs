//! The host stack of a router without a kernel: its answers, its requests and its limits. The bytes of its answers are
//! compared with those of the Linux kernel in the program's `tests/oracle`.

// A helper of a test fails by panicking, as the test itself does.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bounds;
mod channel;
mod config;
mod groups;
mod replies;
mod support;
mod worker;
