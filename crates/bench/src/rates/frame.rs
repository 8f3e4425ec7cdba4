//! The frame that is sent: the smallest one, of UDP, in many flows.

use std::net::Ipv4Addr;

use fullview_plane::wire::ethernet::{EtherType, Frame, Mac};
use fullview_plane::wire::ipv4::Ipv4Packet;

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
/// Bytes of the smallest frame, without the FCS.
const LENGTH: usize = 60;

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

/// The smallest frame between these addresses.
pub fn frame(addresses: &TrafficAddresses) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    let mut ethernet = Frame::new_unchecked(&mut bytes);
    ethernet.set_source(addresses.from);
    ethernet.set_destination(addresses.to);
    ethernet.set_outer_ethertype(EtherType::IPV4);
    let mut ip = Ipv4Packet::new_unchecked(&mut bytes[14..]);
    ip.set_header_len(20);
    ip.set_total_len(46);
    ip.set_ttl(64);
    ip.set_protocol(17);
    ip.set_source(addresses.source.to_bits());
    ip.set_destination(addresses.destination.to_bits());
    ip.fill_checksum();
    // To the port 9, discard. UDP over IPv4 may go without a checksum, so that only the port changes.
    bytes[SOURCE_PORT..42].copy_from_slice(&[0, 0, 0, 9, 0, 26, 0, 0]);
    bytes
}

/// Makes it a packet of another flow.
pub fn set_flow(frame: &mut [u8], packet: u64) {
    let port = FIRST_PORT + (packet % u64::from(FLOWS)) as u16;
    frame[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&port.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_differ_in_the_port_and_the_frame_stays_right() {
        let mut bytes = frame(&TrafficAddresses::BED);
        set_flow(&mut bytes, 4097);
        assert_eq!(bytes[34..36], 1025u16.to_be_bytes());
        assert!(Ipv4Packet::new_checked(&bytes[14..]).unwrap().verify_checksum());
    }
}
