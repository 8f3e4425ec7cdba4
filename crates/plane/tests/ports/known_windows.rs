//! The classifier compares the segments of an established connection with its windows as the filter's states do: what it forwards
//! they pass, and what they refuse reaches neither end.

use fullview_filter::address::Address;
use fullview_filter::packet::protocol::TCP;
use fullview_filter::packet::{Direction, Packet, Pass, TcpSegment, Transport};
use fullview_filter::rule::Tracking;
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::Verdict;
use fullview_plane::kernel_flows::PortProgram;
use fullview_testnet::in_namespace;

use crate::known_flow::{ACK, FlowLab, PUSH, SYN, edit, pass_with_states};
use crate::packets::{tcp, tcp6};

/// Segments of each connection.
const SEGMENTS: usize = 160;
/// The shifts of both ends' windows.
const SCALES: [u8; 2] = [3, 0];

/// A filter in memory, which judges every packet.
struct Truth {
    rules: RuleSet,
    worker: FilterWorker,
}

impl Truth {
    fn new() -> Truth {
        let worker = FilterWorker::new(WorkerLimits::default(), 1, 1);
        Truth { rules: pass_with_states(Tracking::Strict), worker }
    }

    fn passes(&mut self, is_back: bool, segment: TcpSegment) -> bool {
        let ends = [(Address::inet(1), 1), (Address::inet(2), 2)];
        let [from, to] = if is_back { [1, 0] } else { [0, 1] };
        [(Direction::In, from), (Direction::Out, to)].into_iter().all(|(direction, interface)| {
            let pass = Pass { direction, interface: interface as u16, received_on: from as u16 };
            let udp = Packet::udp(pass, ends[from], ends[to]);
            let mut packet = Packet { protocol: TCP, transport: Transport::Tcp(segment), ..udp };
            self.rules.check(&mut self.worker, 1, &mut packet).verdict == Verdict::Pass
        })
    }
}

/// A frame with a segment of a connection of this family.
fn frame(is_inet6: bool, is_back: bool, segment: &TcpSegment) -> Vec<u8> {
    let TcpSegment { seq, ack, flags, window, payload, scale } = *segment;
    let options = scale.map_or(Vec::new(), |scale| vec![1, 3, 3, scale]);
    let bytes = options.len() + usize::from(payload);
    let (plain, addresses, length) = match is_inet6 {
        true => (tcp6("2001:db8:2::1", flags, bytes), 22, 16),
        false => (tcp("198.19.0.1", flags, bytes), 26, 4),
    };
    let ports = addresses + 2 * length;
    let header =
        [&seq.to_be_bytes()[..], &ack.to_be_bytes(), &[0x50 + 4 * options.len() as u8, flags]].concat();
    let mut frame = edit(edit(plain, ports + 4, &header), ports + 14, &window.to_be_bytes());
    frame[ports + 20..][..options.len()].copy_from_slice(&options);
    if is_back {
        frame[addresses..ports].rotate_left(length);
        frame[ports..ports + 4].rotate_left(2);
    }
    frame
}

/// Numbers that follow from the one before.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) % u64::from(end)) as u32
    }

    /// One in so many.
    fn seldom(&mut self, of: u32) -> bool {
        self.below(of) == 0
    }
}

/// Both ends of a connection: the sequence number that each sends next.
struct Connection {
    next: [u32; 2],
    numbers: Numbers,
}

impl Connection {
    /// A segment that is likely to be valid.
    fn segment(&mut self, is_back: bool) -> TcpSegment {
        let [from, to] = if is_back { [1, 0] } else { [0, 1] };
        let numbers = &mut self.numbers;
        let payload = if numbers.seldom(3) { 0 } else { numbers.below(400) as u16 };
        let repeats = if numbers.seldom(4) { numbers.below(9000) } else { 0 };
        let beyond = if numbers.seldom(6) { numbers.below(1 << 19) } else { 0 };
        let acked = if numbers.seldom(6) { numbers.below(1 << 18).wrapping_sub(1 << 17) } else { 0 };
        TcpSegment {
            seq: self.next[from].wrapping_sub(repeats).wrapping_add(beyond),
            ack: self.next[to].wrapping_add(acked),
            flags: if numbers.seldom(3) { ACK | PUSH } else { ACK },
            window: if numbers.seldom(8) { 0 } else { 500 + numbers.below(3000) as u16 },
            payload,
            scale: None,
        }
    }

    /// Notes a segment that passed. One without data may lie anywhere.
    fn advance(&mut self, is_back: bool, segment: &TcpSegment) {
        let next = &mut self.next[usize::from(is_back)];
        let end = segment.seq.wrapping_add(segment.payload.into());
        if segment.payload > 0 && end.wrapping_sub(*next) as i32 > 0 {
            *next = end;
        }
    }
}

/// The segments with which a connection with these shifts begins, near the end of the sequence numbers.
fn handshake(scales: [u8; 2]) -> ([(bool, TcpSegment); 3], [u32; 2]) {
    let [first, second] = [u32::MAX - 2000, u32::MAX - 500];
    let segment = |flags, seq, ack, scale| TcpSegment { seq, ack, flags, window: 4000, payload: 0, scale };
    let segments = [
        (false, segment(SYN, first, 0, Some(scales[0]))),
        (true, segment(SYN | ACK, second, first + 1, Some(scales[1]))),
        (false, segment(ACK, first + 1, second + 1, None)),
    ];
    (segments, [first + 1, second + 1])
}

fn compares_as_states_do(program: PortProgram, is_inet6: bool) {
    let (mut lab, mut truth) = (FlowLab::new(program, Tracking::Strict), Truth::new());
    let (begin, next) = handshake(SCALES);
    let mut connection = Connection { next, numbers: Numbers(u64::from(is_inet6)) };
    let (mut valid, mut refused, mut forwarded) = (0, 0, 0);
    for number in 0..SEGMENTS {
        let is_back = connection.numbers.seldom(2);
        let (is_back, segment) =
            begin.get(number).copied().unwrap_or_else(|| (is_back, connection.segment(is_back)));
        let passes = truth.passes(is_back, segment);
        let (frames, known) = lab.carry_from(is_back, &frame(is_inet6, is_back, &segment));
        assert_eq!(frames.len(), usize::from(passes), "{number}: {segment:?}, known {known}");
        (valid, refused, forwarded) =
            (valid + u64::from(passes), refused + u64::from(!passes), forwarded + known);
        if passes {
            connection.advance(is_back, &segment);
        }
    }
    assert!(refused > 10 && valid > 100, "{valid} valid, {refused} refused");
    assert!(forwarded > valid / 2, "{forwarded} of {valid} were forwarded by the classifier");
}

#[test]
fn segments_are_compared_with_windows() {
    for is_inet6 in [false, true] {
        in_namespace(|| compares_as_states_do(PortProgram::Tc, is_inet6));
    }
}

#[test]
fn segments_are_compared_with_windows_in_the_driver() {
    for is_inet6 in [false, true] {
        in_namespace(|| compares_as_states_do(PortProgram::Xdp, is_inet6));
    }
}

/// A segment with a flag that the worker decides about.
const ECHO: u8 = 0x40;

/// Each segment moves the windows by a gigabyte, so that after three the worker could no longer tell which number is the later one.
fn moves_far(program: PortProgram) {
    let (mut lab, mut truth) = (FlowLab::new(program, Tracking::Strict), Truth::new());
    let (begin, [mut sent, answer]) = handshake([14; 2]);
    let mut forwarded = 0;
    let mut carry = |is_back, segment: TcpSegment| {
        assert!(truth.passes(is_back, segment), "{segment:?}");
        let (frames, known) = lab.carry_from(is_back, &frame(false, is_back, &segment));
        assert_eq!(frames.len(), 1, "{segment:?}, known {known}");
        forwarded += known;
    };
    begin.into_iter().for_each(|(is_back, segment)| carry(is_back, segment));
    let segment =
        |seq, ack, flags, payload| TcpSegment { seq, ack, flags, window: u16::MAX, payload, scale: None };
    let window = u32::from(u16::MAX) << 14;
    let mut limit = sent.wrapping_add(4000);
    for steps in [1, 1, 1, 2, 3, 4, 5, 6] {
        for _ in 0..steps {
            carry(false, segment(limit.wrapping_sub(100), answer, ACK, 100));
            sent = limit;
            carry(true, segment(answer, sent, ACK, 0));
            limit = sent.wrapping_add(window);
        }
        carry(false, segment(sent, answer, ACK | ECHO, 100));
        sent = sent.wrapping_add(100);
        carry(true, segment(answer, sent, ACK | ECHO, 0));
        limit = sent.wrapping_add(window);
    }
    assert!(forwarded > 20, "{forwarded}");
}

#[test]
fn windows_move_by_more_than_sequence_numbers_tell_apart() {
    for program in [PortProgram::Tc, PortProgram::Xdp] {
        in_namespace(|| moves_far(program));
    }
}
