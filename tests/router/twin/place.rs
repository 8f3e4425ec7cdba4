//! A router between three hosts, twice: with our program, and with the kernel alone. Both have the same MAC addresses.

use std::io::Write;
use std::process::{Command, Stdio};

use fullview_testnet::{Node, cable};

/// The number of hosts, each on a cable of its own.
pub const SIDES: usize = 3;

/// A link of the router that is none of its interfaces. What is sent on it is lost without an answer.
pub const FOREIGN: &str = "wg0";
/// The arguments of `ip` that make it.
pub const MAKE_FOREIGN: &str = "link add wg0 address 02:00:00:00:30:01 up type ifb";

/// A router and its hosts. The router's interfaces are eth1, eth2 and eth3; a host's is eth0.
pub struct Place {
    pub router: Node,
    pub hosts: Vec<Node>,
}

/// The MAC address of an interface that a router begins with.
pub fn router_mac(side: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0x10, side as u8 + 1]
}

pub fn host_mac(side: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0x20, side as u8 + 1]
}

pub fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Begins a command about rules of IPv6, as `ip` cannot tell their family by other words.
const INET6: &str = "-6 ";

/// The stations of a side's host, by the last part of their addresses.
pub const STATIONS: [u8; 3] = [2, 3, 4];

impl Place {
    pub fn new() -> Place {
        let place = Place { router: Node::new(), hosts: (0..SIDES).map(|_| Node::new()).collect() };
        for of in ["all", "default"] {
            place.router.sysctl(&format!("ipv4/conf/{of}/forwarding"), "1");
            place.router.sysctl(&format!("ipv6/conf/{of}/forwarding"), "1");
            place.router.sysctl(&format!("ipv4/conf/{of}/send_redirects"), "0");
        }
        // An error that a limit holds back in one place only would be taken for a difference.
        place.router.sysctl("ipv4/icmp_ratemask", "0");
        place.router.sysctl("ipv6/icmp/ratemask", "\n");
        place.router.sysctl("ipv6/icmp/ratelimit", "0");
        (0..SIDES).for_each(|side| place.connect(side));
        place.router.ip(MAKE_FOREIGN);
        place
    }

    fn connect(&self, side: usize) {
        let (host, name) = (&self.hosts[side], format!("eth{}", side + 1));
        cable((host, "eth0"), (&self.router, &name));
        for (node, name, mac) in [(host, "eth0", host_mac(side)), (&self.router, &name, router_mac(side))] {
            node.ip(&format!("link set dev {name} down"));
            node.ip(&format!("link set dev {name} address {}", text(mac)));
            node.ip(&format!("link set dev {name} up"));
        }
        let side = side + 1;
        for station in STATIONS {
            host.ip(&format!("addr add 10.0.{side}.{station}/24 dev eth0"));
            host.ip(&format!("addr add 2001:db8:{side}::{station}/64 dev eth0 nodad"));
        }
        // Sources of probes.
        host.ip(&format!("route add local 10.0.{side}.128/25 dev lo"));
        self.router.ip(&format!("addr add 10.0.{side}.1/24 dev {name}"));
        self.router.ip(&format!("addr add 2001:db8:{side}::1/64 dev {name} nodad"));
        #[cfg(feature = "bpf")]
        {
            host.accept_redirected_frames("eth0");
            host.send_finished_frames("eth0");
            self.router.keep_tags(&name);
        }
    }

    /// Gives these commands to the router's `ip`. Those that the kernel refuses change nothing. `ip` ends when it cannot
    /// change a neighbour, also with `-force`, so that such a command is the last of its batch.
    pub fn batch(&self, lines: &[String]) {
        let is_inet6 = |line: &String| line.starts_with(INET6);
        lines
            .chunk_by(|line, next| is_inet6(line) == is_inet6(next))
            .flat_map(|lines| lines.split_inclusive(|line| line.starts_with("neigh")))
            .for_each(|lines| self.batch_once(lines, lines.iter().any(is_inet6)));
    }

    fn batch_once(&self, lines: &[String], inet6: bool) {
        let lines = lines.iter().map(|line| format!("{}\n", line.strip_prefix(INET6).unwrap_or(line)));
        let lines: String = lines.collect();
        self.router.run(move || {
            let mut ip = Command::new("ip");
            ip.args(inet6.then_some("-6"))
                .args(["-force", "-batch", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut ip = ip.spawn().unwrap();
            ip.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
            ip.wait().unwrap();
        });
    }

    /// Gives or takes the carrier of the router's interface on a side.
    pub fn set_carrier(&self, side: usize, is_there: bool) {
        self.hosts[side].ip(&format!("link set dev eth0 {}", if is_there { "up" } else { "down" }));
        // Its link-local address comes back with the link, the others do not.
        for station in STATIONS.iter().filter(|_| is_there) {
            let address = format!("2001:db8:{}::{station}/64", side + 1);
            self.hosts[side].ip(&format!("addr replace {address} dev eth0 nodad"));
        }
    }
}
