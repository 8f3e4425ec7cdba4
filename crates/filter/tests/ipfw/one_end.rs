//! Connections of which one end alone sends segments, which may have forged the address of the other.

use fullview_filter::packet::protocol::TCP;
use fullview_filter::packet::protocol::tcp::{ACK, FIN, PUSH, SYN};
use fullview_filter::packet::{Direction, Packet, TcpSegment, Transport};
use fullview_filter::ruleset::may_learn_flow;
use fullview_filter::verdict::{DecidedBy, Verdict};

use crate::decisions::{Firewall, INSIDE, OUTSIDE, packet, translated};

const STATEFUL: &str = "add check-state\nadd allow tcp from any to any out keep-state\n";

fn segment(direction: Direction, flags: u8) -> Packet {
    let (inner, outer) = ((INSIDE, 9), (OUTSIDE, 80));
    let (source, destination) = if direction == Direction::Out { (inner, outer) } else { (outer, inner) };
    let transport = Transport::Tcp(TcpSegment { flags, ..TcpSegment::default() });
    Packet { protocol: TCP, transport, ..packet(direction, 1, source, destination) }
}

/// Whether an answer has a state after a pause.
fn is_alive(mut firewall: Firewall, pause: u64, answer: Packet) -> bool {
    firewall.now += pause;
    firewall.check(answer).by == DecidedBy::State
}

fn after(script: &str, segments: &[Packet]) -> Firewall {
    let mut firewall = Firewall::new(script);
    for segment in segments {
        let verdict = firewall.check(*segment).verdict;
        assert!(matches!(verdict, Verdict::Pass | Verdict::Translate(_)), "{segment:?}");
    }
    firewall
}

#[test]
fn one_end_alone_keeps_a_state_of_ipfw_for_twenty_seconds() {
    let answer = segment(Direction::In, ACK);
    for sent in [&[SYN][..], &[SYN, ACK], &[ACK], &[SYN, ACK, ACK | PUSH], &[SYN, FIN | ACK, ACK]] {
        let segments: Vec<_> = sent.iter().map(|flags| segment(Direction::Out, *flags)).collect();
        for (pause, lives) in [(19_999, true), (20_000, false)] {
            assert_eq!(is_alive(after(STATEFUL, &segments), pause, answer), lives, "{sent:?} {pause}");
        }
    }
}

#[test]
fn both_ends_establish_a_connection_also_one_that_began_before() {
    let [out, back] = [Direction::Out, Direction::In].map(|direction| segment(direction, ACK));
    for (segments, lives) in [(&[out, back][..], false), (&[out, back, out], true)] {
        assert_eq!(is_alive(after(STATEFUL, segments), 300_001, back), lives, "{segments:?}");
    }
}

#[test]
fn one_end_alone_keeps_a_mapping_of_nat_for_five_minutes() {
    let script = "nat 1 config if wan0 same_ports\nadd nat 1 ip from any to any via wan0\n";
    let segments = [SYN, ACK, ACK | PUSH].map(|flags| translated(true, 9, flags));
    for (pause, lives) in [(299_999, true), (300_000, false)] {
        let firewall = after(script, &segments);
        assert_eq!(is_alive(firewall, pause, translated(false, 9, ACK)), lives, "{pause}");
    }
}

/// A packet of another flow may end its state, in a full table.
#[test]
fn a_flow_of_one_end_alone_meets_the_rules_until_both_ends_have_answered() {
    let mut firewall = after(STATEFUL, &[segment(Direction::Out, SYN), segment(Direction::Out, ACK)]);
    let mut known = |direction, flags| {
        let both = [Direction::In, Direction::Out].map(|pass| {
            let mut packet = segment(direction, flags);
            packet.pass.direction = pass;
            packet
        });
        let traces = both.map(|packet| {
            let mut hashes = [0];
            firewall.set.hash_burst(&firewall.worker, &[packet], &mut hashes);
            let now = firewall.now;
            firewall.set.check_hashed_burst(&mut firewall.worker, now, &mut [packet], &hashes, |_, _| {});
            firewall.worker.trace_of(0)
        });
        may_learn_flow(&firewall.worker, &both[1], 0, &traces[0])
    };
    assert!(!known(Direction::Out, ACK));
    assert!(!known(Direction::In, SYN | ACK), "a segment that is not plain");
    assert!(!known(Direction::In, ACK), "the other end has not acknowledged it");
    assert!(known(Direction::Out, ACK) && known(Direction::In, ACK));
}
