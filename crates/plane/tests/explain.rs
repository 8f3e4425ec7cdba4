//! Compares the explanation of a packet with what the loop does, over random frames and a router with VLANs, tables, rules,
//! groups, source checks, links that are down, and next hops of all kinds.

// Helpers of a test panic on failure, as the test itself does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::IpAddr;

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, Burst, FRAME_CAPACITY};
use fullview_plane::explain::{Explanation, LoopOutcome, RouteNames, explain};
use fullview_plane::flow_hash::{FlowFields, FlowHash};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::policy::{
    InterfaceRules, PolicyAction, PolicyRule, RulePorts, RulePrefix, RuleTransport,
};
use fullview_plane::trace::{PacketFilter, TraceReceiver, TraceRequest, TraceRequests};
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::view::{Policy, TableReaders, View, ViewParts, Views};
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6;
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::group::{Groups, Member};
use fullview_table::{Address, NextHop, NextHops, Rib, Target};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::HashSet;
use std::sync::Arc;

const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// Next hops 1 to 3 are neighbours on interfaces 1 to 3 (3 is a VLAN, 2 has a short MTU, 1 one of IPv6), 4 is one on
/// an interface that is down, 5 to 10 are the other kinds, 11 is nothing, 12 is the group of 1, 2 and 3.
fn adjacencies() -> Adjacencies {
    let mut adjacencies = Adjacencies::new();
    for number in 1..=4 {
        let neighbor = Adjacency::Neighbor { interface: number, mac: Mac([2, 0, 0, 0, 2, number as u8]) };
        adjacencies.set(NextHop(number), neighbor);
    }
    let kinds = [
        Adjacency::Glean { interface: 1 },
        Adjacency::Local,
        Adjacency::Broadcast,
        Adjacency::Blackhole,
        Adjacency::Unreachable,
        Adjacency::Prohibit,
    ];
    (5..).zip(kinds).for_each(|(hop, kind)| adjacencies.set(NextHop(hop), kind));
    [1, 12].into_iter().for_each(|hop| adjacencies.mark_default(NextHop(hop)));
    adjacencies
}

fn interfaces() -> Vec<Interface> {
    let interface = |name: &str, port| Interface { name: name.into(), ..Interface::new(port, OURS) };
    vec![
        Interface { source_check: SourceCheck::Loose, ..interface("eth0", 0) },
        Interface { source_check: SourceCheck::Strict, mtu6: Some(80), ..interface("eth1", 1) },
        Interface { mtu: 100, ..interface("eth2", 2) },
        Interface { vlan: Some(7), table: 1, ..interface("eth2.7", 2) },
        Interface { up: false, ..interface("eth3", 3) },
        Interface { vlan: Some(9), forwards_inet: false, ..interface("eth0.9", 0) },
        Interface { vlan: Some(10), forwards_inet6: false, ..interface("eth0.10", 0) },
        Interface { vlan: Some(8), rules: rules(), ..interface("eth2.8", 2) },
        Interface {
            vlan: Some(8),
            rules: rules(),
            source_check: SourceCheck::Loose,
            ..interface("eth1.8", 1)
        },
    ]
}

/// Some packets are punted, some skip a rule, some are looked up in table 2 first.
fn rules() -> InterfaceRules {
    let ports = |first, last| Some(RulePorts { first, last });
    let transport = RuleTransport { protocol: None, source: ports(1, 1), destination: ports(500, 600) };
    let list = |networks: [&str; 4], len| {
        let prefixes = networks.map(|network| Some(RulePrefix { address: network.parse().unwrap(), len }));
        let all = PolicyRule {
            priority: 40,
            source: None,
            destination: None,
            transport: RuleTransport::default(),
            inverted: false,
            action: PolicyAction::LookUp(1),
        };
        let [punted, skipping, elsewhere, ported] = prefixes;
        let (skips, to_2) = (PolicyAction::SkipTo(4), PolicyAction::LookUp(2));
        [
            PolicyRule { priority: 10, source: punted, action: PolicyAction::Punt, ..all },
            PolicyRule { priority: 20, destination: skipping, action: skips, ..all },
            PolicyRule { priority: 25, destination: ported, transport, ..all },
            PolicyRule { priority: 30, source: elsewhere, inverted: true, action: to_2, ..all },
            PolicyRule { priority: 35, source: elsewhere, action: PolicyAction::LookUpSpecific(2), ..all },
            all,
        ]
    };
    InterfaceRules {
        inet: list(["10.0.3.0", "10.0.4.0", "10.0.5.0", "10.0.1.0"], 24).into(),
        inet6: list(["2001:db8:3::", "2001:db8:4::", "2001:db8:5::", "2001:db8:1::"], 48).into(),
    }
}

/// The third byte of the address is the next hop, so that every kind is met. Routes differ in table 1, and table 2 has half of
/// them.
fn inet(shift: u16) -> Rib<u32> {
    let mut rib = Rib::default();
    for hop in networks(shift) {
        rib.announce(format!("10.0.{hop}.0/24").parse().unwrap(), NextHop((hop + shift - 1) % 12 + 1));
    }
    rib
}

fn networks(shift: u16) -> std::ops::RangeInclusive<u16> {
    if shift == 10 { 1..=6 } else { 1..=12 }
}

fn inet6(shift: u16) -> Rib<u128> {
    let mut rib = Rib::default();
    for hop in networks(shift) {
        rib.announce(format!("2001:db8:{hop}::/48").parse().unwrap(), NextHop((hop + shift - 1) % 12 + 1));
    }
    rib
}

struct Lab {
    views: Views,
    _groups: Groups,
    forwarder: Forwarder,
    watchers: TraceRequests,
    collector: TraceReceiver,
}

fn lab() -> Lab {
    let mut next_hops = NextHops::default();
    (1..=11).for_each(|number| drop(next_hops.intern(Target::Number(number))));
    let mut groups = Groups::default();
    let members: Vec<Member> = (1..=3).map(|hop| Member { next_hop: NextHop(hop), weight: hop }).collect();
    assert_eq!(groups.acquire(&mut next_hops, &members).unwrap(), NextHop(12));
    groups.publish();
    let table = |shift| {
        let inet = Linear.compile(&inet(shift)).unwrap().fib();
        TableReaders::fixed(inet, Linear.compile(&inet6(shift)).unwrap().fib())
    };
    let mut parts = ViewParts::new(interfaces(), adjacencies(), table(0));
    parts.tables.extend([table(5), table(10)]);
    parts.groups = groups.shared_reader();
    let views = Views::new(View::new(parts).unwrap());
    let mut forwarder = Forwarder::new(views.reader());
    let watchers = TraceRequests::new();
    let (watched, collector) = watchers.connect();
    forwarder.set_tracer(watched);
    Lab { views, _groups: groups, forwarder, watchers, collector }
}

impl Lab {
    /// Has groups pick members by these fields of packets.
    fn hash(&self, fields: FlowFields) {
        let flow_hash = FlowHash { seed: 7, inet: fields, inet6: fields };
        let policy = Policy { flow_hash, ..Policy::default() };
        let parts = self.views.current().parts().clone();
        self.views.publish(View::new(ViewParts { policy, ..parts }).unwrap());
    }
}

/// The routes of both tables.
struct Known;

impl RouteNames for Known {
    fn route(&self, table: u16, addr: IpAddr) -> Option<(String, NextHop)> {
        let shift = table * 5;
        match addr {
            IpAddr::V4(ip) => inet(shift)
                .longest_match(u32::from_ip(ip))
                .map(|route| (route.prefix.to_string(), route.next_hop)),
            IpAddr::V6(ip) => inet6(shift)
                .longest_match(u128::from_ip(ip))
                .map(|route| (route.prefix.to_string(), route.next_hop)),
        }
    }
    fn next_hop(&self, hop: NextHop) -> Option<String> {
        (hop == NextHop(1)).then(|| "192.0.2.1".into())
    }
}

/// The random choices of a frame; each number picks one of several cases.
#[derive(Clone, Debug)]
struct Choice {
    port: u16,
    tag: Option<u16>,
    mac: u8,
    is_inet: bool,
    addresses: (u8, u8),
    hops: u8,
    payload: usize,
    options: u8,
    protocol: u8,
    fragment: u16,
    label: u8,
    /// Bytes overwritten last, checksum and all.
    damage: Vec<(u16, u8)>,
    cut: Option<u16>,
}

fn choice() -> impl Strategy<Value = Choice> {
    let link =
        (0u16..5, prop::option::weighted(0.4, prop::sample::select(vec![0u16, 7, 8, 8, 9, 10, 11])), 0u8..8);
    let ip = (any::<bool>(), (0u8..18, 0u8..18), prop::sample::select(vec![0u8, 1, 2, 64, 255]), 0usize..200);
    let rest = (0u8..12, prop::sample::select(vec![1u8, 6, 17, 58, 132]), 0u8..8, 0u8..3);
    let harm =
        (prop::collection::vec((0u16..80, any::<u8>()), 0..2), prop::option::weighted(0.1, 0u16..90), 0u8..3);
    (link, ip, rest, harm).prop_map(
        |(
            (port, tag, mac),
            (is_inet, addresses, hops, payload),
            (options, protocol, fragment, label),
            harm,
        )| {
            let (damage, cut, harmed) = harm;
            let fragment = if fragment == 7 { 0x2001 } else { u16::from(fragment == 6) << 14 };
            let (damage, cut) = if harmed == 0 { (damage, cut) } else { (Vec::new(), None) };
            Choice {
                port,
                tag,
                mac,
                is_inet,
                addresses,
                hops,
                payload,
                options,
                protocol,
                fragment,
                label,
                damage,
                cut,
            }
        },
    )
}

/// Mostly an address with a route, sometimes one without, or an address that is not unicast.
fn address4(number: u8) -> u32 {
    let odd = [[224, 0, 0, 5], [239, 1, 1, 1], [255; 4], [127, 0, 0, 1], [169, 254, 1, 1]];
    let usual = [10, 0, number, 200];
    u32::from_be_bytes(odd.get(usize::from(number).wrapping_sub(13)).copied().unwrap_or(usual))
}

fn address6(number: u8) -> u128 {
    let odd = [0xff02 << 112 | 5, 0xff0e << 112 | 5, 0xfe80 << 112 | 1, 1, 0xffff_0000_0000 | 7];
    let usual = 0x2001_0db8 << 96 | u128::from(number) << 80 | 9;
    odd.get(usize::from(number).wrapping_sub(13)).copied().unwrap_or(usual)
}

fn frame(choice: &Choice) -> Vec<u8> {
    let mac = match choice.mac {
        0 => Mac([0xff; 6]),
        1 => Mac([2, 0, 0, 0, 0, 2]),
        _ => OURS,
    };
    let mut frame = [mac.0, [2, 0, 0, 0, 9, 9]].concat();
    choice.tag.iter().for_each(|vlan| frame.extend([[0x81, 0], (0x6000 | vlan).to_be_bytes()].concat()));
    frame.extend(if choice.is_inet { [8, 0] } else { [0x86, 0xdd] });
    frame.extend(if choice.is_inet { packet4(choice) } else { packet6(choice) });
    frame.resize(frame.len().max(60), 0);
    for (at, byte) in &choice.damage {
        frame[usize::from(*at) % 60] = *byte;
    }
    frame.truncate(choice.cut.map_or(FRAME_CAPACITY, usize::from));
    frame
}

fn packet4(choice: &Choice) -> Vec<u8> {
    let options: &[u8] = match choice.options {
        0 => &[131, 3, 4, 0],
        1 => &[1, 1, 148, 4, 0, 0, 0, 0],
        2 => &[1, 7, 1, 137],
        3 => &[68, 8, 5, 0, 0, 0, 0, 0],
        4 => &[130, 4, 0, 0],
        5 => &[158, 0, 1, 2],
        6 => &[158, 5, 1, 2],
        7 => &[1, 1, 1, 158],
        _ => &[],
    };
    let len = ipv4::HEADER + options.len();
    let mut packet = vec![0; len + choice.payload];
    packet[ipv4::HEADER..len].copy_from_slice(options);
    packet[len..].iter_mut().zip(0..).for_each(|(byte, value)| *byte = value);
    packet[6..8].copy_from_slice(&choice.fragment.to_be_bytes());
    let total = packet.len() as u16;
    let mut ip = Ipv4Packet::new_unchecked(&mut packet);
    ip.set_header_len(len);
    ip.set_total_len(total);
    ip.set_ttl(choice.hops);
    ip.set_protocol(choice.protocol);
    ip.set_source(address4(choice.addresses.0));
    ip.set_destination(address4(choice.addresses.1));
    ip.fill_checksum();
    packet
}

fn packet6(choice: &Choice) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, choice.label, 0, choice.payload as u8, choice.protocol, choice.hops];
    packet.extend(address6(choice.addresses.0).to_be_bytes());
    packet.extend(address6(choice.addresses.1).to_be_bytes());
    packet.extend((0..choice.payload).map(|byte| byte as u8));
    assert!(packet.len() >= ipv6::HEADER);
    packet
}

/// What the loop does with a frame, as a trace reports it.
fn travel(lab: &mut Lab, port: u16, bytes: &[u8]) -> (Verdict, Option<(u16, Vec<u8>)>) {
    let mut arena = Arena::new(1);
    let (mut burst, mut sent, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    let packet = arena.packets().next().unwrap();
    assert!(packet.set_frame(bytes));
    packet.port = port;
    burst.fill([packet].into_iter());
    lab.forwarder.process(&mut burst, &mut sent, &mut rejected);
    let note = lab.collector.pop().expect("every packet is traced");
    assert_eq!(note.before.frame(), bytes);
    let departure = note.departure.map(|(port, copied)| (port, copied.frame().to_vec()));
    match (sent.first(), rejected.first()) {
        (Some(packet), None) => assert_eq!(departure.as_ref().unwrap().1, packet.frame()),
        (None, Some(packet)) => assert_eq!((packet.verdict, packet.frame()), (note.verdict, bytes)),
        _ => panic!("a packet was lost"),
    }
    (note.verdict, departure)
}

fn explained(lab: &mut Lab, port: u16, bytes: &[u8]) -> Explanation {
    let explanation = explain(&lab.views.current(), &Known, port, bytes);
    let (verdict, departure) = travel(lab, port, bytes);
    let departure = departure.as_ref().map(|(port, frame)| (*port, frame.as_slice()));
    let disagreement = explanation.disagreement(&LoopOutcome { verdict, departure });
    assert_eq!(disagreement, None, "{:#?}\n{bytes:02x?}", explanation.steps);
    explanation
}

fn traced_lab() -> Lab {
    let mut lab = lab();
    lab.watchers.add(Arc::new(TraceRequest::new(PacketFilter::default(), false, u64::MAX)));
    lab
}

#[test]
fn the_explanation_equals_what_the_loop_does() {
    let mut seen = HashSet::new();
    let mut lab = traced_lab();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for fields in [FlowFields::Layer3, FlowFields::Layer4, FlowFields::LabelOrLayer4] {
        lab.hash(fields);
        for _ in 0..7_000 {
            let choice = choice().new_tree(&mut runner).unwrap().current();
            seen.insert(explained(&mut lab, choice.port, &frame(&choice)).verdict);
        }
    }
    let missing = |verdict: &Verdict| !seen.contains(verdict);
    let drops = Reason::ALL
        .iter()
        .filter(|reason| !is_of_port(**reason) && !reason.is_of_filter())
        .map(|reason| Verdict::Drop(*reason));
    let punts = Punt::ALL
        .iter()
        .filter(|punt| **punt != Punt::Arp && **punt != Punt::NotIp)
        .map(|punt| Verdict::Punt(*punt));
    let missed: Vec<_> = drops.chain(punts).chain([Verdict::Forward]).filter(missing).collect();
    assert!(missed.is_empty(), "no frame had the verdicts {missed:?}");
}

/// Whether ports drop frames for this reason, of which an explanation knows nothing.
fn is_of_port(reason: Reason) -> bool {
    use Reason::{
        DroppedByKernel, EgressFull, FrameDamaged, FrameTooLong, HandOver, SeveralPackets, Stale, Unsendable,
    };
    matches!(
        reason,
        EgressFull
            | FrameTooLong
            | SeveralPackets
            | FrameDamaged
            | Stale
            | Unsendable
            | DroppedByKernel
            | HandOver
    )
}

fn plain(addresses: (u8, u8)) -> Choice {
    Choice {
        port: 2,
        tag: None,
        mac: 7,
        is_inet: true,
        addresses,
        hops: 64,
        payload: 20,
        options: 9,
        protocol: 17,
        fragment: 0,
        label: 0,
        damage: Vec::new(),
        cut: None,
    }
}

#[test]
fn steps_read_as_sentences() {
    let mut lab = traced_lab();
    let mut steps = |choice: &Choice| -> Vec<String> {
        explained(&mut lab, choice.port, &frame(choice)).steps.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        steps(&plain((1, 1))),
        [
            "received on eth2, 60 bytes",
            "IPv4 header ok: 10.0.1.200 -> 10.0.1.200, TTL 64, 40 bytes",
            "table 0: 10.0.1.0/24 via next hop 1 (192.0.2.1)",
            "next hop 1: neighbour 02:00:00:00:02:01 on eth1",
            "length 40, the link takes 1500",
            "hops left 64 -> 63",
            "sent on eth1 to 02:00:00:00:02:01, 60 bytes",
        ]
    );
    let grouped = steps(&Choice { port: 0, ..plain((1, 12)) });
    assert!(
        grouped[3].starts_with("group 12: member ") && grouped[3].contains(" of 3, next hop "),
        "{grouped:#?}"
    );
    assert_eq!(grouped[4], "source check (loose) passes: the route back to 10.0.1.200 uses next hop 1");
    let expired = steps(&Choice { hops: 1, ..plain((1, 1)) });
    assert_eq!(expired.last().unwrap(), "dropped: ttl_expired");
    assert_eq!(steps(&Choice { tag: Some(11), ..plain((1, 1)) }), ["handed to the host: other_vlan"]);
    let mut ruled = |addresses| steps(&Choice { tag: Some(8), ..plain(addresses) });
    assert_eq!(
        ruled((1, 9))[2..5],
        [
            "rule 30: table 2 has no route to the destination, the next rule decides",
            "rule 40: look up in table 1",
            "table 1: 10.0.9.0/24 via next hop 2",
        ]
    );
    assert_eq!(
        ruled((1, 4))[2..4],
        ["rule 20: passes over rules that follow", "rule 40: look up in table 1"]
    );
    assert_eq!(
        ruled((5, 3))[2..4],
        [
            "rule 35: the default route of table 2 does not count, the next rule decides",
            "rule 40: look up in table 1"
        ]
    );
    assert_eq!(
        ruled((5, 2))[2],
        "rule 35: the default route of table 2 does not count, the next rule decides"
    );
    assert_eq!(ruled((5, 1))[2], "rule 25: look up in table 1");
    let mut unported =
        |protocol, fragment| steps(&Choice { tag: Some(8), protocol, fragment, ..plain((5, 1)) })[2].clone();
    assert_eq!(unported(17, 0x2000), "rule 35: look up in table 2", "a fragment has no ports");
    assert_eq!(unported(50, 0), "rule 25: leaves the packet to the host", "the kernel may find ports");
    let mut ruled = |addresses| steps(&Choice { tag: Some(8), ..plain(addresses) });
    assert_eq!(
        ruled((3, 1))[2..],
        ["rule 10: leaves the packet to the host", "handed to the host: policy_rule"]
    );
}

#[test]
fn a_different_outcome_is_a_disagreement() {
    let explanation = explain(&lab().views.current(), &(), 2, &frame(&plain((1, 1))));
    let sent = explanation.departure.clone().unwrap().1;
    let disagreement = |verdict, departure| explanation.disagreement(&LoopOutcome { verdict, departure });
    assert_eq!(disagreement(Verdict::Forward, Some((1, &sent))), None);
    assert_eq!(disagreement(Verdict::Drop(Reason::EgressFull), None), None);
    assert!(disagreement(Verdict::Forward, Some((2, &sent))).unwrap().contains("port 2, not 1"));
    assert!(disagreement(Verdict::Forward, Some((1, &sent[..59]))).unwrap().contains("it left as"));
    assert!(disagreement(Verdict::Drop(Reason::NoRoute), None).unwrap().contains("no_route, not forward"));
}

#[test]
fn trace_requests_get_what_they_ask_for_and_no_more() {
    let mut lab = lab();
    let watch =
        |text: &str, drops_only, count| Arc::new(TraceRequest::new(text.parse().unwrap(), drops_only, count));
    let traced = lab.watchers.add(watch("dst 10.0.1.0/24", false, 2));
    let dropped = lab.watchers.add(watch("", true, 3));
    let mut noted = Vec::new();
    for number in [1, 2, 8, 1, 1, 8, 8, 8] {
        let choice = plain((1, number));
        let mut arena = Arena::new(1);
        let (mut burst, mut sent, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
        let packet = arena.packets().next().unwrap();
        packet.set_frame(&frame(&choice));
        packet.port = 2;
        burst.fill([packet].into_iter());
        lab.forwarder.process(&mut burst, &mut sent, &mut rejected);
        noted.extend(std::iter::from_fn(|| lab.collector.pop()).map(|note| (note.request, note.verdict)));
    }
    let blackhole = Verdict::Drop(Reason::Blackhole);
    let of = |number| noted.iter().filter(move |(watch, _)| *watch == number).map(|(_, verdict)| *verdict);
    assert_eq!(of(traced).collect::<Vec<_>>(), [Verdict::Forward; 2]);
    assert_eq!(of(dropped).collect::<Vec<_>>(), [blackhole; 3]);
    assert_eq!(lab.collector.take_lost(), 1, "the request was finished before the fourth drop");
    lab.watchers.remove(traced);
    lab.watchers.remove(dropped);
    assert_eq!(lab.forwarder.counters().dropped(), 4);
}
