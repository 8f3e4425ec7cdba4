//! The pages in `docs/` say what the code does, as far as a program can tell.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside `#[test]` functions

mod keys;
mod links;
mod schema;
