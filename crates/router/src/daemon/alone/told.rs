//! The mirror is told of a plan as the kernel would tell of itself, whole: what the plan does not mention is gone.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::mirror::Mirror;
use crate::netlink::event::Part;
use crate::netlink::event::{
    self, Action, AnyPrefix, BY_HAND, BY_INTERFACE, Event, Hop, LinkIndex, LinkKind, Placement,
};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::{Address, NextHop, Prefix, Rib};

use super::plan::{Feed, Leads, MAIN, Plan, Planned, Route, Way};

/// Among routes to one prefix those of interfaces win, then those that were typed, then those of a file.
const OF_INTERFACE: u32 = 0;
const TYPED: u32 = 1;
const FED: u32 = 2;

/// The longest prefix with a broadcast address, and the longest whose first address means any of its routers.
const LONGEST_WITH_BROADCAST: u8 = 30;
const LONGEST_WITH_ANYCAST: u8 = 126;

/// A port as it is, whatever the plan says.
#[derive(Clone, Copy)]
pub struct State {
    pub mac: Mac,
    /// Whether frames go through.
    pub up: bool,
}

/// `ports` are in the order of their numbers.
pub fn tell(mirror: &mut Mirror, plan: &Plan, ports: &[State]) {
    mirror.begin(Part::Links);
    let tables: BTreeSet<u32> = plan.interfaces.iter().map(|interface| interface.table).collect();
    let vrfs = tables.into_iter().filter(|table| *table != MAIN);
    vrfs.for_each(|table| mirror.apply(Event::Link(vrf(table))));
    tell_links(mirror, &plan.interfaces, ports);
    mirror.end(Part::Links);
    mirror.begin(Part::Addresses);
    for interface in &plan.interfaces {
        addresses(interface, ports).for_each(|own| mirror.apply(Event::Address(interface.link, own)));
    }
    mirror.end(Part::Addresses);
    mirror.begin(Part::Inet);
    mirror.begin(Part::Inet6);
    for interface in &plan.interfaces {
        addresses(interface, ports).for_each(|own| connect(mirror, interface, own));
    }
    plan.routes.iter().for_each(|route| add_typed(mirror, route));
    plan.feed.iter().for_each(|feed| add_feed(mirror, feed));
    mirror.end(Part::Inet);
    mirror.end(Part::Inet6);
}

/// The number of the link that stands for a table.
fn vrf_link(table: u32) -> LinkIndex {
    1 << 31 | table
}

fn vrf(table: u32) -> event::Link {
    event::Link {
        index: vrf_link(table),
        name: format!("table {table}"),
        mac: Mac::default(),
        mtu: 0,
        mtu6: None,
        up: true,
        carrier: true,
        kind: LinkKind::Vrf { table },
        master: None,
    }
}

/// In what state the interfaces are.
pub fn tell_links(mirror: &mut Mirror, interfaces: &[Planned], ports: &[State]) {
    interfaces.iter().for_each(|interface| mirror.apply(Event::Link(link(interface, ports))));
}

fn link(interface: &Planned, ports: &[State]) -> event::Link {
    let State { mac, up } = state(interface, ports);
    let parent = super::plan::port_link(interface.port);
    event::Link {
        index: interface.link,
        name: interface.name.clone(),
        mac,
        mtu: interface.mtu,
        mtu6: None,
        up,
        carrier: up,
        kind: interface.vlan.map_or(LinkKind::Other, |id| LinkKind::Vlan { id, parent }),
        master: (interface.table != MAIN).then(|| vrf_link(interface.table)),
    }
}

fn state(interface: &Planned, ports: &[State]) -> State {
    let unknown = State { mac: Mac::default(), up: false };
    ports.get(usize::from(interface.port)).copied().unwrap_or(unknown)
}

/// Those of the plan, and for IPv6 a link-local one, which every interface has (RFC 4291, section 2.8).
fn addresses(interface: &Planned, ports: &[State]) -> impl Iterator<Item = InterfaceAddress> {
    let is_link_local =
        |own: &InterfaceAddress| matches!(own.ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let has_one = interface.addresses.iter().any(is_link_local);
    let own = InterfaceAddress { ip: link_local(state(interface, ports).mac).into(), len: 64 };
    interface.addresses.iter().copied().chain((!has_one).then_some(own))
}

/// RFC 4291, appendix A.
fn link_local(Mac([a, b, c, d, e, f]): Mac) -> Ipv6Addr {
    let id = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(id))
}

/// What follows from an address: its network, itself, and the addresses of the network that mean several stations.
/// Link-local networks are on every link, and need no route.
fn connect(mirror: &mut Mirror, interface: &Planned, own: InterfaceAddress) {
    let mut add = |prefix, action| {
        let route = route(interface.table, prefix, OF_INTERFACE, action);
        mirror.apply(Event::Route(event::Route { protocol: BY_INTERFACE, ..route }, Placement::Last));
    };
    let network = Action::Forward(vec![hop(interface.link, None, 1)]);
    match own.ip {
        IpAddr::V4(ip) => {
            let broadcast =
                Ipv4Addr::from_bits(ip.to_bits() | u32::MAX.checked_shr(own.len.into()).unwrap_or(0));
            add(host(ip.into()), Action::Local);
            if own.len <= LONGEST_WITH_BROADCAST {
                add(host(broadcast.into()), Action::Broadcast);
            }
            add(AnyPrefix::Inet(Prefix::containing(ip.to_bits(), own.len)), network);
        }
        IpAddr::V6(ip) => {
            let prefix = Prefix::<u128>::containing(ip.to_bits(), own.len);
            add(host(ip.into()), Action::Local);
            if ip.is_unicast_link_local() {
                return;
            }
            if own.len <= LONGEST_WITH_ANYCAST {
                add(host(Ipv6Addr::from_bits(prefix.first()).into()), Action::Local);
            }
            add(AnyPrefix::Inet6(prefix), network);
        }
    }
}

fn add_typed(mirror: &mut Mirror, typed: &Route) {
    let action = match &typed.leads {
        Leads::Out(ways) => Action::Forward(ways.iter().map(out).collect()),
        Leads::Blackhole => Action::Blackhole,
        Leads::Unreachable => Action::Unreachable,
        Leads::Prohibit => Action::Prohibit,
    };
    let route = route(typed.table, typed.prefix, TYPED, action);
    mirror.apply(Event::Route(route, Placement::Last));
}

fn add_feed(mirror: &mut Mirror, feed: &Feed) {
    add_family(mirror, feed, &feed.routes.inet, AnyPrefix::Inet);
    add_family(mirror, feed, &feed.routes.inet6, AnyPrefix::Inet6);
}

fn add_family<A: Address>(
    mirror: &mut Mirror,
    feed: &Feed,
    rib: &Rib<A>,
    any: impl Fn(Prefix<A>) -> AnyPrefix,
) {
    let is_of_family = |way: &&Way| way.gateway.is_some_and(|gateway| gateway.is_ipv4() == (A::BITS == 32));
    let gateways: Vec<&Way> = feed.gateways.iter().filter(is_of_family).collect();
    for fed in rib.iter() {
        let action =
            dealt(&gateways, fed.next_hop).map_or(Action::Unreachable, |way| Action::Forward(vec![out(way)]));
        let route = route(feed.table, any(fed.prefix), FED, action);
        mirror.apply(Event::Route(route, Placement::Last));
    }
}

/// A route without a next hop leads nowhere.
fn dealt<'a>(gateways: &[&'a Way], next_hop: NextHop) -> Option<&'a Way> {
    let number = next_hop.index().checked_sub(1)?;
    gateways.get(number % gateways.len().max(1)).copied()
}

fn route(table: u32, prefix: AnyPrefix, metric: u32, action: Action) -> event::Route {
    event::Route { table, prefix, metric, selective: None, protocol: BY_HAND, action }
}

fn out(way: &Way) -> Hop {
    hop(way.link, way.gateway, way.weight)
}

fn hop(link: LinkIndex, gateway: Option<IpAddr>, weight: u16) -> Hop {
    Hop { link, gateway, mtu: None, weight, dead: false, encapsulated: false }
}

fn host(ip: IpAddr) -> AnyPrefix {
    match ip {
        IpAddr::V4(ip) => AnyPrefix::Inet(Prefix::host(ip.to_bits())),
        IpAddr::V6(ip) => AnyPrefix::Inet6(Prefix::host(ip.to_bits())),
    }
}
