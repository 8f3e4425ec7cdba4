//! Frames, and their fate in the loop.

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::forward::{Forwarder, WayOut};
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET, Mac};
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};

pub const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub const SENDER: Mac = Mac([2, 0, 0, 0, 9, 9]);

pub fn v4(text: &str) -> u32 {
    text.parse::<std::net::Ipv4Addr>().unwrap().to_bits()
}

pub fn v6(text: &str) -> u128 {
    text.parse::<std::net::Ipv6Addr>().unwrap().to_bits()
}

pub fn neighbor(port: u16) -> Mac {
    Mac([2, 0, 0, 0, 2, port as u8])
}

pub fn ethernet(ethertype: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ETHERNET];
    let mut frame = Frame::new_unchecked(&mut bytes);
    frame.set_destination(OURS);
    frame.set_source(SENDER);
    frame.set_outer_ethertype(ethertype);
    bytes.extend(payload);
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// An IPv4 frame with `options` (a multiple of 4 bytes) and 18 bytes of payload.
pub fn inet_with(source: &str, destination: &str, ttl: u8, options: &[u8]) -> Vec<u8> {
    let len = ipv4::HEADER + options.len();
    let mut bytes = vec![0xaa; len + 18];
    bytes[..len].fill(0);
    bytes[ipv4::HEADER..len].copy_from_slice(options);
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(len);
    packet.set_total_len((len + 18) as u16);
    packet.set_type_of_service(0x2e);
    packet.set_identification(0x1234);
    packet.set_unfragmented(true);
    packet.set_ttl(ttl);
    packet.set_protocol(ipv4::protocol::UDP);
    packet.set_source(v4(source));
    packet.set_destination(v4(destination));
    packet.fill_checksum();
    ethernet(EtherType::IPV4, &bytes)
}

pub fn inet(source: &str, destination: &str, ttl: u8) -> Vec<u8> {
    inet_with(source, destination, ttl, &[])
}

pub fn inet6(source: &str, destination: &str, hops: u8) -> Vec<u8> {
    let mut bytes = vec![0xbb; ipv6::HEADER + 12];
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_class_and_flow(0xb8, 0xabcde);
    packet.set_payload_len(12);
    packet.set_next_header(ipv4::protocol::UDP);
    packet.set_hop_limit(hops);
    packet.set_source(v6(source));
    packet.set_destination(v6(destination));
    ethernet(EtherType::IPV6, &bytes)
}

pub const SRC: &str = "198.18.0.1";
pub const DST: &str = "198.19.7.7";
pub const SRC6: &str = "2001:2::1";
pub const DST6: &str = "2001:2:0:1::7";

pub fn good() -> Vec<u8> {
    inet(SRC, DST, 64)
}

pub fn good6() -> Vec<u8> {
    inet6(SRC6, DST6, 64)
}

/// `frame` after a change of some bytes after the Ethernet header, with the old checksum.
pub fn with(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[ETHERNET + at..][..bytes.len()].copy_from_slice(bytes);
    frame
}

/// As [`with`], with a correct IPv4 checksum.
pub fn with_summed(frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = with(frame, at, bytes);
    Ipv4Packet::new_unchecked(&mut frame[ETHERNET..]).fill_checksum();
    frame
}

pub fn to(mut frame: Vec<u8>, mac: Mac) -> Vec<u8> {
    Frame::new_unchecked(&mut frame).set_destination(mac);
    frame
}

pub fn tagged(mut frame: Vec<u8>, control: u16) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0x00].into_iter().chain(control.to_be_bytes()));
    frame
}

pub fn cut(mut frame: Vec<u8>, len: usize) -> Vec<u8> {
    frame.truncate(len);
    frame
}

/// The expected frame after forwarding: MAC addresses of the next link, one hop less, a new checksum.
pub fn forwarded(mut frame: Vec<u8>, port: u16) -> Vec<u8> {
    let is_inet = Frame::new_unchecked(&frame).ethertype() == EtherType::IPV4;
    let mut ethernet = Frame::new_unchecked(&mut frame);
    ethernet.set_destination(neighbor(port));
    ethernet.set_source(OURS);
    if is_inet {
        let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
        packet.set_ttl(packet.ttl() - 1);
        packet.fill_checksum();
    } else {
        let mut packet = Ipv6Packet::new_unchecked(ethernet.payload_mut());
        packet.set_hop_limit(packet.hop_limit() - 1);
    }
    frame
}

/// What became of one frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Sent { port: u16, frame: Vec<u8> },
    Rejected(Verdict),
}

pub fn sent(port: u16, frame: Vec<u8>) -> Fate {
    Fate::Sent { port, frame }
}

pub fn dropped(reason: Reason) -> Fate {
    Fate::Rejected(Verdict::Drop(reason))
}

pub fn punted(punt: Punt) -> Fate {
    Fate::Rejected(Verdict::Punt(punt))
}

/// A packet after the router has processed it.
#[derive(Debug)]
pub struct Seen {
    pub port: u16,
    pub interface: u16,
    /// By which interfaces a slow path may forward it.
    pub way: WayOut,
    pub frame: Vec<u8>,
}

/// Forwards frames as one burst, and returns the fate of each.
pub fn run(forwarder: &mut Forwarder, frames: &[(u16, Vec<u8>)]) -> Vec<Fate> {
    run_all(forwarder, frames).0
}

/// As [`run`], with each packet afterwards. Slots hold stale bytes of earlier packets.
pub fn run_all(forwarder: &mut Forwarder, frames: &[(u16, Vec<u8>)]) -> (Vec<Fate>, Vec<Seen>) {
    let mut arena = Arena::new(frames.len());
    let (mut burst, mut out, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    for (packet, (port, frame)) in arena.packets().zip(frames) {
        packet.set_frame(&good()); // stale bytes of a correct packet must not help a short one
        assert!(packet.set_frame(frame));
        packet.port = *port;
        burst.push(packet).unwrap();
    }
    let order: Vec<*const u8> = burst.iter().map(|packet| packet.frame().as_ptr()).collect();
    forwarder.process(&mut burst, &mut out, &mut rejected);
    assert_eq!((burst.len(), out.len() + rejected.len()), (0, frames.len()), "all slots come back");
    let mut fates: Vec<Option<(Fate, Seen)>> = frames.iter().map(|_| None).collect();
    for packet in out.drain().chain(rejected.drain()) {
        let place = order.iter().position(|at| *at == packet.frame().as_ptr()).unwrap();
        let frame = packet.frame().to_vec();
        let fate = match packet.verdict {
            Verdict::Forward => sent(packet.port, frame.clone()),
            verdict => Fate::Rejected(verdict),
        };
        let (port, interface, way) = (packet.port, packet.interface, forwarder.way_out(packet));
        fates[place] = Some((fate, Seen { port, interface, way, frame }));
    }
    fates.into_iter().map(Option::unwrap).unzip()
}
