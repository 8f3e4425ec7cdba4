//! The statistics of simulated campaigns: error rates, coverage and power, with exact binomial bounds.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod alternatives;
mod bench;
mod binomial;
mod blocks;
mod campaign;
mod campaigns;
mod looks;
mod machine;
mod rounds;
