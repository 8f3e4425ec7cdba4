//! What the kernel is asked, and how its answers end.

use std::io;
use std::net::IpAddr;

use fullview_table::Family;

use super::decode::Message;
use super::event::{ControlEvent, DumpPart};

use super::socket::SocketError;
use super::uapi;
use crate::route::{AnyPrefix, LinkIndex};

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
pub fn question(part: DumpPart) -> (u16, u8, usize) {
    match part {
        DumpPart::Forwarding => (uapi::RTM_GETNETCONF, uapi::AF_INET, 4),
        DumpPart::Forwarding6 => (uapi::RTM_GETNETCONF, uapi::AF_INET6, 4),
        DumpPart::Rules => (uapi::RTM_GETRULE, uapi::AF_UNSPEC, 12),
        DumpPart::Links => (uapi::RTM_GETLINK, uapi::AF_UNSPEC, 16),
        DumpPart::Addresses => (uapi::RTM_GETADDR, uapi::AF_UNSPEC, 8),
        DumpPart::Neighbors => (uapi::RTM_GETNEIGH, uapi::AF_UNSPEC, 12),
        DumpPart::Objects => (uapi::RTM_GETNEXTHOP, uapi::AF_UNSPEC, 8),
        DumpPart::Inet => (uapi::RTM_GETROUTE, uapi::AF_INET, 12),
        DumpPart::Inet6 => (uapi::RTM_GETROUTE, uapi::AF_INET6, 12),
    }
}

/// What a change is about.
pub fn part(event: &ControlEvent) -> DumpPart {
    match event {
        ControlEvent::Link(_) | ControlEvent::LinkRemoved(_) => DumpPart::Links,
        ControlEvent::Address(..) | ControlEvent::AddressRemoved(..) => DumpPart::Addresses,
        ControlEvent::Neighbor(_) | ControlEvent::NeighborRemoved(..) => DumpPart::Neighbors,
        ControlEvent::NextHop(..) | ControlEvent::NextHopRemoved(_) => DumpPart::Objects,
        ControlEvent::Route(route, _) | ControlEvent::RouteRemoved(route) => match route.prefix {
            AnyPrefix::Inet(_) => DumpPart::Inet,
            AnyPrefix::Inet6(_) => DumpPart::Inet6,
        },
        ControlEvent::Forwarding(_, Family::Inet, _) => DumpPart::Forwarding,
        ControlEvent::Forwarding(_, Family::Inet6, _) => DumpPart::Forwarding6,
        ControlEvent::Rule(_) | ControlEvent::RuleRemoved(_) => DumpPart::Rules,
    }
}

/// How a dump ended, or why there is none: 0, or an error less than that.
pub fn code(message: &Message<'_>) -> i32 {
    message.body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes))
}

/// Kernels before 5.3 have no next-hop objects, and some have no IPv6: there is nothing to list.
pub fn refused(message: &Message<'_>, part: DumpPart) -> Result<(), SocketError> {
    const EOPNOTSUPP: i32 = 95;
    let code = code(message);
    if code == 0
        || code == -EOPNOTSUPP && matches!(part, DumpPart::Objects | DumpPart::Inet6 | DumpPart::Forwarding6)
    {
        return Ok(());
    }
    let what = match part {
        DumpPart::Forwarding | DumpPart::Forwarding6 => "settings",
        DumpPart::Rules => "rules",
        DumpPart::Links => "links",
        DumpPart::Addresses => "addresses",
        DumpPart::Neighbors => "neighbours",
        DumpPart::Objects => "next-hop objects",
        DumpPart::Inet => "IPv4 routes",
        DumpPart::Inet6 => "IPv6 routes",
    };
    Err(SocketError::Refused { what, source: io::Error::from_raw_os_error(-code) })
}
