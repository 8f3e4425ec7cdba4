//! The interfaces that rules name.

use crate::address::Address;

/// An interface, as far as rules refer to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterInterface {
    pub name: String,
    pub number: u16,
    /// The groups that it belongs to; that of its driver (`em` for `em0`) is implied.
    pub groups: Vec<String>,
    /// Its addresses, with the lengths of their prefixes counted in their own families.
    pub addresses: Vec<(Address, u8)>,
}

/// All interfaces. Rules are lowered again when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces(pub Vec<FilterInterface>);

impl Interfaces {
    /// The interface with this name.
    pub fn named(&self, name: &str) -> Option<&FilterInterface> {
        self.0.iter().find(|interface| interface.name == name)
    }

    /// The interface with this name, or the members of the group with it.
    pub fn matching<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a FilterInterface> {
        self.0.iter().filter(move |interface| interface.name == name || interface.is_in(name))
    }

    /// The addresses of all interfaces.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        self.0.iter().flat_map(|interface| &interface.addresses).map(|(address, _)| *address)
    }
}

impl FilterInterface {
    fn is_in(&self, group: &str) -> bool {
        let driver = self.name.trim_end_matches(|c: char| c.is_ascii_digit());
        driver == group || self.groups.iter().any(|name| name == group)
    }
}
