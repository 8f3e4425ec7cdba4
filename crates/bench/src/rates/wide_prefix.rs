//! Prefixes of either family as those of 128 bits: an address of IPv4 stands in the upper 32 bits, so that lengths and
//! coverage are the same.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullview_router::netlink::route_writer::RoutePrefix;
use fullview_table::{Address, Family, Prefix};

/// A prefix whose family is known from elsewhere.
pub type WidePrefix = Prefix<u128>;

const LOWER: u32 = u128::BITS - u32::BITS;

pub fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::Inet } else { Family::Inet6 }
}

/// Nothing of a length that the family does not have, or of an address with more bits than that.
pub fn wide(address: IpAddr, len: u8) -> Option<WidePrefix> {
    let most = if address.is_ipv4() { u32::BITS } else { u128::BITS };
    Prefix::new(bits(address), len).filter(|_| u32::from(len) <= most)
}

/// The network of a host.
pub fn network(address: IpAddr, len: u8) -> WidePrefix {
    Prefix::containing(bits(address), len)
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << LOWER,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A prefix of any family.
pub fn widened<A: Address>(prefix: Prefix<A>) -> Option<WidePrefix> {
    wide(prefix.first().to_ip().into(), prefix.len())
}

/// The first address of a prefix.
pub fn first(family: Family, prefix: WidePrefix) -> IpAddr {
    match family {
        Family::Inet => Ipv4Addr::from_bits((prefix.first() >> LOWER) as u32).into(),
        Family::Inet6 => Ipv6Addr::from_bits(prefix.first()).into(),
    }
}

/// As the kernel's routes have it.
pub fn route_prefix(family: Family, prefix: WidePrefix) -> RoutePrefix {
    RoutePrefix { first: first(family, prefix), len: prefix.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_back_as_they_were() {
        for (text, len) in [("198.51.100.0", 24), ("192.0.2.1", 32), ("2001:db8::", 32), ("2001:db8::1", 128)]
        {
            let address: IpAddr = text.parse().unwrap();
            let back = route_prefix(family_of(address), wide(address, len).unwrap());
            assert_eq!(back, RoutePrefix { first: address, len });
        }
        assert_eq!(wide("192.0.2.1".parse().unwrap(), 33), None);
        let host: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(wide(host, 24), None, "bits of the host");
        assert_eq!(Some(network(host, 24)), wide("192.0.2.0".parse().unwrap(), 24));
    }
}
