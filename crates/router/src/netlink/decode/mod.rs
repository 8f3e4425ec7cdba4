//! From bytes to events. What is not understood is left out, attribute by attribute; a message whose very subject is
//! damaged is an error.
//!
//! Written here because `netlink-packet-route` knows no next-hop objects, and refuses a whole route for one attribute
//! that it finds odd.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullview_table::Family;

use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;

use super::event::{ALL_LINKS, ControlEvent, Link, LinkKind, LinkNeighbor, NeighborState, Placement};
use super::uapi;
use crate::route::LinkIndex;
use attribute::{Attributes, u8_at, u16_at, u32_at};

mod attribute;
mod frame;
mod object;
mod route;
mod rule;

pub use frame::{Message, Messages};

/// A message that cannot be what it says it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netlink: a message of type {kind} and {len} bytes without {missing}")]
pub struct Malformed {
    /// Its type (`RTM_`).
    pub kind: u16,
    /// Bytes behind its header.
    pub len: usize,
    /// What it lacks.
    pub missing: &'static str,
}

/// What a message says; `None` if that is nothing to us.
pub fn event(message: &Message<'_>) -> Result<Option<ControlEvent>, Malformed> {
    let (kind, body) = (message.kind, message.body);
    let malformed = |missing| Malformed { kind, len: body.len(), missing };
    let event = match kind {
        // What a bridge says about its ports comes as links of its family: they stay links all the same.
        uapi::RTM_NEWLINK | uapi::RTM_DELLINK if u8_at(body, 0) != Some(uapi::AF_UNSPEC) => None,
        uapi::RTM_NEWLINK => Some(ControlEvent::Link(link(body).ok_or_else(|| malformed("a link"))?)),
        uapi::RTM_DELLINK => {
            Some(ControlEvent::LinkRemoved(u32_at(body, 4).ok_or_else(|| malformed("a link"))?))
        }
        uapi::RTM_NEWADDR | uapi::RTM_DELADDR => {
            let (link, address) = address(body).ok_or_else(|| malformed("an address"))?;
            let came = kind == uapi::RTM_NEWADDR;
            Some(if came {
                ControlEvent::Address(link, address)
            } else {
                ControlEvent::AddressRemoved(link, address)
            })
        }
        uapi::RTM_NEWNEIGH | uapi::RTM_DELNEIGH if !of_our_families(body) => None,
        uapi::RTM_NEWNEIGH => {
            neighbor(body).ok_or_else(|| malformed("a neighbour"))?.map(ControlEvent::Neighbor)
        }
        uapi::RTM_DELNEIGH => neighbor(body)
            .ok_or_else(|| malformed("a neighbour"))?
            .map(|gone| ControlEvent::NeighborRemoved(gone.link, gone.address)),
        uapi::RTM_NEWROUTE | uapi::RTM_DELROUTE if !of_our_families(body) => None,
        uapi::RTM_NEWROUTE => route::route(body)
            .ok_or_else(|| malformed("a prefix"))?
            .map(|route| ControlEvent::Route(route, placement(message.flags))),
        uapi::RTM_DELROUTE => {
            route::route(body).ok_or_else(|| malformed("a prefix"))?.map(ControlEvent::RouteRemoved)
        }
        uapi::RTM_NEWNEXTHOP => {
            let (id, object) = object::object(body).ok_or_else(|| malformed("an id"))?;
            Some(ControlEvent::NextHop(id, object))
        }
        uapi::RTM_DELNEXTHOP => {
            Some(ControlEvent::NextHopRemoved(object::id(body).ok_or_else(|| malformed("an id"))?))
        }
        uapi::RTM_NEWNETCONF => forwarding(body),
        uapi::RTM_NEWRULE => rule::rule(body).ok_or_else(|| malformed("a rule"))?.map(ControlEvent::Rule),
        uapi::RTM_DELRULE => {
            rule::rule(body).ok_or_else(|| malformed("a rule"))?.map(ControlEvent::RuleRemoved)
        }
        _ => None,
    };
    Ok(event)
}

fn placement(flags: u16) -> Placement {
    match flags {
        _ if flags & uapi::NLM_F_REPLACE != 0 => Placement::Replace,
        _ if flags & uapi::NLM_F_APPEND != 0 => Placement::Last,
        _ => Placement::First,
    }
}

fn of_our_families(body: &[u8]) -> bool {
    matches!(u8_at(body, 0), Some(uapi::AF_INET | uapi::AF_INET6))
}

/// `struct ifinfomsg`, 16 bytes, then attributes.
fn link(body: &[u8]) -> Option<Link> {
    let (index, flags) = (u32_at(body, 4)?, u32_at(body, 8)?);
    let attributes = Attributes(body.get(16..)?);
    let name = attributes.get(uapi::IFLA_IFNAME)?;
    let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next()?).into_owned();
    let mtu = attributes.u32(uapi::IFLA_MTU)?;
    Some(Link {
        index,
        name,
        mac: attributes.get(uapi::IFLA_ADDRESS).and_then(mac).unwrap_or_default(),
        mtu,
        mtu6: mtu6(attributes).filter(|mtu6| *mtu6 < mtu),
        up: flags & uapi::IFF_UP != 0,
        carrier: flags & uapi::IFF_LOWER_UP != 0,
        kind: link_kind(attributes).unwrap_or(LinkKind::Other),
        master: attributes.u32(uapi::IFLA_MASTER),
    })
}

/// A link that has no IPv6 has no such settings.
fn mtu6(attributes: Attributes<'_>) -> Option<u32> {
    let inet6 = attributes.nested(uapi::IFLA_AF_SPEC)?.nested(uapi::AF_INET6.into())?;
    u32_at(inet6.get(uapi::IFLA_INET6_CONF)?, uapi::DEVCONF_MTU6 * 4)
}

/// A VLAN of a provider (802.1ad) is not one that the forwarding path writes.
fn link_kind(attributes: Attributes<'_>) -> Option<LinkKind> {
    const DOT1Q: [u8; 2] = 0x8100u16.to_be_bytes();
    let info = attributes.nested(uapi::IFLA_LINKINFO)?;
    let data = info.nested(uapi::IFLA_INFO_DATA)?;
    match info.get(uapi::IFLA_INFO_KIND)?.strip_suffix(&[0])? {
        b"vlan" if data.get(uapi::IFLA_VLAN_PROTOCOL)?.starts_with(&DOT1Q) => {
            let (id, parent) = (data.u16(uapi::IFLA_VLAN_ID)?, attributes.u32(uapi::IFLA_LINK)?);
            Some(LinkKind::Vlan { id, parent })
        }
        b"vrf" => Some(LinkKind::Vrf { table: data.u32(uapi::IFLA_VRF_TABLE)? }),
        _ => None,
    }
}

/// `struct ifaddrmsg`, 8 bytes. On a point-to-point link the one that is ours is `IFA_LOCAL`.
fn address(body: &[u8]) -> Option<(LinkIndex, InterfaceAddress)> {
    let attributes = Attributes(body.get(8..)?);
    let own = attributes.get(uapi::IFA_LOCAL).or_else(|| attributes.get(uapi::IFA_ADDRESS))?;
    Some((u32_at(body, 4)?, InterfaceAddress { ip: ip(own)?, len: u8_at(body, 1)? }))
}

/// `struct ndmsg`, 12 bytes. What the kernel answers for others is no neighbour.
fn neighbor(body: &[u8]) -> Option<Option<LinkNeighbor>> {
    let (link, state, flags) = (u32_at(body, 4)?, u16_at(body, 8)?, u8_at(body, 10)?);
    let attributes = Attributes(body.get(12..)?);
    let address = ip(attributes.get(uapi::NDA_DST)?)?;
    let mac = attributes.get(uapi::NDA_LLADDR).and_then(mac);
    let neighbor = LinkNeighbor { link, address, mac, state: NeighborState(state) };
    Some((flags & uapi::NTF_PROXY == 0).then_some(neighbor))
}

fn mac(value: &[u8]) -> Option<Mac> {
    value.try_into().ok().map(Mac)
}

/// An address of the family that its length says.
fn ip(value: &[u8]) -> Option<IpAddr> {
    let inet = || <[u8; 4]>::try_from(value).ok().map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    let inet6 = || <[u8; 16]>::try_from(value).ok().map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
    inet().or_else(inet6)
}

/// `struct netconfmsg`, 4 bytes with its padding. Of settings only this one is heeded. Those for all links, or for new
/// ones, have negative numbers. IPv4 links are told of one by one whatever they say; the kernel forwards no IPv6 at all
/// unless that of all links says so, whatever those of links do (`ip6_forward`).
fn forwarding(body: &[u8]) -> Option<ControlEvent> {
    let attributes = Attributes(body.get(4..)?);
    let family = if u8_at(body, 0)? == uapi::AF_INET { Family::Inet } else { Family::Inet6 };
    let link = match attributes.u32(uapi::NETCONFA_IFINDEX)? {
        uapi::NETCONFA_IFINDEX_ALL if family == Family::Inet6 => ALL_LINKS,
        link => Some(link).filter(|link| *link <= i32::MAX as u32)?,
    };
    Some(ControlEvent::Forwarding(link, family, attributes.u32(uapi::NETCONFA_FORWARDING)? != 0))
}
