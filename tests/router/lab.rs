//! The smallest lab: two hosts and a router between them, which is us.

use fullview_testnet::{ANSWER, Node, Program, cable, eventually};
use std::net::UdpSocket;
use std::time::Duration;

pub struct Lab {
    pub left: Node,
    pub router: Node,
    pub right: Node,
}

impl Lab {
    /// 10.0.1.0/24 and 2001:db8:1::/64 on the left, 2 on the right; the router is .1, hosts are .2.
    pub fn new() -> Lab {
        let lab = Lab { left: Node::new(), router: Node::new(), right: Node::new() };
        prepare(&lab.router);
        cable((&lab.left, "eth0"), (&lab.router, "eth1"));
        cable((&lab.right, "eth0"), (&lab.router, "eth2"));
        for (host, side) in [(&lab.left, 1), (&lab.right, 2)] {
            address(&lab.router, &format!("eth{side}"), side, 1);
            address(host, "eth0", side, 2);
            host.ip(&format!("route add default via 10.0.{side}.1"));
            host.ip(&format!("-6 route add default via 2001:db8:{side}::1"));
        }
        lab
    }

    /// Cables as AF_XDP sockets need them: checksums finished and tags left on, as on a wire.
    #[cfg(feature = "bpf")]
    pub fn be_wires(&self) {
        for host in [&self.left, &self.right] {
            host.send_finished_frames("eth0");
        }
        for interface in ["eth1", "eth2"] {
            self.router.keep_tags(interface);
        }
    }

    /// Our program, when it has everything the kernel has.
    pub fn forward(&self, options: &[&str]) -> Program {
        forward(&self.router, "eth1,eth2", options)
    }
}

/// The kernel forwards beside us where it can be kept from forwarding the same, and not at all otherwise.
pub fn prepare(router: &Node) {
    if cfg!(feature = "bpf") {
        router.sysctl("ipv4/conf/all/forwarding", "1");
        router.sysctl("ipv4/conf/default/forwarding", "1");
        router.sysctl("ipv6/conf/all/forwarding", "1");
        router.sysctl("ipv6/conf/default/forwarding", "1");
    }
}

/// A host that every address is an address of, by one of its interfaces.
pub fn be_everybody(node: &Node, interface: &str) {
    for name in ["all", interface] {
        node.sysctl(&format!("ipv4/conf/{name}/rp_filter"), "0");
    }
    node.ip("route replace local default dev lo table 100");
    node.ip(&format!("rule add iif {interface} lookup 100"));
}

pub fn forward(router: &Node, interfaces: &str, options: &[&str]) -> Program {
    let arguments = [&["forward", "--interfaces", interfaces], options].concat();
    let mut program = router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
    program.wait_for("forwarding");
    program
}

fn address(node: &Node, interface: &str, side: u8, host: u8) {
    node.ip(&format!("addr add 10.0.{side}.{host}/24 dev {interface}"));
    node.ip(&format!("addr add 2001:db8:{side}::{host}/64 dev {interface} nodad"));
}

/// Sends until one arrives, for the first packets only have neighbours resolved. Returns whether one did.
pub fn reaches(from: &UdpSocket, to: &UdpSocket, address: &str) -> bool {
    let mut heard = [0; 64];
    to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let arrived = eventually(|| {
        from.send_to(b"fullview", address).unwrap();
        to.recv_from(&mut heard).is_ok()
    });
    // What is still on its way is not to be taken for another packet.
    while to.recv_from(&mut heard).is_ok() {}
    to.set_read_timeout(Some(ANSWER)).unwrap();
    arrived
}
