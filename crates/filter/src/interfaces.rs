//! The interfaces that rules name.

use std::collections::BTreeSet;
use std::fmt::Display;

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

    /// The interface with this name, the members of the group with it, or all for `self`.
    pub fn matching<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a FilterInterface> {
        let all = name == "self";
        self.0.iter().filter(move |interface| all || interface.name == name || interface.is_in(name))
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

/// An interface that rules name and that does not exist: perhaps its name is misspelt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: no interface is named {name}; there are {there}")]
pub struct UnknownInterface {
    place: String,
    name: String,
    /// The names of those that exist.
    there: String,
}

impl Interfaces {
    /// Which of these names stand for no interface and no group, each with the first place where it stands. A name that ends
    /// in `*` stands for all that begin so. Loopback interfaces may be absent: rules about them do no harm.
    pub fn unknown<'a, P: Display>(
        &self,
        named: impl IntoIterator<Item = (P, &'a str)>,
    ) -> Vec<UnknownInterface> {
        let mut seen = BTreeSet::new();
        let mut unknown = Vec::new();
        for (place, name) in named {
            if seen.insert(name) && !is_loopback(name) && !self.knows(name) {
                let names: Vec<&str> = self.0.iter().map(|interface| interface.name.as_str()).collect();
                let (place, there) = (place.to_string(), names.join(", "));
                unknown.push(UnknownInterface { place, name: name.to_owned(), there });
            }
        }
        unknown
    }

    fn knows(&self, name: &str) -> bool {
        match name.strip_suffix('*') {
            Some(start) => self.0.iter().any(|interface| interface.name.starts_with(start)),
            None => self.matching(name).next().is_some(),
        }
    }
}

fn is_loopback(name: &str) -> bool {
    name.strip_prefix("lo").is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_stand_for_nothing_are_found_once() {
        let interface = |name: &str| FilterInterface {
            name: name.to_owned(),
            groups: vec!["inside".to_owned()],
            ..FilterInterface::default()
        };
        let interfaces = Interfaces(vec![interface("eth0"), interface("left")]);
        let named = ["eth0", "eth", "inside", "lo0", "lo", "le*", "eth9", "em*", "lo0x", "eth9"];
        let found: Vec<String> =
            interfaces.unknown((1..).zip(named)).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "7: no interface is named eth9; there are eth0, left",
                "8: no interface is named em*; there are eth0, left",
                "9: no interface is named lo0x; there are eth0, left",
            ]
        );
    }
}
