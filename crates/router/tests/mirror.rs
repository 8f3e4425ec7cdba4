//! The mirror, driven by scripts of events: without a kernel and without a clock.

#![allow(clippy::unwrap_used)] // also in helpers: a test fails by panicking

use std::collections::BTreeSet;
use std::net::IpAddr;

use fullview_plane::adjacency::Adjacency;
use fullview_plane::flow_hash::FlowFields;
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::view::{View, ViewReader};
use fullview_plane::wire::ethernet::Mac;
use fullview_router::mirror::Mirror;
use fullview_router::netlink::event::{
    ALL_LINKS, AssignedAddress, ControlEvent, DumpPart, Link, LinkKind, LinkNeighbor, NeighborState,
    NextHopObject, PROTOCOL_RA, Placement, RouteEntry, RouteOrigin, Rule, RuleSelector, RuleTarget, Selector,
};
use fullview_router::route::{AnyPrefix, HopSet, RouteAction, RouteHop};
use fullview_table::fib::framework::{Settings, Time};
use fullview_table::{Address, Family, NextHop};

const MAIN: u32 = 254;
const LOCAL: u32 = 255;
const REACHABLE: u16 = 0x02;
const STALE: u16 = 0x04;
const FAILED: u16 = 0x20;
const KERNEL: u8 = 2;
const BGP: u8 = 186;

/// The mirror, and the time that it is given.
struct Script {
    mirror: Mirror,
    now: Time,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn prefix(text: &str) -> AnyPrefix {
    match text.contains(':') {
        true => AnyPrefix::Inet6(text.parse().unwrap()),
        false => AnyPrefix::Inet(text.parse().unwrap()),
    }
}

fn link(index: u32, name: &str) -> Link {
    Link {
        index,
        name: name.into(),
        mac: mac(index as u8),
        mtu: 1500,
        mtu6: None,
        runs_inet6: true,
        up: true,
        carrier: true,
        kind: LinkKind::Other,
        master: None,
    }
}

fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, last])
}

fn by(link: u32, gateway: &str) -> RouteHop {
    RouteHop { gateway: Some(ip(gateway)), ..direct(link) }
}

fn direct(link: u32) -> RouteHop {
    RouteHop::new(link, None, 1)
}

fn route(to: &str, hops: &[RouteHop]) -> RouteEntry {
    let action = RouteAction::via(hops);
    RouteEntry {
        table: MAIN,
        prefix: prefix(to),
        metric: 0,
        selective: None,
        protocol: BGP,
        origin: RouteOrigin::default(),
        action,
    }
}

fn connected(to: &str, link: u32) -> RouteEntry {
    RouteEntry { protocol: KERNEL, ..route(to, &[direct(link)]) }
}

fn local(to: &str) -> RouteEntry {
    RouteEntry { table: LOCAL, protocol: KERNEL, action: RouteAction::Local, ..route(to, &[]) }
}

fn set_up(index: u32, up: bool) -> ControlEvent {
    ControlEvent::Link(Link { up, carrier: up, ..link(index, &format!("eth{index}")) })
}

fn add(route: RouteEntry) -> ControlEvent {
    ControlEvent::Route(route, Placement::First)
}

fn neighbor(link: u32, address: &str, last: u8, state: u16) -> ControlEvent {
    let (address, state) = (ip(address), NeighborState(state));
    ControlEvent::Neighbor(LinkNeighbor { link, address, mac: Some(mac(last)), state })
}

impl Script {
    /// Two ports, eth1 and eth2 (links 1 and 2), with a connected network each; lo (9) is not a port.
    fn new() -> Script {
        let mirror = Mirror::new(Time::ZERO, vec!["eth1".into(), "eth2".into()], Settings::default());
        let mut script = Script { mirror, now: Time::ZERO };
        script.apply([
            ControlEvent::Link(link(9, "lo")),
            ControlEvent::Link(link(1, "eth1")),
            ControlEvent::Link(link(2, "eth2")),
            add(local("10.0.1.1/32")),
            add(local("10.0.2.1/32")),
            add(connected("10.0.1.0/24", 1)),
            add(connected("10.0.2.0/24", 2)),
        ]);
        script
    }

    /// Applies events, and waits until all tables have followed.
    fn apply(&mut self, events: impl IntoIterator<Item = ControlEvent>) {
        events.into_iter().for_each(|event| self.mirror.apply(event));
        self.settle();
    }

    fn settle(&mut self) {
        self.mirror.commit(self.now);
        for _ in 0..20 {
            self.now += Time::from_secs(2);
            self.mirror.tick(self.now);
        }
    }

    /// Checks that commits without changes publish nothing, once those before have had their effect.
    fn keeps_the_view(&mut self, why: &str) {
        (0..2).for_each(|_| self.settle());
        let before = self.view();
        for _ in 0..5 {
            self.settle();
            assert!(std::sync::Arc::ptr_eq(&before, &self.view()), "{why}");
        }
    }

    fn view(&self) -> std::sync::Arc<View> {
        self.mirror.views().current()
    }

    /// Where packets of all flows to this address go by table 0.
    fn all(&self, to: &str) -> BTreeSet<String> {
        self.all_in(0, to)
    }

    fn all_in(&self, table: usize, to: &str) -> BTreeSet<String> {
        let view = self.view();
        let parts = view.parts();
        let next_hop = match ip(to) {
            IpAddr::V4(to) => parts.tables[table].inet.with(|fib| fib.lookup(u32::from_ip(to))),
            IpAddr::V6(to) => parts.tables[table].inet6.with(|fib| fib.lookup(u128::from_ip(to))),
        };
        let mut groups = parts.groups.reader();
        let members = (0..512).map(|hash| groups.groups().select(next_hop, hash));
        members.map(|hop| name(hop, parts.adjacencies.get(hop))).collect()
    }

    fn to(&self, to: &str) -> String {
        let all = self.all(to);
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().unwrap()
    }
}

fn name(hop: NextHop, adjacency: Option<Adjacency>) -> String {
    match adjacency {
        _ if hop == NextHop::NONE => "no route".into(),
        None => "nothing".into(),
        Some(Adjacency::Neighbor { interface, mac }) => format!("{interface}:{}", mac.0[5]),
        Some(Adjacency::Glean { interface }) => format!("{interface}:glean"),
        Some(other) => format!("{other:?}").to_lowercase(),
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_neighbour_is_gleaned_until_it_is_resolved_and_again_when_it_fails() {
    let mut script = Script::new();
    assert_eq!(script.to("10.0.1.7"), "0:glean");
    assert_eq!(script.to("10.0.1.1"), "local");
    script.apply([neighbor(1, "10.0.1.7", 7, REACHABLE)]);
    assert_eq!(script.to("10.0.1.7"), "0:7");
    assert_eq!(script.to("10.0.1.8"), "0:glean");
    script.apply([neighbor(1, "10.0.1.7", 7, STALE)]);
    assert_eq!(script.to("10.0.1.7"), "0:7");
    script.apply([neighbor(1, "10.0.1.7", 77, REACHABLE)]);
    assert_eq!(script.to("10.0.1.7"), "0:77", "its Ethernet address changed");
    script.apply([neighbor(1, "10.0.1.7", 77, FAILED)]);
    assert_eq!(script.to("10.0.1.7"), "0:glean");
    script.apply([neighbor(1, "10.0.1.7", 7, REACHABLE), ControlEvent::NeighborRemoved(1, ip("10.0.1.7"))]);
    assert_eq!(script.to("10.0.1.7"), "0:glean");
}

#[test]
fn a_gateway_is_gleaned_until_it_is_resolved() {
    let mut script = Script::new();
    script.apply([add(route("198.18.0.0/15", &[by(2, "10.0.2.9")]))]);
    assert_eq!(script.to("198.18.0.1"), "1:glean");
    script.apply([neighbor(2, "10.0.2.9", 9, REACHABLE)]);
    assert_eq!(script.to("198.18.0.1"), "1:9");
    script.apply([ControlEvent::RouteRemoved(route("198.18.0.0/15", &[by(2, "10.0.2.9")]))]);
    assert_eq!(script.to("198.18.0.1"), "no route");
    assert_eq!(script.to("10.0.2.9"), "1:9");
}

#[test]
fn neighbours_have_host_routes_only_where_their_network_leads_to_them() {
    let mut script = Script::new();
    script.apply([neighbor(1, "10.0.1.200", 200, REACHABLE), neighbor(2, "10.0.2.9", 9, REACHABLE)]);
    assert_eq!(script.to("10.0.1.200"), "0:200");
    let half = route("10.0.1.128/25", &[by(2, "10.0.2.9")]);
    script.apply([add(half.clone())]);
    assert_eq!(script.to("10.0.1.200"), "1:9", "a longer prefix has another next hop");
    script.apply([ControlEvent::RouteRemoved(half)]);
    assert_eq!(script.to("10.0.1.200"), "0:200");
    let host = RouteEntry { action: RouteAction::Blackhole, ..route("10.0.1.200/32", &[]) };
    script.apply([add(host.clone())]);
    assert_eq!(script.to("10.0.1.200"), "blackhole", "a route to this very address");
    script.apply([ControlEvent::NeighborRemoved(1, ip("10.0.1.200"))]);
    assert_eq!(script.to("10.0.1.200"), "blackhole");
    script.apply([neighbor(1, "10.0.1.200", 200, REACHABLE), ControlEvent::RouteRemoved(host)]);
    assert_eq!(script.to("10.0.1.200"), "0:200");
    script.apply([neighbor(2, "10.0.1.77", 77, REACHABLE)]);
    assert_eq!(script.to("10.0.1.77"), "0:glean", "it is on another link than its network");
}

/// In both directions: host routes are decided in the order of links.
#[test]
fn a_neighbour_on_two_links_keeps_a_host_route_when_its_network_moves() {
    let mut script = Script::new();
    let by = |link, metric| RouteEntry { metric, ..connected("10.0.9.0/24", link) };
    script.apply([
        neighbor(1, "10.0.9.9", 19, REACHABLE),
        neighbor(2, "10.0.9.9", 29, REACHABLE),
        add(by(1, 200)),
        add(by(2, 100)),
    ]);
    assert_eq!(script.to("10.0.9.9"), "1:29");
    script.apply([ControlEvent::RouteRemoved(by(2, 100))]);
    assert_eq!(script.to("10.0.9.9"), "0:19");
    script.apply([add(by(2, 100))]);
    assert_eq!(script.to("10.0.9.9"), "1:29");
}

#[test]
fn the_lowest_metric_that_can_be_used_wins() {
    let mut script = Script::new();
    let with = |metric, hops: &[RouteHop]| RouteEntry { metric, ..route("198.18.0.0/15", hops) };
    script.apply([
        neighbor(1, "10.0.1.9", 19, REACHABLE),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(with(20, &[by(2, "10.0.2.9")])),
        add(with(10, &[by(1, "10.0.1.9")])),
    ]);
    assert_eq!(script.to("198.18.0.1"), "0:19");
    script.apply([ControlEvent::RouteRemoved(with(10, &[by(1, "10.0.1.9")]))]);
    assert_eq!(script.to("198.18.0.1"), "1:29");
    script.apply([
        add(with(10, &[by(1, "10.0.1.9")])),
        ControlEvent::Link(Link { up: false, ..link(1, "eth1") }),
    ]);
    assert_eq!(script.to("198.18.0.1"), "1:29", "its link is down");
}

#[test]
fn routes_that_do_the_same_are_told_apart_by_their_origin() {
    let mut script = Script::new();
    let of_address = RouteOrigin { protocol: KERNEL, scope: 253, attributes: 0x0a00_0141, onlink: 0 };
    let connected = RouteEntry { origin: of_address, ..connected("203.0.113.64/26", 1) };
    let added = RouteEntry {
        protocol: BGP,
        origin: RouteOrigin { protocol: BGP, ..of_address },
        ..connected.clone()
    };
    script.apply([add(connected.clone()), add(added.clone())]);
    script.apply([ControlEvent::RouteRemoved(added)]);
    assert_eq!(script.to("203.0.113.77"), "0:glean");
    let onlink = RouteEntry { origin: RouteOrigin { onlink: 1, ..of_address }, ..connected.clone() };
    script
        .apply([ControlEvent::Route(onlink.clone(), Placement::Last), ControlEvent::RouteRemoved(connected)]);
    assert_eq!(script.to("203.0.113.77"), "0:glean");
    script.apply([ControlEvent::RouteRemoved(onlink)]);
    assert_eq!(script.to("203.0.113.77"), "no route");
}

#[test]
fn every_route_type_has_its_adjacency() {
    let mut script = Script::new();
    let of = |to, action| add(RouteEntry { action, ..route(to, &[]) });
    let net = |n: u8| format!("198.18.{n}.0/24");
    script.apply([
        of("198.18.0.0/16", RouteAction::Blackhole),
        of(&net(1), RouteAction::Unreachable),
        of(&net(2), RouteAction::Prohibit),
        of(&net(3), RouteAction::Throw),
        of(&net(4), RouteAction::Local),
        of(&net(5), RouteAction::Broadcast),
        add(route(&net(6), &[by(9, "127.0.0.9")])),
        add(route(&net(7), &[RouteHop { encapsulated: true, ..by(1, "10.0.1.9") }])),
        add(RouteEntry { selective: Selector::tos(16), ..route(&net(8), &[by(1, "10.0.1.9")]) }),
        add(route(&net(9), &[RouteHop { mtu: Some(1400), ..by(1, "10.0.1.9") }])),
        add(route(&net(10), &[RouteHop { mtu: Some(9000), ..by(1, "10.0.1.9") }])),
    ]);
    let found = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|n| script.to(&format!("198.18.{n}.1")));
    let meant = [
        "blackhole",
        "unreachable",
        "prohibit",
        "no route",
        "local",
        "broadcast",
        "local",
        "local",
        "local",
        "local",
        "0:glean",
    ];
    assert_eq!(found, meant);
}

#[test]
fn local_prefixes_are_local_in_every_table_and_hide_longer_ones() {
    let mut script = Script::new();
    let vrf = Link { kind: LinkKind::Vrf { table: 100 }, ..link(5, "blue") };
    script.apply([
        ControlEvent::Link(vrf),
        ControlEvent::Link(Link { master: Some(5), ..link(2, "eth2") }),
        add(RouteEntry { table: 100, ..connected("10.0.2.0/24", 2) }),
        add(route("203.0.113.64/26", &[by(1, "10.0.1.9")])),
        neighbor(2, "10.0.2.5", 5, REACHABLE),
    ]);
    assert_eq!(script.view().interface(1).unwrap().table, 1);
    assert_eq!(script.all_in(1, "10.0.1.1"), set(&["local"]));
    assert_eq!(script.all_in(1, "10.0.2.5"), set(&["1:5"]));
    assert_eq!(script.to("10.0.2.5"), "1:5", "both tables have the neighbour's network");
    assert_eq!(script.to("203.0.113.65"), "0:glean");
    script.apply([add(local("203.0.113.0/24"))]);
    assert_eq!(script.to("203.0.113.65"), "local");
    script.apply([ControlEvent::RouteRemoved(local("203.0.113.0/24"))]);
    assert_eq!(script.to("203.0.113.65"), "0:glean");
    assert_eq!(script.to("203.0.113.1"), "no route");
}

#[test]
fn gateways_among_several_hops_are_missing_until_they_are_resolved() {
    let mut script = Script::new();
    let hops = [by(1, "10.0.1.9"), by(2, "10.0.2.9")];
    script.apply([add(route("198.18.0.0/15", &hops)), add(route("203.0.113.0/24", &[by(1, "10.0.1.8")]))]);
    let missing = |script: &Script| Vec::from_iter(script.mirror.missing_gateways());
    assert_eq!(missing(&script), [(1, ip("10.0.1.9")), (2, ip("10.0.2.9"))], "packets ask for a single one");
    script.apply([neighbor(2, "10.0.2.9", 29, REACHABLE)]);
    assert_eq!(missing(&script), [(1, ip("10.0.1.9"))]);
    script.apply([ControlEvent::RouteRemoved(route("198.18.0.0/15", &hops))]);
    assert_eq!(missing(&script), []);
}

#[test]
fn several_hops_share_flows_and_dead_ones_get_none_at_once() {
    let mut script = Script::new();
    script.apply([
        neighbor(1, "10.0.1.9", 19, REACHABLE),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(route("198.18.0.0/15", &[by(1, "10.0.1.9"), by(2, "10.0.2.9")])),
    ]);
    assert_eq!(script.all("198.18.0.1"), set(&["0:19", "1:29"]));
    script.apply([ControlEvent::Link(Link { carrier: false, ..link(1, "eth1") })]);
    assert_eq!(script.all("198.18.0.1"), set(&["1:29"]));
    script.apply([ControlEvent::Link(Link { carrier: false, ..link(2, "eth2") })]);
    assert_eq!(
        script.all("198.18.0.1"),
        set(&["local"]),
        "whether routes without a carrier stay depends on the kernel's settings"
    );
    script.apply([
        ControlEvent::Link(link(1, "eth1")),
        ControlEvent::Link(Link { up: false, ..link(2, "eth2") }),
    ]);
    assert_eq!(script.all("198.18.0.1"), set(&["0:19"]));
    script.apply([ControlEvent::Link(link(2, "eth2"))]);
    assert_eq!(script.all("198.18.0.1"), set(&["0:19", "1:29"]));
}

#[test]
fn groups_with_the_same_usable_members_stay_apart() {
    let mut script = Script::new();
    let (one, two) = (by(1, "10.0.1.9"), by(2, "10.0.2.9"));
    let three = by(1, "10.0.1.8");
    script.apply([
        neighbor(1, "10.0.1.9", 19, REACHABLE),
        neighbor(1, "10.0.1.8", 18, REACHABLE),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        ControlEvent::Link(Link { up: false, ..link(2, "eth2") }),
        add(route("198.18.0.0/16", &[one, three])),
        add(route("198.19.0.0/16", &[one, three, two])),
    ]);
    assert_eq!(script.all("198.18.0.1"), script.all("198.19.0.1"));
    script.apply([ControlEvent::Link(link(2, "eth2"))]);
    assert_eq!(script.all("198.18.0.1"), set(&["0:18", "0:19"]));
    assert_eq!(script.all("198.19.0.1"), set(&["0:18", "0:19", "1:29"]));
}

#[test]
fn next_hop_objects_move_all_their_routes() {
    let mut script = Script::new();
    let object = |to, id| RouteEntry { action: RouteAction::Forward(HopSet::Object(id)), ..route(to, &[]) };
    script.apply([
        neighbor(1, "10.0.1.9", 19, REACHABLE),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        ControlEvent::NextHop(1, NextHopObject::Single(RouteAction::Forward(by(1, "10.0.1.9")))),
        ControlEvent::NextHop(2, NextHopObject::Single(RouteAction::Forward(by(2, "10.0.2.9")))),
        ControlEvent::NextHop(3, NextHopObject::Group(vec![(1, 1), (2, 3)])),
        add(object("198.18.0.0/16", 1)),
        add(object("198.19.0.0/16", 3)),
        add(RouteEntry {
            action: RouteAction::Forward(HopSet::ObjectWithMtu(1)),
            ..route("198.17.0.0/16", &[])
        }),
    ]);
    assert_eq!(script.to("198.17.0.1"), "local", "only the kernel applies the MTU of a route");
    assert_eq!(script.to("198.18.0.1"), "0:19");
    assert_eq!(script.all("198.19.0.1"), set(&["0:19", "1:29"]));
    script.apply([ControlEvent::NextHop(1, NextHopObject::Single(RouteAction::Forward(by(1, "10.0.1.8"))))]);
    assert_eq!(script.to("198.18.0.1"), "0:glean");
    assert_eq!(script.all("198.19.0.1"), set(&["0:glean", "1:29"]));
    script.apply([ControlEvent::NextHop(1, NextHopObject::Single(RouteAction::Blackhole))]);
    assert_eq!(script.to("198.18.0.1"), "blackhole");
    script.apply([ControlEvent::NextHopRemoved(1)]);
    assert_eq!(script.to("198.18.0.1"), "no route", "the kernel removes its routes, and may not report them");
    assert_eq!(script.to("198.17.0.1"), "no route");
    script.apply([ControlEvent::NextHop(3, NextHopObject::Group(vec![(2, 3)]))]);
    assert_eq!(script.to("198.19.0.1"), "1:29");
}

#[test]
fn ipv6_next_hops_are_added_and_removed_one_by_one() {
    let mut script = Script::new();
    let (one, two) = (by(1, "fe80::1"), by(2, "fe80::2"));
    let with = |hops: &[RouteHop]| RouteEntry { metric: 1024, ..route("2001:db8::/32", hops) };
    script.apply([
        neighbor(1, "fe80::1", 1, REACHABLE),
        neighbor(2, "fe80::2", 2, REACHABLE),
        add(with(&[one])),
        ControlEvent::Route(with(&[two, one]), Placement::Last),
    ]);
    assert_eq!(script.all("2001:db8::1"), set(&["0:1", "1:2"]));
    script.apply([ControlEvent::RouteRemoved(with(&[one]))]);
    assert_eq!(script.all("2001:db8::1"), set(&["1:2"]));
    script.apply([ControlEvent::RouteRemoved(with(&[two]))]);
    assert_eq!(script.to("2001:db8::1"), "no route");
}

/// It is removed by its own report only: neither by that of a route with hops, nor by that of one of several hops.
#[test]
fn a_route_that_leads_to_the_next_rule_stays_when_others_of_its_metric_go() {
    for (to, from, [one, two]) in [
        ("198.18.0.0/15", "198.18.0.1", [by(1, "10.0.1.9"), by(2, "10.0.2.9")]),
        ("2001:db8::/32", "2001:db8::1", [by(1, "fe80::1"), by(2, "fe80::2")]),
    ] {
        let throw = RouteEntry { action: RouteAction::Throw, ..route(to, &[]) };
        let mut script = Script::new();
        script.apply([add(route(to, &[by(1, "10.0.1.8")])), add(throw.clone())]);
        script.apply([
            ControlEvent::RouteRemoved(route(to, &[by(1, "10.0.1.8")])),
            ControlEvent::Route(route(to, &[one, two]), Placement::Last),
            ControlEvent::RouteRemoved(route(to, &[two])),
            ControlEvent::RouteRemoved(route(to, &[one])),
            ControlEvent::RouteRemoved(route(to, &[one, two])),
            ControlEvent::Route(route("0.0.0.0/0", &[by(2, "10.0.2.9")]), Placement::Last),
            ControlEvent::Route(route("::/0", &[by(2, "fe80::2")]), Placement::Last),
        ]);
        assert_eq!(script.to(from), "no route", "a longer prefix than that of the default route");
        script.apply([ControlEvent::RouteRemoved(throw)]);
        assert_eq!(script.to(from), "1:glean");
    }
}

/// The kernel takes turns among them when neighbours do not answer, and does not report which one has its turn.
#[test]
fn ipv6_routes_of_one_metric_are_left_to_the_kernel() {
    let mut script = Script::new();
    let with = |metric, hops: &[RouteHop]| RouteEntry { metric, ..route("2001:db8::/32", hops) };
    let refused = RouteEntry { action: RouteAction::Blackhole, ..with(1024, &[]) };
    script.apply([neighbor(1, "fe80::1", 1, REACHABLE), add(with(1024, &[by(1, "fe80::1")]))]);
    assert_eq!(script.to("2001:db8::1"), "0:1");
    script.apply([add(refused.clone())]);
    assert_eq!(script.to("2001:db8::1"), "local", "the kernel gets the packets");
    script.apply([ControlEvent::Route(with(512, &[by(1, "fe80::1")]), Placement::First)]);
    assert_eq!(script.to("2001:db8::1"), "0:1", "the lower metric decides alone");
    script.apply([
        ControlEvent::RouteRemoved(with(512, &[by(1, "fe80::1")])),
        ControlEvent::RouteRemoved(refused),
    ]);
    assert_eq!(script.to("2001:db8::1"), "0:1");
}

/// As the kernel: `ip route change` with three routes of one metric, then `ip route del` of two.
#[test]
fn an_ipv6_route_may_be_there_twice() {
    let mut script = Script::new();
    let to = |hop| route("2001:db8::/32", &[hop]);
    script.apply([neighbor(1, "fe80::1", 1, REACHABLE), add(to(by(1, "fe80::1")))]);
    script.apply([add(to(direct(1))), add(to(direct(2)))]);
    assert_eq!(script.to("2001:db8::1"), "local", "three routes of one metric");
    script.apply([ControlEvent::Route(to(direct(2)), Placement::Replace)]);
    script.apply([ControlEvent::RouteRemoved(to(by(1, "fe80::1")))]);
    assert_eq!(script.to("2001:db8::1"), "local", "two of them are the same now");
    script.apply([ControlEvent::RouteRemoved(to(direct(2)))]);
    assert_eq!(script.to("2001:db8::1"), "1:glean");
    script.apply([ControlEvent::RouteRemoved(to(direct(2)))]);
    assert_eq!(script.to("2001:db8::1"), "no route");
}

/// Other routes of its metric come before it.
#[test]
fn groups_that_are_too_large_are_warned_of_once() {
    let mut script = Script::new();
    let hops: Vec<RouteHop> = (1..=65).map(|last| by(1, &format!("10.0.1.{last}"))).collect();
    script.apply([
        add(route("198.18.0.0/16", &hops)),
        add(route("198.19.0.0/16", &hops[..])),
        add(route("198.17.0.0/16", &[&hops[..], &[by(2, "10.0.2.9")]].concat())),
        set_up(2, false),
        set_up(2, true),
    ]);
    assert_eq!(script.to("198.18.0.1"), "local");
    let warnings = script.mirror.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("1 to 64 members"), "{warnings:?}");
}

#[test]
fn a_route_whose_object_changes_replaces_none() {
    for (to, from) in [("2001:db8::/32", "2001:db8::1"), ("198.18.0.0/15", "198.18.0.1")] {
        let mut script = Script::new();
        let prohibit = RouteEntry { action: RouteAction::Prohibit, ..route(to, &[]) };
        let via = RouteEntry { action: RouteAction::Forward(HopSet::Object(7)), ..route(to, &[]) };
        let object = |link| NextHopObject::Single(RouteAction::Forward(direct(link)));
        script.apply([ControlEvent::NextHop(7, object(1)), add(prohibit)]);
        script
            .apply([ControlEvent::Route(via.clone(), Placement::Last), ControlEvent::NextHop(7, object(2))]);
        script.apply([ControlEvent::Route(via.clone(), Placement::Updated)]);
        script.apply([ControlEvent::RouteRemoved(via)]);
        assert_eq!(script.to(from), "prohibit");
    }
}

/// The kernel reports no replacement by a route that it has (`fib_table_insert` in net/ipv4/fib_trie.c): a dump has listed the route
/// after the replacement, and the other one was added before that.
#[test]
fn an_ipv4_route_that_a_dump_listed_replaces_the_one_before_it() {
    let mut script = Script::new();
    let to = |hop| route("198.18.0.0/15", &[hop]);
    let other_metric = RouteEntry { metric: 7, ..to(by(1, "10.0.1.7")) };
    script.mirror.begin_dump(DumpPart::Inet);
    let listed =
        [connected("10.0.1.0/24", 1), connected("10.0.2.0/24", 2), to(direct(2)), other_metric.clone()];
    script.apply(listed.map(|route| ControlEvent::Route(route, Placement::Listed)));
    script.mirror.end_dump(DumpPart::Inet);
    let held = [add(to(direct(1))), ControlEvent::Route(to(direct(2)), Placement::Replace)];
    script.apply(held);
    assert_eq!(script.to("198.18.0.1"), "1:glean");
    script.apply([ControlEvent::RouteRemoved(to(direct(2)))]);
    assert_eq!(script.to("198.18.0.1"), "0:glean", "the one of the other metric");
    script.apply([ControlEvent::RouteRemoved(other_metric)]);
    assert_eq!(script.to("198.18.0.1"), "no route");
}

/// Another route came before it after the replacement, and its report follows.
#[test]
fn an_ipv4_route_that_a_dump_listed_second_stays_there() {
    let mut script = Script::new();
    let to = |hop| route("198.18.0.0/15", &[hop]);
    script.apply([to(direct(1)), to(direct(2))].map(|route| ControlEvent::Route(route, Placement::Listed)));
    script.apply([
        add(to(by(1, "10.0.1.9"))),
        ControlEvent::Route(to(direct(2)), Placement::Replace),
        add(to(direct(1))),
    ]);
    assert_eq!(script.to("198.18.0.1"), "0:glean");
    script.apply([ControlEvent::RouteRemoved(to(direct(1)))]);
    assert_eq!(script.to("198.18.0.1"), "1:glean");
}

#[test]
fn an_ipv4_route_may_have_an_ipv6_gateway() {
    let mut script = Script::new();
    script.apply([add(route("198.18.0.0/15", &[by(2, "fe80::2")])), neighbor(2, "fe80::2", 2, REACHABLE)]);
    assert_eq!(script.to("198.18.0.1"), "1:2");
}

#[test]
fn routes_of_equal_metric_are_tried_in_the_kernels_order() {
    let mut script = Script::new();
    let (first, last) =
        (route("198.18.0.0/15", &[by(1, "10.0.1.9")]), route("198.18.0.0/15", &[by(2, "10.0.2.9")]));
    script.apply([add(first.clone()), ControlEvent::Route(last.clone(), Placement::Last)]);
    assert_eq!(script.to("198.18.0.1"), "0:glean");
    script.apply([ControlEvent::RouteRemoved(first.clone())]);
    assert_eq!(script.to("198.18.0.1"), "1:glean");
    script.apply([add(first.clone())]);
    assert_eq!(script.to("198.18.0.1"), "0:glean");
    let third = route("198.18.0.0/15", &[by(2, "10.0.2.8")]);
    script.apply([ControlEvent::Route(third, Placement::Replace), ControlEvent::RouteRemoved(last)]);
    assert_eq!(script.to("198.18.0.1"), "1:glean", "the first route was replaced");
}

#[test]
fn tables_that_no_interface_uses_have_no_position_and_empty_ones_are_released() {
    let mut script = Script::new();
    let other = |table| RouteEntry { table, ..route("198.18.0.0/15", &[by(1, "10.0.1.9")]) };
    script.apply((1_000..1_300).map(|table| add(other(table))));
    script.apply([neighbor(1, "10.0.1.9", 19, REACHABLE)]);
    assert_eq!(script.view().parts().tables.len(), 1);
    assert_eq!(script.mirror.tables().inet.len(), 301);
    script.apply((1_000..1_300).map(|table| ControlEvent::RouteRemoved(other(table))));
    assert_eq!(script.mirror.tables().inet.len(), 1);
    // A table that is made again does not keep next hops from being freed.
    script.apply([add(other(1_000)), ControlEvent::RouteRemoved(other(1_000)), add(other(1_000))]);
    assert_eq!(script.mirror.tables().inet.len(), 2);
}

#[test]
fn interfaces_of_tables_beyond_the_limit_are_left_to_the_kernel() {
    let mut script = Script::new();
    script.mirror.limit(2, usize::MAX, u16::MAX);
    let vrf =
        |index, name, table| ControlEvent::Link(Link { kind: LinkKind::Vrf { table }, ..link(index, name) });
    let member = |index, name, vrf| ControlEvent::Link(Link { master: Some(vrf), ..link(index, name) });
    script.apply([vrf(5, "blue", 100), vrf(6, "red", 200), member(1, "eth1", 5), member(2, "eth2", 6)]);
    let forwards = |script: &Script| {
        let view = script.view();
        [0, 1].map(|number| view.interface(number).map(|of| (of.table, of.forwards_inet, of.forwards_inet6)))
    };
    assert_eq!(forwards(&script), [Some((1, true, true)), Some((0, false, false))]);
    script.apply([neighbor(1, "10.0.1.9", 19, REACHABLE)]);
    assert_eq!(script.mirror.take_warnings().len(), 1, "it is said once");
    script.apply([ControlEvent::LinkRemoved(1)]);
    assert_eq!(forwards(&script)[1], Some((1, true, true)));
}

#[test]
fn numbers_of_removed_vlans_are_given_to_others_when_all_are_taken() {
    let mut script = Script::new();
    script.mirror.limit(16, usize::MAX, 4);
    let vlan = |id: u16| {
        let kind = LinkKind::Vlan { id, parent: 2 };
        ControlEvent::Link(Link { kind, ..link(100 + u32::from(id), &format!("eth2.{id}")) })
    };
    let is_up = |script: &Script| {
        let view = script.view();
        let up = view.parts().interfaces.iter().filter(|interface| interface.up);
        up.filter_map(|interface| interface.vlan).collect::<Vec<_>>()
    };
    script.apply([7, 8, 9, 10].map(vlan));
    assert_eq!(is_up(&script), [7, 8]);
    assert_eq!(script.mirror.take_warnings().len(), 1, "it is said once");
    script.apply([ControlEvent::LinkRemoved(107), vlan(7)]);
    assert_eq!(is_up(&script), [7, 8], "it keeps its number if it comes back");
    script.apply([ControlEvent::LinkRemoved(107), ControlEvent::LinkRemoved(108), vlan(9)]);
    assert_eq!(is_up(&script), [9]);
    script.apply([neighbor(109, "10.0.9.5", 5, REACHABLE), add(connected("10.0.9.0/24", 109)), vlan(10)]);
    assert_eq!((is_up(&script), script.to("10.0.9.5")), (vec![9, 10], "2:5".into()));
    assert_eq!(script.mirror.take_warnings(), [""; 0]);
}

/// As `ip link set eth2.7 mtu 0`, which the kernel allows.
#[test]
fn an_interface_without_an_mtu_forwards_nothing_and_the_others_go_on() {
    let mut script = Script::new();
    let vlan = |mtu| {
        let kind = LinkKind::Vlan { id: 7, parent: 2 };
        ControlEvent::Link(Link { kind, mtu, ..link(7, "eth2.7") })
    };
    let forwards = |script: &Script| {
        let view = script.view();
        let of = view.interface(2).unwrap();
        [of.up, of.forwards_inet, of.forwards_inet6]
    };
    script.apply([vlan(1500)]);
    assert_eq!(forwards(&script), [true; 3]);
    script.apply([vlan(0), neighbor(1, "10.0.1.9", 19, REACHABLE)]);
    assert_eq!((forwards(&script), script.to("10.0.1.9")), ([false; 3], "0:19".into()));
    let warnings = script.mirror.take_warnings();
    assert!(matches!(&warnings[..], [one] if one.contains("eth2.7 has an MTU of 0")), "{warnings:?}");
    script.apply([neighbor(1, "10.0.1.8", 18, REACHABLE)]);
    assert_eq!((script.to("10.0.1.8"), script.mirror.take_warnings()), ("0:18".into(), Vec::new()));
    script.apply([vlan(1500)]);
    assert_eq!(forwards(&script), [true; 3]);
}

#[test]
fn addresses_of_this_host_are_followed_without_a_new_view() {
    let mut script = Script::new();
    let vrf = Link { kind: LinkKind::Vrf { table: 100 }, ..link(5, "blue") };
    let in_table = |table, to| RouteEntry { table, ..local(to) };
    script.apply([
        ControlEvent::Link(vrf),
        ControlEvent::Link(Link { master: Some(5), ..link(2, "eth2") }),
        add(in_table(100, "10.9.0.1/32")),
        add(RouteEntry { action: RouteAction::Broadcast, ..in_table(100, "10.9.0.255/32") }),
        add(RouteEntry { table: 100, ..route("10.9.0.7/32", &[direct(2)]) }),
        add(in_table(200, "10.8.0.1/32")),
    ]);
    let own = |script: &Script| script.mirror.local_addresses().into_iter().collect::<BTreeSet<_>>();
    let all = ["10.0.1.1", "10.0.2.1", "10.9.0.1", "10.9.0.255"].map(ip);
    assert_eq!(own(&script), BTreeSet::from(all), "no interface looks up in table 200");
    let (view, changes) = (script.view(), script.mirror.local_changes());
    let added = local("198.51.100.7/32");
    script.apply([add(added.clone())]);
    assert!(std::sync::Arc::ptr_eq(&view, &script.view()) && changes != script.mirror.local_changes());
    assert!(own(&script).contains(&ip("198.51.100.7")));
    let changes = script.mirror.local_changes();
    script.apply([ControlEvent::RouteRemoved(added)]);
    assert_eq!((own(&script), changes == script.mirror.local_changes()), (all.into(), false));
}

/// Rules may block what comes by an interface that is new, and by one that has another's number now.
#[test]
fn an_interface_forwards_only_when_the_filter_has_rules_for_it() {
    let mut script = Script::new();
    script.mirror.set_judged_interfaces(vec!["eth1".into(), "eth2".into()]);
    let vlan = |name| Link { kind: LinkKind::Vlan { id: 7, parent: 2 }, ..link(3, name) };
    let forwards = |script: &Script, number| {
        let view = script.view();
        let interface = view.interface(number).unwrap();
        [interface.up, interface.forwards_inet, interface.forwards_inet6]
    };
    script.apply([ControlEvent::Link(vlan("eth2.7"))]);
    assert_eq!([0, 1, 2].map(|number| forwards(&script, number)), [[true; 3], [true; 3], [false; 3]]);
    script.mirror.set_judged_interfaces(["eth1", "eth2", "eth2.7"].map(String::from).to_vec());
    script.apply([]);
    assert_eq!(forwards(&script, 2), [true; 3]);
    script.apply([ControlEvent::Link(vlan("other"))]);
    assert_eq!(forwards(&script, 2), [false; 3]);
}

#[test]
fn vlans_are_interfaces_of_their_own() {
    let mut script = Script::new();
    let kind = LinkKind::Vlan { id: 7, parent: 2 };
    let tagged = Link { kind, mtu: 1400, ..link(3, "eth2.7") };
    script.apply([
        ControlEvent::Link(tagged.clone()),
        add(connected("10.0.7.0/24", 3)),
        neighbor(3, "10.0.7.5", 5, STALE),
    ]);
    assert_eq!(script.to("10.0.7.5"), "2:5");
    let view = script.view();
    let interface = view.interface(2).unwrap();
    assert_eq!((interface.port, interface.vlan, interface.mtu, interface.up), (1, Some(7), 1400, true));
    script.apply([ControlEvent::LinkRemoved(3)]);
    assert!(!script.view().interface(2).unwrap().up, "its number is not given to another interface");
    script.apply([ControlEvent::Link(Link { index: 30, ..tagged })]);
    assert!(script.view().interface(2).unwrap().up);
}

#[test]
fn interfaces_are_set_up_as_their_links_are() {
    let mut script = Script::new();
    let vlan = Link { kind: LinkKind::Vlan { id: 7, parent: 1 }, ..link(3, "eth1.7") };
    script.apply([ControlEvent::Link(vlan.clone())]);
    assert_eq!(script.mirror.set_up_interfaces(), [true; 3]);
    script.apply([ControlEvent::Link(Link { carrier: false, ..link(1, "eth1") }), set_up(2, false)]);
    assert_eq!(script.mirror.set_up_interfaces(), [true, false, true], "one has no carrier");
    script.apply([ControlEvent::LinkRemoved(3)]);
    assert_eq!(script.mirror.set_up_interfaces(), [true, false, false]);
    script.mirror.keep_routes();
    assert_eq!(script.mirror.set_up_interfaces(), [true, true, false], "without a kernel");
}

#[test]
fn a_vlan_may_be_a_port_itself() {
    let named = |names: [&str; 2]| {
        let mirror = Mirror::new(Time::ZERO, names.map(String::from).to_vec(), Settings::default());
        let mut script = Script { mirror, now: Time::ZERO };
        let kind = LinkKind::Vlan { id: 7, parent: 2 };
        script.apply([
            ControlEvent::Link(link(2, "eth2")),
            ControlEvent::Link(Link { kind, ..link(3, "eth2.7") }),
            add(connected("10.0.7.0/24", 3)),
            neighbor(3, "10.0.7.5", 5, STALE),
        ]);
        script
    };
    let script = named(["eth1", "eth2.7"]);
    let interface = script.view().interface(1).unwrap().clone();
    assert_eq!((interface.port, interface.vlan, interface.up), (1, None, true));
    assert_eq!(script.to("10.0.7.5"), "1:5");
    let script = named(["eth2", "eth2.7"]);
    assert_eq!(script.to("10.0.7.5"), "2:5", "by its parent, with a tag");
    assert!(!script.view().interface(1).unwrap().up);
}

#[test]
fn a_link_that_is_made_again_is_the_same_port() {
    let mut script = Script::new();
    script.apply([neighbor(1, "10.0.1.7", 7, REACHABLE), add(route("198.18.0.0/15", &[by(1, "10.0.1.7")]))]);
    script.apply([ControlEvent::LinkRemoved(1)]);
    assert_eq!(script.to("10.0.1.7"), "no route");
    assert_eq!(script.to("198.18.0.1"), "no route");
    script.apply([
        ControlEvent::Link(link(11, "eth1")),
        add(connected("10.0.1.0/24", 11)),
        neighbor(11, "10.0.1.7", 8, REACHABLE),
    ]);
    assert_eq!(script.to("10.0.1.7"), "0:8");
    assert_eq!(script.view().interface(0).unwrap().mac, mac(11));
}

#[test]
fn a_link_that_takes_a_ports_name_is_that_port_with_all_its_neighbours() {
    let mut script = Script::new();
    script.apply([
        ControlEvent::Link(link(7, "new")),
        neighbor(7, "10.0.1.7", 7, REACHABLE),
        ControlEvent::LinkRemoved(1),
        add(connected("10.0.1.0/24", 7)),
    ]);
    assert_eq!(script.to("10.0.1.7"), "local");
    script.apply([ControlEvent::Link(link(7, "eth1"))]);
    assert_eq!(script.to("10.0.1.7"), "0:7");
    script.apply([ControlEvent::Link(link(7, "old"))]);
    assert_eq!(script.to("10.0.1.7"), "local");
}

#[test]
fn a_vrf_may_be_reported_after_its_members() {
    let mut script = Script::new();
    script.apply([
        ControlEvent::Link(Link { master: Some(5), ..link(2, "eth2") }),
        neighbor(2, "10.0.2.5", 5, REACHABLE),
    ]);
    assert_eq!((script.view().interface(1).unwrap().table, script.to("10.0.2.5")), (0, "1:5".into()));
    script.apply([
        ControlEvent::Link(Link { kind: LinkKind::Vrf { table: 100 }, ..link(5, "blue") }),
        add(RouteEntry { table: 100, ..connected("10.0.2.0/24", 2) }),
    ]);
    assert_eq!(script.view().interface(1).unwrap().table, 1);
    assert_eq!(script.all_in(1, "10.0.2.5"), set(&["1:5"]));
    assert_eq!(script.to("10.0.2.5"), "1:5", "the main table has its network too");
    script.apply([ControlEvent::RouteRemoved(connected("10.0.2.0/24", 2))]);
    assert_eq!(script.to("10.0.2.5"), "no route");
    assert_eq!(script.all_in(1, "10.0.2.5"), set(&["1:5"]));
}

/// The events that move eth2 into a VRF with table 100, which gets its network.
fn into_a_vrf() -> [ControlEvent; 3] {
    [
        ControlEvent::Link(Link { kind: LinkKind::Vrf { table: 100 }, ..link(5, "blue") }),
        ControlEvent::Link(Link { master: Some(5), ..link(2, "eth2") }),
        add(RouteEntry { table: 100, ..connected("10.0.2.0/24", 2) }),
    ]
}

/// Looks up 10.0.2.5 by every view as a worker would, until that is in table 100. All must lead to the neighbour.
fn follow_into_the_vrf(mut reader: ViewReader) {
    let address = std::net::Ipv4Addr::new(10, 0, 2, 5).to_bits();
    let mut table = 0;
    while table == 0 {
        let view = reader.view();
        table = view.interface(1).unwrap().table;
        let hop = view.parts().tables[usize::from(table)].inet.with(|fib| fib.lookup(address));
        assert_eq!(name(hop, view.parts().adjacencies.get(hop)), "1:5", "in table {table}");
    }
}

#[test]
fn a_table_has_its_routes_before_an_interface_looks_up_in_it() {
    let mut script = Script::new();
    script.apply([neighbor(2, "10.0.2.5", 5, REACHABLE)]);
    let reader = script.mirror.views().reader();
    let worker = std::thread::spawn(move || follow_into_the_vrf(reader));
    let others = (0..20_000u32).map(|n| format!("{}.{}.{}.0/24", 20 + (n >> 16), n >> 8 & 255, n & 255));
    let others = others.map(|to| add(RouteEntry { table: 100, ..route(&to, &[by(2, "10.0.2.5")]) }));
    script.apply(others.chain(into_a_vrf()));
    worker.join().unwrap();
}

#[test]
fn a_table_keeps_its_routes_while_a_worker_may_look_up_in_it() {
    let mut script = Script::new();
    script.apply([neighbor(2, "10.0.2.5", 5, REACHABLE)]);
    let before = script.view();
    let gone = ControlEvent::RouteRemoved(connected("10.0.2.0/24", 2));
    into_a_vrf().into_iter().chain([gone]).for_each(|event| script.mirror.apply(event));
    script.mirror.commit(script.now);
    assert_eq!(script.all_in(1, "10.0.2.9"), set(&["1:glean"]));
    assert_eq!(script.to("10.0.2.9"), "1:glean", "a worker uses the view before");
    drop(before);
    script.settle();
    assert_eq!(["10.0.2.5", "10.0.2.9"].map(|to| script.to(to)), ["no route"; 2]);
}

#[test]
fn a_table_loses_its_routes_soon_after_the_last_worker_looked_up_in_it() {
    let mut script = Script::new();
    let before = script.view();
    let gone = ControlEvent::RouteRemoved(connected("10.0.2.0/24", 2));
    into_a_vrf().into_iter().chain([gone]).for_each(|event| script.mirror.apply(event));
    for _ in 0..50 {
        script.mirror.commit(script.now);
        script.now += Time::from_millis(10);
    }
    assert_eq!(script.to("10.0.2.9"), "1:glean", "a worker uses the view before");
    drop(before);
    let due = |script: &Script| script.mirror.next_deadline().filter(|due| *due <= script.now);
    assert_eq!(due(&script), Some(script.now));
    script.mirror.commit(script.now);
    assert_eq!(script.to("10.0.2.9"), "no route");
    script.now += Time::from_millis(100);
    assert_eq!(due(&script), None, "no table is left to look at");
}

/// The index of a group that is freed goes to the next group that is made.
#[test]
fn a_group_stays_while_a_table_keeps_routes_to_it() {
    let mut script = Script::new();
    let gone = route("198.18.0.0/15", &[by(1, "10.0.1.9"), by(2, "10.0.2.9")]);
    script.apply([add(gone.clone()), neighbor(1, "10.0.1.9", 19, STALE), neighbor(2, "10.0.2.9", 29, STALE)]);
    let before = script.view();
    let gone = ControlEvent::RouteRemoved(gone);
    into_a_vrf().into_iter().chain([gone]).for_each(|event| script.mirror.apply(event));
    for weight in 1..10 {
        let hops = [RouteHop::new(1, None, weight), direct(2)];
        script.mirror.apply(add(route(&format!("198.2{weight}.0.0/16"), &hops)));
        script.mirror.commit(script.now);
        assert_eq!(script.all("198.18.0.1"), set(&["0:19", "1:29"]), "a worker uses the view before");
        script.now += Time::from_millis(100);
    }
    drop(before);
    script.settle();
    assert_eq!(script.to("198.18.0.1"), "no route");
}

#[test]
fn a_dump_removes_what_it_does_not_list() {
    let mut script = Script::new();
    let keep = route("198.18.0.0/16", &[by(1, "10.0.1.9")]);
    script.apply([add(keep.clone()), add(route("198.19.0.0/16", &[by(1, "10.0.1.9")]))]);
    script.mirror.begin_dump(DumpPart::Inet);
    for known in [local("10.0.1.1/32"), connected("10.0.1.0/24", 1), keep] {
        script.mirror.apply(ControlEvent::Route(known, Placement::Last));
    }
    assert_eq!(script.mirror.end_dump(DumpPart::Inet), 3);
    script.settle();
    assert_eq!([script.to("198.18.0.1"), script.to("198.19.0.1")], ["0:glean", "no route"]);
    assert_eq!([script.to("10.0.2.1"), script.to("10.0.1.1")], ["no route", "local"]);
    script.mirror.begin_dump(DumpPart::Links);
    [link(9, "lo"), link(2, "eth2")]
        .into_iter()
        .for_each(|link| script.mirror.apply(ControlEvent::Link(link)));
    assert_eq!(script.mirror.end_dump(DumpPart::Links), 1);
    script.settle();
    assert!(!script.view().interface(0).unwrap().up);
}

#[test]
fn what_the_kernel_may_have_dropped_silently_is_suspected() {
    let mut script = Script::new();
    let address = InterfaceAddress { ip: ip("10.0.1.1"), len: 24 };
    script.apply([ControlEvent::Address(1, address.into())]);
    script.mirror.take_suspicions();
    script.apply([add(route("198.18.0.0/15", &[by(1, "10.0.1.9")]))]);
    assert_eq!(script.mirror.take_suspicions(), []);
    script.apply([ControlEvent::AddressRemoved(1, address.into())]);
    assert_eq!(script.mirror.take_suspicions(), [DumpPart::Inet]);
    assert_eq!(script.mirror.take_suspicions(), []);
    script.apply([ControlEvent::RouteRemoved(route("192.0.2.0/24", &[direct(1)]))]);
    assert_eq!(
        script.mirror.take_suspicions(),
        [DumpPart::Inet],
        "a route was removed that the mirror never had"
    );
    script.apply([ControlEvent::Link(Link { up: false, ..link(1, "eth1") })]);
    assert_eq!(script.mirror.take_suspicions(), [DumpPart::Inet, DumpPart::Inet6]);
}

/// The kernel reports none of these changes of routes.
#[test]
fn ipv4_routes_go_with_a_link_that_is_no_port() {
    let mut script = Script::new();
    let tunnel = link(8, "wg0");
    script.apply([
        ControlEvent::Link(tunnel.clone()),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(RouteEntry { metric: 10, ..route("172.16.0.0/16", &[direct(8)]) }),
        add(RouteEntry { metric: 100, ..route("172.16.0.0/16", &[by(2, "10.0.2.9")]) }),
        add(route("172.17.0.0/16", &[direct(8), by(2, "10.0.2.9")])),
    ]);
    assert_eq!(script.to("172.16.0.1"), "local");
    assert_eq!(script.all("172.17.0.1"), set(&["local", "1:29"]));
    script.mirror.take_suspicions();
    script.apply([ControlEvent::Link(Link { up: false, carrier: false, ..tunnel.clone() })]);
    assert_eq!([script.to("172.16.0.1"), script.to("172.17.0.1")], ["1:29", "1:29"]);
    assert_eq!(script.mirror.take_suspicions(), [DumpPart::Inet]);
    script.apply([ControlEvent::Link(tunnel)]);
    assert_eq!(script.to("172.16.0.1"), "1:29");
    assert_eq!(script.all("172.17.0.1"), set(&["local", "1:29"]));
    assert_eq!(script.mirror.take_suspicions(), [DumpPart::Inet], "its hops can be used again");
    script.apply([ControlEvent::LinkRemoved(8)]);
    assert_eq!([script.to("172.16.0.1"), script.to("172.17.0.1")], ["1:29", "no route"]);
}

/// The kernel keeps them when the link is set down only.
#[test]
fn ipv4_routes_with_a_hop_by_a_link_go_when_it_is_removed() {
    let mut script = Script::new();
    script.apply([
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(route("172.17.0.0/16", &[by(1, "10.0.1.9"), by(2, "10.0.2.9")])),
        set_up(1, false),
    ]);
    assert_eq!(script.to("172.17.0.1"), "1:29");
    script.apply([ControlEvent::LinkRemoved(1)]);
    assert_eq!(script.to("172.17.0.1"), "no route");
}

#[test]
fn ipv4_routes_by_a_link_go_with_its_last_address() {
    let mut script = Script::new();
    let address = |host: &str| InterfaceAddress { ip: ip(host), len: 24 };
    let removed = |host: &str| ControlEvent::AddressRemoved(1, address(host).into());
    script.apply(
        ["10.0.1.1", "10.0.1.3", "fe80::1"].map(|host| ControlEvent::Address(1, address(host).into())),
    );
    script.apply([
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(route("198.18.0.0/16", &[by(1, "10.0.1.9")])),
        add(route("198.18.0.0/15", &[by(2, "10.0.2.9")])),
        add(route("2001:db8:1::/48", &[by(1, "fe80::9")])),
        removed("10.0.1.1"),
    ]);
    assert_eq!(script.to("198.18.0.1"), "0:glean");
    script.apply([removed("10.0.1.3")]);
    assert_eq!([script.to("198.18.0.1"), script.to("2001:db8:1::1")], ["1:29", "0:glean"]);
}

/// The kernel has it twice, and removes one.
#[test]
fn ipv4_routes_by_a_link_stay_while_its_address_has_another_peer() {
    let mut script = Script::new();
    let own = InterfaceAddress { ip: ip("10.0.1.1"), len: 32 };
    let to = |last| AssignedAddress { own, peer: Some([10, 1, 0, last].into()) };
    script.apply([ControlEvent::Address(1, to(2)), ControlEvent::Address(1, to(3))]);
    script.apply([add(route("198.18.0.0/16", &[by(1, "10.1.0.2")]))]);
    assert_eq!(script.view().interface(0).unwrap().addresses, [own]);
    script.apply([ControlEvent::AddressRemoved(1, to(3))]);
    assert_eq!(script.view().interface(0).unwrap().addresses, [own]);
    assert_eq!(script.to("198.18.0.1"), "0:glean");
    script.apply([ControlEvent::AddressRemoved(1, to(2))]);
    assert_eq!(script.to("198.18.0.1"), "no route");
}

#[test]
fn a_link_without_ipv4_routes_asks_for_no_dump_of_them() {
    let mut script = Script::new();
    let container = link(8, "veth8");
    script.apply([ControlEvent::Link(container.clone()), add(connected("fe80::/64", 8))]);
    script.mirror.take_suspicions();
    script.apply([
        ControlEvent::Link(Link { up: false, carrier: false, ..container }),
        ControlEvent::LinkRemoved(8),
    ]);
    assert_eq!(script.mirror.take_suspicions(), []);
}

#[test]
fn links_are_asked_for_when_ipv6_may_be_disabled_on_one() {
    let mut script = Script::new();
    let asks = |script: &mut Script| script.mirror.take_suspicions().contains(&DumpPart::Links);
    let own = InterfaceAddress { ip: ip("fe80::1"), len: 64 };
    script.apply([ControlEvent::Address(1, own.into())]);
    assert!(!asks(&mut script));
    script.apply([ControlEvent::AddressRemoved(1, own.into())]);
    assert!(asks(&mut script));
    script.apply([ControlEvent::Link(Link { runs_inet6: false, ..link(1, "eth1") })]);
    script.apply([ControlEvent::Address(1, own.into())]);
    assert!(asks(&mut script));
}

/// The bridge receives its packets.
#[test]
fn a_part_of_a_bridge_is_no_port() {
    let mut script = Script::new();
    script.apply([
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(route("198.18.0.0/15", &[by(2, "10.0.2.9")])),
        ControlEvent::Link(Link { kind: LinkKind::Vlan { id: 5, parent: 2 }, ..link(5, "eth2.5") }),
        add(route("198.20.0.0/15", &[direct(5)])),
    ]);
    let found = |script: &Script| (script.to("198.18.0.1"), script.to("198.20.0.1"));
    assert_eq!(found(&script), ("1:29".to_owned(), "2:glean".to_owned()));
    script.apply([
        ControlEvent::Link(link(7, "br0")),
        ControlEvent::Link(Link { master: Some(7), ..link(2, "eth2") }),
    ]);
    assert_eq!(found(&script), ("local".to_owned(), "local".to_owned()));
    assert!(script.mirror.port_link(1).is_none() && script.mirror.port_link(0).is_some());
    script.apply([ControlEvent::Link(link(2, "eth2"))]);
    assert_eq!(found(&script), ("1:29".to_owned(), "2:glean".to_owned()));
}

/// As long as there is one of them, the kernel gets all packets to the prefix.
#[test]
fn ipv6_routes_for_some_sources_are_told_apart() {
    let from = |source, hops: &[RouteHop]| RouteEntry {
        selective: Some(Selector::source(prefix(source))),
        ..route("2001:db8:9::/48", hops)
    };
    let (one, other) = (by(1, "fe80::1"), by(2, "fe80::2"));
    let mut script = Script::new();
    script.apply([neighbor(1, "fe80::1", 1, REACHABLE), neighbor(2, "fe80::2", 2, REACHABLE)]);
    let found = |script: &Script| script.all("2001:db8:9::1");
    script.apply([add(from("2001:db8:1::/48", &[one])), add(from("2001:db8:2::/48", &[one]))]);
    script.apply([ControlEvent::RouteRemoved(from("2001:db8:1::/48", &[one]))]);
    assert_eq!(found(&script), set(&["local"]), "one is left");
    script.apply([add(route("2001:db8:9::/48", &[one, other]))]);
    assert_eq!(found(&script), set(&["local"]), "it is no hop of another route");
    script.apply([ControlEvent::RouteRemoved(from("2001:db8:2::/48", &[one]))]);
    assert_eq!(found(&script), set(&["0:1", "1:2"]));
    script.apply([ControlEvent::RouteRemoved(from("2001:db8:2::/48", &[one]))]);
    assert_eq!(found(&script), set(&["0:1", "1:2"]));
}

/// The kernel removes them without a message if it is set so.
#[test]
fn ipv6_routes_by_a_link_that_went_down_do_not_come_back_with_it() {
    let mut script = Script::new();
    script.apply([
        neighbor(1, "fe80::1", 1, REACHABLE),
        neighbor(2, "fe80::2", 2, REACHABLE),
        add(route("2001:db8:1::/48", &[by(1, "fe80::1")])),
        add(route("2001:db8:2::/48", &[by(1, "fe80::1"), by(2, "fe80::2")])),
        ControlEvent::Link(Link { up: false, ..link(1, "eth1") }),
        ControlEvent::Link(link(1, "eth1")),
    ]);
    assert_eq!(script.to("2001:db8:1::1"), "no route");
    assert_eq!(script.all("2001:db8:2::1"), set(&["0:1", "1:2"]));
    script.apply([
        ControlEvent::Link(Link { up: false, ..link(2, "eth2") }),
        ControlEvent::Link(Link { up: false, ..link(1, "eth1") }),
        ControlEvent::Link(link(1, "eth1")),
    ]);
    assert_eq!(script.to("2001:db8:2::1"), "no route", "its last hop went");
    script.apply([
        add(route("2001:db8:1::/48", &[by(1, "fe80::1")])),
        neighbor(1, "fe80::1", 1, REACHABLE),
        ControlEvent::Link(Link { carrier: false, ..link(1, "eth1") }),
        ControlEvent::Link(link(1, "eth1")),
    ]);
    assert_eq!(script.to("2001:db8:1::1"), "0:1", "without a carrier they stay");
}

/// The kernel removes them without a message, whatever its settings say of routes without a carrier.
#[test]
fn next_hop_objects_go_with_the_carrier_of_their_link() {
    for gone in [Link { carrier: false, ..link(2, "eth2") }, Link { up: false, ..link(2, "eth2") }] {
        let mut script = Script::new();
        let object = |to, id| {
            let action = RouteAction::Forward(HopSet::Object(id));
            add(RouteEntry { action, ..route(to, &[]) })
        };
        let single = |link, gateway| NextHopObject::Single(RouteAction::Forward(by(link, gateway)));
        script.apply([
            neighbor(1, "10.0.1.9", 19, REACHABLE),
            neighbor(2, "10.0.2.9", 29, REACHABLE),
            ControlEvent::NextHop(7, single(1, "10.0.1.9")),
            ControlEvent::NextHop(8, single(2, "10.0.2.9")),
            ControlEvent::NextHop(9, NextHopObject::Group(vec![(7, 1), (8, 1)])),
            ControlEvent::NextHop(10, NextHopObject::Group(vec![(8, 1)])),
            object("198.18.8.0/24", 8),
            object("198.18.9.0/24", 9),
            object("198.18.10.0/24", 10),
        ]);
        assert_eq!(script.all("198.18.9.1"), set(&["0:19", "1:29"]));
        script.mirror.take_suspicions();
        script.apply([ControlEvent::Link(gone), ControlEvent::Link(link(2, "eth2"))]);
        let found = [8, 9, 10].map(|id| script.to(&format!("198.18.{id}.1")));
        assert_eq!(found, ["no route", "0:19", "no route"]);
        let suspected = script.mirror.take_suspicions();
        assert_eq!(suspected, [DumpPart::Objects, DumpPart::Inet, DumpPart::Inet6]);
    }
}

#[test]
fn a_dump_repairs_the_order_of_routes_of_equal_metric() {
    let mut script = Script::new();
    let net = |hop| route("198.18.0.0/15", &[hop]);
    let (first, last) = (net(by(1, "10.0.1.9")), net(by(2, "10.0.2.9")));
    let new = net(by(1, "10.0.1.8"));
    script.apply([
        neighbor(1, "10.0.1.8", 18, REACHABLE),
        neighbor(1, "10.0.1.9", 19, REACHABLE),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(first.clone()),
        add(last.clone()),
    ]);
    assert_eq!(script.to("198.18.0.1"), "1:29");
    let listed = |route: &RouteEntry| ControlEvent::Route(route.clone(), Placement::Listed);
    script.mirror.begin_dump(DumpPart::Inet);
    script.apply([listed(&first), listed(&new), listed(&last)]);
    script.mirror.end_dump(DumpPart::Inet);
    script.settle();
    assert_eq!(script.to("198.18.0.1"), "0:19");
    script.apply([ControlEvent::RouteRemoved(first)]);
    assert_eq!(script.to("198.18.0.1"), "0:18");
}

/// The kernel's dump goes from the first hop of a multipath route to the last one.
#[test]
fn a_dump_keeps_routes_that_the_kernel_may_hide() {
    let mut script = Script::new();
    let (to, from) = ("2001:db8::/32", "2001:db8::1");
    let multipath = route(to, &[by(1, "fe80::1"), by(2, "fe80::2")]);
    let unreachable = RouteEntry { action: RouteAction::Unreachable, ..route(to, &[]) };
    let other = RouteEntry { metric: 5, ..unreachable.clone() };
    script.apply([add(multipath.clone()), add(unreachable.clone()), add(other)]);
    script.mirror.begin_dump(DumpPart::Inet6);
    script.apply([ControlEvent::Route(multipath.clone(), Placement::Listed)]);
    assert_eq!(script.mirror.end_dump(DumpPart::Inet6), 1, "that of another metric");
    script.settle();
    assert_eq!(script.to(from), "local", "two routes of one metric");
    script.apply([ControlEvent::RouteRemoved(multipath)]);
    assert_eq!(script.to(from), "unreachable");
    script.mirror.begin_dump(DumpPart::Inet6);
    assert_eq!(script.mirror.end_dump(DumpPart::Inet6), 1, "nothing hides it any more");
}

/// A route by link 2 between the hops of a multipath route, which are by links 1 and 2; and the multipath route. As the kernel
/// does with `ip route replace` of one of two routes by a multipath route.
fn with_a_route_between_hops() -> (Script, RouteEntry, RouteEntry) {
    let to = "2001:db8::/32";
    let (between, blackhole) =
        (route(to, &[direct(2)]), RouteEntry { action: RouteAction::Blackhole, ..route(to, &[]) });
    let multipath = route(to, &[by(1, "fe80::1"), by(2, "fe80::2")]);
    let mut script = Script::new();
    script.apply([add(blackhole), add(between.clone())]);
    script.apply([ControlEvent::Route(multipath.clone(), Placement::Replace)]);
    (script, between, multipath)
}

/// The kernel passes over it.
#[test]
fn a_route_between_hops_stays_when_its_link_goes_down() {
    let (mut script, between, multipath) = with_a_route_between_hops();
    script.apply([set_up(2, false), ControlEvent::RouteRemoved(between.clone())]);
    assert_eq!(script.to("2001:db8::1"), "local", "what is reported looked like it");
    script.apply([ControlEvent::RouteRemoved(multipath)]);
    assert_eq!(script.to("2001:db8::1"), "local", "the kernel uses it");
    script.apply([set_up(2, true)]);
    assert_eq!(script.to("2001:db8::1"), "1:glean");
    script.apply([ControlEvent::RouteRemoved(between)]);
    assert_eq!(script.to("2001:db8::1"), "no route");
}

/// It passed over it before the mirror began.
#[test]
fn a_listed_route_whose_link_is_down_is_left_to_the_kernel() {
    let mut script = Script::new();
    let between = route("2001:db8::/32", &[direct(2)]);
    script.apply([set_up(2, false)]);
    script.mirror.begin_dump(DumpPart::Inet6);
    script.apply([ControlEvent::Route(between.clone(), Placement::Listed)]);
    script.mirror.end_dump(DumpPart::Inet6);
    assert_eq!(script.to("2001:db8::1"), "local");
    script.apply([ControlEvent::RouteRemoved(between)]);
    assert_eq!(script.to("2001:db8::1"), "no route");
}

/// The kernel lists none of the routes between the hops of a multipath route.
#[test]
fn a_route_that_may_have_hidden_others_is_asked_about_when_it_goes() {
    let to = |hops: &[RouteHop]| route("2001:db8::/32", hops);
    let hops = [by(1, "fe80::1"), by(2, "fe80::2"), by(2, "fe80::3")];
    let listed = |script: &mut Script| {
        script.mirror.begin_dump(DumpPart::Inet6);
        script.apply([ControlEvent::Route(to(&hops), Placement::Listed)]);
        script.mirror.end_dump(DumpPart::Inet6);
    };
    let nothing_listed = |script: &mut Script| {
        script.mirror.begin_dump(DumpPart::Inet6);
        script.mirror.end_dump(DumpPart::Inet6);
    };
    let reported = |script: &mut Script| {
        nothing_listed(script);
        script.apply([add(to(&hops[..1])), add(to(&hops[..2])), add(to(&hops))]);
    };
    let revealed_after = |prepare: &dyn Fn(&mut Script), gone: &[RouteHop]| {
        let mut script = Script::new();
        prepare(&mut script);
        assert!(!script.mirror.take_revealed());
        script.apply([ControlEvent::RouteRemoved(to(gone))]);
        script.mirror.take_revealed()
    };
    assert!(revealed_after(&listed, &hops) && !revealed_after(&reported, &hops));
    assert!(!revealed_after(&listed, &hops[..1]), "it still has two hops");
    let shrunk = |script: &mut Script| {
        listed(script);
        script.apply([ControlEvent::RouteRemoved(to(&hops[..1]))]);
    };
    assert!(revealed_after(&shrunk, &hops[1..2]));
    let listed_again = |script: &mut Script| {
        reported(script);
        listed(script);
    };
    assert!(!revealed_after(&listed_again, &hops), "all reports were seen");
    let doubted = |script: &mut Script| {
        listed_again(script);
        script.mirror.doubt_hidden();
    };
    assert!(revealed_after(&doubted, &hops));
    let with_another = |script: &mut Script| {
        reported(script);
        script.apply([add(to(&[direct(1)]))]);
    };
    assert!(revealed_after(&with_another, &hops), "whose place is known by reports alone");
    let before_the_dump = |script: &mut Script| {
        script.apply([add(to(&hops))]);
        listed(script);
    };
    assert!(revealed_after(&before_the_dump, &hops), "a hop joined one that was there");
    let unlisted = |script: &mut Script| {
        listed(script);
        nothing_listed(script);
        script.apply([add(to(&hops[..1])), add(to(&hops))]);
    };
    assert!(!revealed_after(&unlisted, &hops), "the dump showed what the first one hid");
}

/// What it hid is not known before the dump that is to come.
#[test]
fn hops_that_join_again_before_a_dump_may_still_hide_a_route() {
    let to = |hops: &[RouteHop]| route("2001:db8::/32", hops);
    let hops = [by(1, "fe80::1"), by(2, "fe80::2")];
    for placement in [Placement::Last, Placement::Replace] {
        let mut script = Script::new();
        let listed = |script: &mut Script| {
            script.mirror.begin_dump(DumpPart::Inet6);
            script.apply([ControlEvent::Route(to(&hops), Placement::Listed)]);
            script.mirror.end_dump(DumpPart::Inet6);
        };
        let gone = |script: &mut Script| {
            script.apply([ControlEvent::RouteRemoved(to(&hops[1..]))]);
            script.mirror.take_revealed()
        };
        listed(&mut script);
        assert!(gone(&mut script));
        script.apply([ControlEvent::Route(to(&hops), placement)]);
        listed(&mut script);
        assert!(gone(&mut script), "{placement:?}");
    }
}

/// The kernel passes over them when the link goes down, and over none when it is removed.
#[test]
fn a_link_that_is_removed_takes_routes_between_hops_along() {
    let mut script = Script::new();
    let to = |hops: &[RouteHop]| route("2001:db8::/32", hops);
    let hops = [by(1, "fe80::1"), by(1, "fe80::2")];
    script.apply([add(to(&hops[..1])), add(to(&[direct(2)])), add(to(&hops))]);
    assert_eq!(script.to("2001:db8::1"), "local", "two routes of one metric");
    script.apply([set_up(2, false), ControlEvent::RouteRemoved(to(&[direct(2)]))]);
    script.apply([ControlEvent::LinkRemoved(2), ControlEvent::RouteRemoved(to(&hops))]);
    assert_eq!(script.to("2001:db8::1"), "no route");
}

#[test]
fn hops_that_are_listed_together_have_joined_whatever_their_protocol() {
    let mut script = Script::new();
    let (one, two) = (by(1, "fe80::1"), by(2, "fe80::2"));
    let of_program = |hops: &[RouteHop]| RouteEntry { protocol: PROTOCOL_RA, ..route("2001:db8::/32", hops) };
    script.apply([add(of_program(&[one])), add(of_program(&[one, two]))]);
    assert_eq!(script.all("2001:db8::1"), set(&["0:glean", "1:glean"]));
    script.apply([ControlEvent::RouteRemoved(of_program(&[one]))]);
    assert_eq!(script.to("2001:db8::1"), "1:glean");
}

#[test]
fn without_a_kernel_a_route_whose_link_is_down_is_not_used() {
    let mut script = Script::new();
    script.mirror.keep_routes();
    script.apply([add(route("2001:db8::/32", &[direct(2)])), add(route("::/0", &[direct(1)]))]);
    script.apply([set_up(2, false)]);
    assert_eq!(script.to("2001:db8::1"), "0:glean");
    script.apply([set_up(2, true)]);
    assert_eq!(script.to("2001:db8::1"), "1:glean");
}

#[test]
fn hops_that_come_and_go_hide_a_route_or_do_not() {
    let (mut script, between, _) = with_a_route_between_hops();
    let to = |hops: &[RouteHop]| route("2001:db8::/32", hops);
    let (one, two) = (by(1, "fe80::1"), by(2, "fe80::2"));
    script.apply([ControlEvent::RouteRemoved(to(&[two])), set_up(2, false), set_up(2, true)]);
    script.apply([ControlEvent::RouteRemoved(to(&[one]))]);
    assert_eq!(script.to("2001:db8::1"), "no route", "the hop behind it had gone");
    script.apply([add(to(&[one])), add(between)]);
    script.apply([ControlEvent::Route(to(&[two, one]), Placement::Last), set_up(2, false)]);
    script.apply([set_up(2, true), ControlEvent::RouteRemoved(to(&[one, two]))]);
    assert_eq!(script.to("2001:db8::1"), "1:glean", "a hop came behind it");
}

/// The hop that stays was in the list before it.
#[test]
fn a_multipath_route_takes_the_place_of_a_hop_of_its_own_only() {
    let (to, from) = ("2001:db8::/32", "2001:db8::1");
    let prohibit = RouteEntry { action: RouteAction::Prohibit, ..route(to, &[]) };
    let mut script = Script::new();
    script.apply([add(route(to, &[by(1, "fe80::1")])), add(prohibit)]);
    let all = route(to, &[by(2, "fe80::2"), by(1, "fe80::1")]);
    script.apply([ControlEvent::Route(all.clone(), Placement::Replace), ControlEvent::RouteRemoved(all)]);
    assert_eq!(script.to(from), "prohibit");
}

#[test]
fn a_route_that_a_dump_lists_twice_is_there_twice() {
    let mut script = Script::new();
    let twice = route("2001:db8::/32", &[direct(1)]);
    let listed = || ControlEvent::Route(twice.clone(), Placement::Listed);
    for times in [1, 2, 2, 1] {
        script.mirror.begin_dump(DumpPart::Inet6);
        script.apply((0..times).map(|_| listed()));
        script.mirror.end_dump(DumpPart::Inet6);
        script.settle();
        assert_eq!(script.to("2001:db8::1"), if times == 2 { "local" } else { "0:glean" });
    }
    script.apply([ControlEvent::RouteRemoved(twice)]);
    assert_eq!(script.to("2001:db8::1"), "no route");
}

#[test]
fn a_dump_of_addresses_that_does_not_end_forgets_none() {
    let mut script = Script::new();
    let address = |host: &str| InterfaceAddress { ip: ip(host), len: 24 };
    let (kept, gone) = (address("10.0.1.1"), address("10.0.1.3"));
    script.apply([kept, gone].map(|address| ControlEvent::Address(1, address.into())));
    script.mirror.begin_dump(DumpPart::Addresses);
    script.apply([ControlEvent::Address(2, address("10.0.2.1").into())]);
    assert_eq!(script.view().interface(0).unwrap().addresses, [kept, gone]);
    script.mirror.begin_dump(DumpPart::Addresses);
    script.apply([ControlEvent::Address(1, kept.into())]);
    assert_eq!(script.mirror.end_dump(DumpPart::Addresses), 2);
    script.settle();
    assert_eq!(script.view().interface(0).unwrap().addresses, [kept]);
}

/// The last address of a link was removed, and the link's hops died with it. When the link has an address again they
/// are alive, and the kernel does not report it.
/// The kernel does not report that it uses hops again, which it had listed as dead.
#[test]
fn dead_hops_of_a_link_that_is_back_are_left_to_the_kernel_until_they_are_listed() {
    let mut script = Script::new();
    let of_metric = |metric, hop| RouteEntry { metric, ..route("198.18.0.0/15", &[hop]) };
    let (first, other) = (by(1, "10.0.1.9"), of_metric(20, by(2, "10.0.2.9")));
    let dump = |script: &mut Script, first: RouteHop| {
        script.mirror.begin_dump(DumpPart::Inet);
        for listed in [of_metric(10, first), other.clone()] {
            script.mirror.apply(ControlEvent::Route(listed, Placement::Listed));
        }
    };
    let without_carrier = ControlEvent::Link(Link { carrier: false, ..link(1, "eth1") });
    script.apply([neighbor(1, "10.0.1.9", 19, REACHABLE), neighbor(2, "10.0.2.9", 29, REACHABLE)]);
    script.apply([without_carrier]);
    dump(&mut script, RouteHop { dead: true, ..first });
    script.mirror.end_dump(DumpPart::Inet);
    script.settle();
    assert_eq!(script.to("198.18.0.1"), "1:29");
    dump(&mut script, RouteHop { dead: true, ..first });
    script.apply([ControlEvent::Link(link(1, "eth1"))]);
    script.mirror.end_dump(DumpPart::Inet);
    script.settle();
    assert_eq!(script.to("198.18.0.1"), "local", "that dump had begun before");
    dump(&mut script, first);
    script.mirror.end_dump(DumpPart::Inet);
    script.settle();
    assert_eq!(script.to("198.18.0.1"), "0:19");
}

#[test]
fn dead_hops_may_be_usable_again_with_an_address() {
    let mut script = Script::new();
    let dead = RouteHop { dead: true, ..by(1, "10.0.1.9") };
    script.apply([add(route("198.18.0.0/15", &[dead, by(2, "10.0.2.9")]))]);
    script.mirror.take_suspicions();
    let address = |host: &str| InterfaceAddress { ip: ip(host), len: 24 };
    script.apply([ControlEvent::Address(2, address("10.0.2.1").into())]);
    assert_eq!(script.mirror.take_suspicions(), []);
    script.apply([ControlEvent::Address(1, address("10.0.1.1").into())]);
    assert_eq!(script.mirror.take_suspicions(), [DumpPart::Inet]);
}

fn main_rule(family: Family) -> Rule {
    Rule {
        family,
        priority: 32_766,
        selector: RuleSelector::default(),
        target: RuleTarget::Table(MAIN),
        identity: b"main".to_vec(),
    }
}

#[test]
fn one_of_two_equal_rules_survives_the_removal_of_the_other() {
    let mut script = Script::new();
    script.mirror.follow_kernel_forwarding();
    script.apply([ControlEvent::Forwarding(1, Family::Inet, true)]);
    let rule = main_rule(Family::Inet);
    let forwards = |script: &Script| script.view().interface(0).unwrap().forwards_inet;
    script.mirror.take_suspicions();
    script.apply([ControlEvent::Rule(rule.clone())]);
    assert_eq!(script.mirror.take_suspicions(), []);
    script.apply([ControlEvent::Rule(rule.clone())]);
    assert_eq!(script.mirror.take_suspicions(), [DumpPart::Rules]);
    script.apply([ControlEvent::RuleRemoved(rule.clone())]);
    assert_eq!(script.mirror.take_suspicions(), [DumpPart::Rules]);
    script.mirror.begin_dump(DumpPart::Rules);
    script.apply([ControlEvent::Rule(rule)]);
    assert_eq!(script.mirror.end_dump(DumpPart::Rules), 0);
    script.settle();
    assert!(forwards(&script));
    assert_eq!(script.mirror.take_suspicions(), []);
}

/// A table that answers everything is the interface's own, one that answers some packets is asked first, one without routes
/// is not asked.
#[test]
fn rules_follow_what_their_tables_have() {
    let mut script = Script::new();
    script.mirror.follow_kernel_forwarding();
    let selector = RuleSelector { ingress: Some("eth1".into()), ..RuleSelector::default() };
    let rule = Rule {
        priority: 100,
        selector,
        target: RuleTarget::Table(100),
        identity: b"eth1".to_vec(),
        ..main_rule(Family::Inet)
    };
    script.apply([ControlEvent::Rule(main_rule(Family::Inet)), ControlEvent::Rule(rule.clone())]);
    script.apply([1, 2].map(|link| ControlEvent::Forwarding(link, Family::Inet, true)));
    let lookups = |script: &Script| {
        let view = script.view();
        let interfaces = view.parts().interfaces.iter();
        let shown = interfaces.map(|of| (script.mirror.table_number(of.table).unwrap(), of.rules.inet.len()));
        assert!(view.parts().interfaces.iter().all(|interface| interface.forwards_inet));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(lookups(&script), [(MAIN, 0), (MAIN, 0)]);
    let in_100 = |to: &str| RouteEntry { table: 100, ..route(to, &[by(2, "10.0.2.9")]) };
    script.apply([add(in_100("198.18.0.0/15"))]);
    assert_eq!(lookups(&script), [(MAIN, 2), (MAIN, 0)], "table 100, then the main table");
    script.apply([add(in_100("0.0.0.0/0"))]);
    assert_eq!(lookups(&script), [(100, 0), (MAIN, 0)]);
    let throw = RouteEntry { action: RouteAction::Throw, ..in_100("192.0.2.0/24") };
    script.apply([add(throw.clone())]);
    assert_eq!(lookups(&script), [(MAIN, 2), (MAIN, 0)], "some packets meet the next rule");
    assert_eq!(script.mirror.report().ruled, [""; 0]);
    let gone = [in_100("198.18.0.0/15"), in_100("0.0.0.0/0"), throw];
    script.apply(gone.map(ControlEvent::RouteRemoved));
    assert_eq!(lookups(&script), [(MAIN, 0), (MAIN, 0)]);
    script.apply([add(in_100("0.0.0.0/0")), ControlEvent::RuleRemoved(rule)]);
    assert_eq!(lookups(&script), [(MAIN, 0), (MAIN, 0)]);
}

/// As with several uplinks: the tables of rules have the connected networks too.
#[test]
fn neighbours_have_host_routes_in_tables_of_rules() {
    let mut script = Script::new();
    script.mirror.follow_kernel_forwarding();
    let selector = RuleSelector { ingress: Some("eth1".into()), ..RuleSelector::default() };
    let (priority, target, identity) = (100, RuleTarget::Table(100), b"eth1".to_vec());
    let rule = Rule { priority, selector, target, identity, ..main_rule(Family::Inet) };
    let network = RouteEntry { table: 100, ..connected("10.0.2.0/24", 2) };
    script.apply([
        ControlEvent::Rule(main_rule(Family::Inet)),
        ControlEvent::Rule(rule),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(RouteEntry { table: 100, ..route("0.0.0.0/0", &[by(2, "10.0.2.9")]) }),
        add(network.clone()),
    ]);
    let found = |script: &Script, to: &str| script.all_in(1, to).into_iter().next().unwrap();
    assert_eq!([found(&script, "10.0.2.9"), found(&script, "10.0.2.8")], ["1:29", "1:glean"]);
    script.apply([neighbor(2, "10.0.2.8", 28, REACHABLE)]);
    assert_eq!([found(&script, "10.0.2.8"), script.to("10.0.2.8")], ["1:28", "1:28"]);
    script.apply([ControlEvent::NeighborRemoved(2, ip("10.0.2.8"))]);
    assert_eq!([found(&script, "10.0.2.8"), script.to("10.0.2.8")], ["1:glean", "1:glean"]);
    script.apply([ControlEvent::RouteRemoved(network), neighbor(2, "10.0.2.7", 27, REACHABLE)]);
    assert_eq!([found(&script, "10.0.2.7"), script.to("10.0.2.7")], ["1:29", "1:27"]);
}

#[test]
fn the_kernels_settings_decide_what_is_forwarded() {
    let mut script = Script::new();
    script.mirror.follow_kernel_forwarding();
    script.apply([Family::Inet, Family::Inet6].map(|family| ControlEvent::Rule(main_rule(family))));
    let on = |link, family| ControlEvent::Forwarding(link, family, true);
    script.apply([on(1, Family::Inet), on(1, Family::Inet6), on(2, Family::Inet6)]);
    let forwards = |script: &Script, number| {
        let view = script.view();
        let interface = view.interface(number).unwrap();
        (interface.forwards_inet, interface.forwards_inet6)
    };
    assert_eq!(
        forwards(&script, 0),
        (true, false),
        "no link forwards IPv6 unless the setting for all links does"
    );
    script.apply([on(ALL_LINKS, Family::Inet6)]);
    assert_eq!((forwards(&script, 0), forwards(&script, 1)), ((true, true), (false, true)));
    script.apply([ControlEvent::Link(Link { runs_inet6: false, ..link(1, "eth1") })]);
    assert_eq!((forwards(&script, 0), forwards(&script, 1)), ((true, false), (false, true)));
    script.apply([ControlEvent::Forwarding(ALL_LINKS, Family::Inet6, false)]);
    assert_eq!(forwards(&script, 1), (false, false));
}

#[test]
fn the_flow_seed_is_in_the_view() {
    let mut script = Script::new();
    assert_eq!(script.view().parts().policy.flow_hash.seed, 0);
    script.mirror.set_flow_seed(7);
    script.settle();
    assert_eq!(script.view().parts().policy.flow_hash.seed, 7);
}

/// With a gateway on each port for both families, and the routes of `hops_by` to them.
fn with_two_gateways(hops_by: impl Fn([RouteHop; 2], &str) -> RouteEntry) -> Script {
    let mut script = Script::new();
    let [inet, inet6] = [["10.0.1.9", "10.0.2.9"], ["2001:db8:1::9", "2001:db8:2::9"]];
    for (link, addresses) in [(1, [inet[0], inet6[0]]), (2, [inet[1], inet6[1]])] {
        script.apply(addresses.map(|address| neighbor(link, address, link as u8 * 10 + 9, REACHABLE)));
    }
    for (gateways, to) in [(inet, ["198.18.0.0/15", "0.0.0.0/0"]), (inet6, ["2001:db8:9::/48", "::/0"])] {
        let hops = [by(1, gateways[0]), by(2, gateways[1])];
        script.apply(to.map(|to| add(hops_by(hops, to))));
    }
    script
}

#[test]
fn packets_of_several_next_hops_are_left_to_the_kernel_where_only_it_can_choose() {
    let mut script = with_two_gateways(|hops, to| route(to, &hops));
    script.apply([add(route("198.20.0.0/16", &[by(1, "10.0.1.9")]))]);
    let (both, kernel) = (set(&["0:19", "1:29"]), set(&["local"]));
    assert!(script.mirror.has_several_next_hops());
    let ways = |script: &Script| {
        ["198.18.0.1", "203.0.113.1", "2001:db8:9::1", "2001:db8:8::1"].map(|to| script.all(to))
    };
    script.mirror.set_flow_fields(Family::Inet, None);
    script.settle();
    assert_eq!(ways(&script), [&kernel, &kernel, &both, &both].map(Clone::clone));
    assert_eq!(script.to("198.20.0.1"), "0:19", "there is nothing to choose");
    script.mirror.set_flow_fields(Family::Inet6, None);
    script.settle();
    assert!(!script.mirror.has_several_next_hops());
    script.mirror.set_flow_fields(Family::Inet, Some(FlowFields::Layer4));
    script.settle();
    assert_eq!(ways(&script), [&both, &both, &kernel, &kernel].map(Clone::clone));
    script.apply([set_up(2, false)]);
    assert_eq!(script.to("2001:db8:9::1"), "0:19", "one is left");
    script.apply([set_up(2, true)]);
    script.mirror.set_flow_fields(Family::Inet6, Some(FlowFields::Layer3));
    script.settle();
    assert_eq!(ways(&script), [&both; 4].map(Clone::clone));
    let hash = script.view().parts().policy.flow_hash;
    assert_eq!([hash.inet, hash.inet6], [FlowFields::Layer4, FlowFields::Layer3]);
}

#[test]
fn whether_a_route_has_several_next_hops_is_known_until_no_fib_leads_to_them() {
    let mut script = Script::new();
    let hops = [by(1, "10.0.1.9"), by(2, "10.0.2.9")];
    script.apply([add(route("198.19.0.0/16", &hops[..1]))]);
    assert!(!script.mirror.has_several_next_hops());
    script.apply([add(route("198.18.0.0/16", &hops))]);
    assert!(script.mirror.has_several_next_hops());
    script.apply([ControlEvent::RouteRemoved(route("198.18.0.0/16", &hops))]);
    script.settle();
    assert!(!script.mirror.has_several_next_hops());
}

/// IPv4 and IPv6 routes may have the same hops.
#[test]
fn hops_that_both_families_share_are_left_to_the_kernel_for_one_of_them() {
    let by_inet6 = [by(1, "2001:db8:1::9"), by(2, "2001:db8:2::9")];
    let mut script = with_two_gateways(|_, to| route(to, &by_inet6));
    script.mirror.set_flow_fields(Family::Inet, None);
    script.settle();
    assert_eq!(script.all("198.18.0.1"), set(&["local"]));
    assert_eq!(script.all("2001:db8:9::1"), set(&["0:19", "1:29"]));
}

#[test]
fn next_hop_indices_are_reused() {
    let mut script = Script::new();
    for n in 0..70_000u32 {
        let gateway = format!("10.0.1.{}", n % 200 + 2);
        let far =
            RouteHop { gateway: Some(IpAddr::from((0x0a63_0000 + n).to_be_bytes())), ..by(1, &gateway) };
        let route = route("198.18.0.0/15", &[far]);
        script.mirror.apply(add(route.clone()));
        script.mirror.commit(script.now);
        script.mirror.apply(ControlEvent::RouteRemoved(route));
        script.now += Time::from_millis(60);
        script.mirror.commit(script.now);
    }
    script.apply([add(route("198.18.0.0/15", &[by(1, "10.0.1.9")]))]);
    assert_eq!(script.to("198.18.0.1"), "0:glean");
    assert_eq!(script.mirror.take_warnings(), [""; 0]);
}

#[test]
fn an_index_that_a_view_still_knows_is_not_reused() {
    let mut script = Script::new();
    let old = route("198.18.0.0/15", &[by(1, "10.0.1.9")]);
    script.apply([add(old.clone())]);
    let hop = |script: &Script| script.view().parts().tables[0].inet.with(|fib| fib.lookup(0xc612_0001));
    let (held, index) = (script.view(), hop(&script));
    script.apply([ControlEvent::RouteRemoved(old)]);
    script.apply([add(route("198.18.0.0/15", &[by(1, "10.0.1.8")]))]);
    let second = hop(&script);
    assert_ne!(second, index, "a worker may still use it");
    drop(held);
    script.apply([ControlEvent::RouteRemoved(route("198.18.0.0/15", &[by(1, "10.0.1.8")]))]);
    script.apply([add(route("198.18.0.0/15", &[by(1, "10.0.1.7")]))]);
    assert!([index, second].contains(&hop(&script)));
}

/// A route to an address by a gateway of its own.
fn route_of_its_own(n: u32) -> RouteEntry {
    let gateway = Some(IpAddr::from((0x0a63_0000 + n).to_be_bytes()));
    let to = IpAddr::from((0xc700_0000 + n).to_be_bytes());
    route(&format!("{to}/32"), &[RouteHop { gateway, ..by(1, "10.0.1.9") }])
}

#[test]
fn routes_and_neighbours_without_an_index_get_one_when_some_are_free() {
    let mut script = Script::new();
    let hops = [by(1, "10.0.1.9"), by(2, "10.0.2.9")];
    let [first, second] = ["198.18.0.0/16", "198.19.0.0/16"].map(|to| route(to, &hops));
    let second = RouteEntry { action: RouteAction::via([direct(2), hops[0]]), ..second };
    script.apply([add(first.clone())]);
    script.apply((0..70_000).map(|n| add(route_of_its_own(n))));
    script.apply([add(second), neighbor(2, "10.0.2.7", 27, REACHABLE)]);
    let all = |script: &Script| ["198.19.0.1", "199.1.17.111", "10.0.2.7"].map(|to| script.all(to));
    assert_eq!(all(&script), [set(&["local"]), set(&["local"]), set(&["1:glean"])]);
    let held = script.view().parts().groups.current();
    script.apply([ControlEvent::RouteRemoved(first)]);
    script.apply((0..6_000).map(|n| ControlEvent::RouteRemoved(route_of_its_own(n))));
    script.settle();
    assert_eq!(
        all(&script),
        [set(&["local"]), set(&["0:glean"]), set(&["1:27"])],
        "the group waits for a worker"
    );
    drop(held);
    script.settle();
    assert_eq!(script.all("198.19.0.1"), set(&["0:glean", "1:glean"]));
}

/// Groups take no next hop's place in the full table, next hops take no group's, and a neighbour needs two indices.
#[test]
fn the_view_stays_where_free_indices_serve_no_route_or_neighbour_without_one() {
    let mut script = Script::new();
    let removed = ControlEvent::RouteRemoved;
    let hops = [by(1, "10.0.1.9"), by(2, "10.0.2.9")];
    let [first, second, third] =
        ["198.18.0.0/16", "198.19.0.0/16", "198.20.0.0/16"].map(|to| route(to, &hops));
    let second = RouteEntry { action: RouteAction::via([direct(2), hops[0]]), ..second };
    let third = RouteEntry { action: RouteAction::via([direct(1), hops[1]]), ..third };
    script.apply([add(first.clone())]);
    script.apply((0..70_000).map(|n| add(route_of_its_own(n))));
    script.apply([removed(first)]);
    script.keeps_the_view("a group is free, and next hops lack indices");
    script.apply([add(second), add(third)]);
    assert_eq!(["198.19.0.1", "198.20.0.1"].map(|to| script.all(to).len()), [2, 1]);
    script.apply((60_000..70_000).map(|n| removed(route_of_its_own(n))));
    script.keeps_the_view("indices of next hops are free, and a group lacks its own");
    let refilled: Vec<u32> = (60_000..70_000).collect();
    script.apply(refilled.iter().map(|n| add(route_of_its_own(*n))));
    let address = |n: &u32| IpAddr::from((0xc700_0000 + n).to_be_bytes()).to_string();
    let with_index = refilled.partition_point(|n| script.all(&address(n)) != set(&["local"]));
    script.apply(refilled[with_index - 1..].iter().map(|n| removed(route_of_its_own(*n))));
    script.apply([neighbor(2, "10.0.2.7", 27, REACHABLE)]);
    script.keeps_the_view("one index is free, and a neighbour lacks two");
    assert_eq!(script.to("10.0.2.7"), "1:glean");
    script.apply([removed(route_of_its_own(refilled[with_index - 2]))]);
    script.settle();
    assert_eq!(script.to("10.0.2.7"), "1:27");
}

#[test]
fn neighbours_below_a_default_route_to_their_link_have_host_routes() {
    let mut script = Script::new();
    let metric = |metric, hops: &[RouteHop]| RouteEntry { metric, ..route("0.0.0.0/0", hops) };
    script.apply([
        neighbor(1, "203.0.113.77", 19, REACHABLE),
        neighbor(2, "10.0.2.9", 29, REACHABLE),
        add(metric(5, &[by(2, "10.0.2.9")])),
    ]);
    assert_eq!(script.to("203.0.113.77"), "1:29");
    script.apply([add(metric(0, &[direct(1)]))]);
    assert_eq!(script.to("203.0.113.77"), "0:19");
    assert_eq!(script.to("203.0.113.78"), "0:glean");
}
