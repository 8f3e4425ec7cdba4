//! What nobody promises to arrive: troublesome frames, and packets to prefixes that come and go.

use std::net::{Ipv4Addr, UdpSocket};

use fullview_testnet::{Node, PacketSocket};

use super::frames::{CHANGING, Trouble};
use super::place::Place;
use super::traffic::{payload, read};

/// Of each kind, between two batches of others.
const AT_ONCE: u32 = 14;

/// Their number among the flows.
const FLOW: u8 = 9;

pub struct Aside {
    trouble: Trouble,
    cable: PacketSocket,
    from: UdpSocket,
    /// Where they may arrive.
    right: UdpSocket,
    beside: UdpSocket,
    /// Where the packets of others must not.
    astray: [UdpSocket; 2],
    pub counted: Counted,
}

#[derive(Debug, Default, Clone)]
pub struct Counted {
    pub troublesome: u32,
    pub sent: u32,
    pub to_the_right: u32,
    pub beside: u32,
    pub astray: u32,
}

impl Aside {
    pub fn new(place: &Place) -> Aside {
        let hear = |node: &Node, address| {
            let socket = node.udp(address);
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let (left, right, beside) = (&place.lab.left, &place.lab.right, &place.beside);
        Aside {
            trouble: place.trouble(),
            cable: left.packet_socket("eth0"),
            from: left.udp("10.0.1.2:0"),
            right: hear(right, "0.0.0.0:10"),
            beside: hear(beside, "0.0.0.0:10"),
            astray: [hear(beside, "0.0.0.0:9"), hear(beside, "[::]:19")],
            counted: Counted::default(),
        }
    }

    pub fn round(&mut self) {
        for _ in 0..AT_ONCE {
            let frame = self.trouble.next();
            // The interface refuses what is too short for a frame.
            self.counted.troublesome += u32::from(self.cable.send(&frame).is_ok());
            let to = Ipv4Addr::from(CHANGING + ((self.counted.sent % 2000) << 8) + 1);
            self.from.send_to(&payload(FLOW, self.counted.sent), (to, 10)).unwrap();
            self.counted.sent += 1;
        }
        self.counted.to_the_right += heard(&self.right);
        self.counted.beside += heard(&self.beside);
        self.counted.astray += self.astray.iter().map(heard).sum::<u32>();
    }
}

/// How many packets of ours wait there.
fn heard(socket: &UdpSocket) -> u32 {
    let mut packet = [0; 2048];
    let mut count = 0;
    while let Ok(len) = socket.recv(&mut packet) {
        count += u32::from(read(&packet[..len]).is_some());
    }
    count
}
