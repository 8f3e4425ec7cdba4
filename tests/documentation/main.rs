//! The pages in `docs/` agree with the code in what a program can check.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside `#[test]` functions

mod keys;
mod links;
mod schema;
