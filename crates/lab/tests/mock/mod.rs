//! A bench and an experiment for the tests of whole campaigns.

pub mod bench;
pub mod experiment;
