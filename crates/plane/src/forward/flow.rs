//! Which flow a packet belongs to, as a hash by which a group picks its member: the packets of a flow keep their path.

use fullview_table::group::flow_hash;

use crate::burst::Slot;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::{Field, ipv4, ipv6};

/// Of addresses, protocol and ports; a fragment is known by its addresses only, because all but the first of a packet
/// lack the ports. The packet has been found in order, and its tag is off.
pub(super) fn inet(packet: &Slot, seed: u64) -> u32 {
    let ip = ipv4::Packet::new_unchecked(&packet.head()[ETHERNET..]);
    let is_fragment = ip.more_fragments() || ip.fragment_offset() != 0;
    let ports = ports(packet, ip.protocol(), ETHERNET + ip.header_len()).filter(|_| !is_fragment);
    let (protocol, ports) = ports.map_or((0, (0, 0)), |ports| (ip.protocol(), ports));
    flow_hash(seed, ip.source().into(), ip.destination().into(), protocol, ports)
}

/// Of addresses and flow label (RFC 6438); of a sender that sets no label, of the ports too if they follow the header.
pub(super) fn inet6(packet: &Slot, seed: u64) -> u32 {
    let ip = ipv6::Packet::new_unchecked(&packet.head()[ETHERNET..]);
    let (protocol, ports) = match ip.flow_label() {
        0 => ports(packet, ip.next_header(), ETHERNET + ipv6::HEADER)
            .map_or((0, (0, 0)), |ports| (ip.next_header(), ports)),
        label => (0, ((label >> 16) as u16, label as u16)),
    };
    flow_hash(seed, ip.source(), ip.destination(), protocol, ports)
}

/// Source and destination port of a protocol that begins with them, if the frame holds them.
fn ports(packet: &Slot, protocol: u8, at: usize) -> Option<(u16, u16)> {
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    let has_ports = matches!(protocol, ipv4::protocol::TCP | ipv4::protocol::UDP | DCCP | SCTP | UDP_LITE);
    let bytes = packet.frame().get(at..at + 4).filter(|_| has_ports)?;
    Some((Field::<2>(0).number(bytes), Field::<2>(2).number(bytes)))
}
