//! An interface: a port as the network sees it, or one VLAN of a port.

use std::net::IpAddr;

use fullview_table::Family;

use crate::policy::InterfaceRules;
use crate::wire::ethernet::Mac;

/// An interface of the router. Its number is its index in the `interfaces` of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name in messages and telemetry.
    pub name: String,
    /// The port that its frames use.
    pub port: u16,
    /// The VLAN of that port, 1 to 4094; `None` is for untagged frames. A tag of VLAN 0 carries a priority only and counts
    /// as no tag (IEEE 802.1Q).
    pub vlan: Option<u16>,
    /// Its MAC address: frames to other unicast addresses are dropped, and sent frames have this source.
    pub mac: Mac,
    /// The MTU of the link in bytes of the IP packet.
    pub mtu: u32,
    /// A smaller MTU for IPv6.
    pub mtu6: Option<u32>,
    /// Whether the link is up. Packets from and to an interface that is down are dropped.
    pub up: bool,
    /// The routing table for its packets, by index in the `tables` of a view: its VRF.
    pub table: u16,
    /// Rules by which its packets are looked up in other tables.
    pub rules: InterfaceRules,
    /// Whether its IPv4 packets are forwarded. If not, all of them are punted.
    pub forwards_inet: bool,
    /// Whether its IPv6 packets are forwarded. If not, all of them are punted.
    pub forwards_inet6: bool,
    /// How source addresses of its packets are checked.
    pub source_check: SourceCheck,
    /// Whether the router sends ICMP redirects on this link (RFC 1812, section 5.2.7.2).
    pub redirects: bool,
    /// The addresses of the router on this link.
    pub addresses: Vec<InterfaceAddress>,
}

impl Interface {
    /// An Ethernet interface that takes the untagged frames of a port: up, of table 0 without rules, forwarding both
    /// families, with an MTU of 1,500 bytes, without source check, redirects and addresses.
    pub fn new(port: u16, mac: Mac) -> Interface {
        Interface {
            name: format!("port{port}"),
            port,
            vlan: None,
            mac,
            mtu: 1500,
            mtu6: None,
            up: true,
            table: 0,
            rules: InterfaceRules::default(),
            forwards_inet: true,
            forwards_inet6: true,
            source_check: SourceCheck::Off,
            redirects: false,
            addresses: Vec::new(),
        }
    }

    /// Whether the interface forwards packets of that family.
    pub fn forwards(&self, family: Family) -> bool {
        match family {
            Family::Inet => self.forwards_inet,
            Family::Inet6 => self.forwards_inet6,
        }
    }

    /// The MTU for packets of that family.
    pub fn mtu_of(&self, family: Family) -> u32 {
        match family {
            Family::Inet => self.mtu,
            Family::Inet6 => self.mtu6.map_or(self.mtu, |mtu6| mtu6.min(self.mtu)),
        }
    }

    /// Whether the address lies in one of its networks, whose hosts reach each other without a router.
    pub fn is_on_link(&self, addr: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.network_holds(addr))
    }
}

/// Reverse path forwarding (RFC 3704): how the route back to a packet's source is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceCheck {
    /// No check.
    #[default]
    Off,
    /// There has to be a route to the source by any interface. The default route counts, a route that drops does not.
    Loose,
    /// The route to the source has to use the interface that received the packet; one member of a group suffices.
    Strict,
}

/// An address of an interface, and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// Bits that all addresses of the network share.
    pub len: u8,
}

impl InterfaceAddress {
    /// Whether the address lies in this network.
    pub fn network_holds(&self, addr: IpAddr) -> bool {
        let (difference, bits) = match (self.ip, addr) {
            (IpAddr::V4(own), IpAddr::V4(addr)) => (u128::from(own.to_bits() ^ addr.to_bits()), 32u32),
            (IpAddr::V6(own), IpAddr::V6(addr)) => (own.to_bits() ^ addr.to_bits(), 128),
            _ => return false,
        };
        let host = bits.saturating_sub(u32::from(self.len));
        difference.checked_shr(host).unwrap_or(0) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        let holds = |ip: &str, len, addr: &str| {
            InterfaceAddress { ip: ip.parse().unwrap(), len }.network_holds(addr.parse().unwrap())
        };
        assert!(holds("192.0.2.1", 24, "192.0.2.255") && !holds("192.0.2.1", 24, "192.0.3.0"));
        assert!(holds("192.0.2.1", 32, "192.0.2.1") && !holds("192.0.2.1", 32, "192.0.2.0"));
        assert!(holds("192.0.2.1", 0, "8.8.8.8") && !holds("192.0.2.1", 0, "::1"));
        assert!(holds("2001:db8::1", 64, "2001:db8::ffff") && !holds("2001:db8::1", 64, "2001:db8:0:1::"));
        assert!(holds("2001:db8::1", 0, "fe80::1") && holds("2001:db8::1", 128, "2001:db8::1"));
    }
}
