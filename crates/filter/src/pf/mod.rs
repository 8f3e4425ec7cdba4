//! The rule language of pf.conf(5) as FreeBSD has it.
//!
//! [`load::load`] reads a file: the lexer splits it into statements (`syntax`), whose lists are expanded into single
//! rules ([`rule`]). [`config::PfConfig`] prints as `pfctl -nv` prints the same file.

pub mod address;
mod characters;
pub mod config;
pub mod error;
mod expand;
pub mod files;
pub mod first_rule;
pub mod host;
mod lexer;
pub mod load;
pub mod lower;
pub mod named_interfaces;
pub mod names;
mod parse;
mod policy;
pub mod pool;
mod print;
pub mod rule;
pub mod state_options;
mod syntax;
mod token;
