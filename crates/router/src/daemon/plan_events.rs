//! Turns a plan into the events with which the kernel would report its own state, and applies them to the mirror. The plan
//! is complete: what it does not mention is removed from the mirror.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::mirror::Mirror;
use crate::netlink::event::{
    ControlEvent, DumpPart, Link, LinkKind, PROTOCOL_KERNEL, PROTOCOL_STATIC, Placement, RouteEntry,
    RouteOrigin,
};
use crate::route::{AnyPrefix, HopSet, LinkIndex, MAIN_TABLE, RouteAction, RouteHop};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::{Address, NextHop, Prefix, Rib};

use crate::options::plan::{self, Plan, PlannedInterface, PlannedRoute, RouteFeed};

/// Metrics. Of the routes to one prefix, that of an interface wins, then one that the configuration lists, then one of a
/// file. That of an interface is its number: of several interfaces with the same network the first has it, as long as it is
/// up. Of IPv6 routes with equal metrics none would be used, because a kernel takes turns among them.
const LISTED_METRIC: u32 = u32::MAX - 1;
const FILE_METRIC: u32 = u32::MAX;

/// The longest IPv4 prefix with a broadcast address, and the longest IPv6 prefix whose first address is the anycast address
/// of its routers.
const LONGEST_WITH_BROADCAST: u8 = 30;
const LONGEST_WITH_ANYCAST: u8 = 126;

/// The state of a port, which the plan does not have.
#[derive(Clone, Copy)]
pub struct PortState {
    pub mac: Mac,
    /// Whether the port carries frames.
    pub up: bool,
}

/// Applies a plan. `ports` has the state of each port, in the order of their numbers.
pub fn apply_plan(mirror: &mut Mirror, plan: &Plan, ports: &[PortState]) {
    mirror.begin_dump(DumpPart::Links);
    let tables: BTreeSet<u32> = plan.interfaces.iter().map(|interface| interface.table).collect();
    let vrfs = tables.into_iter().filter(|table| *table != MAIN_TABLE);
    vrfs.for_each(|table| mirror.apply(ControlEvent::Link(vrf(table))));
    apply_links(mirror, &plan.interfaces, ports);
    mirror.end_dump(DumpPart::Links);
    mirror.begin_dump(DumpPart::Addresses);
    for interface in &plan.interfaces {
        addresses(interface, ports)
            .for_each(|own| mirror.apply(ControlEvent::Address(interface.link, own.into())));
    }
    mirror.end_dump(DumpPart::Addresses);
    mirror.begin_dump(DumpPart::Inet);
    mirror.begin_dump(DumpPart::Inet6);
    for (metric, interface) in (0..).zip(&plan.interfaces) {
        addresses(interface, ports).for_each(|own| connect(mirror, (interface, metric), own));
    }
    plan.routes.iter().for_each(|route| add_listed(mirror, route));
    plan.feed.iter().for_each(|feed| add_feed(mirror, feed));
    mirror.end_dump(DumpPart::Inet);
    mirror.end_dump(DumpPart::Inet6);
}

/// The number of the VRF link that a table has in the mirror.
fn vrf_link(table: u32) -> LinkIndex {
    1 << 31 | table
}

fn vrf(table: u32) -> Link {
    Link {
        index: vrf_link(table),
        name: format!("table {table}"),
        mac: Mac::default(),
        mtu: 0,
        mtu6: None,
        runs_inet6: true,
        up: true,
        carrier: true,
        kind: LinkKind::Vrf { table },
        master: None,
    }
}

/// Applies the states of the interfaces.
pub fn apply_links(mirror: &mut Mirror, interfaces: &[PlannedInterface], ports: &[PortState]) {
    interfaces.iter().for_each(|interface| mirror.apply(ControlEvent::Link(link(interface, ports))));
}

fn link(interface: &PlannedInterface, ports: &[PortState]) -> Link {
    let PortState { mac, up } = state(interface, ports);
    let parent = plan::port_link(interface.port);
    Link {
        index: interface.link,
        name: interface.name.clone(),
        mac,
        mtu: interface.mtu,
        mtu6: None,
        runs_inet6: true,
        up,
        carrier: up,
        kind: interface.vlan.map_or(LinkKind::Other, |id| LinkKind::Vlan { id, parent }),
        master: (interface.table != MAIN_TABLE).then(|| vrf_link(interface.table)),
    }
}

fn state(interface: &PlannedInterface, ports: &[PortState]) -> PortState {
    let unknown = PortState { mac: Mac::default(), up: false };
    ports.get(usize::from(interface.port)).copied().unwrap_or(unknown)
}

/// The addresses of the plan, and an IPv6 link-local address, which every interface has (RFC 4291, section 2.8).
fn addresses(interface: &PlannedInterface, ports: &[PortState]) -> impl Iterator<Item = InterfaceAddress> {
    let is_link_local =
        |own: &InterfaceAddress| matches!(own.ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let has_one = interface.addresses.iter().any(is_link_local);
    let own = InterfaceAddress { ip: link_local(state(interface, ports).mac).into(), len: 64 };
    interface.addresses.iter().copied().chain((!has_one).then_some(own))
}

/// The router's interfaces with the addresses that a plan gives them.
pub fn with_planned_addresses(
    mut interfaces: Vec<Interface>,
    planned: &[PlannedInterface],
    ports: &[PortState],
) -> Vec<Interface> {
    for interface in &mut interfaces {
        let of_plan = planned.iter().find(|planned| planned.name == interface.name);
        interface.addresses = of_plan.into_iter().flat_map(|planned| addresses(planned, ports)).collect();
    }
    interfaces
}

/// The link-local address that follows from a MAC (RFC 4291, appendix A).
fn link_local(Mac([a, b, c, d, e, f]): Mac) -> Ipv6Addr {
    let id = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(id))
}

/// Adds the routes that follow from an interface's address: to its network, to the address itself, and to the network's
/// broadcast and anycast addresses. Link-local networks are on every link, and need no route.
fn connect(mirror: &mut Mirror, (interface, metric): (&PlannedInterface, u32), own: InterfaceAddress) {
    let mut add = |prefix, action| {
        let route = route(interface.table, prefix, metric, action);
        mirror.apply(ControlEvent::Route(RouteEntry { protocol: PROTOCOL_KERNEL, ..route }, Placement::Last));
    };
    let network = RouteAction::via([RouteHop::new(interface.link, None, 1)]);
    match own.ip {
        IpAddr::V4(ip) => {
            let broadcast =
                Ipv4Addr::from_bits(ip.to_bits() | u32::MAX.checked_shr(own.len.into()).unwrap_or(0));
            add(AnyPrefix::host(ip.into()), RouteAction::Local);
            if own.len <= LONGEST_WITH_BROADCAST {
                add(AnyPrefix::host(broadcast.into()), RouteAction::Broadcast);
            }
            add(AnyPrefix::Inet(Prefix::containing(ip.to_bits(), own.len)), network);
        }
        IpAddr::V6(ip) => {
            let prefix = Prefix::<u128>::containing(ip.to_bits(), own.len);
            add(AnyPrefix::host(ip.into()), RouteAction::Local);
            if ip.is_unicast_link_local() {
                return;
            }
            if own.len <= LONGEST_WITH_ANYCAST {
                add(AnyPrefix::host(Ipv6Addr::from_bits(prefix.first()).into()), RouteAction::Local);
            }
            add(AnyPrefix::Inet6(prefix), network);
        }
    }
}

fn add_listed(mirror: &mut Mirror, listed: &PlannedRoute) {
    let route = route(listed.table, listed.prefix, LISTED_METRIC, listed.action.clone());
    mirror.apply(ControlEvent::Route(route, Placement::Last));
}

fn add_feed(mirror: &mut Mirror, feed: &RouteFeed) {
    add_family(mirror, feed, &feed.routes.inet, AnyPrefix::Inet);
    add_family(mirror, feed, &feed.routes.inet6, AnyPrefix::Inet6);
}

fn add_family<A: Address>(
    mirror: &mut Mirror,
    feed: &RouteFeed,
    rib: &Rib<A>,
    any: impl Fn(Prefix<A>) -> AnyPrefix,
) {
    let is_of_family =
        |way: &&RouteHop| way.gateway.is_some_and(|gateway| gateway.is_ipv4() == (A::BITS == 32));
    let gateways: Vec<&RouteHop> = feed.gateways.iter().filter(is_of_family).collect();
    for fed in rib.iter() {
        let action =
            dealt(&gateways, fed.next_hop).map_or(RouteAction::Unreachable, |way| RouteAction::via([*way]));
        let route = route(feed.table, any(fed.prefix), FILE_METRIC, action);
        mirror.apply(ControlEvent::Route(route, Placement::Last));
    }
}

/// The gateway of a route: the routes' next hops are dealt to the gateways in turn. `None` for a route without a next hop.
fn dealt<'a>(gateways: &[&'a RouteHop], next_hop: NextHop) -> Option<&'a RouteHop> {
    let number = next_hop.index().checked_sub(1)?;
    gateways.get(number % gateways.len().max(1)).copied()
}

fn route(table: u32, prefix: AnyPrefix, metric: u32, action: RouteAction<HopSet>) -> RouteEntry {
    RouteEntry {
        table,
        prefix,
        metric,
        selective: None,
        protocol: PROTOCOL_STATIC,
        origin: RouteOrigin::default(),
        action,
    }
}

#[cfg(test)]
mod tests {
    use fullview_plane::adjacency::Adjacency;
    use fullview_table::fib::framework::{Settings, Time};

    use super::*;

    /// An interface with the same networks as others; `last` tells its addresses from theirs.
    fn planned(port: u16, last: u8) -> PlannedInterface {
        let inet = InterfaceAddress { ip: Ipv4Addr::new(10, 0, 2, last).into(), len: 24 };
        let ip = Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(last));
        PlannedInterface {
            name: format!("t{port}"),
            link: plan::port_link(port),
            port,
            vlan: None,
            mtu: 1500,
            table: MAIN_TABLE,
            addresses: vec![inet, InterfaceAddress { ip: ip.into(), len: 64 }],
        }
    }

    fn adjacencies(mirror: &Mirror) -> [Option<Adjacency>; 2] {
        let (inet, inet6) = (Ipv4Addr::new(10, 0, 2, 9), Ipv6Addr::from_bits(0x2001_0db8 << 96 | 9));
        let view = mirror.views().current();
        let table = &view.parts().tables[0];
        let inet = table.inet.with(|fib| fib.lookup(inet.to_bits()));
        let inet6 = table.inet6.with(|fib| fib.lookup(inet6.to_bits()));
        [inet, inet6].map(|hop| view.parts().adjacencies.get(hop))
    }

    #[test]
    fn of_two_interfaces_with_the_same_network_the_first_that_is_up_has_it() {
        let mut mirror = Mirror::new(Time::ZERO, vec!["t0".into(), "t1".into()], Settings::default());
        mirror.keep_routes();
        let interfaces = vec![planned(0, 1), planned(1, 3)];
        let mut ports = [2, 3].map(|last| PortState { mac: Mac([2, 0, 0, 0, 0, last]), up: true });
        apply_plan(&mut mirror, &Plan { interfaces: interfaces.clone(), ..Plan::default() }, &ports);
        mirror.commit(Time::ZERO);
        assert_eq!(adjacencies(&mirror), [Some(Adjacency::Glean { interface: 0 }); 2]);
        ports[0].up = false;
        apply_links(&mut mirror, &interfaces, &ports);
        mirror.commit(Time::from_secs(2));
        assert_eq!(adjacencies(&mirror), [Some(Adjacency::Glean { interface: 1 }); 2]);
    }
}
