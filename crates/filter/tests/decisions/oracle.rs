use std::collections::BTreeMap;

use fullview_filter::address::Address;
use fullview_filter::packet::{Direction, Packet};
use fullview_filter::rule::StateOptions;
use fullview_filter::state::WorkerLimits;
use fullview_filter::verdict::{DecidedBy, DropReason, Verdict};
use proptest::prelude::*;

use crate::common::{Bench, block_but, pass};

const CAPACITY: usize = 12;
const MOST_OF_RULE: u32 = 10;

/// What is remembered of a flow: when its last packet came, and from which ends packets came.
#[derive(Clone, Copy)]
struct Remembered {
    last: u64,
    answered: bool,
    confirmed: bool,
}

impl Remembered {
    /// UDP's timeouts of pf.conf(5): first, single, multiple.
    fn timeout(self) -> u64 {
        match (self.answered, self.confirmed) {
            (true, true) => 60_000,
            (false, false) => 60_000,
            _ => 30_000,
        }
    }
}

/// A table of states that is slow and obvious.
#[derive(Default)]
struct Oracle {
    flows: BTreeMap<(u32, u16), Remembered>,
    now: u64,
}

impl Oracle {
    fn packet(&mut self, flow: (u32, u16), is_answer: bool, states: usize) -> (Verdict, DecidedBy) {
        let now = self.now;
        if let Some(found) = self.flows.get_mut(&flow).filter(|found| now < found.last + found.timeout()) {
            found.last = now;
            found.confirmed |= found.answered && !is_answer;
            found.answered |= is_answer;
            return (Verdict::Pass, DecidedBy::State);
        }
        self.flows.remove(&flow);
        match (is_answer, states) {
            (true, _) => (Verdict::Drop(DropReason::Rule), DecidedBy::Rule),
            (_, states) if states >= MOST_OF_RULE as usize => {
                (Verdict::Drop(DropReason::RuleLimit), DecidedBy::Rule)
            }
            _ => {
                self.flows.insert(flow, Remembered { last: now, answered: false, confirmed: false });
                (Verdict::Pass, DecidedBy::NewState)
            }
        }
    }

    fn sweep(&mut self) {
        let now = self.now;
        self.flows.retain(|_, found| now < found.last + found.timeout());
    }
}

fn packet(flow: (u32, u16), is_answer: bool) -> Packet {
    let client = (Address::inet(flow.0), 40_000 + flow.1);
    let server = (Address::inet(0xc633_6402), 53);
    match is_answer {
        true => Packet::udp(pass(Direction::Out), server, client),
        false => Packet::udp(pass(Direction::In), client, server),
    }
}

proptest! {
    #[test]
    fn states_are_those_of_a_slow_and_obvious_table(
        steps in prop::collection::vec((0_u32..5, 0_u16..4, any::<bool>(), prop_oneof![4 => 0_u64..9, 1 => 0_u64..40_000]), 1..200),
    ) {
        let state = StateOptions { max_states: Some(MOST_OF_RULE), ..StateOptions::default() };
        let limits = WorkerLimits { states: CAPACITY as u32, ..WorkerLimits::default() };
        let mut bench = Bench::with_limits(block_but(vec![], Some(state)), limits);
        let mut oracle = Oracle { now: bench.now, ..Oracle::default() };
        for (host, port, is_answer, pause) in steps {
            bench.now += pause;
            oracle.now += pause;
            // After more than ten seconds one call visits the whole table.
            if pause >= 10_000 {
                bench.set.sweep(&mut bench.worker, bench.now);
                oracle.sweep();
            }
            let expired = bench.states();
            let found = oracle.flows.get(&(host, port)).is_some_and(|found| oracle.now >= found.last + found.timeout());
            let expected = oracle.packet((host, port), is_answer, expired - usize::from(found));
            let decision = bench.check(&packet((host, port), is_answer));
            prop_assert_eq!((decision.verdict, decision.by), expected);
            prop_assert_eq!(bench.states(), oracle.flows.len());
        }
    }
}
