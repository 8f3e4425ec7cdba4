//! Routes: `struct rtmsg`, 12 bytes, then attributes.

use std::net::IpAddr;

use fullview_table::{Address, Prefix};

use crate::kernel::event::{Action, AnyPrefix, Hop, Route, Selector};
use crate::kernel::uapi;

use super::attribute::{Attributes, u8_at, u16_at, u32_at};
use super::ip;

/// The route; `None` within for a copy that the kernel keeps of what it looked up.
pub(super) fn route(body: &[u8]) -> Option<Option<Route>> {
    let attributes = Attributes(body.get(12..)?);
    if u32_at(body, 8)? & uapi::RTM_F_CLONED != 0 {
        return Some(None);
    }
    let (source, tos) = (u8_at(body, 2)?, u8_at(body, 3)?);
    Some(Some(Route {
        table: attributes.u32(uapi::RTA_TABLE).unwrap_or(u32::from(u8_at(body, 4)?)),
        prefix: prefix(u8_at(body, 0)?, u8_at(body, 1)?, attributes)?,
        metric: attributes.u32(uapi::RTA_PRIORITY).unwrap_or(0),
        selective: (source != 0 || tos != 0).then_some(Selector { tos, source }),
        protocol: u8_at(body, 5)?,
        action: action(u8_at(body, 7)?, u32_at(body, 8)?, attributes),
    }))
}

fn prefix(family: u8, len: u8, attributes: Attributes<'_>) -> Option<AnyPrefix> {
    let destination = match attributes.get(uapi::RTA_DST) {
        Some(value) => Some(ip(value)?),
        None => None,
    };
    match family {
        uapi::AF_INET => Some(AnyPrefix::Inet(of_family(destination, len)?)),
        _ => Some(AnyPrefix::Inet6(of_family(destination, len)?)),
    }
}

/// The default route comes without an address.
fn of_family<A: Address>(destination: Option<IpAddr>, len: u8) -> Option<Prefix<A>> {
    Prefix::new(destination.map_or(Some(A::zero()), A::from_any)?, len)
}

fn action(kind: u8, flags: u32, attributes: Attributes<'_>) -> Action {
    match kind {
        uapi::RTN_UNICAST => forward(flags, attributes),
        uapi::RTN_BROADCAST => Action::Broadcast,
        uapi::RTN_BLACKHOLE => Action::Blackhole,
        uapi::RTN_UNREACHABLE => Action::Unreachable,
        uapi::RTN_PROHIBIT => Action::Prohibit,
        uapi::RTN_THROW => Action::Throw,
        // Local, anycast, multicast, and what may come: the kernel knows.
        _ => Action::Local,
    }
}

fn forward(flags: u32, attributes: Attributes<'_>) -> Action {
    if let Some(id) = attributes.u32(uapi::RTA_NH_ID) {
        return Action::Object(id);
    }
    let metrics = attributes.nested(uapi::RTA_METRICS);
    let mtu = metrics.and_then(|metrics| metrics.u32(uapi::RTAX_MTU)).filter(|mtu| *mtu > 0);
    let hops = match attributes.get(uapi::RTA_MULTIPATH) {
        Some(several) => NextHops(several).map(|hop| Hop { mtu, ..hop }).collect(),
        None => vec![Hop { mtu, ..hop(attributes.u32(uapi::RTA_OIF).unwrap_or(0), flags, 0, attributes) }],
    };
    Action::Forward(hops)
}

/// `RTA_GATEWAY` is of the route's family, `RTA_VIA` of another: a family of 16 bits, then the address.
fn hop(link: u32, flags: u32, hops: u8, attributes: Attributes<'_>) -> Hop {
    let via = || ip(attributes.get(uapi::RTA_VIA)?.get(2..)?);
    let gateway = attributes.get(uapi::RTA_GATEWAY).and_then(ip).or_else(via);
    Hop {
        link,
        gateway: gateway.filter(|gateway| !gateway.is_unspecified()),
        mtu: None,
        weight: u16::from(hops) + 1,
        dead: flags & uapi::RTNH_F_DEAD != 0,
        encapsulated: attributes.get(uapi::RTA_ENCAP_TYPE).is_some(),
    }
}

/// `struct rtnexthop`, 8 bytes, and its attributes; one after the other.
struct NextHops<'a>(&'a [u8]);

impl Iterator for NextHops<'_> {
    type Item = Hop;

    fn next(&mut self) -> Option<Hop> {
        let len = usize::from(u16_at(self.0, 0)?);
        let (flags, hops, link) = (u8_at(self.0, 2)?, u8_at(self.0, 3)?, u32_at(self.0, 4)?);
        let attributes = Attributes(self.0.get(8..len)?);
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(hop(link, u32::from(flags), hops, attributes))
    }
}
