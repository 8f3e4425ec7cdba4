//! A slow and obvious interpreter of rules as they are written, against which the compiled form is tested. It knows no
//! states: those have tests of their own.

use std::net::{IpAddr, Ipv4Addr};

use fullview_filter::address::Address;
use fullview_filter::ipfw::{
    IpfwAction, IpfwAddress, IpfwConfig, IpfwKey, IpfwOption, IpfwPorts, IpfwProtocol, IpfwRule, IpfwTerm,
};
use fullview_filter::packet::protocol::{TCP, UDP};
use fullview_filter::packet::{Direction, Packet, Pass, TcpSegment, Transport};
use fullview_filter::rule::{RuleAction, Side};
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::Verdict;
use proptest::prelude::*;

use crate::decisions::interfaces;

/// The number of the rule that decides, and whether it lets the packet pass.
fn interpret(config: &IpfwConfig, packet: &Packet) -> (u16, bool) {
    let mut from = 0;
    for rule in &config.rules {
        if rule.number < from || config.disabled_sets >> rule.set & 1 == 1 || !matches(rule, packet) {
            continue;
        }
        match rule.action {
            IpfwAction::Allow => return (rule.number, true),
            IpfwAction::Deny | IpfwAction::Reject(_) => return (rule.number, false),
            IpfwAction::SkipTo(target) => from = target,
            _ => {}
        }
    }
    (65535, false)
}

/// The numbers 1, 2, 13, 14 and 15 and the addresses with these last bytes.
const TABLES: &str = "table numbers add 1 0 2 0 13 0 14 0 15 0\n\
                      table addresses add 10.0.0.1 0 10.0.0.2 0 10.0.0.13 0 10.0.0.14/31\n";

fn is_looked_up(key: IpfwKey, number: u16, packet: &Packet) -> bool {
    let has = |number: u32| matches!(number, 1 | 2 | 13..=15);
    let end = |side: Side| side.of((packet.source, packet.destination)).0 as u32;
    let port = |side: Side| side.of((packet.source_port, packet.destination_port));
    match key {
        IpfwKey::Ip(side) => has(end(side) ^ 0x0a00_0000),
        IpfwKey::Ip4(side, mask) => has((end(side) & mask.to_bits()) ^ 0x0a00_0000),
        IpfwKey::Ip6(..) => false,
        IpfwKey::Port(side, mask) => port(side) != 0 && has(u32::from(port(side)) & mask),
        IpfwKey::Dscp(mask) => has(u32::from(packet.tos >> 2) & mask),
        IpfwKey::RuleNumber(mask) => has(u32::from(number) & mask),
    }
}

fn matches(rule: &IpfwRule, packet: &Packet) -> bool {
    let body = &rule.body;
    any(&body.protocols, |protocol| is_protocol(*protocol, packet))
        && any(&body.source, |list| list.iter().any(|item| is_address(item, packet.source)))
        && any(&body.source_ports, |ports| is_port(ports, packet.source_port))
        && any(&body.destination, |list| list.iter().any(|item| is_address(item, packet.destination)))
        && any(&body.destination_ports, |ports| is_port(ports, packet.destination_port))
        && body.options.iter().all(|terms| any(terms, |option| is_option(option, rule.number, packet)))
}

fn any<T>(terms: &[IpfwTerm<T>], test: impl Fn(&T) -> bool) -> bool {
    terms.is_empty() || terms.iter().any(|term| test(&term.value) != term.negated)
}

fn is_protocol(protocol: IpfwProtocol, packet: &Packet) -> bool {
    match protocol {
        IpfwProtocol::Any | IpfwProtocol::Ip4 => true,
        IpfwProtocol::Ip6 => false,
        IpfwProtocol::Number(number) => number == packet.protocol,
    }
}

fn is_address(item: &IpfwAddress, address: Address) -> bool {
    let IpAddr::V4(address) = IpAddr::from(address) else { return false };
    let bits = |address: Ipv4Addr| u32::from(address);
    match item {
        IpfwAddress::Any => true,
        IpfwAddress::Me => interfaces().addresses().any(|own| IpAddr::from(own) == IpAddr::V4(address)),
        IpfwAddress::Inet(network, mask) => bits(address) & bits(*mask) == bits(*network),
        IpfwAddress::InetSet(network, length, bytes) => {
            let in_network = u64::from(bits(address) ^ bits(*network)) >> (32 - length) == 0;
            in_network && bytes.iter().any(|(first, last)| (*first..=*last).contains(&address.octets()[3]))
        }
        other => panic!("{other:?}"),
    }
}

fn is_port(ports: &IpfwPorts, port: u16) -> bool {
    port != 0 && ports.iter().any(|(first, last)| *first <= port && port <= *last)
}

fn is_option(option: &IpfwOption, number: u16, packet: &Packet) -> bool {
    let flags = packet.tcp().map(|tcp| tcp.flags);
    match option {
        IpfwOption::In => packet.pass.direction == Direction::In,
        IpfwOption::Out => packet.pass.direction == Direction::Out,
        IpfwOption::Via(_) => packet.pass.interface == 0,
        IpfwOption::Xmit(_) => packet.pass.interface == 0 && packet.pass.direction == Direction::Out,
        IpfwOption::Setup => flags.is_some_and(|flags| flags & 0x12 == 2),
        IpfwOption::Established => flags.is_some_and(|flags| flags & 0x14 != 0),
        IpfwOption::IpTtl(ttls) => ttls.iter().any(|(a, b)| (*a..=*b).contains(&packet.ttl.into())),
        IpfwOption::IpLen(lengths) => lengths.iter().any(|(a, b)| (*a..=*b).contains(&packet.length)),
        IpfwOption::DestinationPort(ports) => is_port(ports, packet.destination_port),
        IpfwOption::Lookup(key, _) => is_looked_up(*key, number, packet),
        other => panic!("{other:?}"),
    }
}

fn address() -> impl Strategy<Value = String> {
    let host = (0_u8..4).prop_map(|last| format!("10.0.0.{last}"));
    let prefix = (0_u8..4, 24_u8..=32).prop_map(|(last, length)| format!("10.0.0.{last}/{length}"));
    let masked = (0_u8..4).prop_map(|last| format!("10.0.0.{last}:255.0.255.1"));
    let set = (0_u8..4, 0_u8..4).prop_map(|(a, b)| format!("10.0.0.0/30{{{},{}-3}}", a, b));
    let list = (0_u8..4, 0_u8..4).prop_map(|(a, b)| format!("10.0.0.{a},10.0.0.{b}"));
    prop_oneof![2 => Just("any".to_owned()), 1 => Just("me".to_owned()), 2 => host, 1 => prefix, 1 => masked, 1 => set, 1 => list]
}

/// One term, one after `not`, or two in braces.
fn terms(one: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    (one.clone(), one, prop::bool::ANY, prop::bool::ANY, 0..4).prop_map(|(a, b, not_a, not_b, kind)| {
        let not = |is: bool, text: &str| if is { format!("not {text}") } else { text.to_owned() };
        if kind == 0 {
            format!("{{ {} or {} }}", not(not_a, &a), not(not_b, &b))
        } else {
            not(not_a && kind == 1, &a)
        }
    })
}

fn ports() -> impl Strategy<Value = String> {
    let ports = (1_u16..4, 1_u16..4).prop_map(|(a, b)| format!("{},{}-{}", a, a.min(b), a.max(b))).boxed();
    prop_oneof![2 => Just(String::new()), 1 => terms(ports)]
}

fn options() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        Just("in"),
        Just("out"),
        Just("via lan0"),
        Just("xmit lan0"),
        Just("setup"),
        Just("established"),
        Just("iplen 40-60,80"),
        Just("ipttl 63-64,70"),
        Just("dst-port 2-3"),
        Just("lookup src-ip addresses"),
        Just("lookup dst-ip4:255.0.0.253 addresses"),
        Just("lookup src-ip6 addresses"),
        Just("lookup dst-port numbers"),
        Just("lookup src-port:0xfd numbers"),
        Just("lookup dscp numbers"),
        Just("lookup rulenum:15 numbers"),
    ];
    let one = terms(one.prop_map(str::to_owned).boxed());
    prop::collection::vec(one, 0..3).prop_map(|options| options.join(" "))
}

fn rule() -> impl Strategy<Value = String> {
    let number = 1_u16..60;
    let action = prop_oneof![3 => Just(0), 3 => Just(1), 1 => Just(2), 1 => Just(3), 1 => Just(4)];
    let protocol = prop_oneof![
        Just("ip"),
        Just("tcp"),
        Just("udp"),
        Just("{ tcp or udp }"),
        Just("not tcp"),
        Just("ip4")
    ];
    let ends = (terms(address().boxed()), ports(), terms(address().boxed()), ports());
    (number, action, 0_u8..3, 0_u16..30, protocol, ends, options()).prop_map(
        |(number, action, set, jump, protocol, (source, from, destination, to), options)| {
            let target = (number + jump).saturating_sub(3).max(1);
            let action = match action {
                0 => "allow".to_owned(),
                1 => "deny".to_owned(),
                2 => "count".to_owned(),
                3 => "reset".to_owned(),
                _ => format!("skipto {target}"),
            };
            format!("add {number} set {set} {action} {protocol} from {source} {from} to {destination} {to} {options}\n")
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let ends = (0_u32..5, 0_u16..5, 0_u32..5, 0_u16..5);
    (ends, prop::bool::ANY, 0_u16..2, 0_u8..3, 0_u8..32, 38_u16..90).prop_map(
        |((source, from, destination, to), inward, interface, protocol, flags, length)| {
            let direction = if inward { Direction::In } else { Direction::Out };
            let pass = Pass { direction, interface, received_on: 0 };
            let end = |last, port| (Address::inet(0x0a00_0000 | if last == 4 { 0xfe } else { last }), port);
            let mut packet = Packet::udp(pass, end(source, from), end(destination, to));
            packet.length = length;
            packet.tos = flags << 1;
            packet.ttl = if flags & 1 == 0 { 64 } else { 65 };
            packet.protocol = [UDP, TCP, 47][usize::from(protocol)];
            match packet.protocol {
                TCP => packet.transport = Transport::Tcp(TcpSegment { flags, ..TcpSegment::default() }),
                UDP => {}
                _ => (packet.source_port, packet.destination_port) = (0, 0),
            }
            packet
        },
    )
}

fn stops(set: &RuleSet, index: usize) -> bool {
    !matches!(set.rules()[index].action, RuleAction::Count | RuleAction::SkipTo(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn compiled_rules_decide_as_the_interpreter(
        rules in prop::collection::vec(rule(), 1..12),
        packets in prop::collection::vec(packet(), 1..40),
        disabled in 0_u8..3,
    ) {
        let script = format!("{TABLES}{}set disable {disabled}\n", rules.concat());
        let config = IpfwConfig::load("rules", &script).unwrap();
        let set = RuleSet::new(config.lower(&interfaces())).unwrap();
        let mut worker = FilterWorker::new(WorkerLimits::default(), set.counted_rules(), 3);
        for packet in packets {
            let decision = set.check(&mut worker, 0, &mut packet.clone());
            let number = decision.rule.map_or(65535, |rule| set.rules()[rule as usize].number as u16);
            let decided = (number, decision.verdict == Verdict::Pass);
            prop_assert_eq!(decided, interpret(&config, &packet), "{:?}\n{}", packet, script);
            // The first rule that matches and decides is the last one tried.
            let tried = set.tried(&mut worker, &packet);
            let last = tried.last().filter(|last| last.mismatch.is_none() && stops(&set, last.index));
            prop_assert_eq!(last.map(|last| last.index as u32), decision.rule, "{:?}\n{}", packet, script);
        }
        let again = IpfwConfig::load("list", &config.rules.iter().map(|rule| format!("add {rule}\n")).collect::<String>());
        let printed: Vec<_> = again.unwrap().rules.iter().map(ToString::to_string).collect();
        prop_assert_eq!(printed, config.rules.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
}
