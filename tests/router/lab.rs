//! The smallest lab: two hosts and, between them, our router.

use fullview_testnet::{ANSWER, Node, Program, cable, eventually};
use std::net::UdpSocket;
use std::time::Duration;

pub struct Lab {
    pub left: Node,
    pub router: Node,
    pub right: Node,
}

impl Lab {
    /// Makes 10.0.1.0/24 and 2001:db8:1::/64 on the left, 10.0.2.0/24 and 2001:db8:2::/64 on the right. On each side, the
    /// router has address 1 and the host has address 2.
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

    /// Makes the cables behave as wires, as AF_XDP sockets need it: frames have finished checksums and keep their tags.
    #[cfg(feature = "bpf")]
    pub fn behave_as_wires(&self) {
        for host in [&self.left, &self.right] {
            host.send_finished_frames("eth0");
        }
        self.keep_tags();
    }

    /// Makes the router's interfaces leave VLAN tags in frames, as XDP programs behind the driver need it.
    #[cfg(feature = "bpf")]
    pub fn keep_tags(&self) {
        ["eth1", "eth2"].iter().for_each(|interface| self.router.keep_tags(interface));
    }

    /// Starts our program, and waits until it has the kernel's routes.
    pub fn forward(&self, options: &[&str]) -> Program {
        forward(&self.router, "eth1,eth2", options)
    }
}

/// Makes the kernel forward too if the program can prevent it from forwarding the same packets. This needs the feature
/// `bpf`; otherwise the kernel does not forward.
pub fn prepare(router: &Node) {
    if cfg!(feature = "bpf") {
        router.sysctl("ipv4/conf/all/forwarding", "1");
        router.sysctl("ipv4/conf/default/forwarding", "1");
        router.sysctl("ipv6/conf/all/forwarding", "1");
        router.sysctl("ipv6/conf/default/forwarding", "1");
    }
}

/// Makes a host accept packets to any IPv4 address that arrive at an interface.
pub fn accept_every_address(node: &Node, interface: &str) {
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

/// How many IPv4 packets the kernel has forwarded.
#[cfg(feature = "bpf")]
pub fn forwarded_by_kernel(router: &Node) -> u64 {
    let counters = router.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
    let mut lines = counters.lines().filter(|line| line.starts_with("Ip:"));
    let [names, values] = [lines.next().unwrap(), lines.next().unwrap()];
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(name, _)| *name == "ForwDatagrams").unwrap().1.parse().unwrap()
}

/// Sends until a packet arrives; the first packets may only start the resolution of neighbours. Returns whether one
/// arrived.
pub fn reaches(from: &UdpSocket, to: &UdpSocket, address: &str) -> bool {
    let mut buffer = [0; 64];
    to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let arrived = eventually(|| {
        from.send_to(b"fullview", address).unwrap();
        to.recv_from(&mut buffer).is_ok()
    });
    // Packets that are still on their way must not be taken for later ones.
    while to.recv_from(&mut buffer).is_ok() {}
    to.set_read_timeout(Some(ANSWER)).unwrap();
    arrived
}
