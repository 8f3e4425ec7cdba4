//! Routes: `struct rtmsg`, 12 bytes, then attributes.

use std::net::IpAddr;

use fullview_table::{Address, Prefix};

use crate::netlink::event::{RouteEntry, Selector};
use crate::netlink::uapi;
use crate::route::{AnyPrefix, HopSet, RouteAction, RouteHop};

use super::attribute::{Attributes, u8_at, u16_at, u32_at};
use super::ip;

/// The route; `None` within for a copy that the kernel keeps of what it looked up.
pub(super) fn route(body: &[u8]) -> Option<Option<RouteEntry>> {
    let attributes = Attributes(body.get(12..)?);
    if u32_at(body, 8)? & uapi::RTM_F_CLONED != 0 {
        return Some(None);
    }
    let (source, tos) = (u8_at(body, 2)?, u8_at(body, 3)?);
    Some(Some(RouteEntry {
        table: attributes.u32(uapi::RTA_TABLE).unwrap_or(u32::from(u8_at(body, 4)?)),
        prefix: prefix(u8_at(body, 0)?, u8_at(body, 1)?, attributes)?,
        metric: attributes.u32(uapi::RTA_PRIORITY).unwrap_or(0),
        selective: (source != 0 || tos != 0).then_some(Selector { tos, source }),
        protocol: u8_at(body, 5)?,
        action: as_links_say(u8_at(body, 0)?, action(u8_at(body, 7)?, u32_at(body, 8)?, attributes)),
    }))
}

/// Whether IPv6 hops are dead hangs on their links alone, and the kernel tells of links, but not that hops have come to
/// life with one: what it said once would stand for ever. (IPv4 hops die with a link's last address too.)
fn as_links_say(family: u8, action: RouteAction<HopSet>) -> RouteAction<HopSet> {
    match action {
        RouteAction::Forward(HopSet::Hops(hops)) if family == uapi::AF_INET6 => RouteAction::Forward(
            HopSet::Hops(hops.into_iter().map(|hop| RouteHop { dead: false, ..hop }).collect()),
        ),
        other => other,
    }
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

fn action(kind: u8, flags: u32, attributes: Attributes<'_>) -> RouteAction<HopSet> {
    match kind {
        uapi::RTN_UNICAST => forward(flags, attributes),
        uapi::RTN_BROADCAST => RouteAction::Broadcast,
        uapi::RTN_BLACKHOLE => RouteAction::Blackhole,
        uapi::RTN_UNREACHABLE => RouteAction::Unreachable,
        uapi::RTN_PROHIBIT => RouteAction::Prohibit,
        uapi::RTN_THROW => RouteAction::Throw,
        // Local, anycast, multicast, and what may come: the kernel knows.
        _ => RouteAction::Local,
    }
}

fn forward(flags: u32, attributes: Attributes<'_>) -> RouteAction<HopSet> {
    let metrics = attributes.nested(uapi::RTA_METRICS);
    let mtu = metrics.and_then(|metrics| metrics.u32(uapi::RTAX_MTU)).filter(|mtu| *mtu > 0);
    if let Some(id) = attributes.u32(uapi::RTA_NH_ID) {
        return if mtu.is_some() {
            RouteAction::Forward(HopSet::ObjectWithMtu(id))
        } else {
            RouteAction::Forward(HopSet::Object(id))
        };
    }
    let hops: Box<[RouteHop]> = match attributes.get(uapi::RTA_MULTIPATH) {
        Some(several) => NextHops(several).map(|hop| RouteHop { mtu, ..hop }).collect(),
        None => Box::new([RouteHop {
            mtu,
            ..hop(attributes.u32(uapi::RTA_OIF).unwrap_or(0), flags, 0, attributes)
        }]),
    };
    RouteAction::Forward(HopSet::Hops(hops))
}

/// `RTA_GATEWAY` is of the route's family, `RTA_VIA` of another: a family of 16 bits, then the address.
fn hop(link: u32, flags: u32, hops: u8, attributes: Attributes<'_>) -> RouteHop {
    let via = || ip(attributes.get(uapi::RTA_VIA)?.get(2..)?);
    let gateway = attributes.get(uapi::RTA_GATEWAY).and_then(ip).or_else(via);
    RouteHop {
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
    type Item = RouteHop;

    fn next(&mut self) -> Option<RouteHop> {
        let len = usize::from(u16_at(self.0, 0)?);
        let (flags, hops, link) = (u8_at(self.0, 2)?, u8_at(self.0, 3)?, u32_at(self.0, 4)?);
        let attributes = Attributes(self.0.get(8..len)?);
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(hop(link, u32::from(flags), hops, attributes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = 4 + value.len() as u16;
        [&len.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
    }

    /// A default route of the table `main`, of values that need no padding.
    fn action_of(family: u8, flags: u32, attributes: &[Vec<u8>]) -> RouteAction<HopSet> {
        let header = [&[family, 0, 0, 0, 254, 186, 0, uapi::RTN_UNICAST], &flags.to_ne_bytes()[..]].concat();
        let body = [header, attributes.concat()].concat();
        route(&body).flatten().map(|route| route.action).unwrap()
    }

    #[test]
    fn a_route_by_an_object_may_have_an_mtu_of_its_own() {
        let object = attribute(uapi::RTA_NH_ID, &7u32.to_ne_bytes());
        let mtu = attribute(uapi::RTA_METRICS, &attribute(uapi::RTAX_MTU, &1280u32.to_ne_bytes()));
        assert_eq!(
            action_of(uapi::AF_INET, 0, std::slice::from_ref(&object)),
            RouteAction::Forward(HopSet::Object(7))
        );
        assert_eq!(
            action_of(uapi::AF_INET, 0, &[object, mtu]),
            RouteAction::Forward(HopSet::ObjectWithMtu(7))
        );
    }

    #[test]
    fn ipv6_hops_are_not_dead_for_longer_than_their_links() {
        let link = attribute(uapi::RTA_OIF, &2u32.to_ne_bytes());
        let dead = |family| match action_of(family, uapi::RTNH_F_DEAD, std::slice::from_ref(&link)) {
            RouteAction::Forward(HopSet::Hops(hops)) => hops.iter().any(|hop| hop.dead),
            other => panic!("{other:?}"),
        };
        assert_eq!((dead(uapi::AF_INET), dead(uapi::AF_INET6)), (true, false));
    }
}
