//! Rule sets and packets from so few addresses, ports and interfaces that they often fit each other.

use fullview_filter::packet::{Direction, Fragment, IcmpMessage, Packet, Pass, TcpSegment, Transport};
use proptest::prelude::*;
use proptest::sample::select;

use crate::address;

type Words = &'static [&'static str];

fn one_of(words: Words) -> BoxedStrategy<String> {
    select(words).prop_map(str::to_owned).boxed()
}

fn sometimes(words: Words) -> BoxedStrategy<String> {
    prop_oneof![3 => Just(String::new()), 2 => one_of(words)].boxed()
}

fn joined(parts: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    let words =
        |parts: Vec<String>| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    parts.prop_map(words).boxed()
}

const INET: Words = &[
    "10.0.0.0/8",
    "! 10.0.0.0/8",
    "10.0.0.2",
    "! 192.0.2.7",
    "192.0.2.1 - 192.0.2.6",
    "<friends>",
    "! <friends>",
    "<none>",
    "(em0)",
    "! (em0)",
    "(em0:network)",
    "(em0:0)",
    "(em1)/24",
    "(em9)",
    "! (em9)",
    "any",
    "{ 10.0.0.2, 192.0.2.7 }",
];
const INET6: Words =
    &["2001:db8::/32", "! 2001:db8::1", "<friends>", "(em0)", "(em1)", "2001:db8::1 - 2001:db8::2", "any"];
const BOTH: Words = &["<friends>", "! <friends>", "(em0)", "(em0:network)", "any", "! (em1)"];
const PORTS: Words = &[
    "port 80",
    "port != 80",
    "port < 80",
    "port <= 80",
    "port > 80",
    "port >= 80",
    "port 22:80",
    "port 22 >< 80",
    "port 22 <> 80",
    "port { 22, 443 }",
    "port != 0",
    "port 0 >< 1",
];

fn family(words: Words, name: &'static str, icmp: &'static str, kinds: Words) -> BoxedStrategy<String> {
    let peer = |word: &'static str| one_of(words).prop_map(move |host| format!("{word} {host}")).boxed();
    let with_ports = joined(vec![
        one_of(&["proto tcp", "proto udp", "proto { tcp, udp }"]),
        peer("from"),
        sometimes(PORTS),
        peer("to"),
        sometimes(PORTS),
    ]);
    let tcp = joined(vec![
        one_of(&["proto tcp"]),
        peer("from"),
        peer("to"),
        sometimes(&["flags S/SA", "flags any", "flags /SF", "flags SA/SA"]),
    ]);
    let plain =
        joined(vec![sometimes(&["proto esp", "proto 6", "proto { 17, 50 }"]), peer("from"), peer("to")]);
    let messages = joined(vec![Just(icmp.to_owned()).boxed(), peer("from"), peer("to"), sometimes(kinds)]);
    let body = prop_oneof![3 => with_ports, 2 => tcp, 2 => plain, 1 => messages, 1 => Just("all".to_owned())];
    body.prop_map(move |body| format!("{name} {body}")).boxed()
}

fn selection() -> BoxedStrategy<String> {
    let inet = family(INET, "inet", "proto icmp", &["icmp-type echoreq", "icmp-type unreach code net-unr"]);
    let inet6 = family(INET6, "inet6", "proto icmp6", &["icmp6-type echoreq", "icmp6-type { 129, unreach }"]);
    prop_oneof![4 => inet, 2 => inet6, 2 => family(BOTH, "", "", &[""])].boxed()
}

fn head() -> Vec<BoxedStrategy<String>> {
    let interfaces = &["on em0", "on ! em0", "on { em0, em1 }", "on em", "on any", "on em9", "on ! em9"];
    vec![sometimes(&["in", "out"]), sometimes(&["quick"]), sometimes(interfaces)]
}

fn rule(words: Words, more: Words) -> BoxedStrategy<String> {
    let mut parts = vec![one_of(words)];
    parts.extend(head());
    parts.push(selection());
    parts.push(sometimes(more));
    parts.push(sometimes(&["tag A", "tag B", "tos 0x10", "tos 0x12", "max-pkt-size 100", "received-on em1"]));
    parts.push(sometimes(&["tagged A", "! tagged A", "tagged B"]));
    joined(parts)
}

fn filter() -> BoxedStrategy<String> {
    let block = &[
        "block",
        "block return",
        "block return-icmp",
        "block drop",
        "block return-icmp (host-unr, admin-unr)",
    ];
    prop_oneof![
        3 => rule(&["pass"], &["no state", "keep state", "allow-opts", "keep state (max 10, sloppy, tcp.first 5)"]),
        3 => rule(block, &[""]),
        2 => rule(&["match"], &[""]),
        1 => one_of(&["block in fragment", "pass out quick inet fragment no state", "block return-rst proto tcp all"]),
    ]
    .boxed()
}

/// An anchor whose conditions no rule in it changes.
fn anchor() -> BoxedStrategy<String> {
    let head = one_of(&[
        "",
        "in",
        "out quick",
        "quick on em0",
        "inet proto udp",
        "in quick from 10.0.0.0/8",
        "quick tag B",
    ]);
    let rules = prop::collection::vec(filter(), 1..4).prop_map(|rules| rules.join("\n"));
    let inner = (head.clone(), rules.clone())
        .prop_map(|(head, rules)| format!("anchor \"inner\" {head} {{\n{rules}\n}}"));
    let body = prop_oneof![2 => rules.clone(), 1 => (rules, inner).prop_map(|(rules, inner)| format!("{rules}\n{inner}"))];
    (head, body).prop_map(|(head, body)| format!("anchor {head} {{\n{body}\n}}")).boxed()
}

pub fn ruleset() -> impl Strategy<Value = String> {
    let table = "table <friends> { 10.0.0.0/8, !10.0.0.2, 192.0.2.7, 2001:db8::/64, !2001:db8::1 }";
    let line = prop_oneof![4 => filter(), 1 => anchor()];
    prop::collection::vec(line, 0..8).prop_map(move |lines| format!("{table}\n{}\n", lines.join("\n")))
}

fn pass() -> impl Strategy<Value = Pass> {
    let direction = prop_oneof![Just(Direction::In), Just(Direction::Out)];
    (direction, 0..3_u16, 0..3_u16).prop_map(|(direction, interface, received)| {
        let received_on = if direction == Direction::In { interface } else { received };
        Pass { direction, interface, received_on }
    })
}

fn ends() -> BoxedStrategy<(&'static str, &'static str)> {
    let inet = select(&["10.0.0.2", "10.0.0.9", "192.0.2.1", "192.0.2.7", "198.51.100.1"][..]);
    let inet6 = select(&["2001:db8::1", "2001:db8::2", "2001:db9::1"][..]);
    prop_oneof![3 => (inet.clone(), inet), 1 => (inet6.clone(), inet6)].boxed()
}

pub fn packet() -> impl Strategy<Value = Packet> {
    let port = select(&[0_u16, 1, 21, 22, 23, 79, 80, 81, 443, 65_535][..]);
    let header = (
        0..5_u8,
        select(&[0x02_u8, 0x12, 0x10, 0x01, 0x04][..]),
        select(&[(8_u8, 0_u8), (128, 0), (129, 0), (3, 0), (1, 1)][..]),
    );
    let rest = (
        select(&[0_u8, 0x10, 0x12][..]),
        select(&[60_u16, 100, 101, 1500][..]),
        prop::bool::weighted(0.1),
        0..10_u8,
    );
    (pass(), ends(), (port.clone(), port), header, rest).prop_map(|(pass, ends, ports, header, rest)| {
        let mut packet = Packet::udp(pass, (address(ends.0), ports.0), (address(ends.1), ports.1));
        (packet.tos, packet.length, packet.has_options) = (rest.0, rest.1, rest.2);
        transport(&mut packet, header);
        fragment(&mut packet, rest.3);
        packet
    })
}

fn transport(packet: &mut Packet, (kind, flags, message): (u8, u8, (u8, u8))) {
    let inet6 = packet.family == fullview_filter::address::Family::Inet6;
    match kind {
        0 | 1 => {
            packet.protocol = 6;
            packet.transport = Transport::Tcp(TcpSegment { flags, window: 1000, ..TcpSegment::default() });
        }
        2 => {
            packet.protocol = if inet6 { 58 } else { 1 };
            let (kind, code) = message;
            let is_query = if inet6 { kind >= 128 } else { kind == 8 };
            packet.transport = Transport::Icmp(IcmpMessage { kind, code, id: 7, is_query });
            (packet.source_port, packet.destination_port) = (0, 0);
        }
        3 => {
            packet.protocol = 50;
            (packet.source_port, packet.destination_port) = (0, 0);
        }
        _ => {}
    }
}

/// One packet in ten is the first fragment of a datagram, one a later one.
fn fragment(packet: &mut Packet, kind: u8) {
    match kind {
        0 => packet.fragment = Fragment::First { id: 9 },
        1 => {
            packet.fragment = Fragment::Later { id: 9 };
            packet.transport = Transport::Other;
            (packet.source_port, packet.destination_port) = (0, 0);
        }
        _ => {}
    }
}
