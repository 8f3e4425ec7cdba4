//! A host that sends packets of any form through a router, and sees what comes back.

use std::io;
use std::net::Ipv6Addr;
use std::time::Instant;

use fullview_filter::packet::protocol::UDP;
use fullview_testnet::{ANSWER, Node, PacketSocket, eventually};

use crate::raw_packets::{self, frame, mac, parsed, udp};

/// The left host and the right one.
const LEFT: u32 = 0x0a00_0102;
const RIGHT: u32 = 0x0a00_0202;
/// The answer to packets from this port ends the wait for the answer to the packet before.
pub const MARKER: u16 = 9999;

/// The host on the left, as far as it sends and receives whole packets.
pub struct RawSender {
    socket: PacketSocket,
    router: Vec<u8>,
    own: Vec<u8>,
}

impl RawSender {
    pub fn new(left: &Node) -> RawSender {
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
        RawSender { socket: left.packet_socket("eth0"), router: mac(&router), own: mac(&left.mac("eth0")) }
    }

    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.socket.send(&frame(&self.own, &self.router, packet))
    }

    /// Sends a packet, and returns the frames that come back before the answer to a later packet.
    pub fn exchange(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.send(packet).unwrap();
        self.send(&inet(UDP, &udp(MARKER, 82))).unwrap();
        let deadline = Instant::now() + ANSWER;
        loop {
            let frame = self.socket.receive(deadline).expect("the answer to the last packet");
            if frame[6..12] == self.own[..] || frame[..6] != self.own[..] {
                continue;
            }
            match parsed(&frame).and_then(|packet| packet.quoted) {
                Some(quoted) if quoted.source_port == MARKER => return frames,
                _ => frames.push(frame),
            }
        }
    }
}

/// A packet from the left host to the right one.
pub fn inet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    inet_from(LEFT, protocol, payload)
}

/// A packet to the right host.
pub fn inet_from(from: u32, protocol: u8, payload: &[u8]) -> Vec<u8> {
    raw_packets::inet([from, RIGHT], protocol, payload)
}

/// A packet of IPv6 from the left host to the right one.
pub fn inet6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let ends = ["2001:db8:1::2", "2001:db8:2::2"].map(|text| text.parse::<Ipv6Addr>().unwrap().to_bits());
    raw_packets::inet6(ends, protocol, payload)
}
