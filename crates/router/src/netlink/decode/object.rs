//! Next-hop objects: `struct nhmsg`, 8 bytes, then attributes.

use crate::netlink::event::NextHopObject;
use crate::netlink::uapi;
use crate::route::{RouteAction, RouteHop};

use super::attribute::{Attributes, u8_at, u32_at};
use super::ip;

pub(super) fn id(body: &[u8]) -> Option<u32> {
    Attributes(body.get(8..)?).u32(uapi::NHA_ID)
}

pub(super) fn object(body: &[u8]) -> Option<(u32, NextHopObject)> {
    let attributes = Attributes(body.get(8..)?);
    let object = match attributes.get(uapi::NHA_GROUP) {
        // A resilient group places flows by a memory of its own.
        Some(_) if attributes.u16(uapi::NHA_GROUP_TYPE).unwrap_or(0) != 0 => {
            NextHopObject::Single(RouteAction::Local)
        }
        Some(group) => NextHopObject::Group(members(group)),
        None if attributes.get(uapi::NHA_FDB).is_some() => NextHopObject::Single(RouteAction::Local),
        None if attributes.get(uapi::NHA_BLACKHOLE).is_some() => {
            NextHopObject::Single(RouteAction::Blackhole)
        }
        None => NextHopObject::Single(RouteAction::Forward(hop(u32_at(body, 4)?, attributes))),
    };
    Some((attributes.u32(uapi::NHA_ID)?, object))
}

fn hop(flags: u32, attributes: Attributes<'_>) -> RouteHop {
    RouteHop {
        link: attributes.u32(uapi::NHA_OIF).unwrap_or(0),
        gateway: attributes.get(uapi::NHA_GATEWAY).and_then(ip),
        mtu: None,
        weight: 1,
        dead: flags & uapi::RTNH_F_DEAD != 0,
        encapsulated: attributes.get(uapi::NHA_ENCAP_TYPE).is_some(),
    }
}

/// `struct nexthop_grp`, 8 bytes each: the id, the weight less one, and since 6.12 the weight's upper half.
fn members(group: &[u8]) -> Vec<(u32, u16)> {
    let member = |bytes: &[u8]| {
        let (low, high) = (u8_at(bytes, 4)?, u8_at(bytes, 5)?);
        let weight = u16::from_le_bytes([low, high]).saturating_add(1);
        Some((u32_at(bytes, 0)?, weight))
    };
    group.chunks_exact(8).filter_map(member).collect()
}
