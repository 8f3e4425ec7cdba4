//! Packets between two networks, with addresses and ports that rules are likely to name.

use std::fmt;

use fullview_filter::packet;
use fullview_filter::packet::protocol::tcp::{ACK, FIN, PUSH, RST, SYN, URG};
use fullview_filter::packet::protocol::{ICMP, ICMP6, TCP, UDP};
use fullview_plane::wire::ipv4::Ipv4Packet;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::rules::{chance, one};
use crate::raw_packets::{inet, inet6, segment_at, udp};

/// Addresses on the left, 10.1.0.0/16, and on the right, 10.2.0.0/16.
pub const INET: [[u32; 4]; 2] = [
    [0x0a01_0001, 0x0a01_0002, 0x0a01_0203, 0x0a01_c807],
    [0x0a02_0001, 0x0a02_0002, 0x0a02_0203, 0x0a02_c807],
];
/// 2001:db8:a::/48 and 2001:db8:b::/48.
pub const INET6: [[u128; 4]; 2] = [of_inet6(0xa), of_inet6(0xb)];

const fn of_inet6(side: u128) -> [u128; 4] {
    let network = 0x2001_0db8_0000 << 80 | side << 80;
    [network | 1, network | 2, network | 0x1_0001, network | 1 << 64 | 7]
}

pub const PORTS: [u16; 10] = [1, 22, 23, 80, 81, 443, 1023, 1024, 5000, 65_535];

/// A packet, with a number by which it is recognized: the identification of IPv4, or the flow label of IPv6.
pub struct Packet {
    pub bytes: Vec<u8>,
    pub is_from_left: bool,
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", packet::Packet::parse(&self.bytes, packet::Packet::NOTHING.pass).unwrap())
    }
}

/// The number of a packet.
pub fn number_of(bytes: &[u8]) -> u16 {
    let at = if bytes[0] >> 4 == 4 { 4 } else { 2 };
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub fn set_number(bytes: &mut [u8], number: u16) {
    let at = if bytes[0] >> 4 == 4 { 4 } else { 2 };
    bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
    if at == 4 {
        Ipv4Packet::new_unchecked(bytes).fill_checksum();
    }
}

/// Two hosts on different sides, of which the first one is on the left.
#[derive(Clone, Copy)]
enum Hosts {
    Inet([u32; 2]),
    Inet6([u128; 2]),
}

impl Hosts {
    fn random(random: &mut ChaCha8Rng) -> Hosts {
        if chance(random, 35) {
            Hosts::Inet6([0, 1].map(|side: usize| one(random, &INET6[side])))
        } else {
            Hosts::Inet([0, 1].map(|side: usize| one(random, &INET[side])))
        }
    }

    fn is_inet6(self) -> bool {
        matches!(self, Hosts::Inet6(_))
    }

    fn packet(self, is_from_left: bool, protocol: u8, payload: &[u8]) -> Packet {
        let bytes = match (self, is_from_left) {
            (Hosts::Inet(ends), true) => inet(ends, protocol, payload),
            (Hosts::Inet([left, right]), false) => inet([right, left], protocol, payload),
            (Hosts::Inet6(ends), true) => inet6(ends, protocol, payload),
            (Hosts::Inet6([left, right]), false) => inet6([right, left], protocol, payload),
        };
        Packet { bytes, is_from_left }
    }
}

fn numbered(mut packets: Vec<Packet>) -> Vec<Packet> {
    (1..).zip(&mut packets).for_each(|(number, packet)| set_number(&mut packet.bytes, number));
    packets
}

/// Packets of any protocol, each for itself.
pub fn packets(random: &mut ChaCha8Rng) -> Vec<Packet> {
    numbered((0..150).map(|_| any_packet(random)).collect())
}

fn any_packet(random: &mut ChaCha8Rng) -> Packet {
    let (hosts, is_from_left) = (Hosts::random(random), chance(random, 70));
    let ports = [(); 2].map(|()| one(random, &PORTS));
    let flags = one(random, &[SYN, SYN | ACK, ACK, FIN | ACK, RST, 0, FIN | PUSH | URG]);
    match random.random_range(0..10) {
        0..4 => hosts.packet(is_from_left, TCP, &segment_at(ports, flags, [1, 1], b"")),
        4..7 => hosts.packet(is_from_left, UDP, &udp(ports[0], ports[1])),
        7 | 8 => message(random, hosts, is_from_left),
        // ESP.
        _ => hosts.packet(is_from_left, 50, &[0; 24]),
    }
}

fn message(random: &mut ChaCha8Rng, hosts: Hosts, is_from_left: bool) -> Packet {
    let (protocol, kinds): (u8, &[u8]) =
        if hosts.is_inet6() { (ICMP6, &[1, 128, 129]) } else { (ICMP, &[0, 3, 8, 11]) };
    let kind = one(random, kinds);
    let is_error = [1, 3, 11].contains(&kind);
    let quoted = hosts.packet(!is_from_left, UDP, &udp(5000, 5000)).bytes;
    let rest: &[u8] = if is_error { &quoted } else { b"hello" };
    hosts.packet(
        is_from_left,
        protocol,
        &[&[kind, 0, 0, 0, 0, if is_error { 0 } else { 7 }, 0, 0], rest].concat(),
    )
}

/// Packets of hosts that answer each other. Some conversations have begun before.
pub fn conversations(random: &mut ChaCha8Rng) -> Vec<Packet> {
    let number = 0..40;
    numbered(number.flat_map(|number| conversation(random, number)).collect())
}

fn conversation(random: &mut ChaCha8Rng, number: u16) -> Vec<Packet> {
    let (hosts, is_begun_left) = (Hosts::random(random), chance(random, 70));
    let missed = if chance(random, 25) { 1 + random.random_range(0..2) } else { 0 };
    let packets = match random.random_range(0..10) {
        0..5 => connection(hosts, is_begun_left, [20_000 + number, one(random, &PORTS)]),
        5..9 => exchange(random, hosts, is_begun_left),
        _ => pings(hosts, is_begun_left, number),
    };
    packets.into_iter().skip(missed).collect()
}

/// A connection as it begins, carries something each way, and ends.
fn connection(hosts: Hosts, is_begun_left: bool, [client, server]: [u16; 2]) -> Vec<Packet> {
    let of_client = |flags, numbers, payload: &[u8]| {
        hosts.packet(is_begun_left, TCP, &segment_at([client, server], flags, numbers, payload))
    };
    let of_server = |flags, numbers, payload: &[u8]| {
        hosts.packet(!is_begun_left, TCP, &segment_at([server, client], flags, numbers, payload))
    };
    vec![
        of_client(SYN, [100, 0], b""),
        of_server(SYN | ACK, [900, 101], b""),
        of_client(ACK, [101, 901], b""),
        of_client(ACK | PUSH, [101, 901], b"question"),
        of_server(ACK | PUSH, [901, 109], b"answer"),
        of_client(FIN | ACK, [109, 907], b""),
        of_server(FIN | ACK, [907, 110], b""),
        of_client(ACK, [110, 908], b""),
    ]
}

/// Datagrams both ways, in any order.
fn exchange(random: &mut ChaCha8Rng, hosts: Hosts, is_begun_left: bool) -> Vec<Packet> {
    let [near, far] = [(); 2].map(|()| one(random, &PORTS));
    let datagram = |is_answer: bool| {
        let ports = if is_answer { [far, near] } else { [near, far] };
        hosts.packet(is_begun_left != is_answer, UDP, &udp(ports[0], ports[1]))
    };
    (0..4).map(|_| datagram(chance(random, 50))).collect()
}

/// Echo requests and their answers.
fn pings(hosts: Hosts, is_begun_left: bool, number: u16) -> Vec<Packet> {
    let [high, low] = number.to_be_bytes();
    let (protocol, kinds) = if hosts.is_inet6() { (ICMP6, [128, 129]) } else { (ICMP, [8, 0]) };
    let messages = kinds.map(|kind| [kind, 0, 0, 0, high, low, 0, 1, 9, 9]);
    vec![
        hosts.packet(is_begun_left, protocol, &messages[0]),
        hosts.packet(!is_begun_left, protocol, &messages[1]),
    ]
}
