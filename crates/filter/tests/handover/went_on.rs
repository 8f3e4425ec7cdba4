//! Another worker decides as the one does that went on.

use fullview_filter::packet::Packet;
use fullview_filter::state::{StateSummary, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Rewrite, Verdict};
use proptest::prelude::*;

use crate::Firewall;
use crate::conversation::{Content, Conversations, Step, steps};

/// The limits are reached. No rule draws a random number, since the two workers draw others.
const RULES: &str = "nat on em0 inet from 10.0.0.0/8 to any -> 192.0.2.7 static-port
rdr on em0 inet proto { tcp udp } from any to 192.0.2.1 port 8080 -> 10.0.0.9 port 80
block all
pass in on em1 inet proto { udp icmp } keep state (max 3)
pass in on em1 inet proto tcp flags S/SA keep state (source-track rule, max-src-states 2, max-src-conn 1, tcp.first 40)
pass out on em0 inet proto tcp flags S/SA keep state (source-track rule, max-src-conn-rate 3/30)
pass out on em0 inet proto { udp icmp } keep state (if-bound)
pass in on em0 inet proto tcp to port 80 flags S/SA keep state (sloppy, max 3)
pass in on em0 inet proto udp to port 80 tag marked keep state
";

/// Few enough that the table is full at times.
const STATES: u32 = 8;

/// All that both workers must agree about.
#[derive(Debug, PartialEq)]
struct WorkerSummary {
    /// Each without its time, and its age.
    states: Vec<(String, u32)>,
    rule_states: Vec<u32>,
    sources: usize,
    counters: Vec<(u64, u64)>,
}

fn remembered(firewall: &mut Firewall) -> WorkerSummary {
    let now = firewall.now as u32;
    let described = |state: StateSummary| {
        (format!("{:?}", StateSummary { last: 0, ..state }), now.wrapping_sub(state.last))
    };
    let mut states: Vec<_> = firewall.worker.state_summaries().map(described).collect();
    states.sort();
    let worker = &firewall.worker;
    let counters = (0..worker.counters().len()).map(|rule| worker.counters().get(rule)).collect();
    let (rule_states, sources) = (worker.rule_states().to_vec(), worker.sources().len());
    WorkerSummary { states, rule_states, sources, counters }
}

fn run(firewalls: &mut [&mut Firewall], conversations: &mut Conversations, step: Step) -> Option<Packet> {
    match step {
        Step::Wait(milliseconds) => {
            firewalls.iter_mut().for_each(|firewall| firewall.wait(milliseconds));
            None
        }
        Step::Send { flow, from_client, content } => Some(conversations.packet(flow, from_client, content)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_those_of_the_worker_that_went_on(
        before in steps(120),
        after in steps(120),
        piece in 1_usize..3000,
        room in prop_oneof![Just(STATES), Just(64)],
    ) {
        let mut conversations = Conversations::default();
        let mut stays = Firewall::new(RULES, room);
        for step in before {
            let packet = run(&mut [&mut stays], &mut conversations, step);
            packet.into_iter().for_each(|packet| _ = stays.check(&packet));
        }
        let limits = WorkerLimits { states: room, ..WorkerLimits::default() };
        let mut goes_on = Firewall::between(&crate::NAMES, RULES, limits, 99);
        goes_on.now = stays.now + crate::CLOCKS_APART;
        goes_on.set.sweep(&mut goes_on.worker, goes_on.now);
        let (summary, result) = goes_on.import(&stays.export(), piece);
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(summary.states as usize, stays.worker.states().len());
        prop_assert_eq!(remembered(&mut stays), remembered(&mut goes_on));
        let replaced = stays.worker.replaced_states();
        for step in after {
            if let Some(packet) = run(&mut [&mut stays, &mut goes_on], &mut conversations, step) {
                prop_assert_eq!(stays.check(&packet), goes_on.check(&packet), "{:?}", packet);
            }
            prop_assert_eq!(stays.worker.replaced_states() - replaced, goes_on.worker.replaced_states());
            // Which state ends depends on where later ones have found room.
            if stays.worker.replaced_states() > replaced {
                return Ok(());
            }
        }
        prop_assert_eq!(remembered(&mut stays), remembered(&mut goes_on));
    }
}

#[test]
fn incomplete_connections_of_a_full_table_end_in_the_same_order() {
    let (rules, room) = ("pass all flags S/SA keep state\n", 4);
    let mut conversations = Conversations::default();
    let mut stays = Firewall::new(rules, room);
    for flow in 0..6 {
        assert!(stays.passes(&conversations.packet(flow, true, Content::Open)), "{flow}");
    }
    let (mut goes_on, _) = stays.succeeded_by(Firewall::new(rules, room));
    for flow in [6, 7, 8, 0, 1] {
        let packet = conversations.packet(flow, true, Content::Open);
        assert!(stays.passes(&packet) && goes_on.passes(&packet), "{flow}");
        assert_eq!(remembered(&mut stays), remembered(&mut goes_on), "{flow}");
    }
}

/// The conversations of the property would prove little if no packet of them passed by a state.
#[test]
fn a_whole_conversation_passes_before_and_after() {
    for flow in 0..3 {
        let mut conversations = Conversations::default();
        let mut before = Firewall::new(RULES, STATES);
        let handshake = [(true, Content::Open), (false, Content::Open), (true, Content::Data(0))];
        for (from_client, content) in handshake {
            assert!(before.passes(&conversations.packet(flow, from_client, content)), "{flow} {content:?}");
        }
        let (mut after, summary) = before.succeeded_by(Firewall::new(RULES, STATES));
        assert_eq!(summary.states, 1);
        for from_client in [true, false, true] {
            let decision = after.check(&conversations.packet(flow, from_client, Content::Data(1000)));
            assert_eq!(decision.by, DecidedBy::State, "{flow} {decision:?}");
        }
        assert!(!after.passes(&conversations.packet(flow, true, Content::Stray(70_000))) || flow == 2);
    }
}

#[test]
fn the_connections_of_a_source_count_for_its_rate() {
    let rules = "block all\npass in on em1 inet proto tcp flags S/SA keep state (max-src-conn-rate 1/30)\n";
    let connects = |firewall: &mut Firewall, conversations: &mut Conversations, flow| {
        [(true, Content::Open), (false, Content::Open), (true, Content::Data(0))].iter().all(
            |(from_client, content)| firewall.passes(&conversations.packet(flow, *from_client, *content)),
        )
    };
    let mut conversations = Conversations::default();
    let mut before = Firewall::new(rules, STATES);
    assert!(connects(&mut before, &mut conversations, 0));
    before.wait(20_000);
    let (mut after, _) = before.succeeded_by(Firewall::new(rules, STATES));
    assert!(!connects(&mut after, &mut conversations, 3), "another connection of the same source");
    after.wait(10_000);
    assert!(connects(&mut after, &mut conversations, 3));
}

fn rewrite(firewall: &mut Firewall, packet: &Packet) -> Rewrite {
    match firewall.check(packet).verdict {
        Verdict::Translate(rewrite) => rewrite,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flow_keeps_the_random_port_of_its_translation() {
    let rules = "nat on em0 inet from 10.0.0.0/8 to any -> 192.0.2.7\npass all\n";
    let mut conversations = Conversations::default();
    let mut before = Firewall::new(rules, STATES);
    let out = conversations.packet(1, true, Content::Datagram);
    let first = rewrite(&mut before, &out);
    let (mut after, _) = before.succeeded_by(Firewall::new(rules, STATES));
    assert_eq!(rewrite(&mut after, &out), first);
    let mut answer = conversations.packet(1, false, Content::Datagram);
    answer.destination_port = first.port;
    let back = rewrite(&mut after, &answer);
    assert_eq!((back.address, back.port), (out.source, out.source_port));
}
