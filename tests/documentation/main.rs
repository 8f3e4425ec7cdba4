//! The pages in `docs/` agree with the code in what a program can check.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

mod archives;
mod campaigns;
mod experiments;
mod keys;
mod links;
mod measurements;
mod schema;
mod slices;
