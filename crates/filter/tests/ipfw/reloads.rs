//! States and counters of ipfw's rules when the rules change.

use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::packet::protocol::TCP;
use fullview_filter::packet::protocol::tcp::{ACK, SYN};
use fullview_filter::packet::{Direction, Packet, TcpSegment, Transport};
use fullview_filter::ruleset::RuleSet;
use fullview_filter::verdict::{DecidedBy, DropReason, Verdict};

use crate::decisions::{Firewall, INSIDE, OUTSIDE, interfaces, packet};

const STATEFUL: &str = "add check-state\nadd allow tcp from any to any setup keep-state\n";

fn segment(flags: u8) -> Packet {
    let transport = Transport::Tcp(TcpSegment { flags, ..TcpSegment::default() });
    Packet { protocol: TCP, transport, ..packet(Direction::In, 0, (INSIDE, 1), (OUTSIDE, 80)) }
}

fn query(port: u16) -> Packet {
    packet(Direction::In, 0, (INSIDE, 1), (OUTSIDE, port))
}

/// The number of the rule that decides about a packet, and what led to it.
fn decider(firewall: &mut Firewall, packet: Packet) -> (Option<u32>, DecidedBy) {
    let decision = firewall.check(packet);
    let rule = decision.rule.map(|rule| firewall.set.rules()[rule as usize].number);
    (rule, decision.by)
}

/// As a table of addresses it would have an entry that no address is.
#[test]
fn a_table_that_has_another_type_after_a_reload_keeps_no_entries() {
    let before = Firewall::new("table kept create type number\ntable kept add 80\n").set;
    let entries = |script: &str| {
        let mut parts = IpfwConfig::load("f", script).unwrap().lower(&interfaces());
        parts.keep_tables(&before);
        let set = RuleSet::new(parts).unwrap();
        set.tables()[usize::from(set.table("kept").unwrap().id.0)].entries().len()
    };
    assert_eq!(entries("add deny ip from any to any lookup dst-port kept\n"), 1);
    assert_eq!(entries("add deny ip from table(kept) to any\n"), 0);
}

#[test]
fn a_connection_goes_on_when_a_rule_before_its_own_moves_all_numbers() {
    let mut firewall = Firewall::new(STATEFUL);
    assert_eq!(decider(&mut firewall, segment(SYN)), (Some(200), DecidedBy::NewState));
    firewall.reload(&format!("add deny ip from 192.0.2.0/24 to any\n{STATEFUL}"));
    assert_eq!(decider(&mut firewall, segment(ACK)), (Some(300), DecidedBy::State));
    assert_eq!(firewall.worker.counters().get(3).0, 2, "the rule goes on counting");
    assert_eq!(firewall.worker.rule_states(), [0, 0, 0, 1]);
}

#[test]
fn numbers_distinguish_rules_of_equal_text() {
    let one = "allow udp from any to any record-state";
    let both = format!(
        "add 10 check-state\nadd 20 skipto 40 ip from any to any dst-port 54\n\
                        add 30 {one}\nadd 40 {one}\n"
    );
    let mut firewall = Firewall::new(&both);
    let packets = [query(53), query(54)];
    assert_eq!(packets.map(|packet| firewall.check(packet).by), [DecidedBy::NewState; 2]);
    firewall.reload(&format!("add 10 check-state\nadd 40 {one}\nadd 50 {one}\n"));
    let [first, second] = packets.map(|packet| decider(&mut firewall, packet).0);
    assert_eq!([first, second], [Some(50), Some(40)], "the rule with the same number is the same rule");
    firewall.reload(&format!("add 10 check-state\nadd 50 {one}\n"));
    let [first, second] = packets.map(|packet| decider(&mut firewall, packet).0);
    assert_eq!([first, second], [Some(50), None]);
}

#[test]
fn a_state_whose_rule_is_gone_passes_packets_if_the_rule_did() {
    for (rule, passes) in [("allow", true), ("deny", false), ("count", false), ("skipto 900", false)] {
        let script = format!("add 10 check-state\nadd 20 {rule} udp from any to any keep-state\n");
        let mut firewall = Firewall::new(&script);
        let _ = firewall.check(query(53));
        assert_eq!(firewall.worker.states().len(), 1, "{rule}");
        for _ in 0..2 {
            firewall.reload("add 10 check-state\n");
            let verdict = if passes { Verdict::Pass } else { Verdict::Drop(DropReason::Rule) };
            let decision = firewall.check(query(53));
            assert_eq!((decision.verdict, decision.rule), (verdict, None), "{rule}");
            assert_eq!(firewall.worker.states().len(), usize::from(passes), "{rule}");
        }
    }
}

#[test]
fn a_mapping_of_nat_keeps_its_timeouts_when_its_rule_changes() {
    let nat = |network: &str| {
        format!(
            "nat 1 config if wan0\nadd nat 1 ip from {network} to any out\nadd nat 1 ip from any to any in\n"
        )
    };
    let mut firewall = Firewall::new(&nat("10.0.0.0/8"));
    let out = packet(Direction::Out, 1, (INSIDE, 9), (OUTSIDE, 53));
    let Verdict::Translate(first) = firewall.check(out).verdict else { panic!("it is not translated") };
    firewall.reload(&nat("10.0.0.0/9"));
    firewall.now = 59_999;
    let Verdict::Translate(second) = firewall.check(out).verdict else { panic!("it is not translated") };
    assert_eq!(first, second, "the mapping is the same one");
}
