use fullview_filter::address::Address;
use fullview_filter::packet::protocol::tcp::{ACK, RST, SYN};
use fullview_filter::packet::{Direction, Fragment, Packet, TcpSegment};
use fullview_filter::rule::{
    Clause, CompiledRule, FlowMask, FragmentTest, PortRange, RuleAction, SourceLimits, StateOptions, TableId,
    Test,
};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::WorkerLimits;
use fullview_filter::verdict::{DecidedBy, DropReason, Verdict};

use crate::common::{Bench, CLIENT, SERVER, block_but, pass, segment};

fn limited(limits: SourceLimits) -> RuleSetParts {
    let mut parts = block_but(vec![], Some(StateOptions { source: Some(limits), ..StateOptions::default() }));
    parts.tables.push(std::sync::Arc::new(fullview_filter::address_table::AddressTable::new([])));
    parts
}

fn from(host: u32, port: u16) -> Packet {
    Packet::udp(pass(Direction::In), (Address::inet(0x0a00_0000 | host), port), SERVER)
}

#[test]
fn a_source_has_only_so_many_states() {
    let limits =
        SourceLimits { max_states: Some(2), max_nodes: Some(2), ..SourceLimits::by(FlowMask::SOURCE) };
    let mut bench = Bench::new(limited(limits));
    assert!(bench.passes(&from(1, 1)) && bench.passes(&from(1, 2)));
    assert_eq!(bench.check(&from(1, 3)).verdict, Verdict::Drop(DropReason::SourceLimit));
    assert!(bench.passes(&from(2, 1)));
    assert_eq!(bench.check(&from(3, 1)).verdict, Verdict::Drop(DropReason::SourceLimit), "a third source");
    bench.now += 60_001;
    bench.set.sweep(&mut bench.worker, bench.now);
    assert!(bench.passes(&from(3, 1)) && bench.passes(&from(1, 3)));
}

/// What `examples/connections.rs` counts.
#[test]
fn a_forwarded_connection_of_pf_takes_two_of_the_states() {
    let mut parts = RuleSetParts::new(Language::Pf);
    let state = Some(StateOptions::default());
    parts.rules = vec![CompiledRule { state, ..CompiledRule::new(RuleAction::Pass) }];
    let mut bench = Bench::new(parts);
    let mut is_set_up = |port: &u16| {
        let first = segment(true, TcpSegment { flags: SYN, ..TcpSegment::default() });
        let inward = Packet { source_port: *port, ..first };
        bench.passes(&inward) && bench.passes(&Packet { pass: pass(Direction::Out), ..inward })
    };
    assert!((0..50).all(|port| is_set_up(&port)), "50 take 100 states");
    assert_eq!((bench.states(), bench.worker.replaced_states()), (100, 0));
}

#[test]
fn the_states_of_a_source_count_for_all_protocols_together() {
    let limits = SourceLimits { max_states: Some(2), ..SourceLimits::by(FlowMask::SOURCE) };
    let mut bench = Bench::new(limited(limits));
    let of = |protocol| Packet { protocol, source_port: 0, destination_port: 0, ..from(1, 0) };
    assert!(bench.passes(&from(1, 1)) && bench.passes(&of(47)));
    assert_eq!(bench.check(&of(50)).verdict, Verdict::Drop(DropReason::SourceLimit));
}

#[test]
fn a_source_has_only_so_many_connections_and_is_reported_beyond() {
    let limits = SourceLimits {
        max_connections: Some(1),
        overload: Some(TableId(0)),
        ..SourceLimits::by(FlowMask::SOURCE)
    };
    let mut bench = Bench::new(limited(limits));
    let connect = |bench: &mut Bench, port| {
        let open = |from_client, flags, seq, ack| {
            let mut packet =
                segment(from_client, TcpSegment { seq, ack, flags, window: 1000, ..TcpSegment::default() });
            if from_client {
                packet.source_port = port
            } else {
                packet.destination_port = port
            }
            packet
        };
        assert!(bench.passes(&open(true, SYN, 100, 0)));
        assert!(bench.passes(&open(false, SYN | ACK, 500, 101)));
        bench.check(&open(true, ACK, 101, 501)).verdict
    };
    assert_eq!(connect(&mut bench, 1), Verdict::Pass);
    assert_eq!(connect(&mut bench, 2), Verdict::Drop(DropReason::SourceLimit));
    assert_eq!(bench.worker.take_overloads().collect::<Vec<_>>(), [(TableId(0), CLIENT.0)]);
    assert_eq!(bench.states(), 1);
}

/// Rules whose sources stay for so many milliseconds after their last state.
fn kept_for(stay: u32, limits: SourceLimits) -> RuleSetParts {
    let mut parts = limited(limits);
    parts.timeouts[0].source = stay;
    parts
}

#[test]
fn a_source_stays_for_its_time_after_its_last_state() {
    let limits = SourceLimits { max_nodes: Some(1), ..SourceLimits::by(FlowMask::SOURCE) };
    let mut bench = Bench::new(kept_for(60_000, limits));
    assert!(bench.passes(&from(1, 1)));
    for (pause, sources) in [(60_000, 1), (59_999, 1), (10_000, 0)] {
        bench.now += pause;
        bench.set.sweep(&mut bench.worker, bench.now);
        assert_eq!((bench.states(), bench.worker.sources().len()), (0, sources), "{pause}");
        assert_eq!(bench.passes(&from(2, 1)), sources == 0, "a second source");
    }
    assert_eq!(bench.worker.sources().len(), 1);
}

/// Or a source could begin again each time its last state ends.
#[test]
fn connections_count_for_their_rate_after_the_last_state_of_their_source() {
    let limits = SourceLimits { rate: Some((1, 120)), ..SourceLimits::by(FlowMask::SOURCE) };
    for (stay, is_refused) in [(120_000, true), (0, false)] {
        let mut bench = Bench::new(kept_for(stay, limits.clone()));
        let send = |bench: &mut Bench, from_client, flags, seq, ack| {
            let tcp = TcpSegment { seq, ack, flags, window: 1000, ..TcpSegment::default() };
            bench.passes(&segment(from_client, tcp))
        };
        let connects = |bench: &mut Bench| {
            assert!(send(bench, true, SYN, 100, 0) && send(bench, false, SYN | ACK, 500, 101));
            send(bench, true, ACK, 101, 501) && send(bench, true, RST, 101, 501)
        };
        assert!(connects(&mut bench));
        bench.now += 90_000;
        bench.set.sweep(&mut bench.worker, bench.now);
        assert_eq!(bench.states(), 0);
        assert_eq!(!connects(&mut bench), is_refused, "the second one within two minutes");
    }
}

#[test]
fn a_source_without_states_gives_way_to_a_new_one() {
    let limits = SourceLimits { max_nodes: Some(4), ..SourceLimits::by(FlowMask::SOURCE) };
    let room = WorkerLimits { states: 9, sources: 3, ..WorkerLimits::default() };
    let mut bench = Bench::with_limits(kept_for(60_000, limits), room);
    for host in 1..=3 {
        assert!(bench.passes(&from(host, 1)));
        bench.now += 1000;
    }
    assert_eq!(bench.check(&from(4, 1)).verdict, Verdict::Drop(DropReason::SourceLimit), "all have states");
    bench.now += 58_500;
    assert!(bench.passes(&from(3, 1)), "its state goes on");
    bench.set.sweep(&mut bench.worker, bench.now);
    assert_eq!((bench.states(), bench.worker.sources().len()), (1, 3));
    assert!(bench.passes(&from(4, 1)) && bench.passes(&from(5, 1)));
    assert_eq!(bench.worker.sources().len(), 3);
    assert!(!bench.passes(&from(6, 1)), "all have states");
}

#[test]
fn later_fragments_belong_to_the_state_of_the_first() {
    let mut bench = Bench::new(block_but(
        vec![Clause::of(Test::DestinationPort(PortRange::single(80)))],
        Some(StateOptions::default()),
    ));
    let later =
        |id| Packet { fragment: Fragment::Later { id }, source_port: 0, destination_port: 0, ..from(1, 0) };
    assert!(!bench.passes(&later(7)));
    assert!(bench.passes(&Packet { fragment: Fragment::First { id: 7 }, ..from(1, 9) }));
    assert_eq!(bench.check(&later(7)).by, DecidedBy::State);
    assert!(!bench.passes(&later(8)));
}

/// A sender of fragments could otherwise open a flow that the rules block.
#[test]
fn fragments_make_no_states_by_which_whole_packets_pass() {
    let fragments = Clause::of(Test::Fragment(FragmentTest::Any));
    let portless = |packet: Packet| Packet { protocol: 50, source_port: 0, destination_port: 0, ..packet };
    let mut bench = Bench::new(block_but(vec![fragments], Some(StateOptions::default())));
    let (whole, first) = (from(1, 9), Packet { fragment: Fragment::First { id: 7 }, ..from(1, 9) });
    let later =
        Packet { fragment: Fragment::Later { id: 7 }, source_port: 0, destination_port: 0, ..from(1, 9) };
    for packet in [first, later, portless(first), portless(later)] {
        assert!(bench.passes(&packet), "the rule passes fragments");
    }
    assert_eq!(bench.states(), 0);
    for packet in [whole, portless(whole)] {
        assert!(!bench.passes(&packet));
        assert!(!bench.passes(&Packet { source_port: 0, destination_port: 0, ..packet }));
    }
}

#[test]
fn a_later_fragment_makes_no_state_and_the_first_one_does() {
    let mut bench = Bench::new(block_but(vec![], Some(StateOptions::default())));
    let later =
        Packet { fragment: Fragment::Later { id: 7 }, source_port: 0, destination_port: 0, ..from(1, 0) };
    assert!(bench.passes(&later));
    assert_eq!(bench.states(), 0);
    assert!(bench.passes(&Packet { fragment: Fragment::First { id: 7 }, ..from(1, 9) }));
    assert_eq!(bench.check(&later).by, DecidedBy::State);
    assert_eq!(bench.states(), 1);
}

#[test]
fn states_and_counters_keep_their_rules_across_reloads() {
    let rule = |set: &mut RuleSetParts, port, text: &str| {
        let mut rule = block_but(
            vec![Clause::of(Test::DestinationPort(PortRange::single(port)))],
            Some(StateOptions::default()),
        )
        .rules
        .remove(1);
        rule.text = text.to_owned();
        set.rules.push(rule);
    };
    let empty = || block_but(vec![], None);
    let (mut first, mut second) = (empty(), empty());
    first.rules.truncate(1);
    second.rules.truncate(1);
    rule(&mut first, 80, "web");
    rule(&mut second, 25, "mail");
    rule(&mut second, 80, "web");
    let mut third = second.clone();
    third.rules.truncate(2);
    let mut bench = Bench::new(first);
    assert_eq!(bench.check(&from(1, 1)).rule, Some(1));
    for (parts, expected) in [(second, Some(2)), (third, None)] {
        let next = RuleSet::new(parts).unwrap();
        let adoption = next.adoption(&bench.set);
        bench.worker.adopt(adoption);
        bench.set = next;
        let decision = bench.check(&from(1, 1));
        assert_eq!(
            (decision.verdict, decision.rule, decision.by),
            (Verdict::Pass, expected, DecidedBy::State)
        );
    }
    assert_eq!(bench.states(), 1);
    bench.now += 60_001;
    bench.set.sweep(&mut bench.worker, bench.now);
    assert_eq!(bench.states(), 0);
}

#[test]
fn states_keep_their_rule_over_more_reloads_than_the_sweep_follows() {
    let options = || StateOptions { max_states: Some(5), ..StateOptions::default() };
    let parts = || block_but(vec![], Some(options()));
    let mut bench = Bench::with_limits(parts(), WorkerLimits { states: 6, ..WorkerLimits::default() });
    assert!((1..=5).all(|port| bench.passes(&from(1, port))));
    bench.now += 60_001;
    bench.set.sweep(&mut bench.worker, bench.now);
    assert_eq!(bench.states(), 0, "their entries are free again");
    assert!(bench.passes(&from(1, 9)));
    for _ in 0..300 {
        let adoption = RuleSet::new(parts()).unwrap().adoption(&bench.set);
        bench.worker.adopt(adoption);
    }
    let decision = bench.check(&from(1, 9));
    assert_eq!((decision.rule, decision.by), (Some(1), DecidedBy::State));
    assert!((1..=4).all(|port| bench.passes(&from(1, port))), "no free entry is lost");
    assert!(!bench.passes(&from(1, 5)), "the first state still counts for the rule");
    assert_eq!(bench.states(), 5);
}

#[test]
fn timeouts_shrink_as_the_table_fills() {
    // One of five workers has a fifth of the states.
    for (workers, begun, least) in [(1, 15, 10), (5, 3, 2)] {
        timeouts_shrink(workers, begun, least);
    }
}

fn timeouts_shrink(workers: u32, begun: u16, least: usize) {
    let mut parts = block_but(vec![], Some(StateOptions::default()));
    parts.adaptive = (10, 20);
    let mut bench = Bench::new(parts);
    bench.worker.be_one_of(workers);
    for port in 1..=begun {
        assert!(bench.passes(&from(1, port)));
    }
    bench.now += 29_999;
    bench.set.sweep(&mut bench.worker, bench.now);
    assert_eq!(bench.states(), usize::from(begun));
    bench.now += 2;
    while bench.states() > least {
        let before = bench.states();
        bench.now += 10_000;
        bench.set.sweep(&mut bench.worker, bench.now);
        assert!(bench.states() < before, "half way between start and end timeouts are half as long");
    }
}
