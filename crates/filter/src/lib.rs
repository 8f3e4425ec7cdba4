//! Stateful packet filtering: two rule languages, one state table.
//!
//! `pf` and `ipfw` read their own languages into their own rules; both become one compiled rule set, which decides
//! about packets together with a table of states. This crate does no I/O except reading the files of a rule set, reads
//! no clock, spawns no thread, and knows nothing of routes or ports.

pub mod ipfw;
pub mod pf;
