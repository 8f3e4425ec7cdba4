//! IPv6 extension headers (RFC 8200, section 4), between the fixed header and the upper layer.

use super::ipv6::{self, Ipv6Packet};

/// Kinds of extension headers, as next-header fields number them.
pub mod kind {
    /// Options for every router on the path.
    pub const HOP_BY_HOP: u8 = 0;
    /// Nodes that the packet has to visit.
    pub const ROUTING: u8 = 43;
    /// A fragment of a longer packet.
    pub const FRAGMENT: u8 = 44;
    /// No next header.
    pub const NONE: u8 = 59;
    /// Options for the destination.
    pub const DESTINATION: u8 = 60;
}

/// A header of the chain. The last one is the upper layer's header, or an extension header after which no header can be
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainedHeader<'a> {
    /// Its number as a next header.
    pub kind: u8,
    /// Offset in the packet of the next-header field with this number.
    pub next_header_at: usize,
    /// Offset of the header in the packet.
    pub at: usize,
    /// The bytes of an extension header, or the rest of the packet.
    pub bytes: &'a [u8],
}

impl ChainedHeader<'_> {
    fn is_extension(&self) -> bool {
        matches!(self.kind, kind::HOP_BY_HOP | kind::ROUTING | kind::FRAGMENT | kind::DESTINATION)
    }

    /// Whether this is the fragment header of a later fragment, which no other header follows.
    fn ends_headers(&self) -> bool {
        self.kind == kind::FRAGMENT && u16::from_be_bytes([self.bytes[2], self.bytes[3]]) & 0xfff8 != 0
    }
}

/// The headers after the fixed one, in order. The chain ends early at a truncated header.
pub fn headers<T: AsRef<[u8]>>(packet: &Ipv6Packet<T>) -> impl Iterator<Item = ChainedHeader<'_>> {
    const NEXT_HEADER_AT: usize = 6;
    HeaderChain {
        rest: packet.payload(),
        next: Some((packet.next_header(), NEXT_HEADER_AT)),
        at: ipv6::HEADER,
    }
}

struct HeaderChain<'a> {
    rest: &'a [u8],
    /// The number of the next header, and the offset of the field that holds it.
    next: Option<(u8, usize)>,
    at: usize,
}

impl<'a> Iterator for HeaderChain<'a> {
    type Item = ChainedHeader<'a>;

    fn next(&mut self) -> Option<ChainedHeader<'a>> {
        let (kind, next_header_at) = self.next.take()?;
        let at = self.at;
        let header = ChainedHeader { kind, next_header_at, at, bytes: self.rest };
        if !header.is_extension() {
            return Some(header);
        }
        let [following, units, ..] = *self.rest else { return None };
        let len = if kind == kind::FRAGMENT { 8 } else { (usize::from(units) + 1) * 8 };
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        let header = ChainedHeader { bytes, ..header };
        self.next = (!header.ends_headers()).then_some((following, at));
        (self.rest, self.at) = (rest, at + len);
        Some(header)
    }
}

/// What a node does with a packet that has an unknown option (RFC 8200, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionAction {
    /// Discard the packet.
    Discard,
    /// Discard it and send an ICMP error.
    Report,
    /// Discard it, and send an ICMP error unless the destination is a multicast address.
    ReportUnlessGroup,
}

/// The action for the first unknown option of a hop-by-hop or destination header that may not be skipped, and its offset in
/// that header. Padding and the router alert are known options.
pub fn unknown_option(header: &[u8]) -> Option<(OptionAction, usize)> {
    const PAD_1: u8 = 0;
    let mut at = 2;
    while let Some(kind) = header.get(at) {
        let action = match kind >> 6 {
            0 => None,
            1 => Some(OptionAction::Discard),
            2 => Some(OptionAction::Report),
            _ => Some(OptionAction::ReportUnlessGroup),
        };
        if let Some(action) = action {
            return Some((action, at));
        }
        let len = header.get(at + 1).copied().map_or(0, usize::from);
        at += if *kind == PAD_1 { 1 } else { 2 + len };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ipv4::protocol::UDP;

    fn chain(first: u8, bytes: &[u8]) -> Vec<(u8, usize, usize, usize)> {
        let mut packet = [&[0; ipv6::HEADER], bytes].concat();
        let mut view = Ipv6Packet::new_unchecked(&mut packet);
        view.set_class_and_flow(0, 0);
        view.set_payload_len(bytes.len() as u16);
        view.set_next_header(first);
        let view = Ipv6Packet::new_checked(&packet[..]).unwrap();
        headers(&view)
            .map(|header| (header.kind, header.next_header_at, header.at, header.bytes.len()))
            .collect()
    }

    #[test]
    fn chains_are_walked_to_the_upper_layer() {
        assert_eq!(chain(UDP, &[7; 9]), [(UDP, 6, 40, 9)]);
        let options = [60, 0, 1, 4, 0, 0, 0, 0, UDP, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let walked = chain(0, &[&options[..], &[1, 2, 3]].concat());
        assert_eq!(walked, [(0, 6, 40, 8), (60, 40, 48, 16), (UDP, 48, 64, 3)]);
    }

    #[test]
    fn chains_end_at_truncated_headers_and_later_fragments() {
        assert_eq!(chain(0, &[UDP, 1, 1, 4, 0, 0, 0, 0]), [], "the header is truncated");
        assert_eq!(chain(0, &[UDP]), []);
        let later_fragment = [UDP, 0, 0, 8, 0, 0, 0, 1, 9, 9];
        assert_eq!(chain(44, &later_fragment), [(44, 6, 40, 8)]);
        let first_fragment = [UDP, 0, 0, 1, 0, 0, 0, 1, 9, 9];
        assert_eq!(chain(44, &first_fragment), [(44, 6, 40, 8), (UDP, 40, 48, 2)]);
    }

    #[test]
    fn the_first_bits_of_an_option_select_the_action() {
        let header = |kind| [UDP, 0, 0, 5, 1, 0, kind, 0];
        assert_eq!(unknown_option(&header(1)), None);
        assert_eq!(unknown_option(&[UDP, 0, 0x1e, 9, 0x9e]), None, "lengths beyond the header end it");
        let demands = [
            (0x5e, OptionAction::Discard),
            (0x9e, OptionAction::Report),
            (0xde, OptionAction::ReportUnlessGroup),
        ];
        for (kind, action) in demands {
            assert_eq!(unknown_option(&header(kind)), Some((action, 6)));
        }
    }
}
