//! What the filter costs the loop: `cargo run --release -p fullview-plane --example known_flows [FLOWS [MILLISECONDS [CASE]]]` prints
//! nanoseconds a packet for writing the frames of flows, of UDP and then of TCP, and forwarding them in bursts of 64: without a
//! filter, also with each instruction set of the parser; with one rule, which keeps states or not, with and without known flows, and
//! these with and without vectors; and with one that gives all sources another address. The cases, or those whose names begin with
//! CASE, take turns of one or more milliseconds, and the medians count.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use fullview_filter::address::Address;
use fullview_filter::rule::{
    AddressPool, CompiledRule, PoolOrder, PortChoice, PortRange, RuleAction, Side, StateOptions, Translation,
};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::WorkerLimits;
use fullview_filter::state::flow::FlowIsa;
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, Burst, Packet};
use fullview_plane::forward::{BurstFilter, EnforceableRules, Forwarder, ParserIsa};
use fullview_plane::interface::Interface;
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_table::fib::{Algorithm, bsearch::Bsearch};
use fullview_table::{NextHop, Rib};

const BURST: usize = 64;
const SLOTS: usize = 2048;
const TURNS: usize = 401;
/// So many of the last cases translate.
const TRANSLATED: usize = 2;

const OURS: Mac = Mac([2, 0, 0, 0, 0, 2]);

fn main() {
    let flows: u32 = std::env::args().nth(1).map_or(5000, |flows| flows.parse().unwrap());
    let turn_of = std::env::args().nth(2).map_or(1, |length| length.parse().unwrap());
    let only = std::env::args().nth(3);
    for (family, frames, before) in [
        ("IPv4", frames(flows, inet), Vec::new()),
        ("IPv6", frames(flows, inet6), Vec::new()),
        ("TCP", frames(flows, |flow| segment(flow, PLAIN)), handshakes(flows)),
    ] {
        let mut cases = cases();
        // The answers of the handshakes are to untranslated addresses.
        cases.truncate(cases.len() - if before.is_empty() { 0 } else { TRANSLATED });
        let is_asked = |name: &str| only.as_deref().is_none_or(|only| name.starts_with(only));
        let cases = cases.into_iter().filter(|(name, _)| is_asked(name));
        let mut cases: Vec<_> = cases.map(|(name, forwarder)| (name, forwarder, Vec::new())).collect();
        let mut arena = Arena::new(SLOTS);
        let mut packets: Vec<Packet<'_>> = arena.packets().collect();
        for (_, forwarder, _) in &mut cases {
            before.chunks(BURST).for_each(|frames| pass(forwarder, frames, &mut packets));
        }
        for _ in 0..TURNS {
            for (_, forwarder, times) in &mut cases {
                times.push(turn(forwarder, &frames, &mut packets, Duration::from_millis(turn_of)));
            }
        }
        let mut plain = 0.0;
        for (name, _, mut times) in cases {
            times.sort_by(f64::total_cmp);
            let ns = times[TURNS / 2];
            plain = if plain == 0.0 { ns } else { plain };
            println!("{family} {name:>22}: {ns:6.2} ns, {:.3} x", plain / ns);
        }
    }
}

/// The forwarders to compare, by what they do.
fn cases() -> Vec<(String, Forwarder)> {
    let parsers =
        ParserIsa::available().into_iter().rev().map(|isa| (format!("plain, {isa:?}"), parsed(isa)));
    let plain = [("plain".to_owned(), forwarder())].into_iter().chain(parsers);
    let filtering = [
        ("pf", filtered(Language::Pf, keeps(), None)),
        ("pf, without vectors", scalar(filtered(Language::Pf, keeps(), None))),
        ("pf, no known flows", filtered(Language::Pf, keeps(), Some(0))),
        ("ipfw", filtered(Language::Ipfw, keeps(), None)),
        ("ipfw, no known flows", filtered(Language::Ipfw, keeps(), Some(0))),
        ("pf without states", filtered(Language::Pf, None, None)),
        ("pf without both", filtered(Language::Pf, None, Some(0))),
        ("ipfw without states", filtered(Language::Ipfw, None, None)),
        ("ipfw without both", filtered(Language::Ipfw, None, Some(0))),
        ("pf, translated", translated(None)),
        ("translated, no known", translated(Some(0))),
    ];
    plain.chain(filtering.map(|(name, forwarder)| (name.to_owned(), forwarder))).collect()
}

fn turn<'a>(
    forwarder: &mut Forwarder,
    frames: &[Vec<u8>],
    packets: &mut Vec<Packet<'a>>,
    length: Duration,
) -> f64 {
    let (mut burst, mut out, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    let (mut count, mut next, start) = (0_u64, 0, Instant::now());
    while start.elapsed() < length {
        for _ in 0..16 {
            for packet in packets.drain(..BURST) {
                packet.set_frame(&frames[next]);
                packet.port = 0;
                next = if next + 1 == frames.len() { 0 } else { next + 1 };
                let _ = burst.push(packet);
            }
            forwarder.process(&mut burst, &mut out, &mut rejected);
            assert_eq!(out.len(), BURST);
            packets.extend(out.drain());
        }
        count += 16 * BURST as u64;
    }
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Forwards frames once.
fn pass<'a>(forwarder: &mut Forwarder, frames: &[Vec<u8>], packets: &mut Vec<Packet<'a>>) {
    let (mut burst, mut out, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    for (packet, frame) in packets.drain(..frames.len()).zip(frames) {
        packet.set_frame(frame);
        packet.port = 0;
        let _ = burst.push(packet);
    }
    forwarder.process(&mut burst, &mut out, &mut rejected);
    assert_eq!(out.len(), frames.len());
    packets.extend(out.drain());
}

fn forwarder() -> Forwarder {
    let interfaces = vec![Interface::new(0, OURS), Interface::new(1, OURS)];
    let mut adjacencies = Adjacencies::new();
    adjacencies.set(NextHop(1), Adjacency::Neighbor { interface: 1, mac: Mac([2, 0, 0, 0, 0, 9]) });
    let (mut inet, mut inet6) = (Rib::<u32>::default(), Rib::<u128>::default());
    inet.announce("198.19.0.0/16".parse().unwrap(), NextHop(1));
    inet.announce("198.18.0.0/16".parse().unwrap(), NextHop(1));
    inet6.announce("2001:2:0:8000::/49".parse().unwrap(), NextHop(1));
    inet6.announce("2001:2::/49".parse().unwrap(), NextHop(1));
    let fibs =
        TableReaders::fixed(Bsearch.compile(&inet).unwrap().fib(), Bsearch.compile(&inet6).unwrap().fib());
    Forwarder::new(ViewReader::fixed(View::new(ViewParts::new(interfaces, adjacencies, fibs)).unwrap()))
}

/// A forwarder that reads headers with this instruction set.
fn parsed(isa: ParserIsa) -> Forwarder {
    let mut forwarder = forwarder();
    forwarder.use_parser(isa);
    forwarder
}

fn keeps() -> Option<StateOptions> {
    Some(StateOptions::default())
}

fn filtered(language: Language, state: Option<StateOptions>, flows: Option<usize>) -> Forwarder {
    with_rules(rules(language, state), flows)
}

fn rules(language: Language, state: Option<StateOptions>) -> RuleSetParts {
    let rules = vec![CompiledRule { state, ..CompiledRule::new(RuleAction::Pass) }];
    RuleSetParts { rules, ..RuleSetParts::new(language) }
}

/// All sources become one address, and ports stay as they are unless another flow has them.
fn translated(flows: Option<usize>) -> Forwarder {
    let addresses = [Address::inet(0xc000_0201), Address(0x2001_0db8 << 96 | 1)];
    let ranges = addresses.map(|address| (address, address)).into();
    let to = Translation {
        side: Side::Source,
        pool: AddressPool { ranges, order: PoolOrder::RoundRobin },
        ports: PortChoice::KeepOrFree(PortRange { first: 1024, last: 65535 }),
        pass: false,
    };
    let translations = vec![CompiledRule::new(RuleAction::Translate(to.into()))];
    with_rules(RuleSetParts { translations, ..rules(Language::Pf, keeps()) }, flows)
}

fn with_rules(parts: RuleSetParts, flows: Option<usize>) -> Forwarder {
    let rules = EnforceableRules::new(RuleSet::new(parts).unwrap()).unwrap();
    let mut filter = BurstFilter::new(&rules, WorkerLimits::default(), 7);
    if let Some(flows) = flows {
        filter.keep_flows(flows);
    }
    let mut forwarder = forwarder();
    forwarder.set_filter(filter);
    forwarder
}

/// As on a processor without vector instructions.
fn scalar(mut filtered: Forwarder) -> Forwarder {
    filtered.filter_mut().unwrap().parts().1.use_isa(FlowIsa::SCALAR);
    filtered
}

fn frames(flows: u32, packet: impl Fn(u32) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..flows).map(|flow| packet(flow.wrapping_mul(0x9e37_79b1))).collect()
}

fn inet(flow: u32) -> Vec<u8> {
    let mut frame = ethernet([8, 0], 60);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[198, 18, (flow >> 8) as u8, flow as u8, 198, 19, (flow >> 24) as u8, 1]);
    frame[34..42].copy_from_slice(&[0x40, (flow >> 16) as u8, 0, 9, 0, 26, 0, 0]);
    Ipv4Packet::new_unchecked(&mut frame[14..]).fill_checksum();
    frame
}

/// A segment: whether it is an answer, sequence number, acknowledgement, flags.
#[derive(Clone, Copy)]
struct Segment(bool, u8, u8, u8);

const PLAIN: Segment = Segment(false, 101, 201, 0x10);

fn handshakes(flows: u32) -> Vec<Vec<u8>> {
    let segments = [Segment(false, 100, 0, 0x02), Segment(true, 200, 101, 0x12), PLAIN];
    segments.iter().flat_map(|kind| frames(flows, |flow| segment(flow, *kind))).collect()
}

fn segment(flow: u32, Segment(is_answer, seq, ack, flags): Segment) -> Vec<u8> {
    let mut frame = inet(flow);
    frame[16..18].copy_from_slice(&[0, 40]);
    frame[23] = 6;
    frame[38..54].copy_from_slice(&[0, 0, 0, seq, 0, 0, 0, ack, 0x50, flags, 0x40, 0, 0, 0, 0, 0]);
    if is_answer {
        frame[26..34].rotate_left(4);
        frame[34..38].rotate_left(2);
    }
    Ipv4Packet::new_unchecked(&mut frame[14..]).fill_checksum();
    frame
}

fn inet6(flow: u32) -> Vec<u8> {
    let mut frame = ethernet([0x86, 0xdd], 62);
    frame[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 8, 17, 64]);
    let ends = [(0x00, (flow >> 8) as u8, flow as u8), (0x80, (flow >> 24) as u8, 1)];
    for (at, (net, high, low)) in [22, 38].into_iter().zip(ends) {
        frame[at..at + 16].copy_from_slice(&[0x20, 1, 0, 2, 0, 0, net, 0, 0, 0, 0, 0, 0, 0, high, low]);
    }
    frame[54..62].copy_from_slice(&[0x40, (flow >> 16) as u8, 0, 9, 0, 8, 0, 0]);
    frame
}

fn ethernet(kind: [u8; 2], len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..6].copy_from_slice(&OURS.0);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&kind);
    frame
}
