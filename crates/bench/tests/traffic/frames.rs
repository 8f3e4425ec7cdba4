//! Every generated frame is valid, in both families and all sizes.

use fullview_bench::traffic::flow::Flow;
use fullview_bench::traffic::frame::{FrameSize, Frames, Headers, LARGEST, Stamp};
use fullview_bench::traffic::generator::Generator;
use fullview_bench::traffic::model::Model;
use fullview_plane::burst::Arena;
use fullview_plane::wire::checksum::pseudo_ipv6;
use fullview_plane::wire::ethernet::{self, EtherType};
use fullview_plane::wire::ipv4::{Ipv4Packet, protocol};
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::wire::udp;
use fullview_table::Rib;

use crate::support::{MACS, checksum, inet, inet6};

fn check_inet(frame: &[u8], flow: &Flow<u32>) {
    let frame = ethernet::Frame::new_checked(frame).unwrap();
    assert_eq!((frame.destination(), frame.source()), (MACS.destination, MACS.source));
    assert_eq!(frame.ethertype(), EtherType::IPV4);
    let ip = Ipv4Packet::new_checked(frame.payload()).unwrap();
    assert_eq!(usize::from(ip.total_len()), frame.payload().len(), "no padding");
    assert_eq!((ip.ttl(), ip.protocol(), ip.header_len()), (64, protocol::UDP, 20));
    assert!(ip.verify_checksum());
    assert_eq!(checksum(ip.header()), 0, "by the definition, too");
    assert_eq!((ip.source(), ip.destination()), (flow.source, flow.destination));
    let udp = udp::Datagram::new_checked(ip.payload()).unwrap();
    assert_eq!((usize::from(udp.length()), udp.checksum()), (ip.payload().len(), 0));
    assert_eq!((udp.source_port(), udp.destination_port()), (flow.source_port, flow.destination_port));
}

fn check_inet6(frame: &[u8], flow: &Flow<u128>) {
    let frame = ethernet::Frame::new_checked(frame).unwrap();
    assert_eq!((frame.destination(), frame.source()), (MACS.destination, MACS.source));
    assert_eq!(frame.ethertype(), EtherType::IPV6);
    let ip = Ipv6Packet::new_checked(frame.payload()).unwrap();
    assert_eq!(ip.total_len(), frame.payload().len(), "no padding");
    assert_eq!((ip.hop_limit(), ip.next_header(), ip.flow_label()), (64, protocol::UDP, flow.id));
    assert_eq!((ip.source(), ip.destination()), (flow.source, flow.destination));
    let udp = udp::Datagram::new_checked(ip.payload()).unwrap();
    let pseudo = pseudo_ipv6(flow.source, flow.destination, protocol::UDP, u32::from(udp.length()));
    assert_eq!(usize::from(udp.length()), ip.payload().len());
    assert_ne!(udp.checksum(), 0, "IPv6 demands a checksum");
    assert!(udp.verify_checksum(pseudo));
    assert_eq!((udp.source_port(), udp.destination_port()), (flow.source_port, flow.destination_port));
}

/// The frames of that size: valid, of the flows in their order, and numbered where a stamp fits.
fn check_size<A: Headers>(rib: &Rib<A>, size: FrameSize, check: fn(&[u8], &Flow<A>)) -> Vec<usize> {
    let flows = Model::Prefixes { packets: 40 }.flows(rib, 4).unwrap();
    let frames = Frames::<A>::new(size, MACS).unwrap();
    let mut generator = Generator::new(&flows, &frames, 3);
    let mut arena = Arena::new(1);
    let mut packets: Vec<_> = arena.packets().collect();
    frames.prepare(packets[0]);
    let lens = (0..100u64).map(|sequence| {
        let bytes = generator.fill(&mut packets);
        let (slot, flow) = (&packets[0], flows.packets()[sequence as usize % 40]);
        let frame = slot.frame();
        assert_eq!((bytes, slot.port), (frame.len() as u64, 3));
        check(frame, &flow);
        let stamp = A::stamp(frame).filter(|_| frame.len() >= A::PAYLOAD + Stamp::LEN);
        assert!(stamp.is_none_or(|stamp| stamp == Stamp { sequence, flow: flow.id }));
        assert_eq!(stamp.is_some(), frame.len() >= A::PAYLOAD + Stamp::LEN);
        assert_eq!(A::flow_id(slot.head()), flow.id);
        frame.len()
    });
    lens.collect()
}

#[test]
fn frames_of_every_size_are_valid() {
    for size in (60..100).chain([590, 591, 1513, 1514, LARGEST]) {
        assert!(check_size(&inet(), FrameSize::Bytes(size), check_inet).iter().all(|len| *len == size));
        if size >= 62 {
            assert!(check_size(&inet6(), FrameSize::Bytes(size), check_inet6).iter().all(|len| *len == size));
        }
    }
    assert!(check_size(&inet(), FrameSize::Smallest, check_inet).iter().all(|len| *len == 60));
    assert!(check_size(&inet6(), FrameSize::Smallest, check_inet6).iter().all(|len| *len == 62));
}

#[test]
fn imix_is_seven_four_one() {
    for (lens, smallest) in [
        (check_size(&inet(), FrameSize::Imix, check_inet), 60),
        (check_size(&inet6(), FrameSize::Imix, check_inet6), 62),
    ] {
        for start in 0..lens.len() - 12 {
            let count = |len| lens[start..start + 12].iter().filter(|other| **other == len).count();
            assert_eq!((count(smallest), count(590), count(1514)), (7, 4, 1));
        }
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for size in [0, 59, LARGEST + 1] {
        assert!(Frames::<u32>::new(FrameSize::Bytes(size), MACS).is_err(), "{size}");
    }
    let error = Frames::<u128>::new(FrameSize::Bytes(61), MACS).err().unwrap();
    assert_eq!(error.to_string(), "no inet6 UDP frame has 61 bytes; give 62 to 2000 (without FCS)");
}
