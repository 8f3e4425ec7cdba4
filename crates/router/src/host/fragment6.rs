//! Fragments of IPv6 packets that the router itself originates (RFC 8200, section 4.5).

use fullview_plane::wire::extension::kind;
use fullview_plane::wire::ipv6::{self, Ipv6Packet};

/// The length of the fragment header.
const FRAGMENT_HEADER: usize = 8;

/// Splits a packet without extension headers into fragments of at most `mtu` bytes; there are none if the MTU is too small
/// for any.
pub(super) fn split(packet: &[u8], mtu: usize, identification: u32) -> Vec<Vec<u8>> {
    let whole = Ipv6Packet::new_unchecked(packet);
    let room = mtu.saturating_sub(ipv6::HEADER + FRAGMENT_HEADER) & !7;
    if room == 0 {
        return Vec::new();
    }
    let pieces = whole.payload().len().div_ceil(room);
    let parts = whole.payload().chunks(room).enumerate().map(|(number, piece)| {
        let more = u16::from(number + 1 < pieces);
        let field = ((number * room) as u16 | more).to_be_bytes();
        let id = identification.to_be_bytes();
        let header = [&[whole.next_header(), 0], &field[..], &id].concat();
        part(&packet[..ipv6::HEADER], &header, piece)
    });
    parts.collect()
}

fn part(header: &[u8], fragment_header: &[u8], piece: &[u8]) -> Vec<u8> {
    let mut bytes = [header, fragment_header, piece].concat();
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_next_header(kind::FRAGMENT);
    packet.set_payload_len((FRAGMENT_HEADER + piece.len()) as u16);
    bytes
}
