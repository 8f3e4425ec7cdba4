//! What the fence tells a port and its VLANs by: their names.

use super::message::NAME_LENGTH;

/// A port, and those of its VLANs that do not have its name, a dot and more as their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedPort {
    name: String,
    others: Vec<String>,
}

impl FencedPort {
    pub fn new(name: &str, vlans: impl IntoIterator<Item = String>) -> FencedPort {
        let is_other = |vlan: &String| vlan.strip_prefix(name).is_none_or(|rest| !rest.starts_with('.'));
        FencedPort { name: name.to_owned(), others: vlans.into_iter().filter(is_other).collect() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes of the names of all its interfaces.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = Vec<u8>> {
        let names = std::iter::once(&self.name).chain(&self.others).map(|name| whole(name));
        names.chain([with_dot(&self.name)])
    }
}

/// A name with the zeros that end it, so that no longer name begins like it.
fn whole(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(NAME_LENGTH, 0);
    bytes
}

/// A name of the longest kind has no room for a dot behind it, and nothing begins with what this returns then.
fn with_dot(name: &str) -> Vec<u8> {
    let mut bytes = [name.as_bytes(), b"."].concat();
    bytes.truncate(NAME_LENGTH);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_with_the_name_of_its_port_needs_no_rule_of_its_own() {
        let port = FencedPort::new("eth1", ["eth1.7", "eth17", "uplink"].map(String::from));
        assert_eq!(port, FencedPort::new("eth1", ["eth17", "uplink", "eth1.8"].map(String::from)));
        let prefixes: Vec<_> = port.prefixes().collect();
        assert_eq!(prefixes, [whole("eth1"), whole("eth17"), whole("uplink"), b"eth1.".to_vec()]);
        assert_eq!(prefixes[0], b"eth1\0\0\0\0\0\0\0\0\0\0\0\0");
    }
}
