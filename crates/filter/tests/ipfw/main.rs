//! The language of ipfw.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

mod decisions;
mod freebsd;
mod interpreter;
mod language;
mod one_end;
mod reloads;
