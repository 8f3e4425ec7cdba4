//! The frames that are sent: UDP, in many flows, of one size or of several in turn.

use std::net::Ipv4Addr;

use fullview_plane::burst::Slot;
use fullview_plane::wire::ethernet::{EtherType, Frame, MIN_FRAME, Mac};
use fullview_plane::wire::ipv4::Ipv4Packet;

use crate::traffic::frame::FrameSize;

/// Ethernet addresses of the generator, of the router's interfaces, and of the right host's interface.
pub const GENERATOR: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub const DEVICE: Mac = Mac([2, 0, 0, 0, 0, 2]);
pub const SINK: Mac = Mac([2, 0, 0, 0, 0, 3]);
/// The station to which the router sends.
pub const STATION: Mac = Mac([2, 0, 0, 0, 0, 4]);

/// Flows, which differ in the source port.
pub const FLOWS: u16 = 4096;
const FIRST_PORT: u16 = 1024;
const SOURCE_PORT: usize = 34;
/// Bytes of the headers of Ethernet, IPv4 and UDP.
pub const HEADERS: usize = 42;
/// Bytes of the longest frame that an interface with the usual MTU takes, without the FCS.
const LONGEST: usize = 1514;

/// The sizes that can be sent, as a range of bytes without the FCS.
pub const SIZES: std::ops::RangeInclusive<usize> = MIN_FRAME..=LONGEST;

/// Where packets come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficAddresses {
    pub from: Mac,
    /// The device's interface.
    pub to: Mac,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
}

impl TrafficAddresses {
    /// Those of the test bed in namespaces.
    pub const BED: TrafficAddresses = TrafficAddresses {
        from: GENERATOR,
        to: DEVICE,
        source: Ipv4Addr::new(10, 0, 1, 2),
        destination: Ipv4Addr::new(10, 0, 2, 2),
    };
}

/// Bytes of consecutive frames, which repeat from the start.
pub fn lengths(size: FrameSize) -> Vec<usize> {
    size.lengths(MIN_FRAME)
}

/// The frames of a trial.
pub struct TrafficFrames {
    /// One for each turn of the sizes.
    frames: Vec<Vec<u8>>,
    /// To which packets go in turn; none if all go to the same.
    destinations: Vec<Ipv4Addr>,
}

impl TrafficFrames {
    /// Packets go to the destination among the addresses, or to `destinations` in turn if there are some.
    pub fn new(addresses: &TrafficAddresses, size: FrameSize, destinations: &[Ipv4Addr]) -> TrafficFrames {
        let frames = lengths(size).into_iter().map(|length| frame(addresses, length)).collect();
        TrafficFrames { frames, destinations: destinations.to_vec() }
    }

    /// Clears what a slot holds, once. All payloads are zeros, so that packets of any size overwrite the headers only.
    pub fn prepare(&self, slot: &mut Slot) {
        slot.set_frame(&[0; LONGEST]);
    }

    /// Writes the packet of this number into a prepared slot.
    pub fn write(&self, slot: &mut Slot, packet: u64) {
        let frame = &self.frames[(packet % self.frames.len() as u64) as usize];
        slot.set_frame_len(frame.len());
        slot.head_mut()[..HEADERS].copy_from_slice(&frame[..HEADERS]);
        set_flow(slot.frame_mut(), packet);
        if !self.destinations.is_empty() {
            let destination = self.destinations[(packet % self.destinations.len() as u64) as usize];
            let mut ip = Ipv4Packet::new_unchecked(&mut slot.frame_mut()[14..]);
            ip.set_destination(destination.to_bits());
            ip.fill_checksum();
        }
    }
}

/// A frame of this length between these addresses.
fn frame(addresses: &TrafficAddresses, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut ethernet = Frame::new_unchecked(&mut bytes);
    ethernet.set_source(addresses.from);
    ethernet.set_destination(addresses.to);
    ethernet.set_outer_ethertype(EtherType::IPV4);
    let mut ip = Ipv4Packet::new_unchecked(&mut bytes[14..]);
    ip.set_header_len(20);
    ip.set_total_len((length - 14) as u16);
    ip.set_ttl(64);
    ip.set_protocol(17);
    ip.set_source(addresses.source.to_bits());
    ip.set_destination(addresses.destination.to_bits());
    ip.fill_checksum();
    // To the port 9, discard. UDP over IPv4 may go without a checksum, so that only the port changes.
    let [high, low] = ((length - 34) as u16).to_be_bytes();
    bytes[SOURCE_PORT..HEADERS].copy_from_slice(&[0, 0, 0, 9, high, low, 0, 0]);
    bytes
}

/// Makes it a packet of another flow.
fn set_flow(frame: &mut [u8], packet: u64) {
    let port = FIRST_PORT + (packet % u64::from(FLOWS)) as u16;
    frame[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&port.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use fullview_plane::burst::Arena;

    use super::*;

    fn written(frames: &TrafficFrames, arena: &mut Arena, packet: u64) -> Vec<u8> {
        let slot = arena.packets().next().unwrap();
        frames.write(slot, packet);
        slot.frame().to_vec()
    }

    #[test]
    fn flows_differ_in_the_port_and_the_frame_stays_right() {
        let frames = TrafficFrames::new(&TrafficAddresses::BED, FrameSize::Smallest, &[]);
        let bytes = written(&frames, &mut Arena::new(1), 4097);
        assert_eq!(bytes.len(), 60);
        assert_eq!(bytes[34..36], 1025u16.to_be_bytes());
        assert!(Ipv4Packet::new_checked(&bytes[14..]).unwrap().verify_checksum());
    }

    #[test]
    fn destinations_take_turns() {
        let destinations = [[198, 51, 100, 1].into(), [203, 0, 113, 2].into()];
        let frames = TrafficFrames::new(&TrafficAddresses::BED, FrameSize::Smallest, &destinations);
        for packet in 0..4 {
            let bytes = written(&frames, &mut Arena::new(1), packet);
            let ip = Ipv4Packet::new_checked(&bytes[14..]).unwrap();
            assert!(ip.verify_checksum());
            assert_eq!(Ipv4Addr::from_bits(ip.destination()), destinations[packet as usize % 2]);
        }
    }

    #[test]
    fn sizes_of_a_mix_take_turns_in_the_same_slot() {
        let frames = TrafficFrames::new(&TrafficAddresses::BED, FrameSize::Imix, &[]);
        let mut arena = Arena::new(1);
        arena.packets().for_each(|slot| frames.prepare(slot));
        let cycle: Vec<Vec<u8>> = (0..12).map(|packet| written(&frames, &mut arena, packet)).collect();
        let count = |length| cycle.iter().filter(|frame| frame.len() == length).count();
        assert_eq!([60, 590, 1514].map(count), [7, 4, 1]);
        for bytes in cycle {
            let ip = Ipv4Packet::new_checked(&bytes[14..]).unwrap();
            assert!(ip.verify_checksum());
            assert_eq!(usize::from(ip.total_len()) + 14, bytes.len());
            assert_eq!(usize::from(u16::from_be_bytes([bytes[38], bytes[39]])) + 34, bytes.len());
            assert!(bytes[42..].iter().all(|byte| *byte == 0));
        }
    }
}
