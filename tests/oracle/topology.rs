//! The router under test and the stations around it. They are the same for every device under test.
//!
//! Three sides, each with one station: two ordinary links and a narrow one. Side `n`, counted from 1, is 10.0.n.0/24
//! and 2001:db8:n::/64; the router is .1 there, the station .2.

use std::net::{Ipv4Addr, Ipv6Addr};

use fullview_plane::wire::ethernet::Mac;

/// One side of the router.
pub struct Side {
    pub name: &'static str,
    pub mtu: u16,
}

pub const LEFT: usize = 0;
pub const RIGHT: usize = 1;
pub const NARROW: usize = 2;

pub const SIDES: [Side; 3] =
    [Side { name: "left", mtu: 1500 }, Side { name: "right", mtu: 1500 }, Side { name: "narrow", mtu: 1280 }];

/// The length of the prefixes on all links.
pub const LINK_LENGTHS: (u8, u8) = (24, 64);

pub fn router_mac(side: usize) -> Mac {
    Mac([2, 0, 0, 0, 1, side as u8])
}

pub fn station_mac(side: usize) -> Mac {
    Mac([2, 0, 0, 0, 2, side as u8])
}

/// The IPv4 address of host `host` of a side's link.
pub fn inet(side: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, side as u8 + 1, host)
}

/// The IPv6 address of host `host` of a side's link.
pub fn inet6(side: usize, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, side as u16 + 1, 0, 0, 0, 0, host)
}

/// The router's link-local address, on every link the same.
pub const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// The station's link-local address, on every link the same.
pub const STATION_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

pub const ROUTER: u8 = 1;
pub const STATION: u8 = 2;

/// The target of a static route.
#[derive(Clone, Copy)]
pub enum To {
    Station(usize),
    /// The station of a side, by its link-local address.
    LinkLocal(usize),
    Blackhole,
    Unreachable,
    Prohibit,
}

/// The routes beside the networks of the links. There is no default route.
pub const ROUTES: [(&str, To); 13] = [
    ("198.18.0.0/16", To::Station(LEFT)),
    ("198.19.0.0/16", To::Station(RIGHT)),
    ("198.51.100.0/24", To::Station(NARROW)),
    ("203.0.113.0/26", To::Blackhole),
    ("203.0.113.64/26", To::Unreachable),
    ("203.0.113.128/26", To::Prohibit),
    ("2001:2:0:8::/64", To::Station(LEFT)),
    ("2001:2:0:9::/64", To::Station(RIGHT)),
    ("2001:2:0:a::/64", To::Station(NARROW)),
    ("2001:2:0:e::/64", To::LinkLocal(LEFT)),
    ("2001:2:0:b::/64", To::Blackhole),
    ("2001:2:0:c::/64", To::Unreachable),
    ("2001:2:0:d::/64", To::Prohibit),
];
