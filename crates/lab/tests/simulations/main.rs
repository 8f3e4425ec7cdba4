//! The statistics of simulated campaigns: error rates, coverage and power, with exact binomial bounds.
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

mod alternatives;
mod binomial;
mod blocks;
mod looks;
mod machine;
mod rounds;
