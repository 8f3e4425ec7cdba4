use fullview_filter::packet::TcpSegment;
use fullview_filter::packet::protocol::TCP;
use fullview_filter::packet::protocol::tcp::{ACK, FIN, RST, SYN};
use fullview_filter::rule::{Clause, StateOptions, Test, Tracking};
use fullview_filter::verdict::{DropReason, Reject, Verdict};

use crate::common::{Bench, block_but, segment};

/// Passes only connections that start with a SYN.
fn bench(tracking: Tracking) -> Bench {
    let tcp = Clause::of(Test::Protocol([TCP].into_iter().collect()));
    let syn = Clause::of(Test::TcpFlags { set: SYN, mask: SYN | ACK });
    let state = StateOptions { tracking, ..StateOptions::default() };
    Bench::new(block_but(vec![tcp, syn], Some(state)))
}

/// Sends a segment and says whether it passed.
fn send(bench: &mut Bench, from_client: bool, flags: u8, seq: u32, ack: u32, payload: u16) -> bool {
    send_with(bench, from_client, TcpSegment { seq, ack, flags, window: 1000, payload, scale: None })
}

fn send_with(bench: &mut Bench, from_client: bool, tcp: TcpSegment) -> bool {
    bench.passes(&segment(from_client, tcp))
}

const C: bool = true;
const S: bool = false;

fn handshake(bench: &mut Bench) {
    assert!(send(bench, C, SYN, 100, 0, 0));
    assert!(send(bench, S, SYN | ACK, 5000, 101, 0));
    assert!(send(bench, C, ACK, 101, 5001, 0));
}

#[test]
fn data_within_the_windows_passes() {
    let mut bench = bench(Tracking::Strict);
    handshake(&mut bench);
    assert!(send(&mut bench, C, ACK, 101, 5001, 500));
    assert!(send(&mut bench, S, ACK, 5001, 601, 1000));
    assert!(send(&mut bench, C, ACK, 101, 5001, 500), "a repetition");
    assert_eq!(bench.states(), 1);
}

#[test]
fn segments_outside_the_windows_are_dropped() {
    let mut bench = bench(Tracking::Strict);
    handshake(&mut bench);
    assert!(!send(&mut bench, C, ACK, 101 + 5000, 5001, 10), "beyond the server's window");
    assert!(!send(&mut bench, C, ACK, 101_u32.wrapping_sub(3000), 5001, 10), "long acknowledged");
    assert!(!send(&mut bench, C, ACK, 101, 5001 + 80_000, 10), "acknowledges what was never sent");
    assert!(!send(&mut bench, S, ACK, 5001 + 1100, 101, 10), "beyond the client's window");
    assert!(send(&mut bench, C, ACK, 101, 5001, 10), "what was dropped has changed nothing");
}

/// The client has forgotten a connection that the server still knows.
#[test]
fn an_older_connection_is_reset_in_a_handshake() {
    let mut bench = bench(Tracking::Strict);
    assert!(send(&mut bench, C, SYN, 1_000_000, 0, 0));
    let tcp = |flags| TcpSegment { seq: 5000, ack: 777, flags, window: 1000, ..TcpSegment::default() };
    let verdict = |bench: &mut Bench, flags| bench.check(&segment(S, tcp(flags))).verdict;
    assert_eq!(verdict(&mut bench, ACK), Verdict::Reject(Reject::TcpReset));
    assert_eq!(verdict(&mut bench, RST | ACK), Verdict::Drop(DropReason::State), "no reset answers a reset");
    assert!(send(&mut bench, C, SYN, 1_000_000, 0, 0));
    assert!(send(&mut bench, S, SYN | ACK, 9000, 1_000_001, 0));
    assert!(send(&mut bench, C, ACK, 1_000_001, 9001, 0));
    assert_eq!(verdict(&mut bench, ACK), Verdict::Drop(DropReason::State), "the handshake is complete");
}

/// The sender of a FIN need not wait for the window, in which it takes no room (pf does the same).
#[test]
fn a_fin_may_stand_behind_a_full_window() {
    let mut bench = bench(Tracking::Strict);
    handshake(&mut bench);
    assert!(!send(&mut bench, C, FIN | ACK, 101, 5001, 1001), "data beyond the window");
    assert!(send(&mut bench, C, FIN | ACK, 101, 5001, 1000));
    assert!(send(&mut bench, C, ACK, 1102, 5001, 0), "an acknowledgement after the FIN");
    assert!(send(&mut bench, C, FIN | ACK, 101, 5001, 1000), "a repetition");
    assert!(!send(&mut bench, C, ACK, 1102, 5001, 1), "data after the FIN");
    assert!(send(&mut bench, S, FIN | ACK, 5001, 1102, 0));
    assert!(send(&mut bench, C, ACK, 1102, 5002, 0));
    bench.now += 90_001;
    assert!(!send(&mut bench, C, ACK, 1102, 5002, 0), "both ends are closed");
}

#[test]
fn a_reset_must_be_exact() {
    let mut bench = bench(Tracking::Strict);
    handshake(&mut bench);
    assert!(!send(&mut bench, S, RST, 5001 + 500, 0, 0), "a blind reset (RFC 5961)");
    assert!(send(&mut bench, C, ACK, 101, 5001, 10));
    assert!(send(&mut bench, S, RST, 5001, 0, 0));
    bench.now += 90_001;
    assert!(!send(&mut bench, C, ACK, 111, 5001, 10), "the state of a reset connection ends early");
}

#[test]
fn a_refused_connection_is_reset_with_an_acknowledgement() {
    let mut bench = bench(Tracking::Strict);
    assert!(send(&mut bench, C, SYN, 100, 0, 0));
    assert!(send(&mut bench, S, RST | ACK, 0, 101, 0));
}

#[test]
fn a_half_closed_connection_carries_data() {
    let mut bench = bench(Tracking::Strict);
    handshake(&mut bench);
    assert!(send(&mut bench, C, FIN | ACK, 101, 5001, 0));
    assert!(send(&mut bench, S, ACK, 5001, 102, 800));
    bench.now += 800_000;
    assert!(send(&mut bench, S, ACK, 5801, 102, 100), "fifteen minutes after one FIN");
    assert!(send(&mut bench, S, FIN | ACK, 5901, 102, 0));
    assert!(send(&mut bench, C, ACK, 102, 5902, 0));
    bench.now += 90_001;
    assert!(!send(&mut bench, S, ACK, 5902, 102, 0));
}

#[test]
fn a_closed_connection_can_be_opened_again() {
    let mut bench = bench(Tracking::Strict);
    handshake(&mut bench);
    assert!(!send(&mut bench, C, SYN, 900_000, 0, 0), "an open one cannot");
    assert!(send(&mut bench, C, FIN | ACK, 101, 5001, 0));
    assert!(send(&mut bench, S, FIN | ACK, 5001, 102, 0));
    assert!(send(&mut bench, C, ACK, 102, 5002, 0));
    assert!(send(&mut bench, C, SYN, 900_000, 0, 0));
    assert!(send(&mut bench, S, SYN | ACK, 70_000, 900_001, 0));
    assert_eq!(bench.states(), 1);
}

#[test]
fn windows_are_scaled_only_if_both_ends_scale() {
    for (answer, far) in [(Some(4), true), (None, false)] {
        let mut bench = bench(Tracking::Strict);
        let syn = TcpSegment { seq: 100, flags: SYN, window: 1000, scale: Some(4), ..TcpSegment::default() };
        assert!(send_with(&mut bench, C, syn));
        let flags = SYN | ACK;
        let syn_ack = TcpSegment { seq: 5000, ack: 101, flags, window: 1000, payload: 0, scale: answer };
        assert!(send_with(&mut bench, S, syn_ack));
        assert!(send(&mut bench, C, ACK, 101, 5001, 0));
        assert_eq!(send(&mut bench, S, ACK, 5001 + 10_000, 101, 10), far, "{answer:?}");
    }
}

#[test]
fn sequence_numbers_wrap() {
    let mut bench = bench(Tracking::Strict);
    assert!(send(&mut bench, C, SYN, u32::MAX - 1, 0, 0));
    assert!(send(&mut bench, S, SYN | ACK, u32::MAX, u32::MAX, 0));
    assert!(send(&mut bench, C, ACK, u32::MAX, 0, 900));
    assert!(send(&mut bench, S, ACK, 0, 899, 900));
    assert!(send(&mut bench, C, ACK, 899, 900, 900));
    assert!(!send(&mut bench, C, ACK, 899 + 9000, 900, 900));
}

#[test]
fn sloppy_states_follow_flags_only() {
    let mut bench = bench(Tracking::Sloppy);
    handshake(&mut bench);
    assert!(send(&mut bench, C, ACK, 900_000_000, 77, 10));
    assert!(send(&mut bench, C, FIN | ACK, 1, 1, 0));
    assert!(send(&mut bench, S, FIN | ACK, 1, 1, 0));
    assert!(send(&mut bench, C, ACK, 1, 1, 0));
    bench.now += 90_001;
    assert!(!send(&mut bench, S, ACK, 1, 1, 0));
}

#[test]
fn an_unanswered_opening_expires_in_two_minutes() {
    let mut bench = bench(Tracking::Strict);
    assert!(send(&mut bench, C, SYN, 100, 0, 0));
    bench.now += 119_999;
    assert!(send(&mut bench, S, SYN | ACK, 5000, 101, 0));
    bench.now += 30_000;
    assert!(!send(&mut bench, C, ACK, 101, 5001, 0), "opening takes at most thirty seconds");
}
