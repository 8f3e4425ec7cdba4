//! Answers to packets that rules reject, beside those of Linux with the same rules.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::time::Instant;

use fullview_filter::packet::protocol::{ICMP, ICMP6, TCP, UDP};
use fullview_filter::packet::{Packet, Transport, network_header};
use fullview_plane::wire::checksum::{Sum, pseudo_ipv4, pseudo_ipv6};
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER};
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_testnet::{ANSWER, PacketSocket, eventually};

use super::filter::filtered;
use super::nat::linux;
use super::*;

const PF: &str = "block return-rst in quick on left proto tcp to port 81
block return-icmp (port-unr) in quick on left inet proto udp to port 82
block return-icmp6 (port-unr) in quick on left inet6 proto udp to port 82
block return-icmp (host-prohib) in quick on left inet proto icmp to 10.0.2.2 icmp-type echoreq
block return-icmp6 (admin-unr) in quick on left inet6 proto icmp6 to 2001:db8:2::2 icmp6-type echoreq
block return-icmp (filter-prohib) out quick on right inet proto udp to port 83
pass all
";

const NFT: &str = "table inet own {
    chain forward {
        type filter hook forward priority 0;
        tcp dport 81 reject with tcp reset
        meta nfproto ipv4 udp dport 82 reject with icmp port-unreachable
        meta nfproto ipv6 udp dport 82 reject with icmpv6 port-unreachable
        icmp type echo-request reject with icmp host-prohibited
        icmpv6 type echo-request reject with icmpv6 admin-prohibited
        udp dport 83 reject with icmp admin-prohibited
    }
}
";

const IPFW: &str = "add reset tcp from any to 10.0.2.2 81 in recv left
add reset6 tcp from any to 2001:db8:2::2 81 in recv left
add unreach port udp from any to 10.0.2.2 82 in recv left
add unreach6 port udp from any to 2001:db8:2::2 82 in recv left
add unreach host-prohib icmp from any to 10.0.2.2 in recv left icmptypes 8
add unreach6 admin-prohib icmp6 from any to 2001:db8:2::2 in recv left icmp6types 128
add unreach filter-prohib udp from any to 10.0.2.2 83 out xmit right
add allow ip from any to any
";

/// The answer to packets from this port ends the wait for the answer to the packet before.
const MARKER: u16 = 9999;

/// The host on the left, as far as it sends and receives whole packets.
struct Sender {
    socket: PacketSocket,
    router: Vec<u8>,
    own: Vec<u8>,
}

fn mac(text: &str) -> Vec<u8> {
    text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

impl Sender {
    fn new(left: &Node) -> Sender {
        let mut router = String::new();
        assert!(eventually(|| {
            left.try_command("ping -n -c 1 -W 1 10.0.1.1");
            let shown = left.ip("-o neigh show 10.0.1.1 dev eth0");
            router = shown
                .split("lladdr ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next())
                .unwrap_or("")
                .to_owned();
            !router.is_empty()
        }));
        Sender { socket: left.packet_socket("eth0"), router: mac(&router), own: mac(&left.mac("eth0")) }
    }

    fn send(&mut self, packet: &[u8]) {
        let ethertype = if packet[0] >> 4 == 4 { EtherType::IPV4 } else { EtherType::IPV6 };
        let frame = [&self.router[..], &self.own, &ethertype.0.to_be_bytes(), packet].concat();
        self.socket.send(&frame).unwrap();
    }

    /// Sends a packet, and says what comes back before the answer to a later packet.
    fn answers(&mut self, packet: &[u8]) -> Vec<String> {
        let mut answers = Vec::new();
        self.send(packet);
        self.send(&inet(UDP, &udp(MARKER, 82)));
        let deadline = Instant::now() + ANSWER;
        loop {
            let frame = self.socket.receive(deadline).expect("the answer to the last packet");
            if frame[6..12] == self.own[..] || frame[..6] != self.own[..] {
                continue;
            }
            let Ok(packet) = Packet::parse(Frame::new_unchecked(&frame[..]).payload(), Packet::NOTHING.pass)
            else {
                continue;
            };
            match packet.quoted {
                Some(quoted) if quoted.source_port == MARKER => return answers,
                _ => answers.extend(described(&packet, &frame[HEADER..])),
            }
        }
    }
}

/// Type, code and flags, and all else that both routers have to agree about.
fn described(packet: &Packet, bytes: &[u8]) -> Option<String> {
    let ends = format!(
        "{} to {}, TTL {}",
        IpAddr::from(packet.source),
        IpAddr::from(packet.destination),
        packet.ttl
    );
    match (packet.transport, packet.quoted) {
        (Transport::Tcp(_), _) => {
            let at = network_header(bytes).unwrap().payload;
            let mut segment = bytes[at..usize::from(packet.length)].to_vec();
            // Linux leaves the checksum of what it sends over a virtual cable to the receiver.
            segment[16..18].fill(0);
            Some(format!("{ends}, fragment field {:02x?}, segment {segment:02x?}", fragment_field(bytes)))
        }
        (Transport::Icmp(message), Some(quoted)) => {
            let about = (quoted.protocol, quoted.source_port, quoted.destination_port);
            Some(format!("{ends}, type {} code {} about {about:?}", message.kind, message.code))
        }
        _ => None,
    }
}

fn fragment_field(packet: &[u8]) -> Option<&[u8]> {
    (packet[0] >> 4 == 4).then(|| &packet[6..8])
}

fn udp(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0, 13, 0, 0], b"hello"].concat()
}

fn tcp(flags: u8, payload: &[u8]) -> Vec<u8> {
    let header = [0x13, 0x88, 0, 81, 1, 2, 3, 4, 9, 8, 7, 6, 0x50, flags, 1, 0, 0, 0, 0, 0];
    [&header[..], payload].concat()
}

fn echo(kind: u8) -> Vec<u8> {
    vec![kind, 0, 0, 0, 0x13, 0x88, 0, 1, 1, 2, 3]
}

/// Where the checksum is.
fn checksum_at(protocol: u8) -> usize {
    match protocol {
        TCP => 16,
        UDP => 6,
        _ => 2,
    }
}

fn summed(mut payload: Vec<u8>, protocol: u8, pseudo: Sum) -> Vec<u8> {
    let (at, sum) = (checksum_at(protocol), pseudo.bytes(&payload).checksum());
    payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    payload
}

/// A packet from the left host to the right one.
fn inet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (from, to) = (0x0a00_0102, 0x0a00_0202);
    let pseudo = pseudo_ipv4(from, to, protocol, payload.len() as u16);
    let payload = summed(payload.to_vec(), protocol, if protocol == ICMP { Sum::ZERO } else { pseudo });
    let mut bytes = [&[0; ipv4::HEADER], &payload[..]].concat();
    let total = bytes.len() as u16;
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(ipv4::HEADER);
    packet.set_total_len(total);
    packet.set_ttl(40);
    packet.set_protocol(protocol);
    packet.set_source(from);
    packet.set_destination(to);
    packet.fill_checksum();
    bytes
}

fn inet6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().to_bits();
    let (from, to) = (address("2001:db8:1::2"), address("2001:db8:2::2"));
    let payload = summed(payload.to_vec(), protocol, pseudo_ipv6(from, to, protocol, payload.len() as u32));
    let mut bytes = [&[0; ipv6::HEADER], &payload[..]].concat();
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_class_and_flow(0, 0);
    packet.set_payload_len(payload.len() as u16);
    packet.set_next_header(protocol);
    packet.set_hop_limit(40);
    packet.set_source(from);
    packet.set_destination(to);
    bytes
}

/// Packets, and how many answers each gets.
fn packets() -> Vec<(&'static str, Vec<u8>, usize)> {
    let mut damaged = inet(TCP, &tcp(2, b""));
    damaged[ipv4::HEADER + 16] ^= 1;
    let error = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &inet(UDP, &udp(82, 82))].concat();
    let mut fragment = inet(UDP, &udp(5000, 82));
    let mut later = Ipv4Packet::new_unchecked(&mut fragment);
    later.set_fragment(800, false);
    later.fill_checksum();
    vec![
        ("SYN", inet(TCP, &tcp(0x02, b"")), 1),
        ("SYN with data", inet(TCP, &tcp(0x02, b"four!")), 1),
        ("ACK", inet(TCP, &tcp(0x10, b"")), 1),
        ("FIN with data", inet(TCP, &tcp(0x11, b"four!")), 1),
        ("FIN alone", inet(TCP, &tcp(0x01, b"")), 1),
        ("RST", inet(TCP, &tcp(0x04, b"")), 0),
        ("damaged SYN", damaged, 0),
        ("UDP", inet(UDP, &udp(5000, 82)), 1),
        ("UDP, rejected on the way out", inet(UDP, &udp(5000, 83)), 1),
        ("a later fragment", fragment, 0),
        ("echo", inet(ICMP, &echo(8)), 1),
        ("an error", inet(ICMP, &error), 0),
        ("SYN over IPv6", inet6(TCP, &tcp(0x02, b"")), 1),
        ("ACK over IPv6", inet6(TCP, &tcp(0x10, b"more")), 1),
        ("UDP over IPv6", inet6(UDP, &udp(5000, 82)), 1),
        ("echo over IPv6", inet6(ICMP6, &echo(128)), 1),
    ]
}

fn answers_of(left: &Node) -> Vec<(&'static str, Vec<String>)> {
    // The neighbours of IPv6, too.
    left.try_command("ping -n -c 1 -W 5 2001:db8:1::1");
    let mut sender = Sender::new(left);
    packets().into_iter().map(|(name, packet, _)| (name, sender.answers(&packet))).collect()
}

#[test]
fn rejected_packets_are_answered_as_linux_does_it() {
    if !may_run_standalone() || !may_run(&["nft"]) {
        return;
    }
    let Some(kernel) = linux(NFT) else { return };
    let expected = answers_of(&kernel.left);
    for ((name, answers), (_, _, count)) in expected.iter().zip(packets()) {
        assert_eq!(answers.len(), count, "{name}: {answers:?}");
    }
    for (language, rules) in [("pf", PF), ("ipfw", IPFW)] {
        let lab = filtered(language, rules);
        let found = answers_of(&lab.left);
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            // pf answers no ICMP, whatever the rule says.
            let is_silent = language == "pf" && name.starts_with("echo");
            let expected = if is_silent { &[][..] } else { expected };
            assert_eq!(found, expected, "{language}, {name}: {}", lab.show("counters"));
        }
        lab.end();
    }
}

#[test]
fn clients_learn_at_once_that_they_are_rejected() {
    if !may_run_standalone() {
        return;
    }
    for (language, rules) in [("pf", PF), ("ipfw", IPFW)] {
        let lab = filtered(language, rules);
        for to in ["10.0.2.2:81", "[2001:db8:2::2]:81"] {
            let to = to.parse().unwrap();
            let refused = move || TcpStream::connect_timeout(&to, ANSWER).err().map(|error| error.kind());
            assert_eq!(lab.left.run(refused), Some(ErrorKind::ConnectionRefused), "{}", lab.show("counters"));
        }
        let socket = lab.left.udp("10.0.1.2:5000");
        socket.connect("10.0.2.2:82").unwrap();
        socket.send(b"question").unwrap();
        assert_eq!(socket.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        if language == "ipfw" {
            let output = lab.ping("-c 1 -W 10 2001:db8:2::2");
            assert!(output.contains("Administratively prohibited"), "{output}");
        }
        let counters = lab.show("counters");
        assert!(counters.contains("filter_rule"), "{counters}");
        lab.end();
    }
}
