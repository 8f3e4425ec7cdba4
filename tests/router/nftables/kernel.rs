//! A router of Linux with rules of nftables, and the two networks beside it.

use std::collections::BTreeSet;
use std::time::Instant;

use fullview_plane::wire::ethernet::HEADER;
use fullview_testnet::{ANSWER, Node, PacketSocket};

use super::traffic::{Packet, number_of, set_number};
use crate::lab::Lab;
use crate::raw_packets::{frame, inet, mac};

/// The number of the packets that end a round.
const LAST: u16 = u16::MAX;

/// A host that sends the packets of a network and receives those for it.
struct Side {
    socket: PacketSocket,
    own: Vec<u8>,
    router: Vec<u8>,
}

pub struct Kernel {
    lab: Lab,
    left: Side,
    right: Side,
}

impl Side {
    fn new(lab: &Lab, host: &Node, interface: &str) -> Side {
        Side {
            socket: host.packet_socket("eth0"),
            own: mac(&host.mac("eth0")),
            router: mac(&lab.router.mac(interface)),
        }
    }

    fn send(&mut self, packet: &[u8]) {
        self.socket.send(&frame(&self.own, &self.router, packet)).unwrap();
    }

    /// Receives packets until this one comes. Returns their numbers; without this one if it does not come in time.
    fn numbers_until(&mut self, last: u16) -> BTreeSet<u16> {
        let deadline = Instant::now() + ANSWER;
        let mut numbers = BTreeSet::new();
        while !numbers.contains(&last) {
            let Some(frame) = self.socket.receive(deadline) else { break };
            let is_ip = [[8, 0], [0x86, 0xdd]].contains(&[frame[12], frame[13]]);
            numbers.extend((is_ip && frame[..6] == self.own[..]).then(|| number_of(&frame[HEADER..])));
        }
        numbers
    }
}

impl Kernel {
    pub fn new() -> Kernel {
        let lab = Lab::new();
        for family in ["ipv4", "ipv6"] {
            ["all", "default", "eth1", "eth2"]
                .iter()
                .for_each(|of| lab.router.sysctl(&format!("{family}/conf/{of}/forwarding"), "1"));
        }
        for (side, network, host) in [(1, "a", &lab.left), (2, "b", &lab.right)] {
            let (inet, inet6) = (format!("10.0.{side}.2"), format!("2001:db8:{side}::2"));
            for address in [&inet, &inet6] {
                lab.router.ip(&format!("neigh replace {address} lladdr {} dev eth{side}", host.mac("eth0")));
            }
            lab.router.ip(&format!("route add 10.{side}.0.0/16 via {inet}"));
            lab.router.ip(&format!("-6 route add 2001:db8:{network}::/48 via {inet6}"));
        }
        let [left, right] =
            [(&lab.left, "eth1"), (&lab.right, "eth2")].map(|(host, of)| Side::new(&lab, host, of));
        Kernel { lab, left, right }
    }

    /// Replaces the rules. The error is nft's.
    pub fn load(&self, rules: &str) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rules).unwrap();
        let output = self.lab.router.try_command(&format!("nft -f {}", file.path().display()));
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Sends the packets one after the other, and says which of them came through. After each that is expected to come, it waits
    /// for it, so that the kernel judges the packets in their order.
    pub fn passed(&mut self, packets: &[Packet], expected: &[bool]) -> Vec<bool> {
        let mut numbers = BTreeSet::new();
        for (packet, comes) in packets.iter().zip(expected) {
            let (from, to) = self.sides(packet.is_from_left);
            from.send(&packet.bytes);
            if *comes {
                numbers.append(&mut to.numbers_until(number_of(&packet.bytes)));
            }
        }
        for (is_from_left, ends) in [(true, [0x0a01_0001, 0x0a02_0001]), (false, [0x0a02_0001, 0x0a01_0001])]
        {
            let mut last = inet(ends, 253, b"last");
            set_number(&mut last, LAST);
            let (from, to) = self.sides(is_from_left);
            from.send(&last);
            numbers.append(&mut to.numbers_until(LAST));
        }
        assert!(numbers.remove(&LAST), "the last packet");
        packets.iter().map(|packet| numbers.contains(&number_of(&packet.bytes))).collect()
    }

    fn sides(&mut self, is_from_left: bool) -> (&mut Side, &mut Side) {
        let Kernel { left, right, .. } = self;
        if is_from_left { (left, right) } else { (right, left) }
    }
}
