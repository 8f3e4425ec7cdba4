//! Two routers that share an address and its MAC address by VRRP (keepalived): packets flow again when one of them leaves it to
//! the other, and when it takes it back.

use fullview_testnet::{Node, Program, cable, eventually, may_run};
use tempfile::TempDir;

use crate::datagrams::{passes, socket};
use crate::lab::{forward, prepare};

/// RFC 5798, 7.3: the MAC address of the virtual router 51.
const VIRTUAL_MAC: &str = "00:00:5e:00:01:33";

/// Keepalived with a virtual router on each side, which move together.
struct Keepalived {
    program: Program,
    _folder: TempDir,
}

impl Keepalived {
    fn start(node: &Node, priority: u8) -> Keepalived {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(file("keepalived.conf"), configuration(priority)).unwrap();
        let (config, pid, vrrp_pid) = (file("keepalived.conf"), file("pid"), file("vrrp.pid"));
        let arguments = ["-n", "-l", "-D", "-P", "-f", &config, "-p", &pid, "-r", &vrrp_pid, "--no-syslog"];
        Keepalived { program: node.start("keepalived", &arguments), _folder: folder }
    }
}

fn configuration(priority: u8) -> String {
    let side = |side: u8| {
        format!(
            "vrrp_instance side{side} {{ state BACKUP\n interface eth{side}\n virtual_router_id 51\n \
             priority {priority}\n advert_int 0.1\n use_vmac vrrp{side}\n vmac_xmit_base\n \
             virtual_ipaddress {{ 10.0.{side}.254/32\n }}\n}}\n"
        )
    };
    format!(
        "global_defs {{ vrrp_version 3\n}}\nvrrp_sync_group both {{ group {{ side1\n side2\n }}\n}}\n{}{}",
        side(1),
        side(2)
    )
}

/// Two hosts, and two routers between them that each have a cable to both networks.
struct Pair {
    hosts: [Node; 2],
    routers: [Node; 2],
    _switches: [Node; 2],
}

impl Pair {
    fn new() -> Pair {
        let pair = Pair {
            hosts: [Node::new(), Node::new()],
            routers: [Node::new(), Node::new()],
            _switches: [Node::new(), Node::new()],
        };
        pair.routers.iter().for_each(prepare);
        for (side, (host, switch)) in (1..).zip(pair.hosts.iter().zip(&pair._switches)) {
            switch.ip("link add bridge type bridge");
            switch.ip("link set bridge up");
            connect(switch, host, "eth0", "host");
            host.ip(&format!("addr add 10.0.{side}.2/24 dev eth0"));
            host.ip(&format!("route add default via 10.0.{side}.254"));
            for (number, router) in (3..).zip(&pair.routers) {
                connect(switch, router, &format!("eth{side}"), &format!("router{number}"));
                router.ip(&format!("addr add 10.0.{side}.{number}/24 dev eth{side}"));
            }
        }
        pair
    }

    fn is_virtual_router(&self, router: usize) -> bool {
        self.routers[router].command("ip -br -4 address").contains("10.0.1.254")
    }
}

fn connect(switch: &Node, node: &Node, interface: &str, port: &str) {
    cable((node, interface), (switch, port));
    switch.ip(&format!("link set {port} master bridge"));
}

#[test]
fn packets_flow_by_the_virtual_router_wherever_it_is() {
    if !may_run(&["ip", "setpriv", "keepalived"]) {
        return;
    }
    let pair = Pair::new();
    let programs = [0, 1].map(|router| forward(&pair.routers[router], "eth1,eth2", &[]));
    let _backup = Keepalived::start(&pair.routers[1], 100);
    let master = Keepalived::start(&pair.routers[0], 200);
    assert!(eventually(|| pair.is_virtual_router(0)), "{}", master.program.output());
    let [left, right] =
        [(0, "10.0.1.2:9"), (1, "10.0.2.2:9")].map(|(host, address)| socket(&pair.hosts[host], address));
    assert!(eventually(|| passes(&left, &right)), "{}", programs[0].output());
    assert!(passes(&right, &left));
    let neighbor = pair.hosts[0].ip("neigh show 10.0.1.254");
    assert!(neighbor.contains(VIRTUAL_MAC), "{neighbor}");

    // An order to end gives the address away at once (priority 0).
    let (code, said) = master.program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(eventually(|| pair.is_virtual_router(1)), "{said}");
    assert!(eventually(|| passes(&left, &right)) && passes(&right, &left), "{}", programs[1].output());

    let master = Keepalived::start(&pair.routers[0], 200);
    assert!(
        eventually(|| pair.is_virtual_router(0) && !pair.is_virtual_router(1)),
        "{}",
        master.program.output()
    );
    assert!(eventually(|| passes(&left, &right)) && passes(&right, &left), "{}", programs[0].output());
    for program in programs {
        let (code, said) = program.end("TERM");
        assert_eq!(code, Some(0), "{said}");
    }
}
