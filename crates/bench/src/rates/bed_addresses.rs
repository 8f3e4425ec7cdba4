//! The addresses of the test bed in namespaces, and of the networks whose routes fail.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullview_router::netlink::route_writer::RoutePrefix;
use fullview_table::Family;

/// The links of a router: to the left host, to the right one, and the spare one to the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BedLink {
    Left = 1,
    Right = 2,
    Spare = 3,
}

/// Networks whose routes fail. They are for documentation, so that no lab uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailingNetwork {
    /// With a less preferred route by the second link
    Preferred,
    /// With a multipath route by both links
    Multipath,
}

/// The number of the router at each link, and that of the host at its other end.
pub const ROUTER: u8 = 1;
pub const HOST: u8 = 2;

/// The address of a station at a link.
pub fn station(family: Family, link: BedLink, number: u8) -> IpAddr {
    match family {
        Family::Inet => inet(link, number).into(),
        Family::Inet6 => inet6(link, number).into(),
    }
}

pub fn inet(link: BedLink, number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, link as u8, number)
}

/// In the network for benchmarks (RFC 5180).
pub fn inet6(link: BedLink, number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 2, 0, link as u16, 0, 0, 0, number.into())
}

/// The length of the network of a link.
pub fn link_prefix_len(family: Family) -> u8 {
    match family {
        Family::Inet => 24,
        Family::Inet6 => 64,
    }
}

/// The stations at a link by which routes lead. A change between them loses no packet by itself.
pub fn gateways(family: Family, link: BedLink) -> [IpAddr; 2] {
    [HOST, HOST + 1].map(|number| station(family, link, number))
}

impl FailingNetwork {
    pub const ALL: [FailingNetwork; 2] = [FailingNetwork::Preferred, FailingNetwork::Multipath];

    pub fn prefix(self, family: Family) -> RoutePrefix {
        let (inet, inet6) = match self {
            FailingNetwork::Preferred => ([203, 0, 113, 0], 1),
            FailingNetwork::Multipath => ([198, 51, 100, 0], 2),
        };
        match family {
            Family::Inet => RoutePrefix { first: IpAddr::from(inet), len: 24 },
            Family::Inet6 => {
                RoutePrefix { first: Ipv6Addr::new(0x2001, 0xdb8, inet6, 0, 0, 0, 0, 0).into(), len: 48 }
            }
        }
    }
}
