//! Which of its addresses the router speaks with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::HostStack;
use super::next_hop::NextHopResolver;
use fullview_plane::interface::Interface;

impl<W: NextHopResolver> HostStack<W> {
    /// Of the interface a packet leaves by the address in the next station's network, else its first one, else that of
    /// another interface (RFC 1812, section 4.3.2.4).
    pub(super) fn source_inet(&self, interface: u16, station: Ipv4Addr) -> Option<Ipv4Addr> {
        let own = self.interface(interface)?;
        let near = own.addresses.iter().filter(|own| own.network_holds(station.into())).map(|own| own.ip);
        let all = self.beside(interface).flat_map(addresses);
        near.chain(addresses(own))
            .chain(all)
            .find_map(|ip| if let IpAddr::V4(ip) = ip { Some(ip) } else { None })
    }

    /// A link-local address for a link-local destination; for others the address that shares the longest prefix with
    /// it, of the interface the packet leaves by before those of the others (RFC 6724, section 5, as far as it matters
    /// here).
    pub(super) fn source_inet6(&self, interface: u16, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        let own = self.interface(interface)?;
        let local = destination.is_unicast_link_local() || is_link_group(destination);
        let first = best(inet6(own), destination, local);
        let elsewhere = || best(self.beside(interface).flat_map(inet6), destination, false);
        first.or_else(|| if local { best(inet6(own), destination, false) } else { elsewhere() })
    }

    /// The interfaces whose packets are looked up in the same table, itself among them.
    pub(super) fn beside(&self, interface: u16) -> impl Iterator<Item = &Interface> {
        let table = self.interface(interface).map(|interface| interface.table);
        self.interfaces.iter().filter(move |other| Some(other.table) == table)
    }

    /// The link-local address of an interface.
    pub(super) fn link_local_of(&self, interface: u16) -> Option<Ipv6Addr> {
        inet6(self.interface(interface)?).find(Ipv6Addr::is_unicast_link_local)
    }
}

fn addresses(interface: &Interface) -> impl Iterator<Item = IpAddr> {
    interface.addresses.iter().map(|own| own.ip)
}

fn inet6(interface: &Interface) -> impl Iterator<Item = Ipv6Addr> {
    addresses(interface).filter_map(|ip| if let IpAddr::V6(ip) = ip { Some(ip) } else { None })
}

/// Of those that are link-local or of those that are not, the first with the longest prefix in common.
fn best(own: impl Iterator<Item = Ipv6Addr>, destination: Ipv6Addr, link_local: bool) -> Option<Ipv6Addr> {
    let common = |ip: &Ipv6Addr| (ip.to_bits() ^ destination.to_bits()).leading_zeros();
    let candidates = own.filter(|ip| ip.is_unicast_link_local() == link_local);
    candidates.reduce(|best, ip| if common(&ip) > common(&best) { ip } else { best })
}

fn is_link_group(ip: Ipv6Addr) -> bool {
    ip.is_multicast() && ip.octets()[1] & 0x0f <= 2
}
