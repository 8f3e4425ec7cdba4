//! What the kernel is asked, and how its answers end.

use std::io;
use std::net::IpAddr;

use fullview_table::Family;

use super::decode::Message;
use super::event::{AnyPrefix, Event, LinkIndex, Part};

use super::socket::SocketError;
use super::uapi;

/// `struct ndmsg` and the address.
pub fn use_neighbor(link: LinkIndex, address: IpAddr) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(ip) => (uapi::AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (uapi::AF_INET6, ip.octets().to_vec()),
    };
    let mut body = vec![family, 0, 0, 0];
    body.extend(link.to_ne_bytes());
    body.extend([0, 0, uapi::NTF_USE, 0]);
    body.extend((4 + octets.len() as u16).to_ne_bytes());
    body.extend(uapi::NDA_DST.to_ne_bytes());
    body.extend(octets);
    body
}

/// The request that lists a part: its type, the family, and the size of its header.
pub fn question(part: Part) -> (u16, u8, usize) {
    match part {
        Part::Forwarding => (uapi::RTM_GETNETCONF, uapi::AF_INET, 4),
        Part::Forwarding6 => (uapi::RTM_GETNETCONF, uapi::AF_INET6, 4),
        Part::Rules => (uapi::RTM_GETRULE, uapi::AF_UNSPEC, 12),
        Part::Links => (uapi::RTM_GETLINK, uapi::AF_UNSPEC, 16),
        Part::Addresses => (uapi::RTM_GETADDR, uapi::AF_UNSPEC, 8),
        Part::Neighbors => (uapi::RTM_GETNEIGH, uapi::AF_UNSPEC, 12),
        Part::Objects => (uapi::RTM_GETNEXTHOP, uapi::AF_UNSPEC, 8),
        Part::Inet => (uapi::RTM_GETROUTE, uapi::AF_INET, 12),
        Part::Inet6 => (uapi::RTM_GETROUTE, uapi::AF_INET6, 12),
    }
}

/// What a change is about.
pub fn part(event: &Event) -> Part {
    match event {
        Event::Link(_) | Event::LinkGone(_) => Part::Links,
        Event::Address(..) | Event::AddressGone(..) => Part::Addresses,
        Event::Neighbor(_) | Event::NeighborGone(..) => Part::Neighbors,
        Event::NextHop(..) | Event::NextHopGone(_) => Part::Objects,
        Event::Route(route, _) | Event::RouteGone(route) => match route.prefix {
            AnyPrefix::Inet(_) => Part::Inet,
            AnyPrefix::Inet6(_) => Part::Inet6,
        },
        Event::Forwarding(_, Family::Inet, _) => Part::Forwarding,
        Event::Forwarding(_, Family::Inet6, _) => Part::Forwarding6,
        Event::Rule(_) | Event::RuleGone(_) => Part::Rules,
    }
}

/// How a dump ended, or why there is none: 0, or an error less than that.
pub fn code(message: &Message<'_>) -> i32 {
    message.body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes))
}

/// Kernels before 5.3 have no next-hop objects, and some have no IPv6: there is nothing to list.
pub fn refused(message: &Message<'_>, part: Part) -> Result<(), SocketError> {
    const EOPNOTSUPP: i32 = 95;
    let code = code(message);
    if code == 0 || code == -EOPNOTSUPP && matches!(part, Part::Objects | Part::Inet6 | Part::Forwarding6) {
        return Ok(());
    }
    let what = match part {
        Part::Forwarding | Part::Forwarding6 => "settings",
        Part::Rules => "rules",
        Part::Links => "links",
        Part::Addresses => "addresses",
        Part::Neighbors => "neighbours",
        Part::Objects => "next-hop objects",
        Part::Inet => "IPv4 routes",
        Part::Inet6 => "IPv6 routes",
    };
    Err(SocketError::Refused { what, source: io::Error::from_raw_os_error(-code) })
}
