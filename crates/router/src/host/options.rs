//! IPv4 options into which forwarding routers write: record route and timestamp (RFC 791, section 3.1).

use std::net::Ipv4Addr;
use std::time::Duration;

use fullview_plane::wire::ipv4::{self, Ipv4Packet};

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;

/// Writes what the options of a packet ask for, and updates the header checksum.
pub(super) fn stamp(packet: &mut [u8], own: Ipv4Addr, now: Duration) {
    let header = Ipv4Packet::new_unchecked(&*packet).header_len();
    let mut options = &mut packet[ipv4::HEADER..header];
    while let Some((option, rest)) = split(options) {
        match option[0] {
            RECORD_ROUTE => record(option, own),
            TIMESTAMP => time(option, own, now),
            _ => {}
        }
        options = rest;
    }
    Ipv4Packet::new_unchecked(packet).fill_checksum();
}

/// The offset of the first malformed option, if there is one.
pub(super) fn malformed_at(header: &[u8]) -> Option<usize> {
    let mut at = ipv4::HEADER;
    while let Some(kind) = header.get(at).filter(|kind| **kind != END) {
        let len = if *kind == NO_OPERATION { Some(1) } else { length(&header[at..]) };
        let Some(len) = len else { return Some(at) };
        at += len;
    }
    None
}

/// The length of the first option, if it lies within the header.
fn length(options: &[u8]) -> Option<usize> {
    let len = usize::from(*options.get(1)?);
    (2..=options.len()).contains(&len).then_some(len)
}

/// The first option, and the others; `None` at the end, or at a malformed length.
fn split(options: &mut [u8]) -> Option<(&mut [u8], &mut [u8])> {
    let len = match *options {
        [] | [END, ..] => return None,
        [NO_OPERATION, ..] => 1,
        _ => length(options)?,
    };
    options.split_at_mut_checked(len)
}

fn record(option: &mut [u8], own: Ipv4Addr) {
    write(option, &own.octets());
}

/// Writes a time that does not count from midnight UT, which its first bit says (RFC 791: "provided the high order bit is
/// set").
fn time(option: &mut [u8], own: Ipv4Addr, now: Duration) {
    const WITH_ADDRESS: u8 = 1;
    const OF_THESE_ADDRESSES: u8 = 3;
    let [_, len, pointer, flags, ..] = *option else { return };
    let stamp = (now.as_millis() as u32 | 1 << 31).to_be_bytes();
    if pointer > len {
        // The upper half counts the routers that found no room.
        option[3] = if flags >= 0xf0 { flags } else { flags + 0x10 };
        return;
    }
    match flags & 0x0f {
        0 => write(option, &stamp),
        WITH_ADDRESS => write(option, &[own.octets(), stamp].concat()),
        OF_THESE_ADDRESSES if asked_for(option, own) => write(option, &[own.octets(), stamp].concat()),
        _ => {}
    }
}

fn asked_for(option: &[u8], own: Ipv4Addr) -> bool {
    let at = usize::from(option[2]).checked_sub(1);
    at.and_then(|at| option.get(at..at + 4)).is_some_and(|asked| asked == own.octets())
}

/// Writes at the pointer, which counts from 1, and advances it. Writes nothing if there is no room.
fn write(option: &mut [u8], bytes: &[u8]) {
    const FIRST: usize = 4;
    let Some(pointer) = option.get(2).copied().filter(|pointer| usize::from(*pointer) >= FIRST) else {
        return;
    };
    let at = usize::from(pointer) - 1;
    if let Some(room) = option.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
        option[2] = pointer + bytes.len() as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamped(options: &[u8]) -> Vec<u8> {
        let len = ipv4::HEADER + options.len();
        let mut bytes = vec![0; len];
        bytes[ipv4::HEADER..].copy_from_slice(options);
        Ipv4Packet::new_unchecked(&mut bytes).set_header_len(len);
        stamp(&mut bytes, Ipv4Addr::new(10, 0, 0, 1), Duration::from_millis(258));
        assert!(Ipv4Packet::new_unchecked(&bytes).verify_checksum());
        bytes[ipv4::HEADER..].to_vec()
    }

    #[test]
    fn addresses_and_times_are_recorded_where_there_is_room() {
        assert_eq!(stamped(&[1, 7, 7, 4, 0, 0, 0, 0]), [1, 7, 7, 8, 10, 0, 0, 1]);
        assert_eq!(stamped(&[7, 7, 8, 1, 2, 3, 4, 0]), [7, 7, 8, 1, 2, 3, 4, 0]);
        assert_eq!(stamped(&[68, 8, 5, 0, 0, 0, 0, 0]), [68, 8, 9, 0, 0x80, 0, 1, 2]);
        let with_address = stamped(&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(with_address, [68, 12, 13, 1, 10, 0, 0, 1, 0x80, 0, 1, 2]);
        let others = [68, 12, 5, 3, 10, 0, 0, 9, 0, 0, 0, 0];
        assert_eq!(stamped(&others), others);
        assert_eq!(stamped(&[68, 8, 9, 0x10, 1, 1, 1, 1]), [68, 8, 9, 0x20, 1, 1, 1, 1]);
    }

    #[test]
    fn the_offset_of_a_malformed_option_is_found() {
        let at = |options: &[u8]| malformed_at(&[&[0; ipv4::HEADER], options].concat());
        assert_eq!([at(&[]), at(&[1, 1, 1, 0]), at(&[0, 9, 9, 9]), at(&[7, 3, 4, 1])], [None; 4]);
        assert_eq!([at(&[9, 0, 1, 1]), at(&[1, 9, 1, 1])], [Some(20), Some(21)]);
        assert_eq!([at(&[9, 5, 1, 1]), at(&[1, 1, 1, 9])], [Some(20), Some(23)]);
    }

    proptest! {
        /// No options make the router panic or write a wrong checksum.
        #[test]
        fn any_options_are_survived(options in prop::collection::vec(any::<u8>(), 0..10)) {
            stamped(&[options, vec![0; 3]].concat()[..].chunks_exact(4).collect::<Vec<_>>().concat());
        }
    }
}
