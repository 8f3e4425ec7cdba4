//! Translated packets, byte by byte: every expected frame is built from its fields, with checksums computed in full.

use fullview_filter::state::WorkerLimits;
use fullview_plane::forward::{BurstFilter, Forwarder, WayOut};
use fullview_plane::verdict::{Punt, Reason};
use fullview_plane::view::{View, ViewReader};
use fullview_plane::wire::checksum::{Sum, pseudo_ipv4, pseudo_ipv6};
use fullview_plane::wire::ethernet::{EtherType, HEADER as ETHERNET};
use fullview_plane::wire::ipv4::{self, Ipv4Packet, protocol};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_table::group::Groups;
use proptest::prelude::*;

use crate::filter::{filtered, pf};
use crate::frames::*;
use crate::router::TO_HOST;

/// The port of every translated source.
const PORT: u16 = 50_000;
/// A service of the router's address, and where it is.
const SERVICE: u16 = 53;
const INSIDE: u16 = 5353;

const OUTSIDE6: &str = "2001:2:0:99::1";

/// Sources get the router's address on the way out by port 1; requests to it on port 0 go to a host behind port 1.
const RULES: &str = "nat on port1 inet from 198.18.0.0/16 to any -> 198.18.100.1 port 50000:50000
nat on port1 inet6 from 2001:2::/32 to any -> 2001:2:0:99::1 port 50000:50000
rdr on { port0, port3 } inet proto { tcp, udp } from any to 198.18.100.1 port 53 -> 198.19.7.7 port 5353
rdr on { port0, port3 } inet6 proto { tcp, udp } from any to 2001:2:0:99::1 port 53 -> 2001:2:0:1::7 port 5353
pass all
";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Tcp,
    Udp,
    /// Without a checksum.
    BareUdp,
    Echo,
    EchoReply,
}

/// All that a test packet says.
#[derive(Clone, Debug)]
struct Sketch {
    is_inet: bool,
    kind: Kind,
    source: (&'static str, u16),
    destination: (&'static str, u16),
    hops: u8,
    payload: Vec<u8>,
}

impl Sketch {
    fn protocol(&self) -> u8 {
        match (self.kind, self.is_inet) {
            (Kind::Tcp, _) => protocol::TCP,
            (Kind::Udp | Kind::BareUdp, _) => protocol::UDP,
            (Kind::Echo | Kind::EchoReply, true) => protocol::ICMP,
            (Kind::Echo | Kind::EchoReply, false) => protocol::ICMPV6,
        }
    }

    fn pseudo(&self, length: usize) -> Sum {
        let (source, destination) = (self.source.0, self.destination.0);
        match self.is_inet {
            true if self.protocol() == protocol::ICMP => Sum::ZERO,
            true => pseudo_ipv4(v4(source), v4(destination), self.protocol(), length as u16),
            false => pseudo_ipv6(v6(source), v6(destination), self.protocol(), length as u32),
        }
    }

    /// The transport header and the payload.
    fn datagram(&self) -> Vec<u8> {
        let [from, to] = [self.source.1, self.destination.1].map(u16::to_be_bytes);
        let length = (self.payload.len() as u16 + 8).to_be_bytes();
        let (header, checksum) = match self.kind {
            Kind::Tcp => {
                ([&from[..], &to, &[0, 0, 0, 9, 0, 0, 0, 0, 0x50, 2, 2, 0, 0, 0, 0, 0]].concat(), 16)
            }
            Kind::Udp | Kind::BareUdp => ([from, to, length, [0; 2]].concat(), 6),
            Kind::Echo => ([[if self.is_inet { 8 } else { 128 }, 0], [0; 2], from, [0, 1]].concat(), 2),
            Kind::EchoReply => ([[if self.is_inet { 0 } else { 129 }, 0], [0; 2], from, [0, 1]].concat(), 2),
        };
        let mut bytes = [header, self.payload.clone()].concat();
        let sum = self.pseudo(bytes.len()).bytes(&bytes).checksum();
        let sum = if self.kind == Kind::Udp && sum == 0 { u16::MAX } else { sum };
        let is_summed = self.kind != Kind::BareUdp;
        bytes[checksum..checksum + 2].copy_from_slice(&if is_summed { sum } else { 0 }.to_be_bytes());
        bytes
    }

    /// The packet with this part of the datagram.
    fn packet(&self, offset: usize, part: &[u8], more: bool) -> Vec<u8> {
        let is_fragment = offset > 0 || more;
        if self.is_inet { self.inet(offset, part, more) } else { self.inet6(offset, part, more, is_fragment) }
    }

    fn inet(&self, offset: usize, part: &[u8], more: bool) -> Vec<u8> {
        let mut bytes = [&[0; ipv4::HEADER], part].concat();
        let total = bytes.len() as u16;
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
        packet.set_header_len(ipv4::HEADER);
        packet.set_total_len(total);
        packet.set_identification(0x4321);
        packet.set_fragment(offset, more);
        packet.set_ttl(self.hops);
        packet.set_protocol(self.protocol());
        packet.set_source(v4(self.source.0));
        packet.set_destination(v4(self.destination.0));
        packet.fill_checksum();
        bytes
    }

    fn inet6(&self, offset: usize, part: &[u8], more: bool, is_fragment: bool) -> Vec<u8> {
        let field = (offset as u16 | u16::from(more)).to_be_bytes();
        let extension = [self.protocol(), 0, field[0], field[1], 0, 0, 7, 7];
        let extension = if is_fragment { &extension[..] } else { &[] };
        let mut bytes = [&[0; ipv6::HEADER], extension, part].concat();
        let payload = bytes.len() - ipv6::HEADER;
        let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
        packet.set_class_and_flow(0, 0);
        packet.set_payload_len(payload as u16);
        packet.set_next_header(if is_fragment { 44 } else { self.protocol() });
        packet.set_hop_limit(self.hops);
        packet.set_source(v6(self.source.0));
        packet.set_destination(v6(self.destination.0));
        bytes
    }

    fn whole(&self) -> Vec<u8> {
        self.packet(0, &self.datagram(), false)
    }

    /// The frame of the whole datagram, or those of two fragments.
    fn frames(&self, fragmented: bool) -> Vec<Vec<u8>> {
        let datagram = self.datagram();
        if !fragmented {
            return vec![self.frame(&self.whole())];
        }
        let (first, later) = datagram.split_at(24);
        [self.packet(0, first, true), self.packet(24, later, false)].map(|packet| self.frame(&packet)).into()
    }

    fn frame(&self, packet: &[u8]) -> Vec<u8> {
        ethernet(if self.is_inet { EtherType::IPV4 } else { EtherType::IPV6 }, packet)
    }

    /// The answer of the destination.
    fn answer(&self) -> Sketch {
        let (source, destination) = (self.destination, self.source);
        let kind = if self.kind == Kind::Echo { Kind::EchoReply } else { self.kind };
        Sketch { source, destination, kind, ..self.clone() }
    }
}

/// An ICMP error from a router on the path, about the beginning of a packet.
fn error(is_inet: bool, source: &str, destination: &str, quote: &[u8]) -> Vec<u8> {
    let kind = if is_inet { 11 } else { 3 };
    let mut message = [&[kind, 0, 0, 0, 0, 0, 0, 0], quote].concat();
    let pseudo = match is_inet {
        true => Sum::ZERO,
        false => pseudo_ipv6(v6(source), v6(destination), protocol::ICMPV6, message.len() as u32),
    };
    let sum = pseudo.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let shell = Sketch {
        is_inet,
        kind: Kind::Echo,
        source: (Box::leak(source.into()), 0),
        destination: (Box::leak(destination.into()), 0),
        hops: 60,
        payload: Vec::new(),
    };
    shell.frame(&shell.packet(0, &message, false))
}

#[derive(Clone, Debug)]
struct Case {
    sketch: Sketch,
    /// In VLAN 10 of port 0.
    is_tagged: bool,
    fragmented: bool,
    /// Bytes of the translated packet that an error quotes.
    quoted: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let kinds = prop::sample::select(vec![Kind::Tcp, Kind::Udp, Kind::BareUdp, Kind::Echo]);
    let shape = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (kinds, shape, any::<u16>(), prop::collection::vec(any::<u8>(), 0..80), 28usize..120).prop_map(
        |(kind, (is_inet, is_tagged, fragmented, redirected), port, mut payload, quoted)| {
            let kind = if kind == Kind::BareUdp && !is_inet { Kind::Udp } else { kind };
            let redirected = redirected && kind != Kind::Echo;
            let source = match (is_inet, is_tagged) {
                (true, false) => SRC,
                (true, true) => "198.18.10.5",
                (false, false) => SRC6,
                (false, true) => "2001:2:0:10::5",
            };
            let (outside, far) = if is_inet { (TO_HOST, DST) } else { (OUTSIDE6, DST6) };
            let destination = if redirected { (outside, SERVICE) } else { (far, 4000) };
            let destination = if kind == Kind::Echo { (destination.0, port) } else { destination };
            if fragmented {
                payload.resize(payload.len().max(40), 1);
            }
            let sketch = Sketch { is_inet, kind, source: (source, port), destination, hops: 9, payload };
            // Half a checksum of TCP cannot follow, and stays.
            let quoted = quoted.max(if is_inet { 28 } else { 48 });
            let is_halved = kind == Kind::Tcp && quoted == if is_inet { 37 } else { 57 };
            let quoted = quoted + usize::from(is_halved);
            Case { sketch, is_tagged, fragmented, quoted }
        },
    )
}

impl Case {
    /// What the destination's host sees.
    fn translated(&self) -> Sketch {
        let sketch = &self.sketch;
        let (outside, far) = if sketch.is_inet { (TO_HOST, DST) } else { (OUTSIDE6, DST6) };
        let destination = match sketch.kind {
            Kind::Echo => (far, PORT),
            _ if sketch.destination.0 == outside => (far, INSIDE),
            _ => sketch.destination,
        };
        Sketch { source: (outside, PORT), destination, ..sketch.clone() }
    }

    /// A frame on the link of the source.
    fn inside(&self, frame: Vec<u8>) -> Vec<u8> {
        if self.is_tagged { tagged(frame, 10) } else { frame }
    }

    /// Frames of the source, which leave by port 1.
    fn check_there(&self, forwarder: &mut Forwarder) {
        let frames = self.sketch.frames(self.fragmented).into_iter().map(|frame| (0, self.inside(frame)));
        let expected = self.translated().frames(self.fragmented).into_iter();
        let expected: Vec<_> = expected.map(|frame| sent(1, forwarded(frame, 1))).collect();
        assert_eq!(run(forwarder, &frames.collect::<Vec<_>>()), expected);
    }

    /// An answer, which goes back to the source.
    fn check_back(&self, forwarder: &mut Forwarder) {
        let answer = self.translated().answer();
        let expected = self.sketch.answer();
        let frame = self.inside(forwarded(expected.frame(&expected.whole()), 0));
        assert_eq!(run(forwarder, &[(1, answer.frame(&answer.whole()))]), [sent(0, frame)]);
    }

    /// An error about a packet of the source.
    fn check_error(&self, forwarder: &mut Forwarder) {
        let hop = if self.sketch.is_inet { "198.19.255.9" } else { "2001:2:0:1::255" };
        let translated = self.translated();
        let quote = |sketch: &Sketch| {
            let whole = Sketch { hops: 8, ..sketch.clone() }.whole();
            whole[..whole.len().min(self.quoted)].to_vec()
        };
        let is_inet = self.sketch.is_inet;
        let outer = error(is_inet, hop, translated.source.0, &quote(&translated));
        // The error comes from the host that the source believes to talk to, if that host is translated.
        let far = if self.sketch.destination.0 == translated.destination.0 {
            hop
        } else {
            self.sketch.destination.0
        };
        let expected = error(is_inet, far, self.sketch.source.0, &quote(&self.sketch));
        assert_eq!(run(forwarder, &[(1, outer)]), [sent(0, self.inside(forwarded(expected, 0)))]);
    }
}

proptest! {
    #[test]
    fn translated_frames_are_those_of_translated_packets(case in cases()) {
        let mut forwarder = filtered(pf(RULES));
        case.check_there(&mut forwarder);
        case.check_back(&mut forwarder);
        case.check_there(&mut forwarder);
        case.check_error(&mut forwarder);
    }

    /// Packets of many flows in one burst, in any order.
    #[test]
    fn packets_of_one_burst_are_translated_one_by_one(cases in prop::collection::vec(cases(), 1..40)) {
        let rules = RULES.replace(" port 50000:50000", "");
        let mut forwarder = filtered(pf(rules.leak()));
        let one = |case: &Case| (0, case.inside(case.sketch.frame(&case.sketch.whole())));
        let frames: Vec<_> = cases.iter().map(one).collect();
        for (case, fate) in cases.iter().zip(run(&mut forwarder, &frames)) {
            let Fate::Sent { port: 1, frame } = &fate else { panic!("{case:?}: {fate:?}") };
            let mut expected = case.translated();
            let at = ETHERNET + if expected.is_inet { ipv4::HEADER } else { ipv6::HEADER };
            let port = if expected.kind == Kind::Echo { at + 4 } else { at };
            expected.source.1 = u16::from_be_bytes([frame[port], frame[port + 1]]);
            prop_assert_eq!(frame, &forwarded(expected.frame(&expected.whole()), 1), "{:?}", case);
        }
    }
}

/// Both zeros of a checksum are one number, and a translation that is undone leaves the other one.
fn with_one_zero(frame: &[u8]) -> Vec<[u8; 2]> {
    let words = frame.chunks(2).map(|word| [word[0], word.get(1).copied().unwrap_or_default()]);
    words.map(|word| if word == [0xff; 2] { [0; 2] } else { word }).collect()
}

/// A frame with some bytes of the packet changed, and with fewer bytes.
fn damaged(mut frame: Vec<u8>, changes: &[(usize, u8)], cut: usize) -> Vec<u8> {
    for (at, byte) in changes {
        let at = ETHERNET + at % (frame.len() - ETHERNET);
        frame[at] ^= byte;
    }
    if frame[12..14] == [8, 0] {
        let length = 4 * usize::from(frame[ETHERNET] & 15);
        if (ipv4::HEADER..frame.len() - ETHERNET).contains(&length) {
            Ipv4Packet::new_unchecked(&mut frame[ETHERNET..]).fill_checksum();
        }
    }
    frame.truncate(frame.len() - cut.min(20));
    frame
}

proptest! {
    /// Damaged packets of translated flows, and damaged errors about them: all come back, and those that are not forwarded are
    /// as they came.
    #[test]
    fn damaged_frames_never_panic_and_come_back_unchanged(
        case in cases(),
        damages in prop::collection::vec((prop::collection::vec((any::<usize>(), 1u8..), 0..4), 0usize..60), 8),
    ) {
        let mut forwarder = filtered(pf(RULES));
        case.check_there(&mut forwarder);
        let (translated, is_inet) = (case.translated(), case.sketch.is_inet);
        let hop = if is_inet { "198.19.255.9" } else { "2001:2:0:1::255" };
        let quote = translated.whole();
        let answer = translated.answer();
        let frames: Vec<_> = damages.chunks(2).flat_map(|pair| {
            let about = error(is_inet, hop, translated.source.0, &quote);
            let frames = [answer.frame(&answer.whole()), about];
            frames.into_iter().zip(pair).map(|(frame, (changes, cut))| (1, damaged(frame, changes, *cut)))
        }).collect();
        let (fates, seen) = run_all(&mut forwarder, &frames);
        for ((fate, seen), (_, frame)) in fates.iter().zip(&seen).zip(&frames) {
            if let Fate::Rejected(_) = fate {
                prop_assert_eq!(with_one_zero(&seen.frame), with_one_zero(frame), "{:?}", fate);
            }
        }
    }
}

fn udp(source: (&'static str, u16), destination: (&'static str, u16), hops: u8) -> Vec<u8> {
    let sketch = Sketch { is_inet: true, kind: Kind::Udp, source, destination, hops, payload: vec![7; 9] };
    sketch.frame(&sketch.whole())
}

/// The host answers what came in, and forwards what will leave.
#[test]
fn rejected_packets_come_back_unchanged_unless_the_host_forwards_them() {
    let rules = "nat on { port1, port2 } inet from 198.18.0.0/24 to any -> 198.18.100.1 port 50000:50000
rdr on port1 inet proto udp from any to 198.18.100.1 port 1 -> 198.18.102.1
rdr on port1 inet proto udp from any to 198.18.100.1 port 2 -> 198.18.104.1 port 2000
rdr on port1 inet proto udp from any to 198.18.100.1 port 3 -> 198.18.100.1 port 3000
rdr on port1 inet proto udp from any to 198.18.100.1 port 4 -> 198.18.0.9
block return out quick on port0 inet proto udp to any port 4
pass all
";
    let to = |port| udp((DST, 9), (TO_HOST, port), 64);
    for (port, frame, expected, left) in [
        (1, to(1), dropped(Reason::Unreachable), to(1)),
        (1, to(2), punted(Punt::Glean), udp((DST, 9), ("198.18.104.1", 2000), 64)),
        (1, to(3), punted(Punt::Local), to(3)),
        (1, to(4), Fate::Rejected(fullview_plane::verdict::Verdict::Reject(port_unreachable())), to(4)),
        (0, udp((SRC, 9), (DST, 8), 1), dropped(Reason::TtlExpired), udp((SRC, 9), (DST, 8), 1)),
        (
            0,
            udp((SRC, 9), ("198.18.104.1", 8), 9),
            punted(Punt::Glean),
            udp((TO_HOST, PORT), ("198.18.104.1", 8), 9),
        ),
    ] {
        for control in [None, Some(10)] {
            let tag = |frame: &Vec<u8>| match control {
                Some(control) if port == 0 => tagged(frame.clone(), control),
                _ => frame.clone(),
            };
            let (fates, seen) = run_all(&mut filtered(pf(rules)), &[(port, tag(&frame))]);
            assert_eq!(fates[0], expected);
            assert_eq!(seen[0].frame, tag(&left), "{expected:?}");
        }
    }
}

fn port_unreachable() -> fullview_plane::verdict::RejectAnswer {
    fullview_plane::verdict::RejectAnswer::unreachable(3)
}

/// The host would choose another member of a group for the translated packet.
#[test]
fn a_translated_packet_that_the_host_forwards_has_the_way_out_that_was_judged() {
    let mut groups = Groups::default();
    let mut parts = crate::router::parts();
    crate::router::with_group(&mut parts, &mut groups);
    (parts.interfaces[1].mtu, parts.interfaces[2].mtu) = (100, 100);
    let nat = "nat on port1 inet from 198.18.0.0/24 to any -> 198.18.100.1\nblock all\npass in on port0\npass out on port1\n";
    let mut forwarder = Forwarder::new(ViewReader::fixed(View::new(parts).unwrap()));
    let limits = WorkerLimits::default();
    forwarder.set_filter(BurstFilter::new(&crate::filter::enforceable(pf(nat)).unwrap(), limits, 1));
    let mut translated = 0;
    for port in 1000..1100 {
        let (source, destination) = ((SRC, port), (DST, 8));
        let sketch =
            Sketch { is_inet: true, kind: Kind::Udp, source, destination, hops: 9, payload: vec![7; 200] };
        let (fates, seen) = run_all(&mut forwarder, &[(0, sketch.frame(&sketch.whole()))]);
        let expected = if fates[0] == dropped(Reason::NeedsFragments) { WayOut::By(1) } else { WayOut::None };
        translated += u32::from(expected == WayOut::By(1));
        assert_eq!(seen[0].way, expected, "{fates:?}");
    }
    assert!((20..80).contains(&translated), "{translated} of 100 flows go by port 1");
}

/// A host that knows of a flow sends an error about it to its sender, and to others (CVE-2019-5598).
#[test]
fn an_error_about_a_flow_passes_to_its_sender_only() {
    let rules = "block all\npass in on port0 proto udp keep state\npass out on port1 proto udp keep state";
    let mut forwarder = filtered(pf(rules));
    let (source, destination) = ((SRC, 1000), (DST, 8));
    let sketch =
        Sketch { is_inet: true, kind: Kind::Udp, source, destination, hops: 9, payload: vec![7; 20] };
    let there = run(&mut forwarder, &[(0, sketch.frame(&sketch.whole()))]);
    assert!(matches!(there[0], Fate::Sent { port: 1, .. }), "{there:?}");
    for other in ["198.18.0.77", "198.18.2.9"] {
        let fate = run(&mut forwarder, &[(1, error(true, "198.19.255.9", other, &sketch.whole()))]);
        assert_eq!(fate, [dropped(Reason::FilterState)], "{other}");
    }
    let fate = run(&mut forwarder, &[(1, error(true, "198.19.255.9", SRC, &sketch.whole()))]);
    assert!(matches!(fate[0], Fate::Sent { port: 0, .. }), "{fate:?}");
}
