//! IPv6: 14 bytes Ethernet, 40 IPv6, 8 UDP. The flow label is the number of the flow, which RFC 6437 allows a source
//! to choose freely per flow: so even the smallest frame, which has no payload, identifies its flow.

use fullview_plane::wire::checksum::{Sum, pseudo_ipv6};
use fullview_plane::wire::ethernet::{self, EtherType};
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::udp;

use super::super::flow::Flow;
use super::{HOP_LIMIT, Headers, LARGEST, Macs, Stamp, Template, ethernet_head, pattern};

const IP: usize = ethernet::HEADER;
const SOURCE: usize = IP + 8;
const DESTINATION: usize = IP + 24;
const UDP: usize = IP + ipv6::HEADER;
const PAYLOAD: usize = UDP + udp::HEADER;
const LABEL: u32 = 0x000f_ffff;

impl Headers for u128 {
    /// An Ethernet frame could be two bytes shorter, but not with these headers.
    const SMALLEST: usize = PAYLOAD;
    const PAYLOAD: usize = PAYLOAD;
    const HOP_LIMIT_AT: usize = IP + 7;
    const CHECKSUM_AT: std::ops::Range<usize> = 0..0;

    fn template(macs: Macs, len: usize) -> Template {
        let mut head = ethernet_head(macs, EtherType::IPV6);
        let udp_len = (len - UDP) as u16;
        let mut ip = Ipv6Packet::new_unchecked(&mut head[IP..UDP]);
        ip.set_class_and_flow(0, 0);
        ip.set_payload_len(udp_len);
        ip.set_next_header(protocol::UDP);
        ip.set_hop_limit(HOP_LIMIT);
        let stamped = len >= PAYLOAD + Stamp::LEN;
        Template { len, head, sum: constant_sum(len, stamped), udp_len, stamped }
    }

    #[inline(always)]
    fn write_head(head: &mut [u8; 64], template: &Template, flow: &Flow<u128>, sequence: u64) {
        let stamp = if template.stamped { Stamp { sequence, flow: flow.id }.words() } else { [0; 6] };
        let checksum = udp_checksum(stamp.into_iter().fold(flow_sum(template, flow), Sum::word));
        let ports = u64::from(flow.source_port) << 48 | u64::from(flow.destination_port) << 32;
        let udp = ports | u64::from(template.udp_len) << 16 | u64::from(checksum);
        let label = 6 << 28 | (flow.id & LABEL);
        head[..SOURCE].copy_from_slice(&template.head[..SOURCE]);
        head[IP..IP + 4].copy_from_slice(&label.to_be_bytes());
        head[SOURCE..DESTINATION].copy_from_slice(&flow.source.to_be_bytes());
        head[DESTINATION..UDP].copy_from_slice(&flow.destination.to_be_bytes());
        head[UDP..PAYLOAD].copy_from_slice(&udp.to_be_bytes());
    }

    #[inline(always)]
    fn write_tail(frame: &mut [u8], stamp: Stamp) {
        frame[PAYLOAD..PAYLOAD + Stamp::LEN].copy_from_slice(&stamp.to_bytes());
    }

    #[inline(always)]
    fn flow_id(head: &[u8; 64]) -> u32 {
        u32::from_be_bytes([head[IP], head[IP + 1], head[IP + 2], head[IP + 3]]) & LABEL
    }

    fn header_checksum_holds(_head: &[u8; 64]) -> bool {
        true
    }
}

/// What of the UDP checksum's input no packet changes: length and protocol in the pseudo header, the length in the UDP
/// header, and the payload without the stamp.
fn constant_sum(len: usize, stamped: bool) -> Sum {
    let mut payload: [u8; LARGEST] = std::array::from_fn(pattern);
    if stamped {
        payload[PAYLOAD..PAYLOAD + Stamp::LEN].fill(0);
    }
    let udp_len = (len - UDP) as u16;
    let headers = pseudo_ipv6(0, 0, protocol::UDP, u32::from(udp_len)).word(udp_len);
    headers.bytes(&payload[PAYLOAD..len])
}

#[inline(always)]
fn flow_sum(template: &Template, flow: &Flow<u128>) -> Sum {
    template.sum.word(flow.sum).word(flow.source_port).word(flow.destination_port)
}

/// A computed 0 is sent as 0xffff: 0 would say that there is none, which IPv6 does not allow.
#[inline(always)]
pub fn udp_checksum(sum: Sum) -> u16 {
    match sum.checksum() {
        0 => 0xffff,
        checksum => checksum,
    }
}
