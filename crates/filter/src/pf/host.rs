//! What a rule set needs to know of the machine: its interfaces and their addresses.

use std::net::{IpAddr, Ipv4Addr};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    pub interfaces: Vec<HostInterface>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostInterface {
    pub name: String,
    pub groups: Vec<String>,
    pub loopback: bool,
    pub addresses: Vec<HostAddress>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAddress {
    pub address: IpAddr,
    pub length: u8,
    pub broadcast: Option<Ipv4Addr>,
    /// The other end of a point-to-point link.
    pub peer: Option<IpAddr>,
}

impl HostAddress {
    /// Whether the address means something only together with its interface.
    pub fn is_link_local(&self) -> bool {
        matches!(self.address, IpAddr::V6(address) if address.is_unicast_link_local())
    }
}

impl HostFacts {
    /// The interfaces that a name in a rule stands for: an interface, the members of a group, or all for `self`.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a HostInterface> {
        let all = name == "self";
        self.interfaces
            .iter()
            .filter(move |one| all || one.name == name || one.groups.iter().any(|group| group == name))
    }
}
