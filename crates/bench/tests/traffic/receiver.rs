//! The receiver finds what is wrong, and nothing else.

use std::num::NonZeroU32;

use fullview_bench::traffic::check::{Fault, Passage};
use fullview_bench::traffic::flow::FlowSet;
use fullview_bench::traffic::frame::{FrameSize, Frames, Headers};
use fullview_bench::traffic::generator::Generator;
use fullview_bench::traffic::model::Model;
use fullview_bench::traffic::sink::{Sink, Tally};
use fullview_plane::burst::{Arena, Packet, Slot};
use fullview_table::Rib;

use crate::support::{MACS, Plain, departures, inet, inet6};

const EVERY: NonZeroU32 = NonZeroU32::MIN;

/// Forty packets forwarded rightly, then tampered with, then received.
fn receive<A: Headers>(rib: &Rib<A>, size: FrameSize, tamper: impl FnOnce(&mut Vec<Packet<'_>>)) -> Tally {
    let flows = Model::Netbenches { flows: 10 }.flows(rib, 1).unwrap();
    let frames = Frames::new(size, MACS).unwrap();
    let departures = departures();
    let mut arena = Arena::new(41);
    let mut packets: Vec<_> = arena.packets().collect();
    packets.iter_mut().for_each(|slot| frames.prepare(slot));
    let spare = packets.pop().unwrap();
    Generator::new(&flows, &frames, 0).fill(&mut packets);
    packets.iter_mut().for_each(|slot| assert!(Plain::new(rib).forward(slot)));
    packets.push(spare);
    tamper(&mut packets);
    let mut sink = Sink::new(&flows, &frames, Passage::Routed(&departures), EVERY);
    sink.receive(&packets);
    sink.tally()
}

/// The spare slot at the end leaves, and so do the packets at those places.
fn remove(packets: &mut Vec<Packet<'_>>, places: &[usize]) {
    packets.pop();
    for place in places {
        packets.remove(*place);
    }
}

fn faults_after<A: Headers>(
    rib: &Rib<A>,
    size: FrameSize,
    tamper: impl FnOnce(&mut Slot),
) -> Vec<&'static str> {
    let tally = receive(rib, size, |packets| {
        remove(packets, &[]);
        tamper(packets[25]);
    });
    assert_eq!((tally.packets, tally.checked, tally.wrong), (40, 40, 1));
    assert_eq!(tally.first_wrong.unwrap().position, 25);
    let found = Fault::ALL.into_iter().filter(|fault| tally.faults[*fault as usize] == 1);
    found.map(Fault::name).collect()
}

/// Tampering with one byte gives exactly this fault.
fn byte<A: Headers>(rib: &Rib<A>, size: FrameSize, at: usize, fault: &str) {
    let found = faults_after(rib, size, |slot| slot.frame_mut()[at] ^= 0x10);
    assert_eq!(found, [fault], "byte {at}");
}

#[test]
fn good_packets_are_found_good() {
    for size in [FrameSize::Smallest, FrameSize::Bytes(1514), FrameSize::Imix] {
        for tally in [receive(&inet(), size, |p| remove(p, &[])), receive(&inet6(), size, |p| remove(p, &[]))]
        {
            assert_eq!((tally.packets, tally.checked, tally.wrong), (40, 40, 0), "{:?}", tally.first_wrong);
            assert_eq!((tally.distinct_flows, tally.order), (10, Default::default()));
        }
    }
}

#[test]
fn each_changed_byte_of_ipv4_is_found() {
    let (rib, size) = (inet(), FrameSize::Smallest);
    (0..12).for_each(|at| byte(&rib, size, at, "macs"));
    byte(&rib, size, 12, "headers");
    byte(&rib, size, 24, "checksum");
    (34..42).for_each(|at| byte(&rib, size, at, "headers"));
    (42..54).for_each(|at| byte(&rib, size, at, "flow"));
    (54..60).for_each(|at| byte(&rib, size, at, "payload"));
    for at in (14..22).chain([23]).chain(26..34) {
        let found = faults_after(&rib, size, |slot| slot.frame_mut()[at] ^= 0x10);
        assert_eq!(found, ["checksum", "headers"], "byte {at}");
    }
}

#[test]
fn each_changed_byte_of_ipv6_is_found() {
    let (rib, size) = (inet6(), FrameSize::Bytes(100));
    (0..12).for_each(|at| byte(&rib, size, at, "macs"));
    (12..16).for_each(|at| byte(&rib, size, at, "headers"));
    (16..18).for_each(|at| byte(&rib, size, at, "flow"));
    (18..21).chain(22..62).for_each(|at| byte(&rib, size, at, "headers"));
    byte(&rib, size, 21, "hop-limit");
    (62..74).for_each(|at| byte(&rib, size, at, "flow"));
    (74..100).for_each(|at| byte(&rib, size, at, "payload"));
    (22..62).for_each(|at| byte(&rib, FrameSize::Smallest, at, "headers"));
}

#[test]
fn a_ttl_not_lowered_by_one_is_found_even_with_a_right_checksum() {
    for ttl in [0, 62, 64, 255] {
        let found = faults_after(&inet(), FrameSize::Smallest, |slot| {
            let frame = slot.frame_mut();
            frame[22] = ttl;
            frame[24..26].fill(0);
            let sum = crate::support::checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        });
        assert_eq!(found, ["hop-limit"], "TTL {ttl}");
    }
}

#[test]
fn wrong_egress_and_wrong_length_are_found() {
    assert_eq!(faults_after(&inet(), FrameSize::Smallest, |slot| slot.port += 1), ["egress"]);
    assert_eq!(faults_after(&inet(), FrameSize::Smallest, |slot| slot.set_frame_len(61)), ["length"]);
    assert_eq!(faults_after(&inet6(), FrameSize::Imix, |slot| slot.set_frame_len(1514)), ["flow"]);
}

#[test]
fn a_packet_that_had_to_be_dropped_is_found() {
    let rib = inet();
    let flows = Model::One.flows(&Rib::<u32>::default(), 1).unwrap();
    let frames = Frames::new(FrameSize::Smallest, MACS).unwrap();
    let departures = departures();
    let mut arena = Arena::new(1);
    let mut packets: Vec<_> = arena.packets().collect();
    frames.prepare(packets[0]);
    Generator::new(&flows, &frames, 0).fill(&mut packets);
    assert!(Plain::new(&rib).forward(packets[0]));
    let mut sink = Sink::new(&flows, &frames, Passage::Routed(&departures), EVERY);
    sink.receive(&packets);
    assert_eq!(sink.tally().faults[Fault::Egress as usize], 1);
}

#[test]
fn duplicates_are_found() {
    let tally = receive(&inet(), FrameSize::Smallest, |packets| {
        let (last, rest) = packets.split_last_mut().unwrap();
        assert!(last.set_frame(rest[7].frame()));
        last.port = rest[7].port;
    });
    assert_eq!((tally.packets, tally.wrong, tally.order.duplicates, tally.order.reordered), (41, 0, 1, 0));
}

#[test]
fn reordering_is_found() {
    let tally = receive(&inet6(), FrameSize::Bytes(80), |packets| {
        remove(packets, &[]);
        packets.swap(3, 4);
        packets.swap(10, 20);
    });
    // Packet 10, now behind 20, and each of 11 to 19, which come after 20 did; 3 comes after 4.
    assert_eq!((tally.wrong, tally.order.reordered, tally.order.duplicates), (0, 11, 0));
    // Ten flows in turn: 10 and 20 are the only ones of the same flow that changed places.
    assert_eq!(tally.order.reordered_in_flow, 1);
}

#[test]
fn loss_shows_in_the_counts() {
    let tally = receive(&inet(), FrameSize::Smallest, |packets| remove(packets, &[39, 30, 29, 19, 9]));
    assert_eq!(
        (tally.packets, tally.wrong, tally.distinct_flows),
        (35, 0, 9),
        "all of flow 9 is among the lost"
    );
}

/// A million good packets, in turn with and without a sample, raise no alarm.
fn no_false_alarm<A: Headers>(flows: &FlowSet<A>, rib: &Rib<A>, check_one_in: NonZeroU32) -> Tally {
    let frames = Frames::new(FrameSize::Smallest, MACS).unwrap();
    let departures = departures();
    let router = Plain::new(rib);
    let mut arena = Arena::new(250);
    let mut packets: Vec<_> = arena.packets().collect();
    packets.iter_mut().for_each(|slot| frames.prepare(slot));
    let mut generator = Generator::new(flows, &frames, 0);
    let mut sink = Sink::new(flows, &frames, Passage::Routed(&departures), check_one_in);
    for _ in 0..2_000 {
        generator.fill(&mut packets);
        packets.iter_mut().for_each(|slot| assert!(router.forward(slot)));
        sink.receive(&packets);
    }
    sink.tally()
}

#[test]
fn a_million_good_packets_raise_no_alarm() {
    let rib = inet();
    let flows = Model::Prefixes { packets: 3_001 }.flows(&rib, 1).unwrap();
    let all = no_false_alarm(&flows, &rib, EVERY);
    assert_eq!((all.packets, all.checked, all.wrong, all.order), (500_000, 500_000, 0, Default::default()));
    assert_eq!(all.distinct_flows, flows.distinct() as u64);

    let rib = inet6();
    let flows = Model::Zipf { packets: 3_001, exponent: 1.0 }.flows(&rib, 1).unwrap();
    let sampled = no_false_alarm(&flows, &rib, NonZeroU32::new(8).unwrap());
    assert_eq!((sampled.packets, sampled.wrong, sampled.order), (500_000, 0, Default::default()));
    assert_eq!(sampled.distinct_flows, flows.distinct() as u64);
    assert!((60_000..65_000).contains(&sampled.checked), "{}", sampled.checked);
}
