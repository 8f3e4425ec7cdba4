//! Answers to packets that rules reject, beside those of Linux with the same rules.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};

use fullview_filter::packet::protocol::{ICMP, ICMP6, TCP, UDP};
use fullview_filter::packet::{Packet, Transport, network_header};
use fullview_plane::wire::ethernet::HEADER;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_testnet::ANSWER;

use super::filter::filtered;
use super::nat::linux;
use super::raw_sender::{RawSender, inet, inet6};
use super::*;
use crate::raw_packets::{parsed, segment, udp};

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

/// What comes back for a packet.
fn answers(sender: &mut RawSender, packet: &[u8]) -> Vec<String> {
    let frames = sender.exchange(packet);
    frames.iter().filter_map(|frame| described(&parsed(frame)?, &frame[HEADER..])).collect()
}

fn fragment_field(packet: &[u8]) -> Option<&[u8]> {
    (packet[0] >> 4 == 4).then(|| &packet[6..8])
}

fn tcp(flags: u8, payload: &[u8]) -> Vec<u8> {
    segment(5000, 81, flags, payload)
}

fn echo(kind: u8) -> Vec<u8> {
    vec![kind, 0, 0, 0, 0x13, 0x88, 0, 1, 1, 2, 3]
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
    let mut sender = RawSender::new(left);
    packets().into_iter().map(|(name, packet, _)| (name, answers(&mut sender, &packet))).collect()
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
