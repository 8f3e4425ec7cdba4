use fullview_filter::address::{Address, Family};
use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::ipfw::{IpfwConfig, missing_nats};
use fullview_filter::packet::protocol::tcp::{ACK, FIN, SYN};
use fullview_filter::packet::protocol::{ICMP, TCP, UDP};
use fullview_filter::packet::{
    Direction, Fragment, IcmpMessage, Packet, Pass, Quoted, TcpSegment, Transport,
};
use fullview_filter::rule::Side;
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, DropReason, Reject, Verdict};

const ROUTER: Address = Address::inet(0xcb00_7101);
pub const INSIDE: Address = Address::inet(0x0a00_0001);
pub const OUTSIDE: Address = Address::inet(0xc633_6402);

pub fn interfaces() -> Interfaces {
    let named = |name: &str, number, address| FilterInterface {
        name: name.to_owned(),
        number,
        groups: Vec::new(),
        addresses: vec![(address, 24)],
    };
    Interfaces(vec![named("lan0", 0, Address::inet(0x0a00_00fe)), named("wan0", 1, ROUTER)])
}

pub struct Firewall {
    pub set: RuleSet,
    pub worker: FilterWorker,
    pub now: u64,
}

fn rules(script: &str) -> RuleSet {
    let config = IpfwConfig::load("f", script).unwrap();
    RuleSet::new(config.lower(&interfaces())).unwrap()
}

impl Firewall {
    pub fn new(script: &str) -> Self {
        let set = rules(script);
        let worker = FilterWorker::new(WorkerLimits::default(), set.counted_rules(), 1);
        Firewall { set, worker, now: 0 }
    }

    /// Goes on with other rules.
    pub fn reload(&mut self, script: &str) {
        let next = rules(script);
        self.worker.adopt(next.adoption(&self.set));
        self.set = next;
    }

    pub fn check(&mut self, packet: Packet) -> Decision {
        self.set.check(&mut self.worker, self.now, &mut packet.clone())
    }
}

pub fn packet(
    direction: Direction,
    interface: u16,
    source: (Address, u16),
    destination: (Address, u16),
) -> Packet {
    Packet::udp(Pass { direction, interface, received_on: 0 }, source, destination)
}

#[test]
fn a_kept_state_serves_both_passes_and_both_directions() {
    let mut firewall = Firewall::new("add 3000 allow ip from any to any in recv lan0 keep-state");
    let request = packet(Direction::In, 0, (INSIDE, 1), (OUTSIDE, 53));
    assert_eq!(firewall.check(request).by, DecidedBy::NewState);
    let forwarded = packet(Direction::Out, 1, (INSIDE, 1), (OUTSIDE, 53));
    assert_eq!(firewall.check(forwarded).by, DecidedBy::State);
    let mut answer = packet(Direction::In, 1, (OUTSIDE, 53), (INSIDE, 1));
    answer.pass.received_on = 1;
    assert_eq!(firewall.check(answer).verdict, Verdict::Pass);
    assert_eq!(firewall.worker.states().len(), 1);
    firewall.now = 10_001;
    assert_eq!(
        firewall.check(answer).verdict,
        Verdict::Drop(DropReason::Rule),
        "a UDP state lives ten seconds"
    );
}

/// Unlike those of pf, and of ipfw's `nat`.
#[test]
fn a_kept_state_passes_no_error_about_its_packets() {
    let script = "add check-state\nadd allow udp from any to any out keep-state\n";
    let mut firewall = Firewall::new(script);
    let request = packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53));
    assert_eq!(firewall.check(request).by, DecidedBy::NewState);
    let message = IcmpMessage { kind: 3, code: 3, id: 0, is_query: false };
    let quoted = Quoted {
        source: INSIDE,
        destination: OUTSIDE,
        source_port: 9,
        destination_port: 53,
        protocol: UDP,
        seq: 0,
    };
    let error = Packet {
        protocol: ICMP,
        transport: Transport::Icmp(message),
        quoted: Some(quoted),
        ..packet(Direction::In, 1, (OUTSIDE, 0), (INSIDE, 0))
    };
    assert_eq!(firewall.check(error).verdict, Verdict::Drop(DropReason::Rule));
    firewall.reload(&format!("{script}add allow icmp from any to any icmptypes 3,11\n"));
    assert_eq!(firewall.check(error).verdict, Verdict::Pass);
}

#[test]
fn a_limit_counts_each_protocol_for_itself() {
    let mut firewall = Firewall::new("add allow ip from any to any limit src-addr 1");
    let of = |protocol, port| Packet { protocol, ..packet(Direction::In, 0, (INSIDE, port), (OUTSIDE, 53)) };
    assert_eq!(firewall.check(of(UDP, 1)).by, DecidedBy::NewState);
    assert_eq!(firewall.check(of(UDP, 2)).verdict, Verdict::Drop(DropReason::SourceLimit));
    assert_eq!(firewall.check(of(47, 0)).by, DecidedBy::NewState, "another protocol");
}

#[test]
fn names_of_flows_keep_states_apart() {
    let script = "add 10 check-state :A\nadd 20 allow ip from 10.0.0.1 to any out keep-state :B\n";
    let mut firewall = Firewall::new(script);
    assert_eq!(firewall.check(packet(Direction::Out, 1, (INSIDE, 1), (OUTSIDE, 53))).verdict, Verdict::Pass);
    let answer = firewall.check(packet(Direction::In, 1, (OUTSIDE, 53), (INSIDE, 1)));
    assert_eq!(answer.by, DecidedBy::State, "rule 20 looks for its own flow");
    let mut other = Firewall::new(&script.replace("keep-state :B", "record-state :B"));
    assert_eq!(other.check(packet(Direction::Out, 1, (INSIDE, 1), (OUTSIDE, 53))).verdict, Verdict::Pass);
    let answer = other.check(packet(Direction::In, 1, (OUTSIDE, 53), (INSIDE, 1)));
    assert_eq!(answer.verdict, Verdict::Drop(DropReason::Rule), "nothing looks for flow B");
}

/// The number of the rule that decides.
fn number(firewall: &Firewall, decision: &Decision) -> u32 {
    firewall.set.rules()[decision.rule.unwrap() as usize].number
}

#[test]
fn a_state_of_another_name_is_found_behind_one() {
    let script = "add 100 skipto 1000 udp from 10.0.0.0/8 to any in keep-state :a\nadd 1000 check-state :b\n\
                  add 1100 allow udp from any to any out keep-state :b\n\
                  add 1150 allow ip from 10.0.0.0/8 to any in\nadd 1200 deny ip from any to any\n";
    let mut firewall = Firewall::new(script);
    let (inner, outer) = ((INSIDE, 9), (OUTSIDE, 53));
    for (packet, expected) in [
        (packet(Direction::In, 0, inner, outer), 1150),
        (packet(Direction::Out, 1, inner, outer), 1100),
        (packet(Direction::In, 1, outer, inner), 1100),
        (packet(Direction::Out, 0, outer, inner), 1100),
    ] {
        let decision = firewall.check(packet);
        assert_eq!((decision.verdict, number(&firewall, &decision)), (Verdict::Pass, expected), "{packet:?}");
    }
    assert_eq!(firewall.worker.states().len(), 2);
}

#[test]
fn states_whose_rules_lead_to_each_other_come_to_an_end() {
    let script = "add 100 skipto 200 ip from any to any keep-state :a\nadd 200 skipto 300 ip from any to any keep-state :b\n\
                  add 300 check-state :a\nadd 400 allow ip from any to any\n";
    let mut firewall = Firewall::new(script);
    for _ in 0..2 {
        let decision = firewall.check(packet(Direction::In, 0, (INSIDE, 9), (OUTSIDE, 53)));
        assert_eq!((decision.verdict, number(&firewall, &decision)), (Verdict::Pass, 400));
    }
}

#[test]
fn jumps_skip_rules_also_by_way_of_a_state() {
    let script = "add 10 skipto 1000 udp from any to any keep-state\nadd 20 deny ip from any to any\n\
                  add 1000 allow ip from any to any\n";
    let mut firewall = Firewall::new(script);
    let first = firewall.check(packet(Direction::In, 0, (INSIDE, 1), (OUTSIDE, 53)));
    let second = firewall.check(packet(Direction::In, 0, (INSIDE, 1), (OUTSIDE, 53)));
    for decision in [first, second] {
        assert_eq!(decision.verdict, Verdict::Pass);
        assert_eq!(firewall.set.rules()[decision.rule.unwrap() as usize].number, 1000);
    }
}

/// ip_fw2.c tests both "only for IP packets", by which it means IPv4.
#[test]
fn lengths_and_ttls_are_those_of_ipv4() {
    let inet = Packet { length: 60, ttl: 64, ..packet(Direction::In, 0, (INSIDE, 9), (OUTSIDE, 53)) };
    let ends = (Address(1 << 125 | 1), Address(1 << 125 | 2));
    let inet6 = Packet { family: Family::Inet6, source: ends.0, destination: ends.1, ..inet };
    for (options, expected) in [
        ("iplen 40-60", [true, false]),
        ("ipttl 64,70", [true, false]),
        ("ipttl 65", [false, false]),
        ("not iplen 40-60", [false, true]),
        ("not ipttl 65", [true, true]),
        ("{ iplen 50,60 or ipttl 65 }", [true, false]),
        ("{ iplen 50 or not ipttl 63-64 }", [false, true]),
        ("frag", [false, false]),
    ] {
        let mut firewall = Firewall::new(&format!("add allow ip from any to any {options}"));
        assert_eq!(
            [inet, inet6].map(|one| firewall.check(one).verdict == Verdict::Pass),
            expected,
            "{options}"
        );
    }
}

#[test]
fn what_no_address_is_matches_nothing() {
    let mut firewall = Firewall::new("add allow ip from not any to any");
    let arriving = packet(Direction::In, 0, (INSIDE, 9), (OUTSIDE, 53));
    assert_eq!(firewall.check(arriving).verdict, Verdict::Drop(DropReason::Rule));
}

/// ipfw(8): a packet keeps its tags, so that a rule may ask about each of them.
#[test]
fn a_packet_has_all_tags_that_rules_gave_it() {
    let tagging = "add 10 count tag 1 ip from any to any\nadd 20 count tag 65534 udp from any to any in\n\
                   add 30 count tag 7 ip from 10.0.0.9 to any\n";
    for (test, matches) in [
        ("tagged 1", true),
        ("tagged 65534", true),
        ("tagged 7", false),
        ("tagged 2", false),
        ("tagged 7,1", true),
        ("tagged 2-7", false),
        ("tagged 2-7,9-65534", true),
        ("not tagged 1", false),
        ("not tagged 7", true),
        ("tagged 1 tagged 65534", true),
        ("tagged 1 tagged 7", false),
    ] {
        let script =
            format!("{tagging}add 40 deny ip from any to any {test}\nadd 50 allow ip from any to any\n");
        let mut firewall = Firewall::new(&script);
        let mut arriving = packet(Direction::In, 0, (INSIDE, 9), (OUTSIDE, 53));
        let decision = firewall.set.check(&mut firewall.worker, 0, &mut arriving);
        assert_eq!(decision.verdict != Verdict::Pass, matches, "{test}");
        let leaving = Packet { tag: arriving.tag, ..packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53)) };
        assert_eq!(firewall.check(leaving).verdict != Verdict::Pass, matches, "{test}, on its way out");
    }
}

#[test]
fn disabled_sets_tables_and_me_are_applied() {
    let script = "table bad add 198.51.100.0/24 7\nadd 5 set 9 allow ip from any to any\nset disable 9\n\
                  add 10 deny ip from table(bad,7) to me\nadd 20 allow ip from any to any\n";
    let mut firewall = Firewall::new(script);
    let drop = Verdict::Drop(DropReason::Rule);
    assert_eq!(firewall.check(packet(Direction::In, 1, (OUTSIDE, 1), (ROUTER, 2))).verdict, drop);
    assert_eq!(firewall.check(packet(Direction::In, 1, (OUTSIDE, 1), (INSIDE, 2))).verdict, Verdict::Pass);
    assert_eq!(firewall.check(packet(Direction::In, 1, (INSIDE, 1), (ROUTER, 2))).verdict, Verdict::Pass);
}

/// A table that only a rule names is empty.
#[test]
fn an_address_is_looked_up_in_a_table() {
    for (test, matches) in [
        ("lookup src-ip bad", true),
        ("lookup dst-ip bad", false),
        ("not lookup dst-ip bad", true),
        ("lookup src-ip other", false),
        ("{ lookup dst-ip bad or lookup src-ip bad } in", true),
    ] {
        let script = format!(
            "table bad add 198.51.100.0/24 7\nadd deny ip from any to any {test}\nadd allow ip from any to any"
        );
        let mut firewall = Firewall::new(&script);
        let verdict = firewall.check(packet(Direction::In, 1, (OUTSIDE, 1), (INSIDE, 2))).verdict;
        assert_eq!(verdict != Verdict::Pass, matches, "{test}");
    }
}

/// Whether the packet is found by `lookup`, in the rule 100, in a table of these entries.
fn finds(entries: &str, test: &str, sent: Packet) -> bool {
    let script = format!(
        "table 1 add {entries}\nadd 100 deny ip from any to any lookup {test} 1\nadd allow ip from any to any"
    );
    Firewall::new(&script).check(sent).verdict != Verdict::Pass
}

/// FreeBSD's `tests/sys/netpfil/ipfw/lookup.sh` asks the same of addresses, ports and numbers of rules.
#[test]
fn a_part_of_a_packet_is_looked_up_in_a_table() {
    for (entries, test, matches) in [
        ("192.0.0.0/32", "src-ip4:255.255.253.255", true),
        ("192.0.0.1/32", "dst-ip4:255.255.253.255", true),
        ("192.0.0.0/32", "src-ip4:128.255.253.255", false),
        ("192.0.2.1/32", "dst-ip4:128.255.255.255", false),
        ("192.0.2.0/32", "src-ip4", true),
        ("192.0.2.0/32", "src-ip6", false),
        ("::/0", "src-ip6:::", false),
        ("83 0 82", "dst-port", true),
        ("80", "dst-port", false),
        ("2000", "src-port", true),
        ("18", "dst-port:0x1F", true),
        ("18", "dst-port:255", false),
        ("0", "dst-port:0", true),
        ("12", "dscp", true),
        ("13", "dscp", false),
        ("12", "dscp:0xFE", true),
        ("12", "dscp:1", false),
        ("100", "rulenum", true),
        ("101", "rulenum", false),
        ("96", "rulenum:0x60", true),
        ("101", "rulenum:32", false),
    ] {
        let ends = ((Address::inet(0xc000_0200), 2000), (Address::inet(0xc000_0201), 82));
        let sent = Packet { tos: 12 << 2 | 1, ..packet(Direction::In, 1, ends.0, ends.1) };
        assert_eq!(finds(entries, test, sent), matches, "{test}: {entries}");
    }
}

#[test]
fn a_part_of_an_inet6_address_is_looked_up_in_a_table() {
    const SOURCE: Address = Address(0x2001_0db8_0042 << 80 | 0xffff_c000_0201);
    const DESTINATION: Address = Address(0x2001_0db8_0042 << 80 | 2);
    for (entry, test, matches) in [
        ("2000:db8:42::ffff:c000:201", "src-ip6:fff0:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true),
        ("2001:0:42::2", "dst-ip6:ffff:0:ffff:ffff:ffff:ffff:ffff:ffff", true),
        ("2001:db8:42::ffff:c000:201", "src-ip6:fff0:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false),
        ("2000:0:42::2", "dst-ip6:ffff:0:ffff:ffff:ffff:ffff:ffff:ffff", false),
        ("0.0.0.0/0", "src-ip4:0.0.0.0", false),
        // What a mask leaves looks as if it was an address of IPv4, or a number.
        ("192.0.2.0/24", "src-ip6:::ffff:ffff:ffff:ffff", false),
        ("::/0", "src-ip6:::ffff:ffff:ffff:ffff", true),
    ] {
        let sent = packet(Direction::In, 1, (SOURCE, 2000), (DESTINATION, 82));
        assert_eq!(finds(entry, test, sent), matches, "{test}: {entry}");
    }
}

/// What has no ports has none to look up.
#[test]
fn ports_are_looked_up_of_packets_that_show_them() {
    let gre = Packet { protocol: 47, ..packet(Direction::In, 1, (INSIDE, 0), (OUTSIDE, 0)) };
    assert!(!finds("0", "dst-port:0", gre));
}

#[test]
fn a_negated_list_excludes_all_of_it() {
    let mut firewall = Firewall::new("add allow udp from not 10.0.0.1,10.0.0.2 to { any or me } not 53,54");
    for (source, port, passes) in [(1, 55, false), (2, 55, false), (3, 55, true), (3, 54, false)] {
        let packet = packet(Direction::In, 0, (Address::inet(0x0a00_0000 | source), 9), (OUTSIDE, port));
        assert_eq!(firewall.check(packet).verdict == Verdict::Pass, passes, "{source} {port}");
    }
}

/// ip_fw2.c: what `O_REJECT` does not answer as IPv4 it answers as IPv6; `O_UNREACH6` answers IPv6 alone.
#[test]
fn reset_and_unreach_answer_both_families() {
    let of = |protocol, transport, from, to| Packet {
        protocol,
        transport,
        ..packet(Direction::In, 0, (from, 1000), (to, 80))
    };
    let both = |protocol, transport| {
        let inet6 = of(protocol, transport, Address(1 << 125 | 1), Address(1 << 125 | 2));
        [of(protocol, transport, INSIDE, OUTSIDE), Packet { family: Family::Inet6, ..inet6 }]
    };
    let syn = TcpSegment { flags: SYN, ..TcpSegment::default() };
    let (tcp, udp) = (both(TCP, Transport::Tcp(syn)), both(UDP, Transport::Other));
    let dropped = Verdict::Drop(DropReason::Rule);
    let reset = Verdict::Reject(Reject::TcpReset);
    let icmp = |code| Verdict::Reject(Reject::Icmp { code, mtu: 0 });
    let icmp6 = |code| Verdict::Reject(Reject::Icmp6 { code });
    for (action, packets, expected) in [
        ("reset", tcp, [reset, reset]),
        ("reset", udp, [dropped, dropped]),
        ("reset6", tcp, [dropped, reset]),
        ("reject", udp, [icmp(1), icmp6(0)]),
        ("reject", tcp, [icmp(1), icmp6(0)]),
        ("unreach port", udp, [icmp(3), icmp6(4)]),
        ("unreach filter-prohib", udp, [icmp(13), icmp6(1)]),
        ("unreach6 address", udp, [dropped, icmp6(3)]),
    ] {
        let mut firewall = Firewall::new(&format!("add {action} ip from any to any"));
        assert_eq!(packets.map(|packet| firewall.check(packet).verdict), expected, "{action}");
    }
}

#[test]
fn nat_translates_out_and_back() {
    let script = "nat 1 config if wan0 redirect_port udp 10.0.0.1:5000 7000\nadd nat 1 ip from any to any via wan0\n\
                  add allow ip from any to any\n";
    let mut firewall = Firewall::new(script);
    let out = firewall.check(packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53)));
    let Verdict::Translate(out) = out.verdict else { panic!("{out:?}") };
    assert_eq!((out.side, out.address), (Side::Source, ROUTER));
    let back = firewall.check(packet(Direction::In, 1, (OUTSIDE, 53), (ROUTER, out.port)));
    let Verdict::Translate(back) = back.verdict else { panic!("{back:?}") };
    assert_eq!((back.side, back.address, back.port), (Side::Destination, INSIDE, 9));
    let redirected = firewall.check(packet(Direction::In, 1, (OUTSIDE, 53), (ROUTER, 7000)));
    let Verdict::Translate(redirected) = redirected.verdict else { panic!("{redirected:?}") };
    assert_eq!((redirected.address, redirected.port), (INSIDE, 5000));
    let answer = firewall.check(packet(Direction::Out, 1, (INSIDE, 5000), (OUTSIDE, 53)));
    let Verdict::Translate(answer) = answer.verdict else { panic!("{answer:?}") };
    assert_eq!((answer.side, answer.address, answer.port), (Side::Source, ROUTER, 7000));
    assert_eq!(firewall.check(packet(Direction::In, 0, (INSIDE, 9), (OUTSIDE, 53))).verdict, Verdict::Pass);
}

#[test]
fn nat_drops_what_it_has_no_instance_or_address_for() {
    for (instance, missing) in [("", "no nat instance 1"), ("nat 1 config if wan7\n", "wan7")] {
        let script =
            format!("{instance}add 50 nat 1 udp from any to any via wan0\nadd 60 allow ip from any to any\n");
        let mut firewall = Firewall::new(&script);
        for packet in [
            packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53)),
            packet(Direction::In, 1, (OUTSIDE, 53), (ROUTER, 9)),
        ] {
            let decision = firewall.check(packet);
            let number = firewall.set.rules()[decision.rule.unwrap() as usize].number;
            assert_eq!((decision.verdict, number), (Verdict::Drop(DropReason::Rule), 50), "{instance}");
            assert_eq!(firewall.check(Packet { protocol: TCP, ..packet }).verdict, Verdict::Pass);
        }
        let config = IpfwConfig::load("f", &script).unwrap();
        let warnings: Vec<_> = missing_nats(&config, &interfaces()).iter().map(ToString::to_string).collect();
        assert!(warnings.len() == 1 && warnings[0].starts_with("rule 50: "), "{warnings:?}");
        assert!(warnings[0].contains(missing), "{warnings:?}");
    }
    let whole = IpfwConfig::load("f", "nat 1 config if wan0\nadd nat 1 ip from any to any\n").unwrap();
    assert_eq!(missing_nats(&whole, &interfaces()), []);
}

#[test]
fn a_state_of_nat_is_none_of_any_name() {
    let script = "add 10 check-state :any\nnat 1 config if wan0\nadd 100 nat 1 ip from any to any via wan0\n\
                  add allow ip from any to any\n";
    let mut firewall = Firewall::new(script);
    let request = || packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53));
    let first = firewall.check(request()).verdict;
    assert!(matches!(first, Verdict::Translate(_)), "{first:?}");
    assert_eq!(firewall.check(request()).verdict, first);
}

/// Each part of a `nat` rule is a rule with states of its own.
#[test]
fn flows_of_nat_live_on_when_a_redirect_is_removed() {
    let (redirects, rule) = (
        "redirect_port udp 10.0.0.1:5000 7000 redirect_port tcp 10.0.0.1:80-81 203.0.113.2:8080-8081 \
         redirect_addr 10.0.0.3 203.0.113.3",
        "add nat 1 ip from any to any via wan0",
    );
    let mut firewall = Firewall::new(&format!("nat 1 config if wan0 {redirects}\n{rule}\n"));
    let texts: Vec<_> = firewall.set.rules().iter().map(|rule| rule.text.as_str()).collect();
    for part in redirects.split(" redirect").map(|part| part.trim_start_matches("redirect")) {
        let text = format!("00100 nat 1 ip from any to any via wan0 (redirect{part})");
        assert_eq!(texts.iter().filter(|one| **one == text).count(), 1, "{text}: {texts:?}");
    }
    let out = firewall.check(packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53)));
    let Verdict::Translate(rewrite) = out.verdict else { panic!("{out:?}") };
    firewall.reload(&format!("nat 1 config if wan0\n{rule}\n"));
    let back = packet(Direction::In, 1, (OUTSIDE, 53), (ROUTER, rewrite.port));
    for (pause, lives) in [(59_999, true), (60_000, false)] {
        firewall.now += pause;
        let decision = firewall.check(back);
        assert_eq!(matches!(decision.verdict, Verdict::Translate(_)), lives, "{decision:?}");
    }
}

#[test]
fn same_ports_keeps_a_port_unless_another_flow_has_it() {
    let mut firewall =
        Firewall::new("nat 1 config if wan0 same_ports\nadd nat 1 ip from any to any via wan0\n");
    let hosts = (1..=20).map(|last| Address::inet(0x0a00_0000 | last));
    let ports: Vec<_> = hosts
        .map(|host| match firewall.check(packet(Direction::Out, 1, (host, 9), (OUTSIDE, 53))).verdict {
            Verdict::Translate(rewrite) => rewrite.port,
            other => panic!("{host:?}: {other:?}"),
        })
        .collect();
    assert_eq!(ports[0], 9);
    assert!(ports[1..].iter().all(|port| *port >= 0x8000), "{ports:?}");
    let gre = |last: u32| Packet {
        protocol: 47,
        ..packet(Direction::Out, 1, (Address::inet(0x0a00_0000 | last), 0), (OUTSIDE, 0))
    };
    assert!(matches!(firewall.check(gre(1)).verdict, Verdict::Translate(_)));
    assert_eq!(firewall.check(gre(2)).verdict, Verdict::Drop(DropReason::NoPort), "it has no ports");
}

#[test]
fn a_host_with_an_address_of_its_own_leaves_with_it() {
    let script = "nat 1 config if wan0 redirect_addr 10.0.0.1 203.0.113.9 redirect_port udp 10.0.0.2:5000 7000\n\
                  add nat 1 ip from any to any via wan0\n";
    let mut firewall = Firewall::new(script);
    let (own, other) = (Address::inet(0xcb00_7109), Address::inet(0x0a00_0002));
    let rewrite = |firewall: &mut Firewall, packet| match firewall.check(packet).verdict {
        Verdict::Translate(rewrite) => rewrite,
        other => panic!("{other:?}"),
    };
    let out = rewrite(&mut firewall, packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53)));
    assert_eq!((out.side, out.address), (Side::Source, own));
    let back = rewrite(&mut firewall, packet(Direction::In, 1, (OUTSIDE, 53), (own, out.port)));
    assert_eq!((back.side, back.address, back.port), (Side::Destination, INSIDE, 9));
    let arriving = rewrite(&mut firewall, packet(Direction::In, 1, (OUTSIDE, 1), (own, 2)));
    assert_eq!((arriving.side, arriving.address, arriving.port), (Side::Destination, INSIDE, 2));
    let answer = rewrite(&mut firewall, packet(Direction::Out, 1, (INSIDE, 2), (OUTSIDE, 1)));
    assert_eq!((answer.side, answer.address, answer.port), (Side::Source, own, 2));
    let others = rewrite(&mut firewall, packet(Direction::Out, 1, (other, 5000), (OUTSIDE, 53)));
    assert_eq!(others.address, ROUTER, "redirected ports are for packets that arrive");
}

/// A segment of the inner host on its way out, or of the outer one on its way in to the address of the router.
pub fn translated(inner: bool, port: u16, flags: u8) -> Packet {
    let ends = packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 80));
    let answer = packet(Direction::In, 1, (OUTSIDE, 80), (ROUTER, port));
    let transport = Transport::Tcp(TcpSegment { flags, window: 1000, ..TcpSegment::default() });
    Packet { protocol: TCP, transport, ..if inner { ends } else { answer } }
}

#[test]
fn mappings_of_nat_live_as_long_as_those_of_libalias() {
    let script = "nat 1 config if wan0 same_ports\nadd nat 1 ip from any to any via wan0\n";
    let back = |firewall: &mut Firewall, answer, pause| {
        firewall.now += pause;
        matches!(firewall.check(answer).verdict, Verdict::Translate(_))
    };
    let answer = packet(Direction::In, 1, (OUTSIDE, 53), (ROUTER, 9));
    for (pause, lives) in [(59_999, true), (60_000, false)] {
        let mut firewall = Firewall::new(script);
        firewall.check(packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53)));
        assert_eq!(back(&mut firewall, answer, pause), lives, "UDP after {pause} ms");
    }
    let established = [(true, SYN), (false, SYN | ACK), (true, ACK)];
    let closing = [established.as_slice(), &[(true, FIN | ACK)]].concat();
    let closed = [closing.as_slice(), &[(false, FIN | ACK), (true, ACK)]].concat();
    for (segments, timeout) in [
        (&established[..1], 300_000),
        (&established[..], 86_400_000),
        (&closing[..], 90_000),
        (&closed[..], 10_000),
    ] {
        for (pause, lives) in [(timeout - 1, true), (timeout, false)] {
            let mut firewall = Firewall::new(script);
            for (inner, flags) in segments {
                firewall.check(translated(*inner, 9, *flags));
            }
            assert_eq!(back(&mut firewall, translated(false, 9, ACK), pause), lives, "{segments:?} {pause}");
        }
    }
}

#[test]
fn an_established_connection_lives_two_hours_and_four_minutes_without_segments() {
    for (pause, lives) in [(7_439_999, true), (7_440_000, false)] {
        let mut firewall = Firewall::new("add check-state\nadd allow tcp from any to any setup keep-state");
        let segment = |forward: bool, flags| {
            let (inner, outer) = ((INSIDE, 9), (OUTSIDE, 80));
            let (source, destination) = if forward { (inner, outer) } else { (outer, inner) };
            let transport = Transport::Tcp(TcpSegment { flags, ..TcpSegment::default() });
            Packet { protocol: TCP, transport, ..packet(Direction::In, 0, source, destination) }
        };
        for (forward, flags) in [(true, SYN), (false, SYN | ACK), (true, ACK)] {
            assert_eq!(firewall.check(segment(forward, flags)).verdict, Verdict::Pass);
        }
        firewall.now += pause;
        assert_eq!(firewall.check(segment(false, ACK)).verdict == Verdict::Pass, lives, "{pause}");
    }
}

#[test]
fn fragments_make_no_states_by_which_whole_packets_pass() {
    let mut firewall = Firewall::new(
        "add 100 check-state\nadd 3000 allow ip from any to any frag keep-state\nadd 4000 deny ip from any to any",
    );
    let whole = Packet { protocol: 50, ..packet(Direction::In, 0, (INSIDE, 0), (OUTSIDE, 0)) };
    let later = Packet { fragment: Fragment::Later { id: 7 }, ..whole };
    assert_eq!(firewall.check(later).verdict, Verdict::Pass);
    assert_eq!(firewall.worker.states().len(), 0);
    assert_ne!(firewall.check(whole).verdict, Verdict::Pass);
}
