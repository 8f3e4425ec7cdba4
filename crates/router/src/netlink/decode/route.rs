//! Routes: `struct rtmsg`, 12 bytes, then attributes.

use std::net::IpAddr;

use fullview_table::{Address, Prefix};
use netlink_packet_core::parse_u32;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{RouteFlags, RouteHeader, RouteType};

use crate::netlink::event::{RouteEntry, RouteOrigin, Selector, hash};
use crate::netlink::uapi;
use crate::route::{AnyPrefix, HopSet, LinkIndex, RouteAction, RouteHop};

use super::attribute::{Attribute, attributes, find_u32, ip, nested, value};

const HEADER: usize = 12;

/// The route; `None` within for a copy that the kernel keeps of what it looked up.
pub(super) fn route(body: &[u8]) -> Option<Option<RouteEntry>> {
    let header = RouteHeader::parse(body).ok()?;
    let found = RouteAttributes::read(attributes(body, HEADER)?);
    if header.flags.contains(RouteFlags::Cloned) {
        return Some(None);
    }
    Some(Some(RouteEntry {
        table: found.table.unwrap_or(header.table.into()),
        prefix: prefix(&header, header.destination_prefix_length, found.destination)?,
        metric: found.metric,
        selective: selector(&header, found.sources)?,
        protocol: header.protocol.into(),
        origin: origin(&header, &found),
        action: action(&header, found),
    }))
}

/// What the attributes of a route, or of one of its hops, say as far as they can be parsed. `RouteAttribute` of the
/// library is not used, because a dump of a million routes would take a quarter longer (`docs/decisions.md`,
/// "Netlink").
#[derive(Default)]
struct RouteAttributes<'a> {
    table: Option<u32>,
    destination: Option<&'a [u8]>,
    sources: Option<&'a [u8]>,
    source: Option<IpAddr>,
    metric: u32,
    link: LinkIndex,
    gateway: Option<IpAddr>,
    metrics: Option<&'a [u8]>,
    realms: Option<u32>,
    object: Option<u32>,
    multipath: Option<&'a [u8]>,
    encapsulated: bool,
}

impl<'a> RouteAttributes<'a> {
    fn read(attributes: impl Iterator<Item = Attribute<'a>>) -> RouteAttributes<'a> {
        let mut found = RouteAttributes::default();
        attributes.for_each(|attribute| found.take(attribute.kind(), value(attribute)));
        found
    }

    fn take(&mut self, kind: u16, value: &'a [u8]) {
        let number = || parse_u32(value).ok();
        match kind {
            uapi::RTA_TABLE => self.table = number(),
            uapi::RTA_DST => self.destination = Some(value),
            uapi::RTA_SRC => self.sources = Some(value),
            uapi::RTA_PREFSRC => self.source = ip(value),
            uapi::RTA_PRIORITY => self.metric = number().unwrap_or(0),
            uapi::RTA_OIF => self.link = number().unwrap_or(0),
            uapi::RTA_GATEWAY => self.gateway = gateway(value),
            // The gateway is of another family than the route: a family of 16 bits, then the address.
            uapi::RTA_VIA => self.gateway = self.gateway.or_else(|| gateway(value.get(2..)?)),
            uapi::RTA_METRICS => self.metrics = Some(value),
            uapi::RTA_FLOW => self.realms = number(),
            uapi::RTA_NH_ID => self.object = number(),
            uapi::RTA_MULTIPATH => self.multipath = Some(value),
            uapi::RTA_ENCAP_TYPE => self.encapsulated = true,
            _ => {}
        }
    }

    fn mtu(&self) -> Option<u32> {
        find_u32(&nested(self.metrics?), uapi::RTAX_MTU).filter(|mtu| *mtu > 0)
    }

    fn hop(&self, weight: u16, dead: bool) -> RouteHop {
        RouteHop { dead, encapsulated: self.encapsulated, ..RouteHop::new(self.link, self.gateway, weight) }
    }
}

fn origin(header: &RouteHeader, found: &RouteAttributes<'_>) -> RouteOrigin {
    let attributes = other_attributes(header, found);
    if header.address_family != AddressFamily::Inet {
        return RouteOrigin { attributes, ..RouteOrigin::default() };
    }
    let source = match found.source {
        Some(IpAddr::V4(source)) => source.to_bits(),
        _ => 0,
    };
    let onlink = match found.multipath {
        Some(bytes) => {
            NextHops(bytes).zip(0..u16::BITS).fold(0, |all, (hop, at)| all | u16::from(hop.onlink) << at)
        }
        None => u16::from(header.flags.contains(RouteFlags::Onlink)),
    };
    let (protocol, scope) = (header.protocol.into(), header.scope.into());
    RouteOrigin { protocol, scope, attributes: source ^ attributes, onlink }
}

/// A hash of the link of a route that has no hops here, of an IPv4 route's metrics, and of its realms; 0 without any of them.
fn other_attributes(header: &RouteHeader, found: &RouteAttributes<'_>) -> u32 {
    let has_hops = header.kind == RouteType::Unicast || found.object.is_some();
    let link = Some(found.link).filter(|link| *link != 0 && !has_hops);
    if header.address_family != AddressFamily::Inet {
        return link.map_or(0, |link| hash(&link));
    }
    let hops = NextHops(found.multipath.unwrap_or_default()).enumerate();
    let of_hops: Vec<(usize, u32)> = hops.filter_map(|(at, hop)| Some((at, hop.realms?))).collect();
    match (link, found.metrics, found.realms, &of_hops[..]) {
        (None, None, None, []) => 0,
        all => hash(&all),
    }
}

fn gateway(value: &[u8]) -> Option<IpAddr> {
    ip(value).filter(|gateway| !gateway.is_unspecified())
}

/// `None` within for a route that takes all packets.
fn selector(header: &RouteHeader, sources: Option<&[u8]>) -> Option<Option<Selector>> {
    Some(match header.source_prefix_length {
        0 => Selector::tos(header.tos),
        len => Some(Selector::source(prefix(header, len, sources)?)),
    })
}

fn prefix(header: &RouteHeader, len: u8, first: Option<&[u8]>) -> Option<AnyPrefix> {
    match header.address_family {
        AddressFamily::Inet => Some(AnyPrefix::Inet(of_family(first, len)?)),
        _ => Some(AnyPrefix::Inet6(of_family(first, len)?)),
    }
}

/// The default route has no attribute for its destination.
fn of_family<A: Address>(first: Option<&[u8]>, len: u8) -> Option<Prefix<A>> {
    let address = match first {
        Some(value) => A::from_any(ip(value)?)?,
        None => A::zero(),
    };
    Prefix::new(address, len)
}

fn action(header: &RouteHeader, found: RouteAttributes<'_>) -> RouteAction<HopSet> {
    match header.kind {
        RouteType::Unicast => RouteAction::Forward(hop_set(header, found)),
        // The object is one now; the route follows it when it changes, and goes with it.
        RouteType::BlackHole if found.object.is_some() => RouteAction::Forward(hop_set(header, found)),
        RouteType::Broadcast => RouteAction::Broadcast,
        RouteType::BlackHole => RouteAction::Blackhole,
        RouteType::Unreachable => RouteAction::Unreachable,
        RouteType::Prohibit => RouteAction::Prohibit,
        RouteType::Throw => RouteAction::Throw,
        // Local, anycast, multicast, and types of newer kernels: the kernel knows what to do.
        _ => RouteAction::Local,
    }
}

fn hop_set(header: &RouteHeader, found: RouteAttributes<'_>) -> HopSet {
    let mtu = found.mtu();
    match (found.object, mtu) {
        (Some(object), Some(_)) => return HopSet::ObjectWithMtu(object),
        (Some(object), None) => return HopSet::Object(object),
        (None, _) => {}
    }
    // Whether an IPv6 hop is dead depends only on its link. The kernel reports links, but not that hops can be used
    // again when a link is up: a dead hop would stay dead. (IPv4 hops die with a link's last address too.)
    let is_inet6 = header.address_family == AddressFamily::Inet6;
    let settle = |hop: RouteHop| RouteHop { mtu, dead: hop.dead && !is_inet6, ..hop };
    HopSet::Hops(match found.multipath {
        Some(bytes) => NextHops(bytes).map(|next| settle(next.hop)).collect(),
        None => Box::new([settle(found.hop(1, header.flags.contains(RouteFlags::Dead)))]),
    })
}

/// `struct rtnexthop`, 8 bytes, and its attributes; one after the other.
struct NextHops<'a>(&'a [u8]);

struct MultipathHop {
    hop: RouteHop,
    onlink: bool,
    realms: Option<u32>,
}

impl Iterator for NextHops<'_> {
    type Item = MultipathHop;

    fn next(&mut self) -> Option<MultipathHop> {
        let [low, high, flags, hops, a, b, c, d] = *self.0.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([low, high]));
        let found = RouteAttributes::read(nested(self.0.get(8..len)?));
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        let has = |flag| u32::from(flags) & flag != 0;
        let link = u32::from_ne_bytes([a, b, c, d]);
        let hop = RouteHop { link, ..found.hop(u16::from(hops) + 1, has(uapi::RTNH_F_DEAD)) };
        Some(MultipathHop { hop, onlink: has(uapi::RTNH_F_ONLINK), realms: found.realms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTN_UNICAST: u8 = 1;
    const RTN_BLACKHOLE: u8 = 6;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = 4 + value.len() as u16;
        [&len.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
    }

    /// A default route of the table `main`, of values that need no padding.
    fn action_of(family: u8, flags: u32, attributes: &[Vec<u8>]) -> RouteAction<HopSet> {
        action_of_kind(RTN_UNICAST, family, flags, attributes)
    }

    fn action_of_kind(kind: u8, family: u8, flags: u32, attributes: &[Vec<u8>]) -> RouteAction<HopSet> {
        let header = [&[family, 0, 0, 0, 254, 186, 0, kind], &flags.to_ne_bytes()[..]].concat();
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

    /// The kernel reports the object as it is at the moment, and nothing when the route goes with it.
    #[test]
    fn a_route_by_an_object_that_is_a_blackhole_is_by_the_object() {
        let object = attribute(uapi::RTA_NH_ID, &7u32.to_ne_bytes());
        let blackhole = |attributes: &[Vec<u8>]| action_of_kind(RTN_BLACKHOLE, uapi::AF_INET, 0, attributes);
        assert_eq!(blackhole(&[object]), RouteAction::Forward(HopSet::Object(7)));
        assert_eq!(blackhole(&[]), RouteAction::Blackhole);
    }

    #[test]
    fn ipv6_hops_are_dead_only_while_their_links_are() {
        let link = attribute(uapi::RTA_OIF, &2u32.to_ne_bytes());
        let dead = |family| match action_of(family, uapi::RTNH_F_DEAD, std::slice::from_ref(&link)) {
            RouteAction::Forward(HopSet::Hops(hops)) => hops.iter().any(|hop| hop.dead),
            other => panic!("{other:?}"),
        };
        assert_eq!((dead(uapi::AF_INET), dead(uapi::AF_INET6)), (true, false));
    }

    /// The library's messages would be rejected whole for any of these.
    #[test]
    fn odd_attributes_of_newer_kernels_are_skipped_one_by_one() {
        const UNKNOWN: u16 = 999;
        const CACHEINFO: u16 = 12;
        let link = attribute(uapi::RTA_OIF, &2u32.to_ne_bytes());
        let gateway = attribute(uapi::RTA_GATEWAY, &[192, 0, 2, 1]);
        let odd = [
            attribute(UNKNOWN, &[1; 4]),
            attribute(CACHEINFO, &[1; 4]),
            attribute(uapi::RTA_PRIORITY, &[1; 8]),
        ];
        let hop = RouteHop::new(2, Some([192, 0, 2, 1].into()), 1);
        let attributes = [&odd[..], &[link, gateway.clone()]].concat();
        assert_eq!(action_of(uapi::AF_INET, 0, &attributes), RouteAction::via([hop]));
        let next_hop = [&[24u8, 0, 0, 0, 2, 0, 0, 0][..], &odd[1], &gateway].concat();
        let plain = [&[16u8, 0, 0, 1, 3, 0, 0, 0][..], &gateway].concat();
        let several = attribute(uapi::RTA_MULTIPATH, &[next_hop, plain].concat());
        let other = RouteHop { link: 3, weight: 2, ..hop };
        assert_eq!(action_of(uapi::AF_INET, 0, &[several]), RouteAction::via([hop, other]));
    }

    #[test]
    fn routes_are_told_apart_by_the_prefix_of_their_sources() {
        let selective = |source: &[u8; 16], len: u8, tos: u8| {
            let header = [uapi::AF_INET6, 0, len, tos, 254, 186, 0, RTN_UNICAST, 0, 0, 0, 0];
            let body = [&header[..], &attribute(uapi::RTA_SRC, source)].concat();
            route(&body).flatten().map(|route| route.selective).unwrap()
        };
        let source = |third: u8| [0x20, 1, 0xd, 0xb8, 0, third, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(selective(&source(1), 48, 0), selective(&source(1), 48, 0));
        assert_ne!(selective(&source(1), 48, 0), selective(&source(2), 48, 0));
        assert_ne!(selective(&source(1), 48, 0), selective(&source(1), 56, 0));
        assert_eq!([selective(&source(1), 0, 0), selective(&source(1), 0, 16)], [None, Selector::tos(16)]);
    }

    #[test]
    fn ipv4_routes_are_told_apart_by_their_metrics_and_realms() {
        const ADVMSS: u16 = 8;
        let origin = |attributes: &[Vec<u8>]| {
            let header = [uapi::AF_INET, 0, 0, 0, 254, 186, 0, RTN_UNICAST, 0, 0, 0, 0];
            let body = [&header[..], &attributes.concat()].concat();
            route(&body).flatten().map(|route| route.origin).unwrap()
        };
        let source = attribute(uapi::RTA_PREFSRC, &[192, 0, 2, 1]);
        let advmss = |mss: u32| attribute(uapi::RTA_METRICS, &attribute(ADVMSS, &mss.to_ne_bytes()));
        let realms = attribute(uapi::RTA_FLOW, &7u32.to_ne_bytes());
        let hop = [&[16, 0, 0, 0, 2, 0, 0, 0][..], &realms].concat();
        let all = [
            origin(std::slice::from_ref(&source)),
            origin(&[source.clone(), advmss(1300)]),
            origin(&[source.clone(), advmss(1301)]),
            origin(&[source.clone(), realms]),
            origin(&[source, attribute(uapi::RTA_MULTIPATH, &hop)]),
        ];
        assert_eq!(all[0].attributes, 0xc000_0201);
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    }

    /// Several links may have one address, and each of them has one to their multicast groups.
    #[test]
    fn local_routes_are_told_apart_by_their_links() {
        const RTN_LOCAL: u8 = 2;
        let origin = |family, kind, link: u32| {
            let header = [family, 0, 0, 0, 255, 2, 0, kind, 0, 0, 0, 0];
            let body = [&header[..], &attribute(uapi::RTA_OIF, &link.to_ne_bytes())].concat();
            route(&body).flatten().map(|route| route.origin).unwrap()
        };
        for family in [uapi::AF_INET, uapi::AF_INET6] {
            assert_ne!(origin(family, RTN_LOCAL, 2), origin(family, RTN_LOCAL, 3));
            assert_eq!(origin(family, RTN_UNICAST, 2), origin(family, RTN_UNICAST, 3), "their hops differ");
        }
    }

    #[test]
    fn a_route_to_a_damaged_destination_is_no_default_route() {
        let damaged = attribute(uapi::RTA_DST, &[192, 0, 2, 0, 0, 0, 0, 0]);
        let body = [&[uapi::AF_INET, 0, 0, 0, 254, 186, 0, RTN_UNICAST, 0, 0, 0, 0][..], &damaged].concat();
        assert_eq!(route(&body), None);
    }
}
