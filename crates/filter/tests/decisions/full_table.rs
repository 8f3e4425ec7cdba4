//! Which states end for new ones in a full table.

use fullview_filter::address::Address;
use fullview_filter::packet::protocol::TCP;
use fullview_filter::packet::protocol::tcp::{ACK, RST, SYN};
use fullview_filter::packet::{Direction, Packet, TcpSegment, Transport};
use fullview_filter::rule::{CompiledRule, FlowMask, RuleAction, SourceLimits, StateOptions};
use fullview_filter::ruleset::{Language, RuleSetParts};
use fullview_filter::state::{FlowKey, Phase, StateSummary, WorkerLimits};
use fullview_filter::verdict::{DropReason, Verdict};
use proptest::prelude::*;

use crate::common::{Bench, CLIENT, SERVER, block_but, pass};

fn bench(states: u32) -> Bench {
    let limits = WorkerLimits { states, ..WorkerLimits::default() };
    Bench::with_limits(block_but(vec![], Some(StateOptions::default())), limits)
}

/// As [`bench`], with a state for each way of a packet.
fn forwarding_bench(states: u32) -> Bench {
    let mut parts = RuleSetParts::new(Language::Pf);
    let state = Some(StateOptions::default());
    parts.rules = vec![CompiledRule { state, ..CompiledRule::new(RuleAction::Pass) }];
    Bench::with_limits(parts, WorkerLimits { states, ..WorkerLimits::default() })
}

/// A segment of a client on its way in, or of the server on its way out.
fn segment(client: (Address, u16), from_client: bool, flags: u8, seq: u32, ack: u32) -> Packet {
    let (direction, source, destination) =
        if from_client { (Direction::In, client, SERVER) } else { (Direction::Out, SERVER, client) };
    let transport = Transport::Tcp(TcpSegment { seq, ack, flags, window: 1000, ..TcpSegment::default() });
    Packet { protocol: TCP, transport, ..Packet::udp(pass(direction), source, destination) }
}

fn syn(client: (Address, u16)) -> Packet {
    segment(client, true, SYN, 100, 0)
}

fn answer(client: (Address, u16)) -> Packet {
    segment(client, false, SYN | ACK, 5000, 101)
}

fn acknowledgement(client: (Address, u16)) -> Packet {
    segment(client, true, ACK, 101, 5001)
}

/// Opens connections from forged addresses, which the server answers, and which no client completes.
fn flood(bench: &mut Bench, number: std::ops::Range<u32>) {
    for number in number {
        let forged = (Address::inet(0xc612_0000 + number), 1);
        assert!(bench.passes(&syn(forged)), "{number}");
        if number % 2 == 0 {
            assert!(bench.passes(&answer(forged)), "{number}");
        }
    }
}

#[test]
fn a_flood_of_openings_locks_out_no_connection_and_ends_none() {
    let mut bench = bench(64);
    for round in 0..20 {
        let client = (CLIENT.0, 40_000 + round);
        flood(&mut bench, u32::from(round) * 1000..u32::from(round) * 1000 + 900);
        assert!(bench.passes(&syn(client)));
        flood(&mut bench, u32::from(round) * 1000 + 900..u32::from(round) * 1000 + 920);
        assert!(bench.passes(&answer(client)) && bench.passes(&acknowledgement(client)), "round {round}");
    }
    for round in 0..20 {
        let established = (CLIENT.0, 40_000 + round);
        assert!(bench.passes(&acknowledgement(established)), "round {round}");
    }
    assert_eq!(bench.states(), 64);
    assert_eq!(bench.worker.rule_states(), [0, 64]);
    assert_eq!(bench.worker.replaced_states(), 20 * 921 - 64);
}

#[test]
fn the_source_of_a_state_that_ends_counts_it_no_more() {
    let limits = SourceLimits { max_states: Some(2), ..SourceLimits::by(FlowMask::SOURCE) };
    let options = StateOptions { source: Some(limits), ..StateOptions::default() };
    let limits = WorkerLimits { states: 2, ..WorkerLimits::default() };
    let mut bench = Bench::with_limits(block_but(vec![], Some(options)), limits);
    let other = (Address::inet(0x0a00_0002), 1);
    assert!(bench.passes(&syn((CLIENT.0, 1))) && bench.passes(&syn((CLIENT.0, 2))));
    assert_eq!(bench.check(&syn((CLIENT.0, 3))).verdict, Verdict::Drop(DropReason::SourceLimit));
    assert_eq!(bench.worker.replaced_states(), 0, "nothing ends for a state that is not made");
    assert!(bench.passes(&syn(other)));
    assert_eq!(bench.check(&syn((CLIENT.0, 3))).verdict, Verdict::Pass);
    assert_eq!((bench.worker.sources().len(), bench.worker.replaced_states()), (2, 2));
}

/// A forwarded packet has two states with pf, and answers pass by both only.
#[test]
fn a_packet_does_not_end_the_state_that_it_made_itself() {
    let mut bench = forwarding_bench(1);
    let inward = syn((CLIENT.0, 1));
    let outward = Packet { pass: pass(Direction::Out), ..inward };
    assert!(bench.passes(&inward));
    assert_eq!(bench.check(&outward).verdict, Verdict::Drop(DropReason::TableFull));
    assert_eq!((bench.states(), bench.worker.replaced_states()), (1, 0));
    let other = syn((CLIENT.0, 2));
    assert!(bench.passes(&other), "the state of another one ends");
    assert_eq!(bench.worker.replaced_states(), 1);
}

/// Its first state lies in an entry that was free, and is the next one in turn.
#[test]
fn another_state_ends_where_the_next_one_is_that_of_the_same_packet() {
    let mut bench = forwarding_bench(3);
    let query = Packet::udp(pass(Direction::In), (CLIENT.0, 9), SERVER);
    assert!(bench.passes(&query) && bench.passes(&syn((CLIENT.0, 1))) && bench.passes(&syn((CLIENT.0, 2))));
    bench.now += 61_000;
    while bench.states() > 2 {
        bench.now += 10;
        bench.set.sweep(&mut bench.worker, bench.now);
    }
    let inward = syn((CLIENT.0, 3));
    assert!(bench.passes(&inward) && bench.states() == 3);
    assert!(bench.passes(&Packet { pass: pass(Direction::Out), ..inward }));
    assert_eq!((bench.states(), bench.worker.replaced_states()), (3, 1));
}

/// What a host does next, with one of a few ports.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open,
    Answer,
    Acknowledge,
    Reset,
    Query,
}

impl Step {
    fn packet(self, port: u16) -> Packet {
        let client = (CLIENT.0, port);
        match self {
            Step::Open => syn(client),
            Step::Answer => answer(client),
            Step::Acknowledge => acknowledgement(client),
            Step::Reset => segment(client, false, RST | ACK, 5001, 101),
            Step::Query => Packet::udp(pass(Direction::In), client, SERVER),
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<(Step, u16)>> {
    let step = prop_oneof![
        4 => Just(Step::Open),
        2 => Just(Step::Answer),
        2 => Just(Step::Acknowledge),
        1 => Just(Step::Reset),
        1 => Just(Step::Query),
    ];
    prop::collection::vec((step, 1_u16..12), 1..120)
}

fn gives_way(state: &StateSummary) -> bool {
    let [first, second] = state.phases;
    let is_complete = first.min(second) >= Phase::Established && first.max(second) < Phase::Reset;
    state.key.protocol == TCP && !is_complete
}

fn states(bench: &mut Bench) -> Vec<StateSummary> {
    bench.worker.state_summaries().collect()
}

proptest! {
    /// The search goes round the entries, which are those of all states when the table is full.
    #[test]
    fn the_state_that_ends_is_the_next_incomplete_one(steps in steps()) {
        const ROOM: usize = 5;
        let mut bench = bench(ROOM as u32);
        let mut hand = 0;
        for (step, port) in steps {
            let before = states(&mut bench);
            let replaced = bench.worker.replaced_states();
            let verdict = bench.check(&step.packet(port)).verdict;
            let after: Vec<FlowKey> = states(&mut bench).iter().map(|state| state.key).collect();
            let ended: Vec<_> = before.iter().map(|state| state.key).filter(|key| !after.contains(key)).collect();
            let next = (hand..hand + ROOM).map(|at| at % ROOM).find(|at| before.get(*at).is_some_and(gives_way));
            match bench.worker.replaced_states() - replaced {
                0 => prop_assert!(ended.is_empty()),
                _ => {
                    let next = next.unwrap();
                    prop_assert_eq!((ended, before.len()), (vec![before[next].key], ROOM));
                    hand = next + 1;
                }
            }
            if verdict == Verdict::Drop(DropReason::TableFull) {
                prop_assert!(next.is_none() && after.len() == ROOM);
            }
            prop_assert!(after.len() <= ROOM);
        }
    }
}
