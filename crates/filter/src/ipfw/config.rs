use std::collections::BTreeMap;
use std::net::IpAddr;

use super::ast::IpfwRule;
use super::tags::UsedTags;
use crate::rule::TableKind;

/// What the commands of a script have configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IpfwConfig {
    /// In the order in which they are tried.
    pub rules: Vec<IpfwRule>,
    pub tables: BTreeMap<String, IpfwTable>,
    pub nats: BTreeMap<u16, NatInstance>,
    /// One bit for each disabled set.
    pub disabled_sets: u32,
    /// Those of all rules that were added.
    pub(super) tags: UsedTags,
    /// Those of all tables that were created, and of those that rules named first.
    pub(super) table_kinds: BTreeMap<String, TableKind>,
}

/// A table: prefixes, with the lengths counted in their own families, and their values. A number is an address of 128 bits
/// ([`Address::number`](crate::address::Address::number)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpfwTable {
    pub entries: BTreeMap<(IpAddr, u8), u32>,
}

/// An instance of address translation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatInstance {
    /// The address that sources get, or the interface whose first address they get.
    pub address: Option<IpAddr>,
    pub interface: Option<String>,
    /// Sources keep their ports.
    pub same_ports: bool,
    /// Packets on their way in that belong to no translation are dropped.
    pub deny_in: bool,
    pub redirects: Vec<NatRedirect>,
}

/// Packets that arrive for an alias go to a host behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatRedirect {
    /// The protocol with the ports of the alias and the first port of the host; all protocols without.
    pub ports: Option<(u8, (u16, u16), u16)>,
    pub host: IpAddr,
    /// The alias, if it is not the address of the instance.
    pub alias: Option<IpAddr>,
}
