//! Packets of known flows fare as if each of them had been judged: the same frames, states and counters, whatever changes.

use std::cell::Cell;
use std::sync::Arc;

use fullview_filter::address_table::AddressTable;
use fullview_filter::ruleset::RuleSetParts;
use fullview_filter::state::flow::FlowIsa;
use fullview_filter::state::{StateSummary, WorkerLimits};
use fullview_plane::adjacency::Adjacency;
use fullview_plane::forward::{
    BurstFilter, EnforceableRules, FilterClient, Forwarder, RuleChange, filter_link,
};
use fullview_plane::interface::SourceCheck;
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::policy::{InterfaceRules, PolicyAction, PolicyRule, RuleTransport};
use fullview_plane::view::{TableReaders, View, ViewParts, Views};
use fullview_table::fib::framework::{Attachment, Origin, Time};
use fullview_table::fib::registry::Registered;
use fullview_table::{Change, NextHop, Rib};
use proptest::prelude::*;

use crate::filter::{enforceable, ipfw, pf};
use crate::frames::*;
use crate::router::{DEVICES, parts};

thread_local!(pub static NOW: Cell<u64> = const { Cell::new(0) });

const SHORT_TIMEOUTS: &str =
    "set timeout { udp.first 3, udp.single 2, udp.multiple 4, interval 1 }\npass all";

/// `NAT` and `RDR` stand for rules that translate both families.
const TRANSLATIONS: [&str; 13] = [
    "NAT pass all",
    "NAT pass no state",
    "RDR pass all",
    "RDR NAT pass all keep state (sloppy)",
    "set state-policy if-bound\nRDR NAT pass all",
    "RDR NAT pass in no state\npass out keep state",
    "binat on port1 inet from 198.18.0.1 to any -> 192.0.2.1\npass all",
    "set timeout { udp.first 3, udp.single 2, udp.multiple 4, interval 1 }\nNAT pass all",
    "set skip on port0\nNAT RDR pass all",
    "NAT pass all\nblock in on port1 proto udp to 198.18.0.2",
    "pass all",
    "NAT RDR pass in on port0 keep state (max 5) tag seen\npass out tagged seen",
    "NAT pass all\npass in on port0 keep state (udp.first 2, udp.single 2, udp.multiple 2)",
];

fn translated(rules: &str) -> String {
    let nat = "nat on port1 inet from 198.18.0.0/24 to any -> 192.0.2.1 static-port\n\
               nat on port1 inet6 from any to any -> 2001:db8:2::1 static-port\n";
    let rdr = "rdr on port0 inet from any to 198.19.8.8 -> 198.19.7.7\n\
               rdr on port0 inet6 proto udp from any to 2001:2:0:1::88 port 53 -> 2001:2:0:1::7 port 54\n";
    rules.replace("NAT ", nat).replace("RDR ", rdr)
}

/// `NAT` stands for rules that translate one host, whose ports stay as they are.
const IPFW_TRANSLATIONS: [&str; 4] = [
    "NAT add 30 allow ip from any to any",
    "add 1 count ip from any to any\nNAT add 30 allow ip from any to any keep-state",
    "add 1 check-state\nNAT add 30 allow ip from any to any keep-state",
    "add 10 allow ip from any to any",
];

fn ipfw_translated(rules: &str) -> String {
    let nat = "nat 1 config ip 192.0.2.9 same_ports redirect_addr 198.18.0.1 192.0.2.1\n\
               add 10 nat 1 not icmp from 198.18.0.1 to any out via port1\n\
               add 20 nat 1 not icmp from any to 192.0.2.1 in via port1\n";
    rules.replace("NAT ", nat)
}

/// Rule sets between which a filter of one language changes; the last two languages translate.
pub fn rule_sets(language: usize) -> Vec<EnforceableRules> {
    let sets: Vec<RuleSetParts> = match language {
        0 => [
            "pass all keep state",
            "block all\npass in on port0 keep state\npass out on port1 keep state",
            "set skip on port1\npass in on port0 keep state\npass out on port0 no state",
            "set state-policy if-bound\npass all\npass in on port0 inet proto udp keep state (max 3)",
            SHORT_TIMEOUTS,
            "pass in no state\npass out keep state\nblock in proto tcp flags S/S",
            "nat on port1 inet proto udp from 198.18.0.1 to any port 53 -> 192.0.2.1 static-port\npass all",
            "block all",
            "pass all no state",
            "pass no state\nblock in inet from 198.18.0.2\nblock out proto tcp flags S/S\nmatch in proto udp",
            "block all\npass in on port0 proto udp no state\npass out on port1 proto udp no state tag seen",
            "pass no state\nblock in proto udp tos 4",
            "pass all keep state (sloppy)",
            "pass all flags any keep state",
            "pass no state\nblock in proto tcp flags P/P",
            "pass no state\nblock in proto tcp flags U/U",
        ]
        .map(pf)
        .into(),
        2 => TRANSLATIONS.map(|rules| pf(translated(rules).leak())).into(),
        3 => IPFW_TRANSLATIONS.map(|rules| ipfw(ipfw_translated(rules).leak())).into(),
        _ => [
            "add 3000 allow ip from any to any keep-state",
            "add 10 count ip from any to any in\nadd 20 check-state\nadd 30 allow ip from any to any keep-state",
            "add 10 count udp from any to any iplen 0-50\nadd 20 allow ip from any to any keep-state",
            "add 10 skipto 30 ip from any to any in\nadd 20 count ip from any to any\nadd 30 check-state :a\nadd 40 allow udp from any to any keep-state :b\nadd 50 allow ip from any to any keep-state :a",
            "add 10 allow ip from any to any in recv port0 keep-state\nadd 20 check-state\nadd 30 deny ip from any to any",
            "add 10 deny ip from any to any",
            "add 10 allow ip from any to any",
            "add 10 count udp from any to any in\nadd 20 deny ip from 198.18.0.2 to any\nadd 30 allow ip from any to any",
            "add 10 check-state\nadd 20 allow udp from any to any in recv port0\nadd 30 allow ip from any to any keep-state",
            "add 10 deny udp from any to any iplen 30-31\nadd 20 allow ip from any to any",
            "add 10 deny tcp from any to any tcpflags psh\nadd 20 allow ip from any to any",
            "add 10 count tcp from any to any established\nadd 20 allow tcp from any to any setup keep-state\nadd 30 allow udp from any to any",
            "add 10 count tcp from any to any tcpwin 256\nadd 20 allow tcp from any to any keep-state",
            "table n add 1\nadd 10 deny ip from any to any lookup dscp n\nadd 20 allow ip from any to any",
            "table n add 1\nadd 10 deny udp from any to any lookup src-port:0 n\nadd 20 allow ip from any to any",
        ]
        .map(ipfw)
        .into(),
    };
    sets.into_iter().map(|parts| enforceable(parts).unwrap()).collect()
}

/// One frame: its flow, its direction, and what kind of packet it is.
#[derive(Clone, Debug)]
pub struct Sent {
    pub inet6: bool,
    hosts: (u8, u8),
    port: u8,
    back: bool,
    vlan: bool,
    /// The addresses are those that translations give to the near end, for packets that go back, and to the far one.
    aliases: [bool; 2],
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub flags: u8,
    pub seq: u16,
    pub ack: u16,
    pub window: u16,
    pub len: u8,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Udp {
        len: u8,
        hops: u8,
    },
    Tcp(Segment),
    /// An error about a segment that has this sequence number.
    Error {
        seq: u16,
    },
    Echo,
    Fragment {
        first: bool,
    },
    Options,
}

#[derive(Clone, Debug)]
pub enum Step {
    Burst(Vec<Sent>),
    /// Milliseconds.
    Pause(u64),
    Idle,
    Rules(usize),
    /// A route changes to this next hop, or ends.
    Route(Option<u16>),
    View(u8),
    /// The link of a port fails, or works again.
    Link(u8, bool),
}

/// Sequence numbers, most of them in windows.
fn number() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 0_u16..4, 2 => 0_u16..400, 1 => any::<u16>()]
}

/// Segments, many of which belong to a connection.
fn segment() -> impl Strategy<Value = Segment> {
    let flags =
        prop_oneof![8 => Just(0x10_u8), 4 => Just(0x18), 2 => Just(0x02), 2 => Just(0x12), 2 => any::<u8>()];
    let window = prop_oneof![2 => Just(256_u16), 1 => Just(0), 1 => any::<u16>()];
    let len = prop_oneof![2 => Just(0_u8), 2 => 0_u8..4, 1 => any::<u8>()];
    (flags, number(), number(), window, len).prop_map(|(flags, seq, ack, window, len)| Segment {
        flags,
        seq,
        ack,
        window,
        len,
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        20 => (0_u8..12, prop_oneof![9 => Just(64_u8), 1 => Just(1)]).prop_map(|(len, hops)| Kind::Udp { len, hops }),
        15 => segment().prop_map(Kind::Tcp),
        1 => number().prop_map(|seq| Kind::Error { seq }),
        1 => Just(Kind::Echo),
        1 => any::<bool>().prop_map(|first| Kind::Fragment { first }),
        1 => Just(Kind::Options),
    ]
}

fn packet() -> impl Strategy<Value = Sent> {
    let ends = (
        (1_u8..3, 7_u8..9),
        prop_oneof![3 => 0_u8..2, 1 => 2_u8..12],
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.1),
        [prop::bool::weighted(0.5), prop::bool::weighted(0.3)],
    );
    (any::<bool>(), ends, kind()).prop_map(|(inet6, (hosts, port, back, vlan, aliases), kind)| Sent {
        inet6,
        hosts,
        port,
        back,
        vlan: vlan && !back,
        aliases,
        kind,
    })
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => prop::collection::vec(packet(), 1..40).prop_map(Step::Burst),
        4 => prop_oneof![4 => 1_u64..300, 2 => 300_u64..5000, 1 => 5000_u64..100_000].prop_map(Step::Pause),
        1 => Just(Step::Idle),
        1 => (0_usize..16).prop_map(Step::Rules),
        1 => prop_oneof![Just(Some(2)), Just(Some(3)), Just(None)].prop_map(Step::Route),
        1 => (0_u8..5).prop_map(Step::View),
        1 => (1_u8..3, any::<bool>()).prop_map(|(port, has_failed)| Step::Link(port, has_failed)),
    ]
}

/// The payload after the network header, and its protocol.
fn payload(sent: &Sent) -> (u8, Vec<u8>) {
    let (near, far) = ([0x40, sent.port], [0, 53]);
    let (from, to) = if sent.back { (far, near) } else { (near, far) };
    let mut bytes = [from, to].concat();
    match sent.kind {
        Kind::Tcp(segment) => {
            bytes.extend(header_end(&segment));
            bytes.resize(bytes.len() + usize::from(segment.len), 7);
            (6, bytes)
        }
        Kind::Error { seq } => (if sent.inet6 { 58 } else { 1 }, error(sent, [to, from].concat(), seq)),
        Kind::Echo if sent.inet6 => (58, vec![128, 0, 0, 0, 0, sent.port, 0, 0]),
        Kind::Echo => (1, vec![8, 0, 0, 0, 0, sent.port, 0, 0]),
        Kind::Udp { len, .. } => {
            bytes.resize(8 + usize::from(len), 7);
            (17, bytes)
        }
        _ => {
            bytes.resize(16, 7);
            (17, bytes)
        }
    }
}

/// All of a TCP header but its ports.
fn header_end(segment: &Segment) -> Vec<u8> {
    let Segment { flags, seq, ack, window, .. } = segment;
    let mut bytes = [[0; 2], seq.to_be_bytes(), [0; 2], ack.to_be_bytes()].concat();
    bytes.extend([0x50, *flags]);
    bytes.extend(window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes
}

/// An ICMP error about a segment of the other end.
fn error(sent: &Sent, ports: Vec<u8>, seq: u16) -> Vec<u8> {
    let quoted = Sent { back: !sent.back, vlan: false, kind: Kind::Echo, ..sent.clone() };
    let header = if sent.inet6 { 40 } else { 20 };
    let mut quote = frame(&quoted).1[14..14 + header].to_vec();
    quote[if sent.inet6 { 6 } else { 9 }] = 6;
    quote.extend([&ports[..], &[0, 0], &seq.to_be_bytes(), &[0; 12]].concat());
    let kind: u8 = if sent.inet6 { 1 } else { 3 };
    [&[kind, 1, 0, 0, 0, 0, 0, 0], &quote[..]].concat()
}

pub fn frame(sent: &Sent) -> (u16, Vec<u8>) {
    let (near, far) = sent.hosts;
    let (protocol, payload) = payload(sent);
    let hops = if let Kind::Udp { hops, .. } = sent.kind { hops } else { 64 };
    let [is_near, is_far] = [sent.back && sent.aliases[0], sent.aliases[1]];
    let or = |is: bool, alias: &str, address: String| if is { alias.to_owned() } else { address };
    let frame = if sent.inet6 {
        let (near, far) = (format!("2001:2::{near}"), format!("2001:2:0:1::{far}"));
        let ends = (or(is_near, "2001:db8:2::1", near), or(is_far, "2001:2:0:1::88", far));
        frame6(
            if sent.back { (&ends.1, &ends.0) } else { (&ends.0, &ends.1) },
            hops,
            protocol,
            sent.kind,
            &payload,
        )
    } else {
        let (near, far) = (format!("198.18.0.{near}"), format!("198.19.7.{far}"));
        let ends = (or(is_near, "192.0.2.1", near), or(is_far, "198.19.8.8", far));
        frame4(
            if sent.back { (&ends.1, &ends.0) } else { (&ends.0, &ends.1) },
            hops,
            protocol,
            sent.kind,
            &payload,
        )
    };
    let frame = if sent.vlan { tagged(frame, 10) } else { frame };
    (u16::from(sent.back), frame)
}

fn frame4((from, to): (&str, &str), hops: u8, protocol: u8, kind: Kind, payload: &[u8]) -> Vec<u8> {
    let options: &[u8] = if matches!(kind, Kind::Options) { &[1, 1, 1, 0] } else { &[] };
    let mut frame = inet_with(from, to, hops, options);
    let header = 14 + 20 + options.len();
    frame.truncate(header);
    frame.extend(payload);
    let total = ((header - 14 + payload.len()) as u16).to_be_bytes();
    let fragment = match kind {
        Kind::Fragment { first: true } => [0x20, 0],
        Kind::Fragment { first: false } => [0, 2],
        _ => [0x40, 0],
    };
    frame.resize(frame.len().max(60), 0);
    let frame = with(with(with(frame, 2, &total), 6, &fragment), 9, &[protocol]);
    with_summed(frame, 0, &[0x45 + (options.len() / 4) as u8])
}

fn frame6((from, to): (&str, &str), hops: u8, protocol: u8, kind: Kind, payload: &[u8]) -> Vec<u8> {
    let extension = match kind {
        Kind::Fragment { first: true } => vec![protocol, 0, 0, 1, 0, 0, 0, 9],
        Kind::Fragment { first: false } => vec![protocol, 0, 0, 16, 0, 0, 0, 9],
        Kind::Options => vec![protocol, 0, 1, 4, 0, 0, 0, 0],
        _ => Vec::new(),
    };
    let next = match kind {
        Kind::Fragment { .. } => 44,
        Kind::Options => 60,
        _ => protocol,
    };
    let mut frame = inet6(from, to, hops);
    frame.truncate(54);
    frame.extend(&extension);
    frame.extend(payload);
    let length = ((extension.len() + payload.len()) as u16).to_be_bytes();
    frame.resize(frame.len().max(60), 0);
    with(with(frame, 4, &length), 6, &[next])
}

/// Routes that change while packets flow.
pub struct Routed {
    rib: Arc<Rib<u32>>,
    attachment: Attachment<u32>,
    /// The other ones stay.
    tables: Vec<TableReaders>,
}

impl Routed {
    pub fn new() -> Routed {
        let attachment = Attachment::new(Time::ZERO, 0, u32::ALGORITHMS.into(), Arc::default());
        let mut tables = parts().tables;
        tables[0].inet = attachment.shared_reader();
        let mut routed = Routed { rib: Arc::default(), attachment, tables };
        routed.set("198.18.0.0/24", Some(1));
        routed.set("198.19.0.0/16", Some(2));
        routed
    }

    pub fn set(&mut self, prefix: &str, next_hop: Option<u16>) {
        let change = Change { prefix: prefix.parse().unwrap(), next_hop: next_hop.map(NextHop) };
        Arc::make_mut(&mut self.rib).apply(change);
        self.attachment.changed(Time::from_secs(1), &self.rib, &[change], Origin::Static);
    }
}

/// The second table decides where the first one has no route.
fn rules_of_both_tables() -> InterfaceRules {
    let transport = RuleTransport::default();
    let rule = |table| PolicyRule {
        priority: 1,
        source: None,
        destination: None,
        transport,
        inverted: false,
        action: PolicyAction::LookUp(table),
    };
    let rules: Arc<[PolicyRule]> = [0, 1].map(rule).into();
    InterfaceRules { inet: Arc::clone(&rules), inet6: rules }
}

/// Views that differ in a neighbour, in the check of sources, or in the rules of policy routing.
pub fn view(routed: &Routed, number: u8) -> View {
    let mut parts: ViewParts = parts();
    parts.tables.clone_from(&routed.tables);
    match number {
        1 => parts.adjacencies.set(NextHop(2), Adjacency::Glean { interface: 2 }),
        2 => parts.adjacencies.set(NextHop(2), Adjacency::Neighbor { interface: 2, mac: neighbor(2) }),
        3 => parts.interfaces[0].source_check = SourceCheck::Strict,
        4 => parts.interfaces[0].rules = rules_of_both_tables(),
        _ => {}
    }
    View::new(parts).unwrap()
}

/// One of the filters that are compared.
pub struct Compared {
    pub forwarder: Forwarder,
    client: FilterClient,
    rules: EnforceableRules,
}

impl Compared {
    pub fn new(views: &Views, rules: &EnforceableRules, limits: WorkerLimits, flows: usize) -> Compared {
        let mut filter = BurstFilter::new(rules, limits, 1);
        filter.set_clock(|| NOW.get());
        filter.keep_flows(flows);
        let mut forwarder = Forwarder::new(views.reader());
        forwarder.set_filter(filter);
        let (client, _inspector, server) = filter_link();
        forwarder.set_filter_server(server);
        Compared { forwarder, client, rules: rules.clone() }
    }

    pub fn watch(&mut self, links: &Arc<NotedLinks>) {
        self.forwarder.watch_links(Arc::clone(links), &DEVICES);
    }

    pub fn change_rules(&mut self, rules: &EnforceableRules) {
        self.client.send(RuleChange::new(&self.rules, rules)).unwrap();
        self.forwarder.change_rules();
        self.client.free_former();
        self.rules = rules.clone();
    }

    /// The states, and the packets and bytes of each rule.
    pub fn remembered(&mut self) -> (Vec<StateSummary>, Vec<(u64, u64)>) {
        let filter = self.forwarder.filter_mut().unwrap();
        let states = filter.states().collect();
        let counters = filter.worker().counters();
        (states, (0..counters.len()).map(|rule| counters.get(rule)).collect())
    }

    fn known(&self) -> u64 {
        self.forwarder.filter().unwrap().known_packets()
    }
}

fn judged(compared: &mut Compared, frames: &[(u16, Vec<u8>)]) -> Vec<Fate> {
    run(&mut compared.forwarder, frames)
}

/// Runs the steps with and without known flows, and compares after each step. Returns how many packets were of known flows.
fn compare(language: usize, states: u32, flows: usize, steps: &[Step]) -> u64 {
    compare_with(FlowIsa::best(), language, states, flows, steps)
}

fn compare_with(isa: FlowIsa, language: usize, states: u32, flows: usize, steps: &[Step]) -> u64 {
    NOW.set(1_000_000);
    let (mut routed, sets) = (Routed::new(), rule_sets(language));
    let views = Views::new(view(&routed, 0));
    let limits = WorkerLimits { states, ..WorkerLimits::default() };
    let mut truth = Compared::new(&views, &sets[0], limits, 0);
    let mut fast = Compared::new(&views, &sets[0], limits, flows);
    fast.forwarder.filter_mut().unwrap().parts().1.use_isa(isa);
    let links = Arc::<NotedLinks>::default();
    [&mut truth, &mut fast].into_iter().for_each(|compared| compared.watch(&links));
    for step in steps {
        match step {
            Step::Burst(packets) => {
                let frames: Vec<_> = packets.iter().map(frame).collect();
                assert_eq!(judged(&mut truth, &frames), judged(&mut fast, &frames));
            }
            Step::Pause(milliseconds) => NOW.set(NOW.get() + milliseconds),
            Step::Idle => {
                truth.forwarder.change_rules();
                fast.forwarder.change_rules();
            }
            Step::Rules(number) => {
                truth.change_rules(&sets[number % sets.len()]);
                fast.change_rules(&sets[number % sets.len()]);
            }
            Step::Route(next_hop) => routed.set("198.19.0.0/16", *next_hop),
            Step::View(number) => drop(views.publish(view(&routed, *number))),
            Step::Link(port, has_failed) => links.note(DEVICES[usize::from(*port)], *has_failed),
        }
        assert_eq!(truth.remembered(), fast.remembered());
    }
    assert_eq!(truth.known(), 0);
    fast.known()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn known_flows_change_no_verdict_no_state_and_no_counter(
        language in 0_usize..4,
        states in prop_oneof![Just(6_u32), Just(12), Just(200)],
        flows in prop_oneof![Just(16_usize), Just(1000)],
        isa in prop::sample::select(FlowIsa::available()),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        compare_with(isa, language, states, flows, &steps);
    }
}

pub fn udp(back: bool, inet6: bool) -> Sent {
    let kind = Kind::Udp { len: 8, hops: 64 };
    Sent { inet6, hosts: (1, 7), port: 1, back, vlan: false, aliases: [false; 2], kind }
}

/// A packet of another flow between these hosts.
pub fn udp_between(near: u8, far: u8) -> Sent {
    Sent { hosts: (near, far), ..udp(false, false) }
}

/// A burst with a packet of each family.
pub fn burst_of_both_families(back: bool) -> Step {
    Step::Burst(vec![udp(back, false), udp(back, true)])
}

#[test]
fn packets_are_known_from_the_third_of_a_flow_on() {
    let burst = burst_of_both_families;
    for language in [0, 1] {
        let one_way = vec![burst(false); 10];
        assert_eq!(
            compare(language, 100, 1000, &one_way),
            16,
            "the first makes the state, the second is learned from"
        );
        assert_eq!(
            compare(language, 100, 1000, &[&one_way[..], &[Step::View(0), Step::View(0)]].concat()),
            16
        );
        assert_eq!(compare(language, 100, 0, &one_way), 0);
        let both_ways = [vec![burst(false); 5], vec![burst(true); 5]].concat();
        assert!(compare(language, 100, 1000, &both_ways) > 6);
    }
}

/// The numbers are those of `rule_sets`.
const CODE_POINT_LOOKED_UP: (usize, usize) = (1, 13);
const PORT_LOOKED_UP: (usize, usize) = (1, 14);

#[test]
fn flows_whose_packets_may_differ_in_what_is_looked_up_are_not_known() {
    let known = |(language, set)| {
        let burst = burst_of_both_families(false);
        compare(language, 100, 1000, &[vec![Step::Rules(set)], vec![burst; 10]].concat())
    };
    assert_eq!(known(CODE_POINT_LOOKED_UP), 0);
    assert!(known(PORT_LOOKED_UP) > 6);
}

/// The numbers are those of `rule_sets`.
const BOUND_TO_INTERFACES: (usize, usize) = (0, 3);

#[test]
fn a_state_of_the_flow_that_expires_in_the_same_burst_counts_no_packet_twice() {
    let (near, tagged) = (udp(false, true), Sent { vlan: true, ..udp(false, true) });
    let (language, set) = BOUND_TO_INTERFACES;
    let both = || Step::Burst(vec![near.clone(), tagged.clone()]);
    let learn = [vec![Step::Rules(set)], vec![both(); 5]].concat();
    let keep_near = (0..2).flat_map(|_| [Step::Pause(25_000), one(near.clone())]).collect();
    let steps = [learn, keep_near, vec![Step::Pause(15_000), both()]].concat();
    assert!(compare(language, 100, 1000, &steps) > 6);
}

pub fn segment_of(back: bool, flags: u8, seq: u16, ack: u16, len: u8) -> Sent {
    of_connection(back, Kind::Tcp(Segment { flags, seq, ack, window: 256, len }))
}

/// A packet of the same flow.
pub fn of_connection(back: bool, kind: Kind) -> Sent {
    Sent { kind, ..udp(back, false) }
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;

/// A handshake.
pub fn connect() -> Vec<Step> {
    let segments = [(false, SYN, 10, 0), (true, SYN | ACK, 20, 11), (false, ACK, 11, 21)];
    segments.map(|(back, flags, seq, ack)| one(segment_of(back, flags, seq, ack, 0))).into()
}

/// So many segments with ten bytes each from the end that began, acknowledged by the other one.
pub fn exchange(count: u16) -> Vec<Step> {
    let steps = (0..count).map(|number| 11 + 10 * number);
    let both = |seq| [segment_of(false, ACK | PUSH, seq, 21, 10), segment_of(true, ACK, 21, seq + 10, 0)];
    steps.flat_map(both).map(one).collect()
}

pub fn one(sent: Sent) -> Step {
    Step::Burst(vec![sent])
}

/// The numbers are those of `rule_sets`.
const WITH_WINDOWS: (usize, usize) = (0, 0);
pub const SLOPPY: (usize, usize) = (0, 12);

#[test]
fn connections_are_known_from_the_second_plain_segment_of_a_direction_on() {
    for (language, set) in [WITH_WINDOWS, SLOPPY, (1, 0), (1, 11)] {
        let steps = [vec![Step::Rules(set)], connect(), exchange(10)].concat();
        assert_eq!(compare(language, 100, 1000, &steps), 18, "{language} {set}");
        assert_eq!(compare(language, 100, 0, &steps), 0);
    }
    // The rules let segments pass without states: the third segment is the first plain one.
    for (language, set) in [(0, 8), (0, 15), (1, 6)] {
        let steps = [vec![Step::Rules(set)], connect(), exchange(10)].concat();
        assert_eq!(compare(language, 100, 1000, &steps), 19, "{language} {set}");
    }
    for (language, set) in [(0, 14), (1, 10), (1, 12)] {
        let steps = [vec![Step::Rules(set)], connect(), exchange(10)].concat();
        assert_eq!(compare(language, 100, 1000, &steps), 0, "{language} {set} asks about each segment");
    }
}

/// The same packets: those that go back are to the address that the near end was given, the others to that which becomes the far end.
fn translated_ends(steps: Vec<Step>, aliases: [bool; 2]) -> Vec<Step> {
    let [near, far] = aliases;
    let alias = |sent: Sent| Sent { aliases: [sent.back && near, !sent.back && far], ..sent };
    let of_step = |step| match step {
        Step::Burst(packets) => Step::Burst(packets.into_iter().map(alias).collect()),
        other => other,
    };
    steps.into_iter().map(of_step).collect()
}

#[test]
fn translated_flows_are_known_in_both_directions() {
    let times = |back| vec![one(udp(back, false)); 5];
    let datagrams = [times(false), times(true), times(false)].concat();
    let connection = [connect(), exchange(10)].concat();
    let (near, far, both) = ([true, false], [false, true], [true, true]);
    for (language, set, ends) in [
        (2, 0, near),
        (2, 1, near),
        (2, 2, far),
        (2, 3, both),
        (2, 5, both),
        (2, 8, near),
        (3, 0, near),
        (3, 1, near),
    ] {
        let known = |steps: &Vec<Step>| {
            let steps = [vec![Step::Rules(set)], translated_ends(steps.clone(), ends)].concat();
            compare(language, 100, 1000, &steps)
        };
        assert_eq!((known(&datagrams), known(&connection)), (9, 18), "{language} {set}");
    }
}

/// The first rules have translated the connection; by the second ones only packets that go back are.
#[test]
fn a_flow_is_judged_in_order_with_one_that_becomes_its_other_direction() {
    let (forth, back) = (udp(false, false), Sent { aliases: [true, false], ..udp(true, false) });
    let alone = || one(forth.clone());
    let steps =
        [vec![alone(), Step::Rules(2), alone(), alone()], vec![Step::Burst(vec![back, forth.clone()])]];
    compare(3, 100, 1000, &steps.concat());
}

/// The state of the way in ends first, and others take its place in the table. Packets that go back show another flow than it has.
#[test]
fn a_state_that_ends_ends_what_is_known_of_translated_packets() {
    const SHORT_WAY_IN: usize = 12;
    let (forth, back) = (udp(false, false), Sent { aliases: [true, false], ..udp(true, false) });
    let other = |port| one(Sent { hosts: (2, 8), port, ..udp(false, false) });
    let known = [vec![Step::Rules(SHORT_WAY_IN)], vec![one(forth); 3], vec![one(back.clone()); 4]].concat();
    let after = [vec![Step::Pause(15_000), Step::Idle, Step::Idle], vec![other(1), other(2)]].concat();
    assert!(compare(2, 100, 1000, &[known, after, vec![one(back); 3]].concat()) > 2);
}

/// One direction has ended and is not known any more, the other one is again; what the one may send depends on the other's window.
#[test]
fn segments_of_both_directions_are_judged_in_order_where_one_has_ended() {
    let wide = Sent {
        kind: Kind::Tcp(Segment { flags: ACK, seq: 2, ack: 1, window: 1000, len: 0 }),
        ..udp(false, false)
    };
    let handshake = [(false, SYN, 0, 0), (true, SYN | ACK, 0, 1), (false, ACK, 1, 1)];
    let until_known = [(false, ACK, 1, 1), (true, ACK, 1, 1), (false, FIN | ACK, 1, 1), (false, ACK, 2, 1)];
    let alone = |(back, flags, seq, ack)| one(segment_of(back, flags, seq, ack, 0));
    let steps = handshake.into_iter().chain(until_known).map(alone).collect();
    let both = Step::Burst(vec![wide, segment_of(true, ACK, 257, 1, 100)]);
    let steps = [steps, vec![both]].concat();
    compare(2, 100, 1000, &translated_ends(steps, [true, false]));
}

#[test]
fn segments_that_change_or_contradict_a_connection_meet_its_states() {
    let begun = [connect(), exchange(4)].concat();
    let known = |steps: &[Step]| {
        let (language, _) = WITH_WINDOWS;
        compare(language, 100, 1000, &[&begun[..], steps].concat()) - 6
    };
    assert_eq!(known(&[one(segment_of(false, ACK, 9_000, 21, 10))]), 0, "behind the window");
    assert_eq!(
        known(&[one(segment_of(false, ACK, 51, 9_000, 10))]),
        1,
        "within the slack of acknowledgements"
    );
    for flags in [FIN | ACK, RST, ACK | 0x20, ACK | 0x40, SYN | ACK, 0] {
        assert_eq!(known(&[one(segment_of(false, flags, 51, 21, 10))]), 0, "{flags:#x}");
    }
    let (late, plain) = (segment_of(false, ACK, 9_000, 21, 10), segment_of(false, ACK, 51, 21, 10));
    assert_eq!(known(&[Step::Burst(vec![plain.clone(), late.clone(), plain.clone()])]), 1, "in their order");
    assert_eq!(known(&[one(late), one(plain)]), 1, "a segment that was refused ends nothing");
}

/// The numbers are those of `rule_sets`.
#[test]
fn flows_are_known_without_states_unless_a_rule_asks_about_each_packet() {
    let of_flow = [(0, 8), (0, 9), (0, 10), (1, 6), (1, 7), (1, 8)].map(|(language, set)| (language, set, 9));
    for (language, set, known) in of_flow.into_iter().chain([(0, 11, 0), (1, 9, 0)]) {
        let steps = [vec![Step::Rules(set)], vec![Step::Burst(vec![udp(false, false)]); 10]].concat();
        let packets = compare(language, 100, 1000, &steps);
        // A state that is made by the first packet is learned from the second.
        assert!(packets == known || (language, set) == (1, 8) && packets == 8, "{packets} of {set}");
    }
}

#[test]
fn what_a_flow_depends_on_is_asked_again() {
    let burst = || Step::Burst(vec![udp(false, false)]);
    for change in [
        Step::Route(Some(3)),
        Step::Route(None),
        Step::View(1),
        Step::Rules(1),
        Step::Pause(100_000),
        Step::Link(1, true),
        Step::Link(2, true),
    ] {
        for language in [0, 1] {
            let steps = [vec![burst(); 5], vec![change.clone()], vec![burst(); 5]].concat();
            assert!(compare(language, 100, 1000, &steps) >= 3, "{change:?}");
        }
    }
}

#[test]
fn states_expire_in_a_router_without_packets() {
    NOW.set(1_000_000);
    let routed = Routed::new();
    let rules = enforceable(pf(SHORT_TIMEOUTS)).unwrap();
    let views = Views::new(view(&routed, 0));
    let mut idle = Compared::new(&views, &rules, WorkerLimits { states: 8, ..WorkerLimits::default() }, 16);
    judged(&mut idle, &[frame(&udp(false, false))]);
    let states = |idle: &Compared| idle.forwarder.filter().unwrap().worker().states().len();
    assert_eq!(states(&idle), 2);
    NOW.set(NOW.get() + 100_000);
    // The first round follows a burst, which has swept.
    idle.forwarder.change_rules();
    idle.forwarder.change_rules();
    assert_eq!(states(&idle), 0);
}

fn with_table(rules: &EnforceableRules, entries: &[&str]) -> EnforceableRules {
    let set = rules.rules();
    let table = AddressTable::new(entries.iter().map(|entry| entry.parse().unwrap()).collect::<Vec<_>>());
    rules.with_tables([(set.named_tables()[0].id, Arc::new(table))])
}

/// Rules before the one that looks for states may ask about tables.
#[test]
fn another_table_is_asked_about_known_flows_too() {
    let rules = [
        "table bad create type addr\nadd 5 deny ip from table(bad) to any\nadd 10 check-state\nadd 20 allow ip from any to any keep-state",
        "table bad create type addr\nadd 5 deny ip from table(bad) to any in\nadd 20 allow ip from any to any keep-state",
    ];
    for text in rules {
        NOW.set(1_000_000);
        let routed = Routed::new();
        let rules = enforceable(ipfw(text)).unwrap();
        let views = Views::new(view(&routed, 0));
        let mut slow = Compared::new(&views, &rules, WorkerLimits::default(), 0);
        let mut fast = Compared::new(&views, &rules, WorkerLimits::default(), 1000);
        let frames = [frame(&udp(false, false))];
        (0..5).for_each(|_| assert_eq!(judged(&mut slow, &frames), judged(&mut fast, &frames)));
        assert!(fast.known() > 0);
        for one in [&mut slow, &mut fast] {
            one.client.send(RuleChange::of_tables(&with_table(&rules, &["198.18.0.1"]))).unwrap();
            one.forwarder.change_rules();
        }
        for round in 0..20 {
            NOW.set(NOW.get() + 500);
            assert_eq!(judged(&mut slow, &frames), judged(&mut fast, &frames), "round {round}");
        }
    }
}
