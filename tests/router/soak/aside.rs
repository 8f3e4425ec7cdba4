//! What nobody promises to arrive: troublesome frames, and packets to prefixes that come and go.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use pnet_datalink::{Channel, Config, DataLinkSender, channel, interfaces};

use super::frames::{CHANGING, Trouble};
use super::place::Place;
use super::traffic::{payload, read};
use crate::node::Node;

/// Of each kind, between two batches of others.
const AT_ONCE: u32 = 14;

/// Their number among the flows.
const FLOW: u8 = 9;

pub struct Aside {
    trouble: Trouble,
    cable: Box<dyn DataLinkSender>,
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
            cable: left.run(cable),
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
            let sent = self.cable.send_to(&frame, None).expect("there is a cable");
            // One that the interface does not take for a frame is none.
            self.counted.troublesome += u32::from(sent.is_ok());
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

fn cable() -> Box<dyn DataLinkSender> {
    let interface = interfaces().into_iter().find(|interface| interface.name == "eth0").expect("eth0");
    let config = Config { read_timeout: Some(Duration::from_millis(1)), ..Config::default() };
    match channel(&interface, config) {
        Ok(Channel::Ethernet(sender, _)) => sender,
        _ => panic!("no socket on eth0"),
    }
}
