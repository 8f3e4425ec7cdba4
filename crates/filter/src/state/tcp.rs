//! Tracks the sequence numbers and windows of TCP connections, after van Rooij, "Real stateful TCP packet filtering in IP
//! Filter" (2001): each end may send up to the end of the window that the other one has opened, may repeat at most one
//! window, and may acknowledge only what was sent.

use super::entry::{HotState, NO_SCALE, Peer};
use super::phase::Phase;
use super::windows::{FlowWindows, WindowEnd};
use crate::packet::TcpSegment;
use crate::packet::protocol::tcp::{ACK, FIN, RST, SYN};

/// What a segment means for its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// It belongs to the connection.
    Valid,
    /// It contradicts the connection.
    Invalid,
    /// It contradicts a handshake: its sender may know an older connection between the same ports (RFC 9293, section 3.5.2).
    OtherHandshake,
    /// It opens a new connection between ends whose last one is over (RFC 9293, section 3.6.1).
    Reopens,
}

/// How far an acknowledgement may lie from what was seen: a window without scaling and a packet.
const ACK_SLACK: u32 = 0xffff + 1500;
/// The shift assumed when a connection was not seen from its start, the largest that RFC 7323 allows.
const UNKNOWN_SCALE: u8 = 14;

/// The ends of a connection after its first segment.
pub(super) fn open(segment: &TcpSegment) -> [Peer; 2] {
    let scale = segment.scale.unwrap_or(NO_SCALE);
    let sender = Peer {
        sent: segment.seq,
        limit: end(segment).wrapping_add(1),
        window: unscaled(segment.window.max(1), scale),
        scale,
        phase: Phase::Opened,
    };
    [sender, Peer { sent: 0, limit: 1, window: 1, scale: NO_SCALE, phase: Phase::Silent }]
}

/// Judges a segment that goes the way of the first one (`from` is 0) or the other way (1), and follows it if it is valid.
#[inline(never)]
pub(super) fn track(state: &mut HotState, from: usize, segment: &TcpSegment) -> Tracked {
    match judge(state, from, segment) {
        Ok(ends) => {
            set_ends(state, from, ends);
            Tracked::Valid
        }
        Err(tracked) => tracked,
    }
}

/// Follows a plain segment that is valid and changes no phase. Returns what both ends were, for [`set_ends`].
#[inline(always)]
pub(super) fn follow(state: &mut HotState, from: usize, segment: &TcpSegment) -> Option<[Peer; 2]> {
    let before = ends(state, from);
    // Where flags and phases are constants, the compiler leaves out what they are tested for.
    let segment = TcpSegment { flags: ACK, scale: None, ..*segment };
    let after = if state.is_established() {
        let established = before.map(|end| Peer { phase: Phase::Established, ..end });
        follow_windows(established, &segment, false).ok()?
    } else {
        follow_other(state, from, &segment)?
    };
    set_ends(state, from, after);
    Some(before)
}

/// What both ends of a connection in any phases are after a plain segment, if it is valid and changes none.
#[inline(never)]
fn follow_other(state: &HotState, from: usize, segment: &TcpSegment) -> Option<[Peer; 2]> {
    let after = judge(state, from, segment).ok()?;
    let are_same = ends(state, from).map(|end| end.phase) == after.map(|end| end.phase);
    are_same.then_some(after)
}

/// The end that a segment comes from, and the other one.
#[inline(always)]
fn ends(state: &HotState, from: usize) -> [Peer; 2] {
    [state.peer(from), state.peer(from ^ 1)]
}

#[inline(always)]
pub(super) fn set_ends(state: &mut HotState, from: usize, [source, target]: [Peer; 2]) {
    state.set_peer(from, source);
    state.set_peer(from ^ 1, target);
}

/// What both ends are after a segment, if it is valid.
#[inline(always)]
fn judge(state: &HotState, from: usize, segment: &TcpSegment) -> Result<[Peer; 2], Tracked> {
    let [source, target] = ends(state, from);
    let over = source.phase >= Phase::Finished && target.phase >= Phase::Finished;
    if over && segment.flags & (SYN | ACK) == SYN {
        return Err(Tracked::Reopens);
    }
    let ends = [source, target];
    let followed =
        if state.has_windows() { follow_windows(ends, segment, state.is_midstream()) } else { Ok(ends) };
    let [mut source, mut target] = followed?;
    advance(&mut source, &mut target, segment, state);
    Ok([source, target])
}

/// The segment's place among sequence numbers, corrected for those that carry none.
struct Span {
    first: u32,
    /// The sequence number after its data: a FIN may stand behind a full window, as in pf.
    data_end: u32,
    end: u32,
    ack: u32,
}

/// The ends are passed as values, so that they stay in registers.
#[inline(always)]
fn follow_windows(
    [source, target]: [Peer; 2],
    segment: &TcpSegment,
    midstream: bool,
) -> Result<[Peer; 2], Tracked> {
    let [mut source, mut target] = match source.phase {
        Phase::Silent => greet([source, target], segment, midstream),
        _ => [source, target],
    };
    let shifts = shifts(&source, &target, segment, midstream);
    let span = span(&source, &target, segment);
    if !fits(&source, &target, segment, &span, shifts) && !fits_loosely(&source, &target, &span) {
        let is_handshake = source.phase == Phase::Opened && target.phase == Phase::Opened;
        let may_reset = is_handshake && segment.flags & RST == 0;
        return Err(if may_reset { Tracked::OtherHandshake } else { Tracked::Invalid });
    }
    let is_syn = segment.flags & SYN != 0;
    let window = if is_syn { unscaled(segment.window, source.scale) } else { segment.window };
    source.window = source.window.max(window);
    if after(span.end, source.sent) {
        source.sent = span.end;
    }
    let opened = u32::from(segment.window) << shifts.0;
    if !after(target.limit, span.ack.wrapping_add(opened)) {
        target.limit = span.ack.wrapping_add(opened.max(1));
    }
    Ok([source, target])
}

/// Takes the first segment of the answering end: its sequence numbers start here, and both ends now know whether windows
/// are scaled.
#[cold]
#[inline(never)]
fn greet([mut source, mut target]: [Peer; 2], segment: &TcpSegment, midstream: bool) -> [Peer; 2] {
    if segment.flags & SYN != 0 && target.scale != NO_SCALE {
        match segment.scale {
            Some(scale) => source.scale = scale,
            None => forget_scale(&mut target),
        }
    }
    let (_, shift) = shifts(&source, &target, &TcpSegment { flags: 0, ..*segment }, midstream);
    source.sent = segment.seq;
    source.phase = Phase::Opened;
    let limit = end(segment).wrapping_add((u32::from(target.window) << shift).max(1));
    if source.limit == 1 || !after(source.limit, limit) {
        source.limit = limit;
    }
    [source, target]
}

fn forget_scale(peer: &mut Peer) {
    let window = u32::from(peer.window) << peer.scale;
    peer.window = window.min(u32::from(u16::MAX)) as u16;
    peer.scale = NO_SCALE;
}

/// The shifts of the source's and the target's windows. The window of a SYN is never scaled.
#[inline(always)]
fn shifts(source: &Peer, target: &Peer, segment: &TcpSegment, midstream: bool) -> (u8, u8) {
    if midstream {
        return (UNKNOWN_SCALE, UNKNOWN_SCALE);
    }
    let scaled = source.scale != NO_SCALE && target.scale != NO_SCALE && segment.flags & SYN == 0;
    if scaled { (source.scale, target.scale) } else { (0, 0) }
}

#[inline(always)]
fn span(source: &Peer, target: &Peer, segment: &TcpSegment) -> Span {
    let has_ack = segment.flags & ACK != 0;
    // Some systems reset with an acknowledgement of zero.
    let resets_zero = segment.flags & RST != 0 && segment.ack == 0;
    let ack = if has_ack && !resets_zero { segment.ack } else { target.sent };
    let (end, fin) = (end(segment), u32::from(segment.flags & FIN != 0));
    // A segment without data may lie anywhere, as keepalives and resets do; other tests decide.
    if segment.seq == end {
        return Span { first: source.sent, data_end: data_sent(source), end: source.sent, ack };
    }
    Span { first: segment.seq, data_end: end.wrapping_sub(fin), end, ack }
}

#[inline(always)]
fn fits(source: &Peer, target: &Peer, segment: &TcpSegment, span: &Span, shifts: (u8, u8)) -> bool {
    let repeatable = u32::from(target.window) << shifts.1;
    let ahead = span.ack.wrapping_sub(target.sent) as i32;
    let exact = segment.seq.wrapping_sub(source.sent).wrapping_add(1) <= 2;
    !after(span.data_end, source.limit)
        && !after(data_sent(source).wrapping_sub(repeatable), span.first)
        && ahead <= ACK_SLACK as i32
        && -i64::from(ahead) <= i64::from(ACK_SLACK) << shifts.0
        && (segment.flags & RST == 0 || exact)
}

/// Before the other end has answered and after the connection is over, less is known.
#[inline(always)]
fn fits_loosely(source: &Peer, target: &Peer, span: &Span) -> bool {
    let unsure =
        target.phase < Phase::Opened || target.phase >= Phase::Finished || source.phase >= Phase::Finished;
    unsure
        && !after(span.data_end, source.limit.wrapping_add(ACK_SLACK))
        && !after(source.sent.wrapping_sub(ACK_SLACK), span.first)
}

/// Follows the flags.
#[inline(always)]
fn advance(source: &mut Peer, target: &mut Peer, segment: &TcpSegment, state: &HotState) {
    source.phase = source.phase.max(Phase::Opened);
    if segment.flags & FIN != 0 {
        source.phase = source.phase.max(Phase::Closing);
    }
    if segment.flags & ACK != 0 {
        let all = !state.has_windows() || !after(target.sent, segment.ack);
        acknowledge(source, target, all, state.is_sloppy());
    }
    if segment.flags & RST != 0 {
        (source.phase, target.phase) = (Phase::Reset, Phase::Reset);
    }
}

/// If only one direction comes by here (`sloppy`), its acknowledgements show that the other end has answered.
#[inline(always)]
fn acknowledge(source: &mut Peer, target: &mut Peer, all: bool, sloppy: bool) {
    match target.phase {
        Phase::Silent if sloppy => {
            source.phase = source.phase.max(Phase::Established);
            target.phase = Phase::Established;
        }
        Phase::Opened if all => target.phase = Phase::Established,
        Phase::Closing if all => target.phase = Phase::Finished,
        _ => {}
    }
}

/// The sequence number after the segment. SYN and FIN take one each.
#[inline(always)]
fn end(segment: &TcpSegment) -> u32 {
    let control = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
    segment.seq.wrapping_add(u32::from(segment.payload)).wrapping_add(control)
}

/// The sequence number after the last byte that an end has sent, before its FIN.
#[inline(always)]
fn data_sent(peer: &Peer) -> u32 {
    peer.sent.wrapping_sub(u32::from(peer.phase >= Phase::Closing))
}

/// Whether sequence number `a` lies after `b` (RFC 9293, section 3.4).
#[inline(always)]
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// The sequence number that lies after the other one.
pub(super) fn later(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}

/// A window as its sender will state it in later segments: rounded up to steps of its scale.
fn unscaled(window: u16, scale: u8) -> u16 {
    let shift = if scale == NO_SCALE { 0 } else { scale };
    ((u32::from(window) + (1 << shift) - 1) >> shift) as u16
}

/// The windows of an established connection: first those of the end that segments come from.
pub(super) fn windows(state: &HotState, from: usize) -> FlowWindows {
    let [source, target] = ends(state, from);
    let (shift, other) = shifts(&source, &target, &TcpSegment::default(), false);
    let end =
        |peer: Peer, shift| WindowEnd { sent: peer.sent, limit: peer.limit, window: peer.window, shift };
    FlowWindows([end(source, shift), end(target, other)])
}

/// Moves windows forward to where others are.
pub(super) fn raise(state: &mut HotState, from: usize, FlowWindows(others): &FlowWindows) {
    for (end, other) in [from, from ^ 1].into_iter().zip(others) {
        let peer = state.peer(end);
        let (sent, limit) = (later(peer.sent, other.sent), later(peer.limit, other.limit));
        state.set_peer(end, Peer { sent, limit, window: peer.window.max(other.window), ..peer });
    }
}

/// Whether a plain segment that was followed is sure to be valid once more, as it repeats no more than a window.
#[inline(always)]
pub(super) fn may_repeat(state: &HotState, from: usize, segment: &TcpSegment) -> bool {
    let [source, target] = ends(state, from);
    let (_, shift) = shifts(&source, &target, &TcpSegment { flags: ACK, ..*segment }, state.is_midstream());
    !state.has_windows() || u32::from(segment.payload) <= u32::from(target.window) << shift
}

/// Whether a segment that an ICMP error quotes can be one that the source has sent.
pub(super) fn was_sent(state: &HotState, from: usize, seq: u32) -> bool {
    let (source, target) = (state.peer(from), state.peer(from ^ 1));
    let none = TcpSegment::default();
    let (_, shift) = shifts(&source, &target, &none, state.is_midstream());
    let repeatable = u32::from(target.window) << shift;
    !state.has_windows()
        || !after(seq, source.limit) && !after(data_sent(&source).wrapping_sub(repeatable), seq)
}

#[cfg(test)]
mod tests {
    use super::super::entry::{PassBinding, StateFlags, StateTranslation};
    use super::super::flow_key::FlowKey;
    use super::*;
    use crate::address::Address;
    use crate::packet::protocol::TCP;
    use crate::rule::Tracking;
    use proptest::prelude::*;

    /// Sequence numbers within a few windows of each other, also around zero.
    fn numbers() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0_u32), 0_u32..200, 0_u32..200_000].prop_map(|number| number.wrapping_sub(100))
    }

    prop_compose! {
        fn peers()(
            sent in numbers(),
            limit in numbers(),
            window in prop_oneof![0_u16..200, any::<u16>()],
            scale in 0_u8..=NO_SCALE,
            phase in prop_oneof![
                4 => Just(Phase::Established),
                1 => prop::sample::select(vec![
                    Phase::Silent, Phase::Opened, Phase::Closing, Phase::Finished, Phase::Reset
                ]),
            ],
        ) -> Peer {
            Peer { sent, limit, window, scale, phase }
        }
    }

    prop_compose! {
        fn states()(
            peers in [peers(), peers()],
            tracking in prop_oneof![
                4 => Just(Tracking::Strict), 1 => Just(Tracking::Sloppy), 1 => Just(Tracking::BothEnds)
            ],
            midstream in prop::bool::weighted(0.2),
        ) -> HotState {
            let (source, destination) = (Address::inet(1), Address::inet(2));
            let key = FlowKey { source, destination, source_port: 1, destination_port: 2, protocol: TCP };
            let (binding, translation) = (PassBinding::Both, StateTranslation::No);
            let flags = StateFlags { binding, translation, if_bound: false, tracking, midstream };
            let mut state = HotState::new(key, flags, 0);
            set_ends(&mut state, 0, peers);
            state
        }
    }

    prop_compose! {
        fn plain_segments()(
            seq in numbers(),
            ack in numbers(),
            push in any::<bool>(),
            window in any::<u16>(),
            payload in prop_oneof![Just(0_u16), 0_u16..300, any::<u16>()],
        ) -> TcpSegment {
            let flags = if push { ACK | 8 } else { ACK };
            TcpSegment { seq, ack, flags, window, payload, scale: None }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

        #[test]
        fn plain_segments_are_followed_as_any_others(
            mut state in states(), from in 0_usize..2, segment in plain_segments()
        ) {
            let (mut other, before) = (state, ends(&state, from));
            let is_valid = track(&mut other, from, &segment) == Tracked::Valid;
            let changes_phase = other.phases() != state.phases();
            let followed = follow(&mut state, from, &segment);
            prop_assert_eq!(followed.is_some(), is_valid && !changes_phase);
            let expected = if followed.is_some() { ends(&other, from) } else { before };
            prop_assert_eq!(ends(&state, from), expected);
            if followed.is_some() && may_repeat(&state, from, &segment) {
                prop_assert!(follow(&mut state, from, &segment).is_some());
                prop_assert_eq!(ends(&state, from), expected);
            }
        }
    }
}
