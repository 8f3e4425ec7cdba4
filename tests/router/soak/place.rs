//! The network: a router between a host on the left, one on the right, and a third one, `beside`, whose link flaps.

use std::path::PathBuf;

use fullview_testnet::Node;

use super::frames::Trouble;
use super::traffic::Flow;
use crate::lab::{Lab, accept_every_address};

/// The number of networks behind the right host, of each family, whose routes stay.
pub const STABLE: u16 = 100;

pub struct Place {
    pub lab: Lab,
    pub beside: Node,
    pub folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { lab: Lab::new(), beside: Node::new(), folder: tempfile::tempdir().unwrap() };
        #[cfg(feature = "bpf")]
        place.lab.keep_tags();
        accept_every_address(&place.lab.right, "eth0");
        accept_every_address6(&place.lab.right);
        place.plug_beside();
        place.batch((0..STABLE).flat_map(|n| {
            [
                format!("route add 20.0.{n}.0/24 via 10.0.2.2"),
                format!("route add 2001:db8:{:x}::/48 via 2001:db8:2::2", 0x2000 + n),
            ]
        }));
        place.lab.router.ip("route add blackhole 30.4.0.0/16");
        place.lab.router.ip("route add prohibit 30.5.0.0/16");
        place.lab.router.ip("route add unreachable 2001:db8:3200::/40");
        place
    }

    /// Makes the cable to the host `beside`, with the addresses and routes that are lost when it is removed. The interface
    /// has another name until it is complete, because the program opens `eth3` as soon as it exists.
    pub fn plug_beside(&self) {
        let (router, beside) = (&self.lab.router, &self.beside);
        router.ip(&format!("link add new type veth peer name eth0 netns {}", beside.id()));
        #[cfg(feature = "bpf")]
        {
            beside.send_finished_frames("eth0");
            router.keep_tags("new");
        }
        router.ip("link set dev new mtu 1300 name eth3");
        router.ip("addr add 10.0.3.1/24 dev eth3");
        router.ip("link set dev eth3 up");
        router.ip("addr replace 2001:db8:3::1/64 dev eth3 nodad");
        beside.ip("link set dev eth0 up");
        beside.ip("addr add 10.0.3.2/24 dev eth0");
        beside.ip("addr add 2001:db8:3::2/64 dev eth0 nodad");
        beside.ip("route add default via 10.0.3.1");
        beside.sysctl("ipv4/conf/all/rp_filter", "0");
        beside.sysctl("ipv4/conf/eth0/rp_filter", "0");
        beside.ip("route replace local default dev lo table 100");
        if !beside.ip("rule show").contains("eth0") {
            beside.ip("rule add iif eth0 lookup 100");
        }
    }

    /// Changes the configuration of the router by one command; `ip` skips the changes that are impossible at that moment.
    pub fn batch(&self, lines: impl Iterator<Item = String>) {
        // Several threads do this at the same time.
        let file = self.path(&format!("batch-{:?}", std::thread::current().id()));
        std::fs::write(&file, lines.map(|line| line + "\n").collect::<String>()).unwrap();
        self.lab.router.try_command(&format!("ip -force -batch {}", file.display()));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns flows of IPv4 and IPv6 from the left to the networks behind the right, and one of IPv4 back.
    pub fn flows(&self) -> [Flow; 3] {
        let Lab { left, right, .. } = &self.lab;
        let inet = (0..STABLE).map(|n| ([20, 0, n as u8, 1], 9).into()).collect();
        let inet6 = (0..STABLE).map(|n| (super::frames::stable6(n), 19).into()).collect();
        [
            Flow::new(0, left.udp("10.0.1.2:0"), right.udp("0.0.0.0:9"), inet),
            Flow::new(1, left.udp("[2001:db8:1::2]:0"), right.udp("[::]:19"), inet6),
            Flow::new(2, right.udp("10.0.2.2:0"), left.udp("10.0.1.2:9"), vec![([10, 0, 1, 2], 9).into()]),
        ]
    }

    pub fn trouble(&self) -> Trouble {
        let mac = |node: &Node, interface| node.mac(interface).parse().unwrap();
        Trouble::new(mac(&self.lab.left, "eth0"), mac(&self.lab.router, "eth1"))
    }
}

fn accept_every_address6(node: &Node) {
    node.ip("-6 route add local default dev lo table 100");
    node.ip("-6 rule add iif eth0 lookup 100");
}
