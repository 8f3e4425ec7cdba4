//! The loop as a router: VLANs, tables, kinds of next hops, groups, source checks, view changes.
#![allow(clippy::panic, clippy::type_complexity)] // a test fails by panicking; its cases are tuples

use std::collections::HashSet;
use std::sync::Arc;

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::flow_hash::{FlowFields, FlowHash};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::{Interface, InterfaceAddress, SourceCheck};
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::verdict::{Punt, Reason};
use fullview_plane::view::{Policy, TableReaders, View, ViewParts, ViewReader, Views};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::group::{Groups, Member};
use fullview_table::{NextHop, NextHops, Rib, Target};
use proptest::prelude::*;

use crate::frames::*;

/// Interfaces: 0 to 2 are the untagged frames of ports 0 to 2, 3 and 4 are VLANs 10 and 20 of port 0. VLAN 20 looks up
/// in table 1, the others in table 0.
const VLAN_10: u16 = 3;
const VLAN_20: u16 = 4;

/// An address of the router itself.
pub const TO_HOST: &str = "198.18.100.1";

/// Next hops 1 to 5 are neighbours on interfaces 0 to 4; these are the others.
const LOCAL: u16 = 10;
const BROADCAST: u16 = 11;
const BLACKHOLE: u16 = 12;
const UNREACHABLE: u16 = 13;
const PROHIBIT: u16 = 14;
const GLEAN: u16 = 15;
const UNKNOWN: u16 = 16;

const ROUTES: [(&str, u16); 14] = [
    ("198.19.0.0/16", 2),
    ("198.18.0.0/24", 1),
    ("198.18.2.0/24", 3),
    ("198.18.10.0/24", 4),
    ("198.18.20.0/24", 5),
    ("198.18.100.1/32", LOCAL),
    ("198.18.100.255/32", BROADCAST),
    ("198.18.101.0/24", BLACKHOLE),
    ("198.18.102.0/24", UNREACHABLE),
    ("198.18.103.0/24", PROHIBIT),
    ("198.18.104.0/24", GLEAN),
    ("198.18.105.0/24", UNKNOWN),
    ("127.0.0.0/8", 2),
    ("240.0.0.0/4", 2),
];

const ROUTES6: [(&str, u16); 5] = [
    ("2001:2:0:1::/64", 2),
    ("2001:2::/64", 1),
    ("2001:2:0:10::/64", 4),
    ("2001:2:0:20::/64", 5),
    ("2001:2:0:104::/64", GLEAN),
];

fn tables(routes: &[(&str, u16)], routes6: &[(&str, u16)]) -> TableReaders {
    let (mut inet, mut inet6) = (Rib::<u32>::default(), Rib::<u128>::default());
    for (prefix, hop) in routes {
        inet.announce(prefix.parse().unwrap(), NextHop(*hop));
    }
    for (prefix, hop) in routes6 {
        inet6.announce(prefix.parse().unwrap(), NextHop(*hop));
    }
    TableReaders::fixed(Linear.compile(&inet).unwrap().fib(), Linear.compile(&inet6).unwrap().fib())
}

pub fn parts() -> ViewParts {
    let on = |port, vlan| Interface { vlan, ..Interface::new(port, OURS) };
    let mut interfaces = vec![on(0, None), on(1, None), on(2, None), on(0, Some(10)), on(0, Some(20))];
    interfaces[usize::from(VLAN_20)].table = 1;
    interfaces[0].addresses = vec![InterfaceAddress { ip: "198.18.0.254".parse().unwrap(), len: 24 }];
    let mut adjacencies = Adjacencies::new();
    for (hop, interface) in (1..).zip([0, 1, 2, VLAN_10, VLAN_20]) {
        let port = interfaces[usize::from(interface)].port;
        adjacencies.set(NextHop(hop), Adjacency::Neighbor { interface, mac: neighbor(port) });
    }
    for (hop, adjacency) in [
        (LOCAL, Adjacency::Local),
        (BROADCAST, Adjacency::Broadcast),
        (BLACKHOLE, Adjacency::Blackhole),
        (UNREACHABLE, Adjacency::Unreachable),
        (PROHIBIT, Adjacency::Prohibit),
        (GLEAN, Adjacency::Glean { interface: 2 }),
    ] {
        adjacencies.set(NextHop(hop), adjacency);
    }
    let mut parts = ViewParts::new(interfaces, adjacencies, tables(&ROUTES, &ROUTES6));
    parts.tables.push(tables(&[("198.19.0.0/16", 3), ("198.18.20.0/24", 5)], &[("2001:2:0:1::/64", 3)]));
    parts
}

fn forwarder(parts: ViewParts) -> Forwarder {
    Forwarder::new(ViewReader::fixed(View::new(parts).unwrap()))
}

fn fate(parts: ViewParts, port: u16, frame: Vec<u8>) -> Fate {
    run(&mut forwarder(parts), &[(port, frame)]).remove(0)
}

/// Runs every row alone, then all rows in one burst.
fn check(parts: &ViewParts, rows: Vec<(&str, u16, Vec<u8>, Fate)>) {
    for (name, port, frame, expected) in &rows {
        assert_eq!(&fate(parts.clone(), *port, frame.clone()), expected, "{name}");
    }
    let frames: Vec<_> = rows.iter().map(|(_, port, frame, _)| (*port, frame.clone())).collect();
    let fates = run(&mut forwarder(parts.clone()), &frames);
    for ((name, .., expected), fate) in rows.iter().zip(fates) {
        assert_eq!(&fate, expected, "{name}, in one burst with the others");
    }
}

#[test]
fn the_tag_selects_the_interface_and_the_interface_the_table() {
    let (to_10, to_20) = (inet(SRC, "198.18.10.1", 9), inet(SRC, "198.18.20.1", 9));
    check(
        &parts(),
        vec![
            ("untagged", 0, good(), sent(1, forwarded(good(), 1))),
            ("VLAN 10 is of table 0", 0, tagged(good(), 10), sent(1, forwarded(good(), 1))),
            ("VLAN 20 is of table 1", 0, tagged(good(), 20), sent(2, forwarded(good(), 2))),
            ("IPv6 too", 0, tagged(good6(), 20), sent(2, forwarded(good6(), 2))),
            ("with a priority", 0, tagged(good(), 0xe014), sent(2, forwarded(good(), 2))),
            ("priority only", 0, tagged(good(), 0xe000), sent(1, forwarded(good(), 1))),
            ("no such VLAN", 0, tagged(good(), 30), punted(Punt::OtherVlan)),
            ("no VLANs at all", 1, tagged(good(), 10), punted(Punt::OtherVlan)),
            ("into a VLAN", 1, to_10.clone(), sent(0, tagged(forwarded(to_10.clone(), 0), 10))),
            ("from VLAN to VLAN", 0, tagged(to_20.clone(), 10), sent(0, tagged(forwarded(to_20, 0), 20))),
            ("no route in table 1", 0, tagged(to_10, 20), dropped(Reason::NoRoute)),
        ],
    );
}

/// The interface of a packet is the one it came in by, its tag with its priority included.
#[test]
fn rejected_packets_are_handed_back_as_they_came() {
    let expired = tagged(inet(SRC, DST, 1), 0xe00a);
    let (fates, back) = run_all(&mut forwarder(parts()), &[(0, expired.clone()), (1, inet(SRC, DST, 1))]);
    assert_eq!(fates, [dropped(Reason::TtlExpired), dropped(Reason::TtlExpired)]);
    let seen: Vec<_> = back.iter().map(|packet| (packet.port, packet.interface)).collect();
    assert_eq!(seen, [(0, VLAN_10), (1, 1)]);
    assert_eq!(back[0].frame, expired);
}

#[test]
fn each_kind_of_next_hop_has_its_verdict() {
    let kinds = [
        ("198.18.100.1", punted(Punt::Local), punted(Punt::Local)),
        ("198.18.100.255", dropped(Reason::DirectedBroadcast), dropped(Reason::DirectedBroadcast)),
        ("198.18.101.1", dropped(Reason::Blackhole), dropped(Reason::Blackhole)),
        ("198.18.102.1", dropped(Reason::Unreachable), dropped(Reason::Unreachable)),
        ("198.18.103.1", dropped(Reason::Prohibited), dropped(Reason::Prohibited)),
        ("198.18.104.1", punted(Punt::Glean), dropped(Reason::TtlExpired)),
        ("198.18.105.1", dropped(Reason::NoAdjacency), dropped(Reason::TtlExpired)),
        ("203.0.113.1", dropped(Reason::NoRoute), dropped(Reason::NoRoute)),
    ];
    for (destination, fresh, with_its_last_hop) in kinds {
        let rows = vec![
            (destination, 1, inet(SRC, destination, 64), fresh),
            (destination, 1, inet(SRC, destination, 1), with_its_last_hop),
        ];
        check(&parts(), rows);
    }
    check(&parts(), vec![("glean", 1, inet6(SRC6, "2001:2:0:104::9", 64), punted(Punt::Glean))]);
}

#[test]
fn broadcast_frames_reach_only_this_router() {
    let broadcast = |destination: &str| to(inet(SRC, destination, 64), Mac::BROADCAST);
    check(
        &parts(),
        vec![
            ("its network's", 1, broadcast("198.18.100.255"), punted(Punt::Broadcast)),
            ("its own address", 1, broadcast("198.18.100.1"), punted(Punt::Local)),
            ("another host", 1, broadcast(DST), dropped(Reason::LinkBroadcast)),
            ("an address without a host", 1, broadcast("203.0.113.1"), dropped(Reason::LinkBroadcast)),
            ("limited broadcast", 1, broadcast("255.255.255.255"), punted(Punt::Broadcast)),
            (
                "DHCP discover",
                1,
                to(inet("0.0.0.0", "255.255.255.255", 64), Mac::BROADCAST),
                punted(Punt::Broadcast),
            ),
        ],
    );
}

#[test]
fn links_that_are_down_and_interfaces_that_do_not_forward() {
    let mut down = parts();
    down.interfaces[1].up = false;
    check(
        &down,
        vec![
            ("in", 1, good(), dropped(Reason::InterfaceDown)),
            ("ARP in", 1, ethernet(EtherType::ARP, &[0; 28]), dropped(Reason::InterfaceDown)),
            ("out", 0, good(), dropped(Reason::InterfaceDown)),
            ("out, IPv6", 0, good6(), dropped(Reason::InterfaceDown)),
        ],
    );
    let mut only6 = parts();
    only6.interfaces[0].forwards_inet = false;
    check(
        &only6,
        vec![
            ("IPv4", 0, good(), punted(Punt::NotForwarding)),
            ("IPv6", 0, good6(), sent(1, forwarded(good6(), 1))),
            ("IPv4 elsewhere", 2, good(), sent(1, forwarded(good(), 1))),
        ],
    );
}

#[test]
fn what_is_too_long_says_whether_it_may_be_fragmented() {
    let mut short = parts();
    short.interfaces[1].mtu = 37;
    let fragile = with_summed(good(), 6, &[0x00, 0x00]);
    check(
        &short,
        vec![
            ("don't fragment", 0, good(), dropped(Reason::TooBig)),
            ("may be fragmented", 0, fragile, dropped(Reason::NeedsFragments)),
            ("IPv6", 0, good6(), dropped(Reason::TooBig)),
            ("too long and expired", 0, inet(SRC, DST, 1), dropped(Reason::TtlExpired)),
        ],
    );
}

#[test]
fn options_for_routers_are_punted() {
    let router_alert = inet_with(SRC, DST, 64, &[1, 1, 148, 4, 0, 0, 0, 0]);
    let record_then_source_route = inet_with(SRC, DST, 64, &[7, 3, 4, 131, 3, 4, 0, 0]);
    check(
        &parts(),
        vec![
            ("record route", 0, inet_with(SRC, DST, 64, &[7, 7, 4, 0, 0, 0, 0, 0]), punted(Punt::Options)),
            ("timestamp", 0, inet_with(SRC, DST, 64, &[68, 4, 5, 0]), punted(Punt::Options)),
            ("router alert", 0, router_alert, punted(Punt::Options)),
            ("source route behind another", 0, record_then_source_route, dropped(Reason::SourceRoute)),
        ],
    );
    let mut hop_by_hop = good6();
    hop_by_hop[14 + 6] = 0;
    check(&parts(), vec![("hop-by-hop", 0, hop_by_hop.clone(), sent(1, forwarded(hop_by_hop, 1)))]);
}

#[test]
fn martians_are_for_the_table_where_the_policy_says_so() {
    let lenient = ViewParts { policy: Policy { drops_martians: false, ..Policy::default() }, ..parts() };
    let (to_loopback, from_reserved) = (inet(SRC, "127.0.0.1", 9), inet("240.0.0.1", DST, 9));
    check(
        &lenient,
        vec![
            ("to 127/8", 0, to_loopback.clone(), sent(1, forwarded(to_loopback, 1))),
            ("from 240/4", 0, from_reserved.clone(), sent(1, forwarded(from_reserved, 1))),
            ("from 0/8", 0, inet("0.0.0.1", "198.18.101.1", 9), dropped(Reason::Blackhole)),
            ("from a group", 0, inet("224.1.1.1", DST, 9), dropped(Reason::MartianSource)),
            ("from a link", 0, inet("169.254.1.1", DST, 9), punted(Punt::LinkLocal)),
        ],
    );
}

#[test]
fn sources_are_checked_where_the_interface_asks_for_it() {
    let mut strict = parts();
    strict.interfaces[0].source_check = SourceCheck::Strict;
    strict.interfaces[usize::from(VLAN_10)].source_check = SourceCheck::Strict;
    strict.interfaces[2].source_check = SourceCheck::Loose;
    let spoofed = dropped(Reason::SourceCheck);
    let from = |source: &str| inet(source, DST, 64);
    let passes = |source: &str| sent(1, forwarded(from(source), 1));
    let from_10 = tagged(from("198.18.10.9"), 10);
    check(
        &strict,
        vec![
            ("its own link", 0, from("198.18.0.9"), passes("198.18.0.9")),
            ("another link", 0, from("198.18.2.9"), dropped(Reason::SourceCheck)),
            ("a VLAN of its own port", 0, from("198.18.10.9"), dropped(Reason::SourceCheck)),
            ("that VLAN", 0, from_10, passes("198.18.10.9")),
            ("nowhere", 0, from("203.0.113.9"), dropped(Reason::SourceCheck)),
            ("this router, or the kernel", 0, from("198.18.100.1"), punted(Punt::WayBack)),
            ("loose: another link", 2, from("198.18.0.9"), passes("198.18.0.9")),
            ("loose: a glean", 2, from("198.18.104.9"), passes("198.18.104.9")),
            ("loose: nowhere", 2, from("203.0.113.9"), dropped(Reason::SourceCheck)),
            ("loose: a black hole", 2, from("198.18.101.9"), dropped(Reason::SourceCheck)),
            ("loose: the same", 2, from("198.18.100.1"), punted(Punt::WayBack)),
            ("unchecked", 1, from("203.0.113.9"), passes("203.0.113.9")),
            ("to this router too", 0, inet("203.0.113.9", "198.18.100.1", 64), dropped(Reason::SourceCheck)),
            ("IPv6", 0, inet6("2001:2:0:10::9", DST6, 64), spoofed),
            ("IPv6, its own link", 0, good6(), sent(1, forwarded(good6(), 1))),
        ],
    );
}

#[test]
fn sources_of_packets_with_options_are_checked() {
    let mut strict = parts();
    strict.interfaces[0].source_check = SourceCheck::Strict;
    strict.interfaces[usize::from(VLAN_10)].source_check = SourceCheck::Strict;
    let alert = |source: &str| inet_with(source, DST, 64, &[148, 4, 0, 0]);
    let damaged = inet_with("203.0.113.9", DST, 64, &[158, 0, 1, 2]);
    let in_broadcast = to(alert("203.0.113.9"), Mac::BROADCAST);
    check(
        &strict,
        vec![
            ("its own link", 0, alert("198.18.0.9"), punted(Punt::Options)),
            ("another link", 0, alert("198.18.2.9"), dropped(Reason::SourceCheck)),
            ("nowhere", 0, alert("203.0.113.9"), dropped(Reason::SourceCheck)),
            ("damaged options", 0, damaged, dropped(Reason::SourceCheck)),
            ("in a broadcast frame", 0, in_broadcast, dropped(Reason::SourceCheck)),
            ("its VLAN", 0, tagged(alert("198.18.10.9"), 10), punted(Punt::Options)),
            ("another VLAN", 0, tagged(alert("198.18.0.9"), 10), dropped(Reason::SourceCheck)),
            ("this router, or the kernel", 0, alert("198.18.100.1"), punted(Punt::WayBack)),
            ("unchecked", 1, alert("203.0.113.9"), punted(Punt::Options)),
        ],
    );
}

/// Two ways out, by ports 1 and 2, for 198.19/16.
pub fn with_group(parts: &mut ViewParts, groups: &mut Groups) -> NextHop {
    let mut next_hops = NextHops::default();
    (0..40).for_each(|number| drop(next_hops.intern(Target::Number(number))));
    let members = [2, 3].map(|hop| Member { next_hop: NextHop(hop), weight: 1 });
    let group = groups.acquire(&mut next_hops, &members).unwrap();
    groups.publish();
    parts.groups = groups.shared_reader();
    parts.tables[0] =
        tables(&[("198.19.0.0/16", group.0), ("198.18.0.0/24", group.0)], &[("2001:2:0:1::/64", group.0)]);
    group
}

/// The ports that frames leave by, one after the other.
fn ways(forwarder: &mut Forwarder, frames: impl Iterator<Item = Vec<u8>>) -> Vec<u16> {
    let frames: Vec<_> = frames.map(|frame| (0, frame)).collect();
    let port = |fate| match fate {
        Fate::Sent { port, .. } => Some(port),
        Fate::Rejected(_) => None,
    };
    run(forwarder, &frames).into_iter().map(port).collect::<Option<_>>().unwrap()
}

#[test]
fn flows_are_shared_by_a_group_and_keep_their_way() {
    let (mut parts, mut groups) = (parts(), Groups::default());
    with_group(&mut parts, &mut groups);
    let mut router = forwarder(parts);
    let flow = |port: u8| with_summed(good(), 20, &[0, port, 0, 53]);
    let first = ways(&mut router, (0..100).map(flow));
    assert!(first.iter().filter(|port| **port == 1).count().abs_diff(50) < 25, "{first:?}");
    assert_eq!(ways(&mut router, (0..100).map(flow)), first);
    let fragment = |port: u8| with_summed(flow(port), 6, &[0x20, 0]);
    let of_fragments: HashSet<_> = ways(&mut router, (0..100).map(fragment)).into_iter().collect();
    assert_eq!(of_fragments.len(), 1, "ports are in the first fragment only");
    let labelled = |label: u8| with(good6(), 1, &[0x6b, 0, label]);
    let first = ways(&mut router, (0..100).map(labelled));
    assert!(first.iter().filter(|port| **port == 1).count().abs_diff(50) < 25, "{first:?}");
    let one_label = |port: u8| with(good6(), 40, &[0, port, 0, 53]);
    assert_eq!(ways(&mut router, (0..100).map(one_label)).into_iter().collect::<HashSet<_>>().len(), 1);
    let no_label = |port: u8| with(one_label(port), 1, &[0x60, 0, 0]);
    assert_eq!(ways(&mut router, (0..100).map(no_label)).into_iter().collect::<HashSet<_>>().len(), 2);
}

/// How many of two ways the flows of one pair of addresses take that differ in their ports: of IPv4 and of IPv6.
fn ways_by_ports(parts: &ViewParts, fields: FlowFields) -> [usize; 2] {
    let flow_hash = FlowHash { seed: 7, inet: fields, inet6: fields };
    let policy = Policy { flow_hash, ..Policy::default() };
    let mut router = forwarder(ViewParts { policy, ..parts.clone() });
    let flow = |port: u8| with_summed(good(), 20, &[0, port, 0, 53]);
    let flow6 = |port: u8| with(good6(), 40, &[0, port, 0, 53]);
    let mut count = |frames: Vec<Vec<u8>>| {
        ways(&mut router, frames.into_iter()).into_iter().collect::<HashSet<_>>().len()
    };
    [count((0..100).map(flow).collect()), count((0..100).map(flow6).collect())]
}

#[test]
fn flows_of_one_pair_of_addresses_share_a_way_where_only_addresses_choose() {
    let (mut parts, mut groups) = (parts(), Groups::default());
    with_group(&mut parts, &mut groups);
    assert_eq!(ways_by_ports(&parts, FlowFields::Layer3), [1, 1]);
    // The IPv6 packets have a label.
    assert_eq!(ways_by_ports(&parts, FlowFields::Layer4), [2, 2]);
    assert_eq!(ways_by_ports(&parts, FlowFields::LabelOrLayer4), [2, 1]);
}

/// The devices of ports 0 to 2.
pub const DEVICES: [u32; 3] = [11, 12, 13];

/// A router that leaves the links that are noted.
pub fn watching(parts: ViewParts) -> (Forwarder, Arc<NotedLinks>) {
    let (mut router, links) = (forwarder(parts), Arc::<NotedLinks>::default());
    router.watch_links(Arc::clone(&links), &DEVICES);
    (router, links)
}

#[test]
fn flows_leave_a_link_that_is_noted_for_another_one_of_their_group() {
    let (mut parts, mut groups) = (parts(), Groups::default());
    with_group(&mut parts, &mut groups);
    let (mut router, links) = watching(parts);
    let flows = || (0..100).map(|port| with_summed(good(), 20, &[0, port, 0, 53]));
    let flows6 = || (0..100).map(|label| with(good6(), 1, &[0x6b, 0, label]));
    let mut taken = || ways(&mut router, flows().chain(flows6()));
    let first = taken();
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), 2);
    for (failed, other) in [(1_u8, 2), (2, 1)] {
        links.note(DEVICES[usize::from(failed)], true);
        assert_eq!(taken(), vec![other; 200]);
        links.note(DEVICES[usize::from(failed)], false);
        assert_eq!(taken(), first, "it works again");
    }
    DEVICES.iter().for_each(|device| links.note(*device, true));
    let fates = run(&mut router, &flows().chain(flows6()).map(|frame| (0, frame)).collect::<Vec<_>>());
    assert_eq!(fates, vec![punted(Punt::Local); 200], "none works");
    links.forget();
    assert_eq!(ways(&mut router, flows().chain(flows6())), first);
}

#[test]
fn packets_to_a_link_that_is_noted_are_the_slow_paths() {
    let (mut router, links) = watching(parts());
    let (to_10, expired) = (inet(SRC, "198.18.10.1", 9), inet(SRC, "198.18.10.1", 1));
    let frames = [(0, good()), (0, good6()), (1, to_10.clone()), (1, expired)];
    let left = punted(Punt::Local);
    let by_port = [sent(1, forwarded(good(), 1)), sent(1, forwarded(good6(), 1))];
    let by_vlan = [sent(0, tagged(forwarded(to_10, 0), 10)), dropped(Reason::TtlExpired)];
    let all = [by_port.clone(), by_vlan.clone()].concat();
    assert_eq!(run(&mut router, &frames), all);
    links.note(DEVICES[1], true);
    let (fates, back) = run_all(&mut router, &frames);
    assert_eq!(fates, [[left.clone(), left.clone()], by_vlan].concat());
    assert_eq!((&back[0].frame, back[0].interface), (&good(), 0), "as it came");
    links.note(DEVICES[0], true);
    links.note(DEVICES[1], false);
    assert_eq!(run(&mut router, &frames), [by_port, [left.clone(), left]].concat(), "with its VLANs");
    links.forget();
    assert_eq!(run(&mut router, &frames), all);
}

/// What the source check rejects is not the kernel's because the link has failed.
#[test]
fn sources_are_checked_beside_a_link_that_is_noted() {
    let mut strict = parts();
    strict.interfaces[0].source_check = SourceCheck::Strict;
    let (mut router, links) = watching(strict);
    links.note(DEVICES[1], true);
    let frames = [(0, good()), (0, inet("203.0.113.9", DST, 64))];
    assert_eq!(run(&mut router, &frames), [punted(Punt::Local), dropped(Reason::SourceCheck)]);
}

#[test]
fn a_view_that_leaves_a_noted_link_and_one_that_comes_back_to_it_hold() {
    let (views, links) = (Views::new(View::new(parts()).unwrap()), Arc::<NotedLinks>::default());
    let mut router = Forwarder::new(views.reader());
    links.note(DEVICES[1], true);
    router.watch_links(Arc::clone(&links), &DEVICES);
    let mut fate = || run(&mut router, &[(0, good())]).remove(0);
    assert_eq!(fate(), punted(Punt::Local), "it had failed before");
    let mut down = parts();
    down.interfaces[1].up = false;
    views.publish(View::new(down).unwrap());
    assert_eq!(fate(), dropped(Reason::InterfaceDown));
    views.publish(View::new(parts()).unwrap());
    assert_eq!(fate(), punted(Punt::Local), "it is still noted");
    links.note(DEVICES[1], false);
    assert_eq!(fate(), sent(1, forwarded(good(), 1)));
}

#[test]
fn any_way_of_a_group_is_a_way_back() {
    let (mut parts, mut groups) = (parts(), Groups::default());
    with_group(&mut parts, &mut groups);
    parts.interfaces.iter_mut().for_each(|interface| interface.source_check = SourceCheck::Strict);
    let from = |port| fate(parts.clone(), port, good());
    assert!(matches!((from(1), from(2)), (Fate::Sent { .. }, Fate::Sent { .. })));
    assert_eq!(from(0), dropped(Reason::SourceCheck));
}

#[test]
fn detours_are_noted_where_senders_are_told() {
    let mut told = parts();
    told.interfaces[0].redirects = true;
    let back = |source: &str| inet(source, "198.18.0.7", 64);
    let mut router = forwarder(told);
    let frames = [(0, back("198.18.0.9")), (0, back("203.0.113.9")), (0, good()), (1, back("198.18.0.9"))];
    let fates = run(&mut router, &frames);
    assert!(fates.iter().all(|fate| matches!(fate, Fate::Sent { .. })), "{fates:?}");
    let [detour] = router.redirect_candidates() else {
        panic!("{} detours", router.redirect_candidates().len())
    };
    assert_eq!((detour.interface, detour.next_hop), (0, NextHop(1)));
    assert_eq!(detour.frame.frame(), frames[0].1);
    let many: Vec<_> = (0..100).map(|_| frames[0].clone()).collect();
    run(&mut router, &many);
    assert_eq!(router.redirect_candidates().len(), 2, "a few will do");
    run(&mut router, &frames[2..]);
    assert!(router.redirect_candidates().is_empty());
    run(&mut router, &[(0, inet("198.18.0.9", "198.18.0.7", 1))]);
    assert!(router.redirect_candidates().is_empty(), "it is not forwarded");
}

#[test]
fn another_view_holds_from_the_next_burst_on() {
    let views = Views::new(View::new(parts()).unwrap());
    let mut router = Forwarder::new(views.reader());
    assert_eq!(run(&mut router, &[(0, good())]), [sent(1, forwarded(good(), 1))]);
    let mut next = parts();
    next.adjacencies.set(NextHop(2), Adjacency::Glean { interface: 1 });
    next.interfaces.push(Interface::new(7, OURS));
    views.publish(View::new(next).unwrap());
    assert_eq!(run(&mut router, &[(0, good()), (7, good())]), [punted(Punt::Glean), punted(Punt::Glean)]);
    let counters = router.counters();
    assert_eq!((counters.interfaces.len(), counters.interfaces[0].received.packets), (6, 2), "they go on");
    assert_eq!(counters.interfaces[1].sent.packets, 1);
}

#[test]
fn packets_are_counted_by_interface() {
    let mut router = forwarder(parts());
    let to_10 = inet(SRC, "198.18.10.1", 9);
    run(&mut router, &[(0, good()), (0, tagged(good(), 10)), (0, tagged(good(), 20)), (1, to_10)]);
    let seen = |number: u16| router.counters().interfaces[usize::from(number)];
    assert_eq!([0, 1, 2, VLAN_10, VLAN_20].map(|of| seen(of).received.packets), [1, 1, 0, 1, 1]);
    assert_eq!([0, 1, 2, VLAN_10, VLAN_20].map(|of| seen(of).sent.packets), [0, 2, 1, 1, 0]);
    assert_eq!((seen(VLAN_10).received.bytes, seen(VLAN_10).sent.bytes), (64, 64));
}

proptest! {
    /// Whatever comes in: every slot comes back, what is rejected is unchanged, and what goes out does so by an interface
    /// of the table, one hop older, with the addresses of that link.
    #[test]
    fn disturbed_frames_are_never_misrouted(
        frames in prop::collection::vec((
            0u16..4, any::<bool>(), prop::option::of(0u16..40), 0u8..4, 100u8..106,
            prop::collection::vec((0usize..70, any::<u8>()), 0..3), 14usize..90,
        ), 1..40),
        strict in any::<bool>(),
    ) {
        let mut parts = parts();
        let check = if strict { SourceCheck::Strict } else { SourceCheck::Loose };
        parts.interfaces.iter_mut().for_each(|interface| interface.source_check = check);
        let mut disturbed = Vec::new();
        for (port, is_inet, vlan, to, host, spots, len) in frames {
            let third = [0, 2, 10, host][usize::from(to)];
            let mut frame = if is_inet { inet(SRC, &format!("198.18.{third}.1"), 64) } else { good6() };
            frame.resize(len.max(14), 0);
            if let Some(vlan) = vlan {
                frame = tagged(frame, vlan);
            }
            for (at, byte) in spots {
                if let Some(spot) = frame.get_mut(at) {
                    *spot = byte;
                }
            }
            disturbed.push((port, frame));
        }
        let frames = disturbed;
        let (fates, back) = run_all(&mut forwarder(parts), &frames);
        prop_assert_eq!(fates.len(), frames.len());
        for ((fate, seen), (port, frame)) in fates.iter().zip(&back).zip(&frames) {
            match fate {
                Fate::Sent { port, frame } => {
                    prop_assert!(*port < 3 && seen.interface < 5);
                    prop_assert_eq!(&frame[..6], &neighbor(*port).0[..]);
                    prop_assert_eq!(&frame[6..12], &OURS.0[..]);
                }
                Fate::Rejected(_) => prop_assert_eq!((&seen.frame, seen.port), (frame, *port)),
            }
        }
    }
}
