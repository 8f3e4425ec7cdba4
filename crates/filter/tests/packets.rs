//! Packets from bytes.

use fullview_filter::address::{Address, Family};
use fullview_filter::packet::{Direction, Fragment, Packet, PacketError, Pass, Transport};
use proptest::prelude::*;

const PASS: Pass = Pass { direction: Direction::In, interface: 3, received_on: 3 };

/// An IPv4 packet from 192.0.2.1 to 198.51.100.2.
fn inet(protocol: u8, flags_offset: u16, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0x10, (length >> 8) as u8, length as u8, 0x12, 0x34];
    packet.extend(flags_offset.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    packet.extend(payload);
    packet
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2.
fn inet6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, (payload.len() >> 8) as u8, payload.len() as u8, next, 63];
    for last in [1, 2] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

fn syn() -> Vec<u8> {
    let mut segment = vec![0x30, 0x39, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x80, 2, 0xff, 0xff, 0, 0, 0, 0];
    segment.extend([2, 4, 5, 180, 1, 3, 3, 9, 4, 2, 0, 0]);
    segment
}

const UDP: [u8; 8] = [0x30, 0x39, 0, 53, 0, 8, 0, 0];

#[test]
fn a_syn_shows_its_window_scale() {
    let packet = Packet::parse(&inet(6, 0, &syn()), PASS).unwrap();
    let tcp = packet.tcp().unwrap();
    assert_eq!((tcp.seq, tcp.flags, tcp.window, tcp.scale, tcp.payload), (7, 2, 0xffff, Some(9), 0));
    assert_eq!((packet.source_port, packet.destination_port, packet.tos, packet.ttl), (12345, 80, 0x10, 64));
    assert_eq!((packet.source.to_string(), packet.family), ("192.0.2.1".to_owned(), Family::Inet));
}

#[test]
fn extension_headers_are_followed_to_the_ports() {
    let hop_by_hop = [17, 0, 0, 0, 0, 0, 0, 0];
    let packet = Packet::parse(&inet6(0, &[&hop_by_hop[..], &UDP].concat()), PASS).unwrap();
    assert_eq!((packet.protocol, packet.destination_port), (17, 53));
    assert_eq!((packet.has_options, packet.has_extensions), (false, true));
    let routing = Packet::parse(&inet6(43, &[&hop_by_hop[..], &UDP].concat()), PASS).unwrap();
    assert_eq!((routing.destination_port, routing.has_options), (53, true));
    let many = [&[0, 0, 0, 0, 0, 0, 0, 0].repeat(9)[..], &UDP].concat();
    assert_eq!(Packet::parse(&inet6(0, &many), PASS), Err(PacketError::Extensions));
}

#[test]
fn fragments_have_ports_only_in_the_first() {
    let first = Packet::parse(&inet(17, 0x2000, &UDP), PASS).unwrap();
    assert_eq!((first.fragment, first.destination_port), (Fragment::First { id: 0x1234 }, 53));
    let later = Packet::parse(&inet(17, 5, &UDP), PASS).unwrap();
    assert_eq!((later.fragment, later.destination_port), (Fragment::Later { id: 0x1234 }, 0));
    assert!(!later.shows_ports());
    let header = [17, 0, 0, 1, 0, 0, 0, 9];
    let packet = Packet::parse(&inet6(44, &[&header[..], &UDP].concat()), PASS).unwrap();
    assert_eq!(packet.fragment, Fragment::First { id: 9 });
    assert_eq!(Packet::parse(&inet(6, 1, &syn()), PASS), Err(PacketError::TinyFragment));
}

#[test]
fn an_icmp_error_shows_the_packet_that_it_quotes() {
    let quote = inet(17, 0, &UDP);
    let message = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &quote].concat();
    let quoted = Packet::parse(&inet(1, 0, &message), PASS).unwrap().quoted.unwrap();
    assert_eq!((quoted.source_port, quoted.destination_port, quoted.protocol), (12345, 53, 17));
    assert_eq!(quoted.source, Address::inet(0xc000_0201));
    let echo = Packet::parse(&inet(1, 0, &[8, 0, 0, 0, 0x12, 0x34, 0, 1]), PASS).unwrap();
    assert_eq!(echo.flow_ports(), (0x1234, 0x1234));
    assert!(matches!(echo.transport, Transport::Icmp(message) if message.is_query));
}

#[test]
fn what_cannot_be_read_is_refused() {
    assert_eq!(Packet::parse(&[], PASS), Err(PacketError::TooShort));
    assert_eq!(Packet::parse(&[0x70; 40], PASS), Err(PacketError::Version));
    assert_eq!(Packet::parse(&inet(6, 0, &syn()[..12]), PASS), Err(PacketError::TooShort));
    let mut longer = inet(17, 0, &UDP);
    longer[3] += 1;
    assert_eq!(Packet::parse(&longer, PASS), Err(PacketError::Length));
    let mut mapped = inet6(17, &UDP);
    mapped[8..24].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]);
    assert_eq!(Packet::parse(&mapped, PASS), Err(PacketError::MappedAddress));
}

proptest! {
    /// Bytes after the packet change nothing, and no bytes make it panic.
    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), version in 0_u8..2) {
        if let Some(first) = bytes.first_mut() {
            *first = if version == 0 { 0x40 | *first & 15 } else { 0x60 };
        }
        if let Some(length) = bytes.get_mut(2).filter(|_| version == 0) {
            *length = 0;
        }
        let read = Packet::parse(&bytes, PASS);
        let longer = [&bytes[..], &[0; 40]].concat();
        if let Ok(packet) = read {
            prop_assert_eq!(Packet::parse(&longer, PASS), Ok(packet));
            prop_assert!(usize::from(packet.length) <= bytes.len());
        }
    }

    /// A packet that is cut short within its stated length is refused.
    #[test]
    fn a_cut_packet_is_refused(cut in 1_usize..52, is_inet6: bool) {
        let whole = if is_inet6 { inet6(6, &syn()) } else { inet(6, 0, &syn()) };
        let cut = cut.min(whole.len());
        prop_assert!(Packet::parse(&whole, PASS).is_ok());
        prop_assert!(Packet::parse(&whole[..whole.len() - cut], PASS).is_err());
    }
}
