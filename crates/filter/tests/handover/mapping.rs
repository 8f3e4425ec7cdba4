//! Rules, interfaces and tables that have other numbers, or none.

use std::sync::Arc;

use fullview_filter::address_table::AddressTable;
use fullview_filter::handover::ImportSummary;
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::state::WorkerLimits;
use fullview_filter::verdict::{DecidedBy, Verdict};

use crate::{Firewall, address};

const FEW: u32 = 8;

fn out_by(interface: u16, port: u16) -> Packet {
    let pass = Pass { direction: Direction::Out, interface, received_on: 0 };
    Packet::udp(pass, (address("10.0.0.1"), 5000), (address("198.51.100.2"), port))
}

fn answer(packet: &Packet) -> Packet {
    let pass = Pass { direction: Direction::In, ..packet.pass };
    let ends = [packet.destination, packet.source];
    Packet::udp(pass, (ends[0], packet.destination_port), (ends[1], packet.source_port))
}

/// The states and the packets of each rule of the text. The set begins with a rule of its own.
fn counts(firewall: &Firewall) -> Vec<(u32, u64)> {
    let counters = firewall.worker.counters();
    let packets = (0..counters.len()).map(|rule| counters.get(rule).0);
    firewall.worker.rule_states().iter().copied().zip(packets).skip(1).collect()
}

#[test]
fn states_keep_rules_that_have_other_numbers() {
    let rule = "pass out proto udp to port 53 keep state (max 1, udp.first 5)";
    let mut before = Firewall::new(&format!("block all\n{rule}\n"), FEW);
    assert!(before.passes(&out_by(1, 53)));
    let other = "pass out proto udp to port 54 keep state (max 1, udp.first 300)";
    let (mut after, summary) =
        before.succeeded_by(Firewall::new(&format!("block all\n{other}\n{rule}\n"), FEW));
    assert_eq!(summary, ImportSummary { states: 1, ..ImportSummary::default() });
    assert_eq!(counts(&after), [(0, 0), (0, 0), (1, 1)]);
    assert!(
        !after.passes(&Packet { source_port: 1, ..out_by(1, 53) }),
        "the rule has as many states as it may"
    );
    after.wait(4_999);
    assert!(after.passes(&answer(&out_by(1, 53))));
    after.wait(30_000);
    assert!(!after.passes(&answer(&out_by(1, 53))), "it lives as long as the timeouts of its rule say");
    assert_eq!(counts(&after), [(0, 1), (0, 0), (0, 3)]);
}

#[test]
fn states_keep_the_rules_of_a_reload_before() {
    let (one, two) =
        ("pass out proto udp to port 53 keep state\n", "pass out proto udp to port 54 keep state\n");
    let mut before = Firewall::new(&format!("block all\n{one}"), FEW);
    assert!(before.passes(&out_by(1, 53)));
    before.reload(&format!("block all\n{two}{one}"));
    let (after, summary) = before.succeeded_by(Firewall::new(&format!("{one}block all\n{two}"), FEW));
    assert_eq!(summary, ImportSummary { states: 1, ..ImportSummary::default() });
    assert_eq!(counts(&after), [(1, 1), (0, 0), (0, 0)]);
}

#[test]
fn states_stay_without_a_rule_that_is_gone() {
    let mut before = Firewall::new("block all\npass out proto udp keep state (max-src-states 4)\n", FEW);
    assert!(before.passes(&out_by(1, 53)) && before.passes(&out_by(1, 54)));
    let (mut after, summary) = before.succeeded_by(Firewall::new("block all\n", FEW));
    assert_eq!(summary, ImportSummary { states: 2, without_rule: 2, ..ImportSummary::default() });
    assert!(after.passes(&answer(&out_by(1, 53))) && !after.passes(&out_by(1, 55)));
    assert_eq!((counts(&after), after.worker.sources().len()), (vec![(0, 1)], 1));
    after.wait(120_000);
    assert_eq!((after.worker.states().len(), after.worker.sources().len()), (0, 0));
}

/// As after a reload, in which a rule before them moved the numbers of all others.
#[test]
fn states_of_ipfw_keep_rules_that_have_other_numbers() {
    let rule = "add allow udp from any to any dst-port 53 keep-state\n";
    let edited = "add allow udp from any to any dst-port 54 keep-state\n";
    let mut before = Firewall::of_ipfw(&format!("{rule}{edited}"));
    assert!(before.passes(&out_by(1, 53)) && before.passes(&out_by(1, 54)));
    let script = format!("add deny tcp from any to any\n{rule}add check-state\n");
    let (mut after, summary) = before.succeeded_by(Firewall::of_ipfw(&script));
    assert_eq!(summary, ImportSummary { states: 2, without_rule: 1, ..ImportSummary::default() });
    let decisions = [53, 54].map(|port| after.check(&answer(&out_by(1, port))));
    let numbers = decisions.map(|decision| Some(after.set.rules()[decision.rule? as usize].number));
    assert_eq!(numbers, [Some(200), None]);
    assert!(decisions.iter().all(|decision| decision.verdict == Verdict::Pass));
}

#[test]
fn mappings_whose_rule_a_reload_changed_keep_their_timeouts() {
    let nat = |network: &str| {
        Firewall::of_ipfw(&format!(
            "nat 1 config ip 192.0.2.1\nadd nat 1 udp from {network} to any out\nadd allow ip from any to any\n"
        ))
    };
    let mut before = nat("10.0.0.0/8");
    assert!(matches!(before.check(&out_by(1, 53)).verdict, Verdict::Translate(_)));
    before.adopt(nat("any").set);
    let (mut after, summary) = before.succeeded_by(nat("any"));
    assert_eq!((summary.states, summary.without_rule), (1, 1));
    after.wait(59_999);
    assert_eq!(
        after.check(&out_by(1, 53)).by,
        DecidedBy::State,
        "as in libalias, not the 10 s of a dynamic rule"
    );
    after.wait(60_001);
    assert_eq!(after.check(&out_by(1, 53)).by, DecidedBy::NewState);
}

/// The rule of the state is known only when all rules have come.
#[test]
fn a_rule_with_the_same_number_is_preferred_to_one_of_equal_text() {
    let one = "allow udp from any to any record-state";
    let mut before = Firewall::of_ipfw(&format!("add 20 {one}\nadd 30 {one}\n"));
    assert!(before.passes(&out_by(1, 53)));
    let (after, _) = before.succeeded_by(Firewall::of_ipfw(&format!("add 30 {one}\n")));
    assert_eq!(after.worker.rule_states(), [0], "the state was made by rule 20");
    assert_eq!(after.worker.counters().get(0).0, 0);
}

/// Limits of all rules together (`source-track global`) do not count them.
#[test]
fn states_of_a_rule_that_is_gone_count_for_no_other_rule() {
    let former =
        "block all\npass out proto udp to port 53 keep state (source-track rule, max-src-states 9)\n";
    let next =
        "block all\npass out proto udp to port 54 keep state (source-track global, max-src-states 2)\n";
    let before = || {
        let mut before = Firewall::new(former, FEW);
        (1..=2).for_each(|port| assert!(before.passes(&Packet { source_port: port, ..out_by(1, 53) })));
        before
    };
    let mut reloaded = before();
    reloaded.reload(next);
    let (succeeded, _) = before().succeeded_by(Firewall::new(next, FEW));
    for mut after in [reloaded, succeeded] {
        let passes = [1, 2, 3].map(|port| after.passes(&Packet { source_port: port, ..out_by(1, 54) }));
        assert_eq!(passes, [true, true, false]);
        assert_eq!(after.worker.sources().len(), 2);
    }
}

#[test]
fn states_keep_interfaces_that_have_other_numbers() {
    let rules = "set state-policy if-bound\nblock all\npass out proto udp keep state\n";
    let mut before = Firewall::new(rules, FEW);
    assert!(before.passes(&out_by(1, 53)) && before.passes(&out_by(2, 54)));
    let limits = WorkerLimits { states: FEW, ..WorkerLimits::default() };
    let (mut after, summary) = before.succeeded_by(Firewall::between(&["em1", "new0"], rules, limits, 2));
    assert_eq!(summary, ImportSummary { states: 1, no_interface: 1, ..ImportSummary::default() });
    assert!(after.passes(&answer(&out_by(0, 54))));
    assert!(!after.passes(&answer(&out_by(1, 54))) && !after.passes(&answer(&out_by(1, 53))));
}

#[test]
fn states_beyond_the_room_are_counted() {
    let rules = "block all\npass out proto udp keep state (max-src-states 9)\n";
    let mut before = Firewall::new(rules, FEW);
    (1..=FEW as u16).for_each(|port| assert!(before.passes(&out_by(1, port))));
    let (after, summary) = before.succeeded_by(Firewall::new(rules, 3));
    assert_eq!(summary, ImportSummary { states: 3, no_room: 5, ..ImportSummary::default() });
    assert_eq!((counts(&after), after.worker.sources().len()), (vec![(0, 0), (3, 8)], 1));
    let limits = WorkerLimits { states: FEW, sources: 0, ..WorkerLimits::default() };
    let (after, summary) = before.succeeded_by(Firewall::between(&crate::NAMES, rules, limits, 2));
    assert_eq!(summary, ImportSummary { no_room: FEW, ..ImportSummary::default() });
    assert!(after.worker.states().is_empty());
}

#[test]
fn states_that_are_over_are_not_handed_over() {
    let mut before = Firewall::new("pass all\n", FEW);
    assert!(before.passes(&out_by(1, 53)));
    before.now += 60_001;
    assert!(before.passes(&out_by(1, 54)));
    assert_eq!(before.worker.states().len(), 2);
    assert_eq!(before.succeeded_by(Firewall::new("pass all\n", FEW)).1.states, 1);
}

/// The addresses of a table.
fn table(firewall: &Firewall, name: &str) -> Vec<String> {
    let id = firewall.set.table(name).unwrap().id;
    firewall.set.tables()[usize::from(id.0)].entries().iter().map(ToString::to_string).collect()
}

/// Gives a table other addresses, as a client of the router does.
pub fn change(firewall: &mut Firewall, name: &str, entries: &[&str]) {
    let id = firewall.set.table(name).unwrap().id;
    let other = AddressTable::new(entries.iter().map(|entry| entry.parse().unwrap()));
    firewall.set = firewall.set.with_tables([(id, Arc::new(other))]);
}

#[test]
fn tables_that_the_rules_leave_open_keep_their_addresses() {
    let text =
        "table <open> persist\ntable <given> { 10.9.0.0/16 }\npass out proto udp from <open> to !<given>\n";
    let mut before = Firewall::new(&format!("block all\n{text}"), FEW);
    let open = ["10.0.0.0/8", "!10.1.0.0/16", "2001:db8::/32", "::/0", "0.0.0.0/0"];
    change(&mut before, "open", &open);
    change(&mut before, "given", &["10.8.0.0/16"]);
    let other = format!("table <new> persist\npass in from <new>\n{text}");
    let (mut after, summary) = before.succeeded_by(Firewall::new(&format!("block all\n{other}"), FEW));
    assert_eq!(summary, ImportSummary { tables: 1, ..ImportSummary::default() });
    assert_eq!(table(&after, "open"), open);
    assert_eq!(table(&after, "given"), ["10.9.0.0/16"]);
    assert_eq!(table(&after, "new"), [""; 0]);
    assert!(after.passes(&out_by(1, 53)));
}

#[test]
fn tables_go_on_in_the_other_language_if_it_can_have_them() {
    let of_ipfw = || Firewall::of_ipfw("add allow ip from table(open) to table(plain)\n");
    let of_pf = || Firewall::new("pass from <open> to <plain>\n", FEW);
    let values = ["192.0.2.1", "192.0.2.2=7", "192.0.2.3"];
    let exceptions = ["192.0.2.0/24", "!192.0.2.1"];
    let goes_on = |mut before: Firewall, open: &[&str], other: Firewall| {
        change(&mut before, "open", open);
        change(&mut before, "plain", &["192.0.2.1"]);
        let (after, summary) = before.succeeded_by(other);
        assert_eq!(table(&after, "plain"), ["192.0.2.1"]);
        let kept = table(&after, "open");
        assert!(kept.is_empty() && summary.tables == 1 || kept == open && summary.tables == 2);
        !kept.is_empty()
    };
    assert!(goes_on(of_ipfw(), &values, of_ipfw()) && !goes_on(of_ipfw(), &values, of_pf()));
    assert!(goes_on(of_pf(), &exceptions, of_pf()) && !goes_on(of_pf(), &exceptions, of_ipfw()));
}

#[test]
fn tables_go_on_if_they_have_the_same_type() {
    let of_numbers = || Firewall::of_ipfw("add allow ip from any to any lookup dst-port open\n");
    let of_addresses = || Firewall::of_ipfw("add allow ip from table(open) to any\n");
    for (other, kept) in [(of_numbers(), &["80", "443=7"][..]), (of_addresses(), &[])] {
        let mut before = of_numbers();
        change(&mut before, "open", &["80", "443=7"]);
        let (after, summary) = before.succeeded_by(other);
        assert_eq!(
            (table(&after, "open"), summary.tables == 1),
            (kept.iter().map(ToString::to_string).collect(), !kept.is_empty())
        );
    }
}

#[test]
fn a_table_without_addresses_stays_empty() {
    let mut before = Firewall::new("table <open> persist\npass out from <open>\n", FEW);
    change(&mut before, "open", &[]);
    let (after, summary) = before.succeeded_by(Firewall::new("block all\npass out from <open>\n", FEW));
    assert_eq!((summary.tables, table(&after, "open")), (1, vec![]));
}

#[test]
fn large_tables_go_on() {
    let rules = "pass out from <one>\nblock out from <other>\n";
    let mut before = Firewall::new(rules, FEW);
    let many: Vec<String> = (0..10_000).map(|number| format!("2001:db8:{number:x}::/48")).collect();
    change(&mut before, "one", &many.iter().map(String::as_str).collect::<Vec<_>>());
    change(&mut before, "other", &["192.0.2.1"]);
    let (after, summary) = before.succeeded_by(Firewall::new(rules, FEW));
    assert_eq!(summary, ImportSummary { tables: 2, ..ImportSummary::default() });
    let one = table(&after, "one");
    assert!(one.len() == 10_000 && one == table(&before, "one"));
    assert_eq!(table(&after, "other"), ["192.0.2.1"]);
}

#[test]
fn states_keep_whether_they_allow_options() {
    for (rule, allows) in [("pass out keep state allow-opts", true), ("pass out keep state", false)] {
        let rules = format!("block all\npass in on em0 allow-opts\n{rule}\n");
        let mut before = Firewall::new(&rules, FEW);
        assert!(before.passes(&out_by(1, 53)));
        let (mut after, summary) = before.succeeded_by(Firewall::new(&rules, FEW));
        assert_eq!(summary, ImportSummary { states: 1, ..ImportSummary::default() });
        let answer = Packet { has_options: true, ..answer(&out_by(1, 53)) };
        assert_eq!(after.passes(&answer), allows, "{rule}");
    }
}
