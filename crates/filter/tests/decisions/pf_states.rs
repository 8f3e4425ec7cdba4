use fullview_filter::address::Address;
use fullview_filter::packet::protocol::{ICMP, UDP};
use fullview_filter::packet::{Direction, IcmpMessage, Packet, Quoted, Transport};
use fullview_filter::rule::{Clause, CompiledRule, PortRange, RejectWith, RuleAction, StateOptions, Test};
use fullview_filter::ruleset::{CompileError, Language, RuleSet, RuleSetParts};
use fullview_filter::state::WorkerLimits;
use fullview_filter::verdict::{DecidedBy, DropReason, Reject, Verdict};

use crate::common::{Bench, CLIENT, SERVER, block_but, pass};

fn request() -> Packet {
    Packet::udp(pass(Direction::In), CLIENT, SERVER)
}

fn reply() -> Packet {
    Packet::udp(pass(Direction::Out), SERVER, CLIENT)
}

#[test]
fn an_answer_passes_only_after_its_request() {
    let mut bench = Bench::new(block_but(vec![], Some(StateOptions::default())));
    assert_eq!(bench.check(&reply()).verdict, Verdict::Drop(DropReason::Rule));
    let made = bench.check(&request());
    assert_eq!((made.verdict, made.by, made.rule), (Verdict::Pass, DecidedBy::NewState, Some(1)));
    let answer = bench.check(&reply());
    assert_eq!((answer.verdict, answer.by, answer.rule), (Verdict::Pass, DecidedBy::State, Some(1)));
    assert_eq!(bench.worker.counters().get(1), (2, 120));
    assert_eq!(bench.states(), 1);
}

#[test]
fn a_forwarded_request_needs_a_rule_out_too() {
    let mut bench = Bench::new(block_but(vec![], Some(StateOptions::default())));
    assert!(bench.passes(&request()));
    assert!(
        !bench.passes(&Packet { pass: pass(Direction::Out), ..request() }),
        "the state is for the pass in"
    );
}

#[test]
fn a_bound_state_holds_on_its_interface() {
    let bound = StateOptions { if_bound: true, ..StateOptions::default() };
    let mut bench = Bench::new(block_but(vec![], Some(bound)));
    assert!(bench.passes(&request()));
    let mut elsewhere = reply();
    elsewhere.pass.interface = 2;
    assert!(!bench.passes(&elsewhere));
    assert!(bench.passes(&reply()));
}

#[test]
fn a_state_expires_and_the_sweep_removes_it() {
    let mut bench = Bench::new(block_but(vec![], Some(StateOptions::default())));
    assert!(bench.passes(&request()));
    bench.now += 59_999;
    bench.set.sweep(&mut bench.worker, bench.now);
    assert_eq!(bench.states(), 1);
    bench.now += 1;
    assert!(!bench.passes(&reply()), "an expired state is not used before the sweep either");
    assert!(bench.passes(&request()));
    assert_eq!(bench.states(), 1);
    bench.now += 60_000;
    bench.set.sweep(&mut bench.worker, bench.now);
    assert_eq!(bench.states(), 0);
}

#[test]
fn a_full_table_and_a_full_rule_refuse_new_states() {
    let limits = WorkerLimits { states: 2, ..WorkerLimits::default() };
    let mut bench = Bench::with_limits(block_but(vec![], Some(StateOptions::default())), limits);
    let from = |port| Packet::udp(pass(Direction::In), (CLIENT.0, port), SERVER);
    assert!(bench.passes(&from(1)) && bench.passes(&from(2)) && bench.passes(&from(1)));
    assert_eq!(bench.check(&from(3)).verdict, Verdict::Drop(DropReason::TableFull));
    let one = StateOptions { max_states: Some(1), ..StateOptions::default() };
    let mut bench = Bench::new(block_but(vec![], Some(one)));
    assert!(bench.passes(&from(1)));
    assert_eq!(bench.check(&from(2)).verdict, Verdict::Drop(DropReason::RuleLimit));
    bench.now += 100_000;
    bench.set.sweep(&mut bench.worker, bench.now);
    assert!(bench.passes(&from(2)));
}

#[test]
fn an_icmp_error_passes_by_the_state_of_the_packet_that_it_quotes() {
    let mut bench = Bench::new(block_but(vec![], Some(StateOptions::default())));
    let router = (Address::inet(0x0102_0304), 0);
    let mut error = Packet::udp(pass(Direction::Out), router, (CLIENT.0, 0));
    error.protocol = ICMP;
    error.transport = Transport::Icmp(IcmpMessage { kind: 11, code: 0, id: 0, is_query: false });
    error.quoted = Some(Quoted {
        source: CLIENT.0,
        destination: SERVER.0,
        source_port: CLIENT.1,
        destination_port: SERVER.1,
        protocol: UDP,
        seq: 0,
    });
    assert!(!bench.passes(&error));
    assert!(bench.passes(&request()));
    assert_eq!(bench.check(&error).by, DecidedBy::QuotedState);
    assert!(bench.passes(&error));
    error.quoted.as_mut().unwrap().destination_port += 1;
    assert!(!bench.passes(&error));
}

/// Or an error would open the way for errors about any flow between two hosts.
#[test]
fn an_icmp_error_about_no_flow_passes_by_the_rules_and_makes_no_state() {
    let mut bench = Bench::new(block_but(vec![], Some(StateOptions::default())));
    let icmp = |kind, is_query, packet| Packet {
        protocol: ICMP,
        transport: Transport::Icmp(IcmpMessage { kind, code: 0, id: 0, is_query }),
        source_port: 0,
        destination_port: 0,
        ..packet
    };
    for kind in [3, 4, 5, 11, 12] {
        let made = bench.check(&icmp(kind, false, request()));
        assert_eq!((made.verdict, made.by), (Verdict::Pass, DecidedBy::Rule), "{kind}");
        assert_eq!(bench.states(), 0);
        assert!(!bench.passes(&icmp(kind, false, reply())), "{kind}");
    }
    assert_eq!(bench.check(&icmp(8, true, request())).by, DecidedBy::NewState);
    assert!(bench.passes(&icmp(0, true, reply())));
    assert!(!bench.passes(&icmp(11, false, reply())), "the state of a query with the identifier zero");
}

#[test]
fn the_last_rule_that_matches_wins_unless_one_is_quick() {
    let mut parts = RuleSetParts::new(Language::Pf);
    let port = |port| vec![Clause::of(Test::DestinationPort(PortRange::single(port)))];
    let quick = CompiledRule { clauses: port(80), quick: true, ..CompiledRule::new(RuleAction::Pass) };
    let reject = RejectWith { reset: true, reset6: true, icmp: Some(3), icmp6: Some(4), mtu: 0 };
    parts.rules =
        vec![quick, CompiledRule::new(RuleAction::Pass), CompiledRule::new(RuleAction::Reject(reject))];
    let mut bench = Bench::new(parts);
    assert_eq!(bench.check(&request()).rule, Some(0));
    let other = Packet { destination_port: 81, ..request() };
    assert_eq!(bench.check(&other).verdict, Verdict::Reject(Reject::Icmp { code: 3, mtu: 0 }));
}

/// `pf_return` in FreeBSD's pf.c answers no ICMP at all; ip_fw2.c answers queries.
#[test]
fn only_ipfw_answers_queries() {
    let message = IcmpMessage { kind: 8, code: 0, id: 1, is_query: true };
    let query = Packet { protocol: ICMP, transport: Transport::Icmp(message), ..request() };
    let answered = Verdict::Reject(Reject::Icmp { code: 3, mtu: 0 });
    for (language, expected) in [(Language::Pf, Verdict::Drop(DropReason::Rule)), (Language::Ipfw, answered)]
    {
        let reject = RejectWith { icmp: Some(3), ..RejectWith::default() };
        let rules = vec![CompiledRule::new(RuleAction::Reject(reject))];
        let mut bench = Bench::new(RuleSetParts { rules, ..RuleSetParts::new(language) });
        assert_eq!(bench.check(&query).verdict, expected);
        assert_eq!(bench.check(&request()).verdict, answered);
    }
}

#[test]
fn a_tag_that_states_have_no_room_for_is_refused() {
    let of = |language, tag| {
        let rules = vec![CompiledRule { tag, ..CompiledRule::new(RuleAction::Pass) }];
        RuleSet::new(RuleSetParts { rules, ..RuleSetParts::new(language) }).err()
    };
    let tag = CompiledRule::HIGHEST_TAG + 1;
    assert_eq!(of(Language::Pf, tag), Some(CompileError::TagTooLarge { rule: 0, tag }));
    assert_eq!([of(Language::Pf, CompiledRule::HIGHEST_TAG), of(Language::Ipfw, tag)], [None, None]);
}
