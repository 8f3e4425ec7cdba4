use fullview_filter::address::Address;
use fullview_filter::packet::protocol::{ICMP, UDP};
use fullview_filter::packet::{Direction, IcmpMessage, Packet, Quoted, Transport};
use fullview_filter::rule::{
    AddressMatch, AddressPool, Clause, CompiledRule, PoolOrder, PortChoice, PortRange, RuleAction, Side,
    StateOptions, Test, Translation,
};
use fullview_filter::ruleset::{Language, RuleSetParts};
use fullview_filter::verdict::{DropReason, Rewrite, Verdict};

use crate::common::{Bench, CLIENT, SERVER, pass};

const OUTSIDE: Address = Address::inet(0xcb00_7101);

fn translating(side: Side, address: Address, ports: PortChoice) -> Bench {
    Bench::new(translation(side, address, ports))
}

fn translation(side: Side, address: Address, ports: PortChoice) -> RuleSetParts {
    let mut parts = RuleSetParts::new(Language::Pf);
    let pool = AddressPool { ranges: vec![(address, address)], order: PoolOrder::RoundRobin };
    let to = Translation { side, pool, ports, pass: false };
    parts.translations = vec![CompiledRule::new(RuleAction::Translate(Box::new(to)))];
    parts
}

fn rewrite(verdict: Verdict) -> Rewrite {
    match verdict {
        Verdict::Translate(rewrite) => rewrite,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_translated_source_gets_its_answers_back() {
    let range = PortRange { first: 50_000, last: 50_003 };
    let mut bench = translating(Side::Source, OUTSIDE, PortChoice::Free(range));
    let mut ports = Vec::new();
    for port in 1..=4 {
        let out = Packet::udp(pass(Direction::Out), (CLIENT.0, port), SERVER);
        let first = rewrite(bench.check(&out).verdict);
        assert_eq!((first.side, first.address), (Side::Source, OUTSIDE));
        assert_eq!(rewrite(bench.check(&out).verdict), first, "the flow keeps its port");
        let answer = Packet::udp(pass(Direction::In), SERVER, (OUTSIDE, first.port));
        let back = rewrite(bench.check(&answer).verdict);
        assert_eq!((back.side, back.address, back.port), (Side::Destination, CLIENT.0, port));
        ports.push(first.port);
    }
    ports.sort_unstable();
    assert_eq!(ports, [50_000, 50_001, 50_002, 50_003]);
    let fifth = Packet::udp(pass(Direction::Out), (CLIENT.0, 5), SERVER);
    assert_eq!(bench.check(&fifth).verdict, Verdict::Drop(DropReason::NoPort));
}

#[test]
fn a_redirected_destination_answers_from_the_original_one() {
    let inside = Address::inet(0x0a00_0009);
    let mut bench = translating(Side::Destination, inside, PortChoice::Fixed(8080));
    let request = Packet::udp(pass(Direction::In), CLIENT, SERVER);
    let first = rewrite(bench.check(&request).verdict);
    assert_eq!((first.side, first.address, first.port), (Side::Destination, inside, 8080));
    let answer = Packet::udp(pass(Direction::Out), (inside, 8080), CLIENT);
    let back = rewrite(bench.check(&answer).verdict);
    assert_eq!((back.side, back.address, back.port), (Side::Source, SERVER.0, SERVER.1));
}

/// The state with which a redirected packet leaves goes on when the one with which it came has ended.
#[test]
fn a_flow_is_redirected_again_while_the_state_of_its_way_out_is_left() {
    let inside = Address::inet(0x0a00_0009);
    let mut parts = translation(Side::Destination, inside, PortChoice::Fixed(8080));
    let kept = CompiledRule { state: Some(StateOptions::default()), ..CompiledRule::new(RuleAction::Pass) };
    parts.rules = vec![kept];
    let mut bench = Bench::new(parts);
    assert!(bench.passes(&Packet::udp(pass(Direction::Out), CLIENT, (inside, 8080))));
    let first = rewrite(bench.check(&Packet::udp(pass(Direction::In), CLIENT, SERVER)).verdict);
    assert_eq!((first.address, first.port), (inside, 8080));
}

/// An echo request or reply with this identifier.
fn echo(direction: Direction, ends: (Address, Address), kind: u8, id: u16) -> Packet {
    let message = IcmpMessage { kind, code: 0, id, is_query: true };
    let packet = Packet::udp(pass(direction), (ends.0, 0), (ends.1, 0));
    Packet { protocol: ICMP, transport: Transport::Icmp(message), ..packet }
}

#[test]
fn an_echo_with_another_identifier_gets_its_reply_back() {
    let mut bench = translating(Side::Source, OUTSIDE, PortChoice::Free(PortRange { first: 7, last: 7 }));
    let request = echo(Direction::Out, (CLIENT.0, SERVER.0), 8, 1000);
    assert_eq!(rewrite(bench.check(&request).verdict).port, 7);
    let reply = echo(Direction::In, (SERVER.0, OUTSIDE), 0, 7);
    let back = rewrite(bench.check(&reply).verdict);
    assert_eq!((back.side, back.address, back.port), (Side::Destination, CLIENT.0, 1000));
}

/// A state of one query serves its answer: no request from the other end, and no other query with its identifier.
#[test]
fn a_query_lets_its_answers_in_and_nothing_else() {
    let mut parts = RuleSetParts::new(Language::Pf);
    let kinds = Clause::of(Test::IcmpType([8].into_iter().collect()));
    let clauses = vec![kinds, Clause::of(Test::Source(AddressMatch::single(CLIENT.0)))];
    let state = Some(StateOptions::default());
    parts.rules = vec![
        CompiledRule::new(RuleAction::Block),
        CompiledRule { clauses, state, ..CompiledRule::new(RuleAction::Pass) },
    ];
    let mut bench = Bench::new(parts);
    let there = |kind| echo(Direction::In, (CLIENT.0, SERVER.0), kind, 5);
    let back = |kind| echo(Direction::Out, (SERVER.0, CLIENT.0), kind, 5);
    assert!(!bench.passes(&back(0)), "nothing was asked");
    assert!(bench.passes(&there(8)) && bench.passes(&back(0)) && bench.passes(&there(8)));
    for kind in [8, 13, 14, 15, 17] {
        assert!(!bench.passes(&back(kind)), "{kind} from the other end");
    }
    for kind in [0, 13, 14] {
        assert!(!bench.passes(&there(kind)), "{kind} from the first end");
    }
    assert!(bench.passes(&back(0)));
}

/// Errors between two hosts have one key: the first one, about no flow, must leave no state that the second one finds.
#[test]
fn an_error_about_a_flow_is_translated_after_one_about_no_flow() {
    let mut parts = translation(Side::Source, OUTSIDE, PortChoice::Keep);
    let state = Some(StateOptions::default());
    parts.rules = vec![CompiledRule { state, ..CompiledRule::new(RuleAction::Pass) }];
    let mut bench = Bench::new(parts);
    let error = |source: Address, source_port: u16| {
        let message = IcmpMessage { kind: 11, code: 0, id: 0, is_query: false };
        let (destination, destination_port) = SERVER;
        let quoted = Quoted { source, destination, source_port, destination_port, protocol: UDP, seq: 0 };
        let packet = Packet::udp(pass(Direction::In), (Address::inet(0x0a09_0909), 0), (OUTSIDE, 0));
        Packet { protocol: ICMP, transport: Transport::Icmp(message), quoted: Some(quoted), ..packet }
    };
    assert_eq!(bench.check(&error(OUTSIDE, 9)).verdict, Verdict::Pass);
    assert_eq!(bench.states(), 0);
    let out = Packet::udp(pass(Direction::Out), (CLIENT.0, 1000), SERVER);
    assert_eq!(rewrite(bench.check(&out).verdict).address, OUTSIDE);
    let back = rewrite(bench.check(&error(OUTSIDE, 1000)).verdict);
    assert_eq!((back.side, back.address, back.port, back.quoted), (Side::Destination, CLIENT.0, 1000, true));
}
