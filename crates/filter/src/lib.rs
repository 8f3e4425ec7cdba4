//! Stateful packet filtering: two rule languages, one state table.
//!
//! `pf` and `ipfw` read their own languages into their own rules; both become one compiled rule set, which decides
//! about packets together with a table of states. This crate does no I/O except reading the files of a rule set, reads
//! no clock, spawns no thread, and knows nothing of routes or ports.
//!
//! From bottom to top: [`address`], [`packet`] (what a filter sees), [`rule`] (the compiled form), [`address_table`],
//! [`state`] (the table that one worker owns, and in [`state::flow`] the flows that need no rule), [`ruleset`] (which
//! decides), [`handover`] (states that another process goes on with), and the languages.

pub mod address;
pub mod address_table;
mod brief;
mod classify;
mod fields;
pub mod handover;
pub mod interfaces;
pub mod ipfw;
mod memory;
mod name_number;
pub mod packet;
pub mod pf;
pub mod rule;
pub mod ruleset;
pub mod state;
pub mod text;
pub mod verdict;
