//! Source address selection: the address from which the router sends a packet of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::interfaces::Interfaces;
use fullview_plane::interface::Interface;

impl Interfaces {
    /// The outgoing interface's address in the network of the next neighbour, else its first address, else an address of
    /// another interface (RFC 1812, section 4.3.2.4).
    pub fn source_inet(&self, outgoing: u16, neighbor: Ipv4Addr) -> Option<Ipv4Addr> {
        let own = self.get(outgoing)?;
        let near = own.addresses.iter().filter(|own| own.network_holds(neighbor.into())).map(|own| own.ip);
        let all = self.of_same_table(outgoing).flat_map(addresses);
        near.chain(addresses(own))
            .chain(all)
            .find_map(|ip| if let IpAddr::V4(ip) = ip { Some(ip) } else { None })
    }

    /// For a link-local destination a link-local address. For others the address with the longest prefix in common with
    /// the destination, where addresses of the outgoing interface come before those of the others (the parts of RFC 6724,
    /// section 5, that matter here).
    pub fn source_inet6(&self, outgoing: u16, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        let own = self.get(outgoing)?;
        let local = destination.is_unicast_link_local() || is_link_group(destination);
        let first = best(inet6(own), destination, local);
        let elsewhere = || best(self.of_same_table(outgoing).flat_map(inet6), destination, false);
        first.or_else(|| if local { best(inet6(own), destination, false) } else { elsewhere() })
    }

    pub fn link_local_of(&self, number: u16) -> Option<Ipv6Addr> {
        inet6(self.get(number)?).find(Ipv6Addr::is_unicast_link_local)
    }
}

fn addresses(interface: &Interface) -> impl Iterator<Item = IpAddr> {
    interface.addresses.iter().map(|own| own.ip)
}

fn inet6(interface: &Interface) -> impl Iterator<Item = Ipv6Addr> {
    addresses(interface).filter_map(|ip| if let IpAddr::V6(ip) = ip { Some(ip) } else { None })
}

/// The first address with the longest prefix in common with the destination, among those that are link-local or among
/// those that are not.
fn best(own: impl Iterator<Item = Ipv6Addr>, destination: Ipv6Addr, link_local: bool) -> Option<Ipv6Addr> {
    let common = |ip: &Ipv6Addr| (ip.to_bits() ^ destination.to_bits()).leading_zeros();
    let candidates = own.filter(|ip| ip.is_unicast_link_local() == link_local);
    candidates.reduce(|best, ip| if common(&ip) > common(&best) { ip } else { best })
}

fn is_link_group(ip: Ipv6Addr) -> bool {
    ip.is_multicast() && ip.octets()[1] & 0x0f <= 2
}
