//! Next-hop objects, which `netlink-packet-route` does not have: `struct nhmsg`, 8 bytes, then attributes.

use crate::netlink::event::NextHopObject;
use crate::netlink::uapi;
use crate::route::{RouteAction, RouteHop};

use super::attribute::{Attributes, attributes, find, find_u16, find_u32, find_value, ip};

const HEADER: usize = 8;
/// The place of the flags in the header.
const FLAGS: usize = 4;

/// The number of the object that a message is about.
pub(super) fn id(body: &[u8]) -> Option<u32> {
    find_u32(&attributes(body, HEADER)?, uapi::NHA_ID)
}

/// An object and its number. A resilient group keeps a table of which flow uses which member, and an object for bridges
/// (`fdb`) is not for routes: the kernel forwards their packets.
pub(super) fn object(body: &[u8]) -> Option<(u32, NextHopObject)> {
    let attributes = attributes(body, HEADER)?;
    let has = |kind| find(&attributes, kind).is_some();
    let object = match find_value(&attributes, uapi::NHA_GROUP) {
        Some(_) if find_u16(&attributes, uapi::NHA_GROUP_TYPE).unwrap_or(0) != 0 => {
            NextHopObject::Single(RouteAction::Local)
        }
        Some(group) => NextHopObject::Group(members(group)),
        None if has(uapi::NHA_FDB) => NextHopObject::Single(RouteAction::Local),
        None if has(uapi::NHA_BLACKHOLE) => NextHopObject::Single(RouteAction::Blackhole),
        None => NextHopObject::Single(RouteAction::Forward(hop(flags(body)?, &attributes))),
    };
    Some((find_u32(&attributes, uapi::NHA_ID)?, object))
}

fn flags(body: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*body.get(FLAGS..)?.first_chunk()?))
}

fn hop<'a>(flags: u32, attributes: &impl Attributes<'a>) -> RouteHop {
    RouteHop {
        dead: flags & uapi::RTNH_F_DEAD != 0,
        encapsulated: find(attributes, uapi::NHA_ENCAP_TYPE).is_some(),
        ..RouteHop::new(
            find_u32(attributes, uapi::NHA_OIF).unwrap_or(0),
            find_value(attributes, uapi::NHA_GATEWAY).and_then(ip),
            1,
        )
    }
}

/// `struct nexthop_grp`, 8 bytes each: the id, the weight less one, and since Linux 6.12 the weight's upper half.
fn members(group: &[u8]) -> Vec<(u32, u16)> {
    let member = |bytes: &[u8; 8]| {
        let [a, b, c, d, low, high, ..] = *bytes;
        (u32::from_ne_bytes([a, b, c, d]), u16::from_le_bytes([low, high]).saturating_add(1))
    };
    group.as_chunks().0.iter().map(member).collect()
}
