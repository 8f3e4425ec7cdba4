//! A router without a kernel: what it answers, whom it asks, and how much it lets itself be asked. What the answers
//! look like byte by byte is compared with the Linux kernel's in `tests/oracle` of the program.

// A helper of a test fails by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod bounds;
mod channel;
mod config;
mod replies;
mod support;
mod worker;
