//! Fragmentation of IPv4 packets that the router forwards or makes (RFC 791, section 3.2).

use fullview_plane::wire::ipv4::{self, Ipv4Packet};

/// A packet that was split.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragments {
    /// The packet fits into the MTU.
    Whole(Vec<u8>),
    /// The fragments, in order.
    Several(Vec<Vec<u8>>),
    /// The MTU is too small for a header and eight bytes.
    Impossible,
}

/// Splits a well-formed packet, whose flags allow it, into fragments of at most `mtu` bytes.
pub(super) fn split(packet: Vec<u8>, mtu: usize) -> Fragments {
    if packet.len() <= mtu {
        return Fragments::Whole(packet);
    }
    let view = Ipv4Packet::new_unchecked(&packet[..]);
    let header = view.header_len();
    let Some(room) = mtu.checked_sub(header).map(|room| room & !7).filter(|room| *room > 0) else {
        return Fragments::Impossible;
    };
    let (offset, more) = (view.fragment_offset(), view.more_fragments());
    let (first, later) = (view.header().to_vec(), later_header(view.header()));
    let pieces = view.payload().len().div_ceil(room);
    let parts = view.payload().chunks(room).enumerate().map(|(number, piece)| {
        let header = if number == 0 { &first } else { &later };
        part(header, piece, offset + number * room, more || number + 1 < pieces)
    });
    Fragments::Several(parts.collect())
}

fn part(header: &[u8], piece: &[u8], offset: usize, more: bool) -> Vec<u8> {
    let mut bytes = [header, piece].concat();
    let total = bytes.len() as u16;
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_total_len(total);
    packet.set_fragment(offset, more);
    packet.fill_checksum();
    bytes
}

/// The header of all fragments except the first. Options without the copied flag become padding, so that the header
/// keeps its length and the fragments their size.
fn later_header(header: &[u8]) -> Vec<u8> {
    const COPIED: u8 = 0x80;
    const NO_OPERATION: u8 = 1;
    let mut header = header.to_vec();
    let mut at = ipv4::HEADER;
    while let Some(len) = option_len(&header[at..]) {
        if header[at] & COPIED == 0 {
            header[at..at + len].fill(NO_OPERATION);
        }
        at += len;
    }
    header
}

/// The length of the first option; `None` at the end of the options or at a malformed one.
fn option_len(options: &[u8]) -> Option<usize> {
    match *options {
        [] | [0, ..] => None,
        [1, ..] => Some(1),
        [_, len, ..] => Some(usize::from(len)).filter(|len| (2..=options.len()).contains(len)),
        [_] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(options: &[u8], payload: usize, offset: usize, more: bool) -> Vec<u8> {
        let header = ipv4::HEADER + options.len();
        let mut bytes = vec![0; header];
        bytes[ipv4::HEADER..].copy_from_slice(options);
        bytes.extend((0..payload).map(|at| at as u8));
        let total = bytes.len() as u16;
        let mut view = Ipv4Packet::new_unchecked(&mut bytes);
        view.set_header_len(header);
        view.set_total_len(total);
        view.set_fragment(offset, more);
        view.fill_checksum();
        bytes
    }

    #[test]
    fn options_are_copied_by_their_flag() {
        let options = [0x9e, 4, 1, 2, 0x1e, 4, 3, 4];
        let Fragments::Several(parts) = split(packet(&options, 100, 0, false), 84) else {
            panic!("the packet is longer than the MTU")
        };
        let kept: Vec<_> =
            parts.iter().map(|part| Ipv4Packet::new_checked(&part[..]).unwrap().options().to_vec()).collect();
        assert_eq!(kept, [&options[..], &[0x9e, 4, 1, 2, 1, 1, 1, 1]]);
    }

    #[test]
    fn malformed_options_are_not_changed() {
        for options in [[0x1e, 0, 1, 1], [0x1e, 9, 1, 1], [1, 1, 1, 0x1e]] {
            let header = packet(&options, 0, 0, false);
            assert_eq!(later_header(&header)[ipv4::HEADER..], options);
        }
    }

    proptest! {
        /// The fragments reassemble to the packet, and each of them is well-formed and fits into the MTU.
        #[test]
        fn fragments_reassemble_to_the_packet(payload in 1usize..4000, mtu in 28usize..1500, offset in 0usize..100, more: bool) {
            let (offset, whole) = (offset * 8, payload & !7);
            let payload = if more { whole.max(8) } else { payload };
            let original = packet(&[], payload, offset, more);
            let parts = match split(original.clone(), mtu) {
                Fragments::Whole(packet) => vec![packet],
                Fragments::Several(parts) => parts,
                Fragments::Impossible => return Err(TestCaseError::fail("28 bytes are a header and eight bytes")),
            };
            let mut end = offset;
            for (number, part) in parts.iter().enumerate() {
                let view = Ipv4Packet::new_checked(&part[..]).unwrap();
                prop_assert!(view.verify_checksum() && part.len() <= mtu.max(original.len().min(mtu)));
                prop_assert_eq!(view.fragment_offset(), end);
                prop_assert_eq!(view.more_fragments(), more || number + 1 < parts.len());
                prop_assert_eq!(view.payload(), &original[ipv4::HEADER + end - offset..][..view.payload().len()]);
                end += view.payload().len();
            }
            prop_assert_eq!(end, offset + payload);
        }
    }
}
