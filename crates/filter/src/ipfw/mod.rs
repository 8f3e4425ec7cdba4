//! The rule language of FreeBSD's ipfw(8).
//!
//! A script is read into a [`Ruleset`](IpfwConfig): rules by number, tables, NAT instances and sets, as the commands in it
//! change them. It prints as `ipfw list` does, and is lowered into the compiled form once the interfaces are known.

mod addresses;
mod ast;
mod body;
mod codes;
mod commands;
mod config;
mod error;
pub mod first_rule;
mod lookup;
mod lower;
mod lower_nat;
mod lower_options;
mod missing_nat;
mod nat;
mod options;
mod print;
mod rule;
mod rule_size;
mod script;
mod tables;
mod tags;
mod words;

pub use ast::{
    IpfwAction, IpfwAddress, IpfwBody, IpfwInterface, IpfwKeep, IpfwKey, IpfwOption, IpfwPorts, IpfwProtocol,
    IpfwReject, IpfwRule, IpfwTerm,
};
pub use config::{IpfwConfig, IpfwTable, NatInstance, NatRedirect};
pub use error::IpfwError;
pub use missing_nat::{MissingNat, missing_nats};
