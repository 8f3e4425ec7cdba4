//! The IP header at the beginning of a sampled frame.

use std::net::IpAddr;

use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::transport::ports;
use fullview_table::Address;

/// The fields by which flows are told apart, and the length of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledIp {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    pub tos: u8,
    pub hops: u8,
    /// 0 if the protocol has none, or the sample does not hold them.
    pub ports: (u16, u16),
    pub total_len: u32,
}

impl SampledIp {
    /// `None` if the frame is not IP, or ends before the end of the header.
    pub fn read(frame: &[u8]) -> Option<SampledIp> {
        let frame = Frame::new_checked(frame).ok()?;
        let packet = frame.payload();
        match frame.ethertype() {
            EtherType::IPV4 if packet.len() >= ipv4::HEADER => Some(SampledIp::inet(packet)),
            EtherType::IPV6 if packet.len() >= ipv6::HEADER => Some(SampledIp::inet6(packet)),
            _ => None,
        }
    }

    fn inet(packet: &[u8]) -> SampledIp {
        let ip = Ipv4Packet::new_unchecked(packet);
        // A damaged header may end before its addresses, which are no ports.
        let has_ports = ip.fragment_offset() == 0 && ip.header_len() >= ipv4::HEADER;
        let ports = has_ports.then(|| ports(packet, ip.protocol(), ip.header_len())).flatten();
        SampledIp {
            source: ip.source().to_ip().into(),
            destination: ip.destination().to_ip().into(),
            protocol: ip.protocol(),
            tos: packet[1],
            hops: ip.ttl(),
            ports: ports.unwrap_or_default(),
            total_len: ip.total_len().into(),
        }
    }

    /// The ports behind extension headers are not looked for.
    fn inet6(packet: &[u8]) -> SampledIp {
        let ip = Ipv6Packet::new_unchecked(packet);
        SampledIp {
            source: ip.source().to_ip().into(),
            destination: ip.destination().to_ip().into(),
            protocol: ip.next_header(),
            tos: ip.traffic_class(),
            hops: ip.hop_limit(),
            ports: ports(packet, ip.next_header(), ipv6::HEADER).unwrap_or_default(),
            total_len: ip.total_len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_far_as_the_sample_reaches() {
        let mut frame = [2; 12].to_vec();
        frame.extend([8, 0, 0x45, 0xb8, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7]);
        frame.extend([0x03, 0xe8, 0, 53, 0, 8, 0, 0]);
        let wanted = SampledIp {
            source: IpAddr::from([192, 0, 2, 1]),
            destination: IpAddr::from([198, 51, 100, 7]),
            protocol: 17,
            tos: 0xb8,
            hops: 64,
            ports: (1000, 53),
            total_len: 28,
        };
        assert_eq!(SampledIp::read(&frame), Some(wanted));
        assert_eq!(SampledIp::read(&frame[..36]), Some(SampledIp { ports: (0, 0), ..wanted }));
        assert_eq!((0..34).find_map(|len| SampledIp::read(&frame[..len])), None);
        frame[20..22].copy_from_slice(&[0, 9]);
        assert_eq!(SampledIp::read(&frame), Some(SampledIp { ports: (0, 0), ..wanted }), "a later fragment");
        frame[20..22].copy_from_slice(&[0, 0]);
        frame[14] = 0x44;
        assert_eq!(SampledIp::read(&frame), Some(SampledIp { ports: (0, 0), ..wanted }), "a short header");
    }
}
