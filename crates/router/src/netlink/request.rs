//! The requests that this router sends: dumps, and neighbours that the kernel is to verify.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NetlinkMessage, NetlinkPayload, NetlinkSerializable};
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage,
};
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::rule::RuleMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::event::DumpPart;
use super::socket::SocketError;
use super::uapi;
use crate::route::LinkIndex;

/// What the kernel is asked for.
pub enum NetlinkRequest {
    /// A request that `netlink-packet-route` writes.
    Known(RouteNetlinkMessage),
    /// A request of a type that it does not have: a header of zeros after the family.
    Bare {
        /// `RTM_`.
        kind: u16,
        /// `AF_`.
        family: u8,
        /// The length of the header.
        len: usize,
    },
}

impl NetlinkRequest {
    /// Lists everything of one part.
    pub fn dump(part: DumpPart) -> NetlinkRequest {
        let bare = |kind, family, len| NetlinkRequest::Bare { kind, family, len };
        match part {
            DumpPart::Forwarding => bare(uapi::RTM_GETNETCONF, uapi::AF_INET, 4),
            DumpPart::Forwarding6 => bare(uapi::RTM_GETNETCONF, uapi::AF_INET6, 4),
            DumpPart::Rules => NetlinkRequest::Known(RouteNetlinkMessage::GetRule(RuleMessage::default())),
            DumpPart::Links => NetlinkRequest::Known(RouteNetlinkMessage::GetLink(LinkMessage::default())),
            DumpPart::Addresses => {
                NetlinkRequest::Known(RouteNetlinkMessage::GetAddress(AddressMessage::default()))
            }
            DumpPart::Neighbors => {
                NetlinkRequest::Known(RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()))
            }
            DumpPart::Objects => bare(uapi::RTM_GETNEXTHOP, uapi::AF_UNSPEC, 8),
            DumpPart::Inet => routes(AddressFamily::Inet),
            DumpPart::Inet6 => routes(AddressFamily::Inet6),
        }
    }

    /// Has the kernel verify a neighbour as if it had sent a packet to it itself.
    pub fn use_neighbor(link: LinkIndex, address: IpAddr) -> NetlinkRequest {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = link;
        message.header.flags = NeighbourFlags::Use;
        let destination = match address {
            IpAddr::V4(ip) => {
                message.header.family = AddressFamily::Inet;
                NeighbourAddress::Inet(ip)
            }
            IpAddr::V6(ip) => {
                message.header.family = AddressFamily::Inet6;
                NeighbourAddress::Inet6(ip)
            }
        };
        message.attributes.push(NeighbourAttribute::Destination(destination));
        NetlinkRequest::Known(RouteNetlinkMessage::NewNeighbour(message))
    }

    /// The bytes of the request; `flags` are `NLM_F_`.
    pub fn message(self, flags: u16, sequence: u32) -> Vec<u8> {
        let mut message = NetlinkMessage::new(Default::default(), NetlinkPayload::InnerMessage(self));
        message.header.flags = uapi::NLM_F_REQUEST | flags;
        message.header.sequence_number = sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }
}

fn routes(family: AddressFamily) -> NetlinkRequest {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    NetlinkRequest::Known(RouteNetlinkMessage::GetRoute(message))
}

impl NetlinkSerializable for NetlinkRequest {
    fn message_type(&self) -> u16 {
        match self {
            NetlinkRequest::Known(message) => message.message_type(),
            NetlinkRequest::Bare { kind, .. } => *kind,
        }
    }

    fn buffer_len(&self) -> usize {
        match self {
            NetlinkRequest::Known(message) => message.buffer_len(),
            NetlinkRequest::Bare { len, .. } => *len,
        }
    }

    fn serialize(&self, buffer: &mut [u8]) {
        match self {
            NetlinkRequest::Known(message) => message.serialize(buffer),
            NetlinkRequest::Bare { family, .. } => {
                buffer.fill(0);
                buffer.iter_mut().take(1).for_each(|byte| *byte = *family);
            }
        }
    }
}

/// Judges the error that ended a dump. Kernels before 5.3 have no next-hop objects, and a kernel may be built without rules or
/// IPv6: there is nothing to list then.
pub fn refused(code: i32, part: DumpPart) -> Result<(), SocketError> {
    const EOPNOTSUPP: i32 = 95;
    let is_optional =
        matches!(part, DumpPart::Objects | DumpPart::Rules | DumpPart::Inet6 | DumpPart::Forwarding6);
    if code == 0 || code == -EOPNOTSUPP && is_optional {
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
    Err(SocketError::Refused { what, source: io::Error::from_raw_os_error(code.saturating_neg()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_request_is_a_header_of_zeros_after_the_family() {
        let expected = [
            (DumpPart::Forwarding, 82, 2, 4),
            (DumpPart::Forwarding6, 82, 10, 4),
            (DumpPart::Rules, 34, 0, 12),
            (DumpPart::Links, 18, 0, 16),
            (DumpPart::Addresses, 22, 0, 8),
            (DumpPart::Neighbors, 30, 0, 12),
            (DumpPart::Objects, 106, 0, 8),
            (DumpPart::Inet, 26, 2, 12),
            (DumpPart::Inet6, 26, 10, 12),
        ];
        for (part, kind, family, header) in expected {
            let bytes = NetlinkRequest::dump(part).message(uapi::NLM_F_DUMP, 7);
            let len = 16 + header as u32;
            let head =
                [&len.to_ne_bytes()[..], &u16::to_ne_bytes(kind), &0x301u16.to_ne_bytes(), &[7, 0, 0, 0]];
            let body = [&[0; 4][..], &[family], &vec![0; header - 1]].concat();
            assert_eq!(bytes, [head.concat(), body].concat(), "{part:?}");
        }
    }

    #[test]
    fn a_kernel_may_have_no_rules_but_no_kernel_is_without_links() {
        assert!(refused(-95, DumpPart::Rules).is_ok() && refused(-95, DumpPart::Links).is_err());
        assert!(refused(-16, DumpPart::Rules).is_err());
    }

    #[test]
    fn a_neighbour_is_used_by_link_and_address() {
        let bytes = NetlinkRequest::use_neighbor(3, [192, 0, 2, 9].into()).message(uapi::NLM_F_CREATE, 0);
        let body = [2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1, 0, 8, 0, 1, 0, 192, 0, 2, 9];
        assert_eq!((bytes.len(), bytes.get(16..)), (36, Some(&body[..])));
    }
}
