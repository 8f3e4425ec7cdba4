//! IPv4: 14 bytes Ethernet, 20 IPv4 without options, 8 UDP. Identification 0 and "don't fragment" (RFC 6864).

use fullview_plane::wire::checksum::{Sum, header_verifies};
use fullview_plane::wire::ethernet::{self, EtherType};
use fullview_plane::wire::ipv4::{self, Ipv4Packet, protocol};
use fullview_plane::wire::udp;

use super::super::flow::Flow;
use super::{HOP_LIMIT, Headers, Macs, Stamp, Template, ethernet_head, pattern};

const IP: usize = ethernet::HEADER;
const UDP: usize = IP + ipv4::HEADER;
const PAYLOAD: usize = UDP + udp::HEADER;
/// Where the sixteen bytes begin that hold all of a flow: checksum, addresses, ports, and the UDP length.
const FLOW: usize = IP + 10;
/// Where the sixteen bytes begin that hold the UDP checksum (none), the stamp, and two bytes of pattern.
const STAMP: usize = PAYLOAD - 2;
/// Everything written per packet: together with what a slot notes, one cache line.
const WRITTEN: usize = STAMP + 16;
/// The two bytes of pattern behind the stamp.
const AFTER_STAMP: u128 = (pattern(WRITTEN - 2) as u128) << 8 | pattern(WRITTEN - 1) as u128;

impl Headers for u32 {
    const SMALLEST: usize = ethernet::MIN_FRAME;
    const PAYLOAD: usize = PAYLOAD;
    const HOP_LIMIT_AT: usize = IP + 8;
    const CHECKSUM_AT: std::ops::Range<usize> = FLOW..FLOW + 2;

    fn template(macs: Macs, len: usize) -> Template {
        let mut head = ethernet_head(macs, EtherType::IPV4);
        let mut ip = Ipv4Packet::new_unchecked(&mut head[IP..UDP]);
        ip.set_header_len(ipv4::HEADER);
        ip.set_type_of_service(0);
        ip.set_total_len((len - IP) as u16);
        ip.set_identification(0);
        ip.set_unfragmented(true);
        ip.set_ttl(HOP_LIMIT);
        ip.set_protocol(protocol::UDP);
        // What follows is written per packet.
        head[FLOW..UDP].fill(0);
        let sum = Sum::ZERO.bytes(&head[IP..UDP]);
        Template { len, head, sum, udp_len: (len - UDP) as u16, stamped: true }
    }

    /// Four stores: the fields of a flow and of its stamp are put together in registers first, because a store for
    /// each of them would be what limits the rate.
    #[inline(always)]
    fn write_head(head: &mut [u8; 64], template: &Template, flow: &Flow<u32>, sequence: u64) {
        let checksum = template.sum.word(flow.sum).checksum();
        let addresses = u128::from(flow.source) << 32 | u128::from(flow.destination);
        let ports = u128::from(flow.source_port) << 32 | u128::from(flow.destination_port) << 16;
        let fields = u128::from(checksum) << 112 | addresses << 48 | ports | u128::from(template.udp_len);
        let stamp = u128::from(sequence) << 48 | u128::from(flow.id) << 16 | AFTER_STAMP;
        head[..FLOW].copy_from_slice(&template.head[..FLOW]);
        head[FLOW..FLOW + 16].copy_from_slice(&fields.to_be_bytes());
        head[STAMP..WRITTEN].copy_from_slice(&stamp.to_be_bytes());
    }

    #[inline(always)]
    fn write_tail(_frame: &mut [u8], _stamp: Stamp) {}

    #[inline(always)]
    fn flow_id(head: &[u8; 64]) -> u32 {
        u32::from_be_bytes([head[PAYLOAD + 8], head[PAYLOAD + 9], head[PAYLOAD + 10], head[PAYLOAD + 11]])
    }

    fn header_checksum_holds(head: &[u8; 64]) -> bool {
        let header = std::array::from_fn(|at| head[IP + at]);
        header_verifies(&header)
    }
}
