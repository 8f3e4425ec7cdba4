//! The loop with a filter: every packet is judged as it comes in and as it leaves.

use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::{HostFacts, HostInterface};
use fullview_filter::pf::{load, lower};
use fullview_filter::rule::{RejectWith, RuleAction, TableId};
use fullview_filter::ruleset::{RuleSet, RuleSetParts};
use fullview_filter::state::WorkerLimits;
use fullview_plane::forward::{
    BurstFilter, EnforceableRules, FilterBusy, FilterPiece, Forwarder, MOST_REMOVED, PieceOf, RuleChange,
    UnsupportedFilter, filter_link,
};
use fullview_plane::verdict::{Punt, Reason};
use fullview_plane::view::{View, ViewReader};
use fullview_table::group::Groups;

use crate::frames::*;
use crate::router::{DEVICES, TO_HOST, parts, watching, with_group};

struct Text(&'static str);

impl RulesetFiles for Text {
    fn read(&self, _: &str) -> std::io::Result<String> {
        Ok(self.0.into())
    }
}

fn names() -> impl Iterator<Item = (u16, String)> {
    (0..5).map(|number| (number, format!("port{number}")))
}

fn interfaces() -> Interfaces {
    let named = |(number, name)| FilterInterface { name, number, ..FilterInterface::default() };
    Interfaces(names().map(named).collect())
}

pub fn pf(rules: &'static str) -> RuleSetParts {
    let named = |(_, name)| HostInterface { name, ..HostInterface::default() };
    let facts = HostFacts { interfaces: names().map(named).collect() };
    lower::lower(&load::load("pf.conf", &Text(rules), &facts).unwrap(), &interfaces()).unwrap().parts
}

pub fn ipfw(rules: &str) -> RuleSetParts {
    IpfwConfig::load("rules", rules).unwrap().lower(&interfaces())
}

pub fn enforceable(rules: RuleSetParts) -> Result<EnforceableRules, UnsupportedFilter> {
    EnforceableRules::new(RuleSet::new(rules).unwrap())
}

fn filtered_by(rules: &EnforceableRules) -> Forwarder {
    let mut forwarder = Forwarder::new(ViewReader::fixed(View::new(parts()).unwrap()));
    forwarder.set_filter(BurstFilter::new(rules, WorkerLimits::default(), 1));
    forwarder
}

pub fn filtered(rules: RuleSetParts) -> Forwarder {
    filtered_by(&enforceable(rules).unwrap())
}

fn answer() -> Vec<u8> {
    inet(DST, SRC, 64)
}

fn answer6() -> Vec<u8> {
    inet6(DST6, SRC6, 64)
}

#[test]
fn a_packet_passes_if_the_rules_let_it_in_and_out() {
    for (rules, expected) in [
        ("pass all no state", sent(1, forwarded(good(), 1))),
        ("block all", dropped(Reason::FilterRule)),
        ("pass all no state\nblock in on port0", dropped(Reason::FilterRule)),
        ("pass all no state\nblock out on port1", dropped(Reason::FilterRule)),
        ("pass all no state\nblock out on port0\nblock in on port1", sent(1, forwarded(good(), 1))),
        ("pass all no state\nblock in inet proto tcp", sent(1, forwarded(good(), 1))),
        ("pass all no state\nblock in inet6", sent(1, forwarded(good(), 1))),
    ] {
        assert_eq!(run(&mut filtered(pf(rules)), &[(0, good())]), [expected], "{rules}");
    }
}

#[test]
fn answers_pass_by_the_states_of_both_languages() {
    let pf_rules = "block all\npass in on port0 keep state\npass out on port1 keep state";
    let ipfw_rules =
        "add check-state\nadd allow ip from any to any in recv port0 keep-state\nadd deny ip from any to any";
    for rules in [pf(pf_rules), ipfw(ipfw_rules)] {
        let mut forwarder = filtered(rules);
        let blocked = [dropped(Reason::FilterRule), dropped(Reason::FilterRule)];
        assert_eq!(run(&mut forwarder, &[(1, answer()), (1, answer6())]), blocked);
        let passed = [sent(1, forwarded(good(), 1)), sent(1, forwarded(good6(), 1))];
        assert_eq!(run(&mut forwarder, &[(0, good()), (0, good6())]), passed);
        let passed = [sent(0, forwarded(answer(), 0)), sent(0, forwarded(answer6(), 0))];
        assert_eq!(run(&mut forwarder, &[(1, answer()), (1, answer6())]), passed);
    }
}

#[test]
fn packets_of_one_burst_have_fates_of_their_own() {
    let mut forwarder = filtered(pf("pass all no state\nblock in from 198.18.0.2\nblock out inet6"));
    let frames = [
        (0, good()),
        (0, inet("198.18.0.2", DST, 64)),
        (0, good6()),
        (0, inet(SRC, TO_HOST, 64)),
        (0, inet(SRC, DST, 1)),
        (1, answer()),
    ];
    let expected = [
        sent(1, forwarded(good(), 1)),
        dropped(Reason::FilterRule),
        dropped(Reason::FilterRule),
        punted(Punt::Local),
        dropped(Reason::TtlExpired),
        sent(0, forwarded(answer(), 0)),
    ];
    assert_eq!(run(&mut forwarder, &frames), expected);
    assert_eq!(forwarder.counters().drops[Reason::FilterRule.index()], 2);
}

#[test]
fn what_the_filter_cannot_read_is_dropped() {
    let router_alert = inet_with(SRC, DST, 64, &[0x94, 4, 0, 0]);
    let fate = run(&mut filtered(pf("pass all allow-opts")), &[(0, router_alert)]).remove(0);
    assert_eq!(fate, dropped(Reason::FilterUnreadable));
    let mapped = inet6("::ffff:198.18.0.1", DST6, 64);
    let fate = run(&mut filtered(pf("pass all")), &[(0, mapped)]).remove(0);
    assert!(matches!(fate, Fate::Rejected(_)), "{fate:?}");
}

#[test]
fn rules_that_the_loop_cannot_enforce_are_refused() {
    let mut overloading = pf("table <bad>\npass in proto tcp from <bad> keep state (max-src-conn 5)");
    assert!(enforceable(overloading.clone()).is_ok());
    let limits = overloading.rules[1].state.as_mut().unwrap().source.as_mut().unwrap();
    limits.overload = Some(TableId(0));
    assert_eq!(enforceable(overloading).err(), Some(UnsupportedFilter::Overload));
    for (mtu, code, is_refused) in [(0, 4, false), (1300, 4, true), (0, 254, false), (0, 255, true)] {
        let answer = RejectWith { icmp: Some(code), mtu, ..RejectWith::default() };
        let mut rejecting = ipfw("add unreach needfrag ip from any to any");
        rejecting.rules[0].action = RuleAction::Reject(answer);
        let result = enforceable(rejecting);
        assert_eq!(result.err(), is_refused.then_some(UnsupportedFilter::Unreachable), "{code} {mtu}");
    }
    assert_eq!(
        enforceable(pf("nat on port1 inet from any to any -> 192.0.2.1")).unwrap().translations().count(),
        1
    );
    assert_eq!(enforceable(pf("pass all")).unwrap().translations().count(), 0);
}

#[test]
fn other_rules_are_adopted_between_bursts_and_states_stay() {
    let [open, closed] = ["pass all", "block all"].map(|rules| enforceable(pf(rules)).unwrap());
    let mut forwarder = filtered_by(&open);
    let (mut client, _inspector, server) = filter_link();
    forwarder.set_filter_server(server);
    let fate = |forwarder: &mut Forwarder, frame| run(forwarder, &[(0, frame)]).remove(0);
    let new_flow = || inet("198.18.0.77", DST, 64);
    assert_eq!(fate(&mut forwarder, good()), sent(1, forwarded(good(), 1)));
    assert_eq!(client.send(RuleChange::new(&open, &closed)), Ok(()));
    assert_eq!(client.free_former(), 0);
    forwarder.change_rules();
    assert_eq!(client.free_former(), 1);
    assert_eq!(fate(&mut forwarder, good()), sent(1, forwarded(good(), 1)), "its state is kept");
    assert_eq!(fate(&mut forwarder, new_flow()), dropped(Reason::FilterRule));
    assert_eq!(client.send(RuleChange::new(&closed, &open)), Ok(()));
    forwarder.change_rules();
    assert_eq!(fate(&mut forwarder, new_flow()), sent(1, forwarded(new_flow(), 1)));
}

#[test]
fn changes_that_the_worker_does_not_take_are_refused_at_last() {
    let rules = enforceable(pf("pass all")).unwrap();
    let mut forwarder = filtered_by(&rules);
    let (mut client, _inspector, server) = filter_link();
    forwarder.set_filter_server(server);
    let mut send = || client.send(RuleChange::new(&rules, &rules));
    let sent = (0..1000).take_while(|_| send().is_ok()).count();
    assert!((1..1000).contains(&sent));
    assert_eq!(send(), Err(FilterBusy));
    forwarder.change_rules();
    assert_eq!(send(), Ok(()));
    assert_eq!(client.free_former(), sent);
}

#[test]
fn what_the_filter_remembers_is_handed_over_in_pieces() {
    let rules = enforceable(pf("pass in\npass out on port1")).unwrap();
    let mut forwarder = filtered_by(&rules);
    let (_client, mut inspector, server) = filter_link();
    forwarder.set_filter_server(server);
    let flows = (0..200).map(|last| (0, inet(&format!("198.18.0.{last}"), DST, 64)));
    flows.for_each(|packet| drop(run(&mut forwarder, &[packet])));
    let mut hand = |forwarder: &mut Forwarder, piece| {
        inspector.send(Box::new(piece)).unwrap();
        forwarder.change_rules();
        inspector.receive().unwrap()
    };
    let piece = hand(&mut forwarder, FilterPiece::of(PieceOf::States(0)));
    assert_eq!((piece.totals, piece.states.len(), piece.next), ((400, 0), 400, None));
    let (set, counters) = piece.rules.unwrap();
    assert!(
        piece.states.iter().all(|state| state.rule.is_some() && state.packets == 1 && state.expires_in > 0)
    );
    assert_eq!(
        (counters.get(1).0, set.rules()[1].text.as_str()),
        (200, rules.rules().rules()[1].text.as_str())
    );
    let rest = hand(&mut forwarder, FilterPiece::of(PieceOf::States(390)));
    assert_eq!((rest.states.len(), rest.next), (10, None));
    assert_eq!(rest.states[0].entry, 390);
    let states = hand(&mut forwarder, FilterPiece::of(PieceOf::Rules(1)));
    assert_eq!((states.rule_states.as_slice(), states.next), (&[200, 200][..], None));
    // Clients may ask from any number on.
    for from in [3, u32::MAX - 1023, u32::MAX] {
        let beyond = [PieceOf::Rules(from), PieceOf::States(from.max(400))];
        for piece in beyond.map(|what| hand(&mut forwarder, FilterPiece::of(what))) {
            assert_eq!((piece.rule_states.len(), piece.states.len(), piece.next), (0, 0, None));
        }
    }
    // One state is no longer that of its entry, and 128 are removed at most.
    let mut chosen = piece.states;
    chosen[0].flow.source_port ^= 1;
    let removal = hand(&mut forwarder, FilterPiece::removal(chosen));
    assert_eq!((removal.removed, MOST_REMOVED), (127, 128));
    assert_eq!(hand(&mut forwarder, FilterPiece::of(PieceOf::Rules(0))).totals, (273, 0));
}

/// Which rules a packet would meet is not known in the moment in which the view does not know a next hop yet.
#[test]
fn a_packet_does_not_leave_past_the_rules_by_a_next_hop_that_is_not_known() {
    let mut forwarder = filtered(pf("pass"));
    assert_eq!(
        run(&mut forwarder, &[(0, inet(SRC, "198.18.105.1", 64))]),
        vec![dropped(Reason::FilterUnreadable)]
    );
    assert_eq!(run(&mut forwarder, &[(0, inet(SRC, "198.18.105.1", 1))]), vec![dropped(Reason::TtlExpired)]);
    let nowhere = run(&mut forwarder, &[(0, inet(SRC, "203.0.113.1", 64))]);
    assert_eq!(nowhere, vec![dropped(Reason::NoRoute)], "there is nothing to wait for");
}

/// The other member of its group is by port 2.
#[test]
fn a_packet_is_judged_for_the_link_that_it_takes_in_place_of_a_failed_one() {
    let by_2 = sent(2, forwarded(good(), 2));
    for (rules, expected) in [
        ("pass all", by_2.clone()),
        ("pass all no state\nblock out on port1", by_2),
        ("pass all\nblock out on port2", dropped(Reason::FilterRule)),
    ] {
        let (mut parts, mut groups) = (parts(), Groups::default());
        with_group(&mut parts, &mut groups);
        let (mut router, links) = watching(parts);
        router.set_filter(BurstFilter::new(&enforceable(pf(rules)).unwrap(), WorkerLimits::default(), 1));
        links.note(DEVICES[1], true);
        for _ in 0..4 {
            assert_eq!(run(&mut router, &[(0, good())]).remove(0), expected, "{rules}");
        }
        links.note(DEVICES[2], true);
        assert_eq!(run(&mut router, &[(0, good())]), [punted(Punt::Local)], "{rules}");
    }
}

/// Packets of known flows are counted apart from their states.
#[test]
fn a_piece_has_the_packets_of_known_flows_too() {
    let mut forwarder = filtered(pf("pass"));
    let (_client, mut inspector, server) = filter_link();
    forwarder.set_filter_server(server);
    let bursts = 40;
    for packets in [[(0, good()), (1, answer())], [(0, good6()), (1, answer6())]] {
        (0..bursts).for_each(|_| {
            packets.iter().for_each(|packet| drop(run(&mut forwarder, std::slice::from_ref(packet))))
        });
    }
    assert!(forwarder.filter().unwrap().known_packets() > 0, "some flow is known");
    inspector.send(Box::new(FilterPiece::of(PieceOf::States(0)))).unwrap();
    forwarder.change_rules();
    let piece = inspector.receive().unwrap();
    let counts: Vec<u32> = piece.states.iter().map(|state| state.packets).collect();
    assert_eq!(counts, [2 * bursts; 4], "a state for each pass and family");
}
