//! A router without a kernel, on TAP interfaces. The kernel's ends of these interfaces are in the namespaces of Linux
//! hosts, which cannot tell it from another router.

mod delivery;
mod filter;
mod filter_operation;
mod filter_states;
mod filter_tables;
mod filter_trace;
#[cfg(feature = "bpf")]
mod handover;
mod links;
mod nat;
mod operation;
mod raw_sender;
mod real_traffic;
mod reject;
mod routes;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use fullview_testnet::{Node, Program, eventually, has, may_run};

use crate::control::ask_by_program;

const FULLVIEW: &str = env!("CARGO_BIN_EXE_fullview");

/// Three hosts and a router between them. The router's own namespace keeps the interface `fourth` only.
pub struct Standalone {
    pub left: Node,
    pub right: Node,
    pub third: Node,
    home: Node,
    router: Program,
    folder: tempfile::TempDir,
}

/// On each network, the router has address 1 and the host has address 2.
const CONFIG: &str = r#"
[router]
kernel = false
interfaces = ["left", "right", "third", "fourth"]
port = "tap"
ROUTER

[interface.left]
address = ["10.0.1.1/24", "2001:db8:1::1/64"]

[interface.right]
address = ["10.0.2.1/24", "2001:db8:2::1/64"]
mtu = 1400

[interface.third]
address = ["10.0.3.1/24", "2001:db8:3::1/64"]

[control]
socket = "FOLDER/control.sock"
"#;

/// Default routes to the right host, and routes that drop packets.
const ROUTES: &str = r#"
[[route]]
to = "0.0.0.0/0"
via = "10.0.2.2"

[[route]]
to = "::/0"
via = "2001:db8:2::2"

[[route]]
to = "203.0.113.0/26"
kind = "blackhole"

[[route]]
to = "203.0.113.64/26"
kind = "unreachable"

[[route]]
to = "203.0.113.128/26"
kind = "prohibit"
"#;

impl Standalone {
    /// Starts a router with the configuration above and `more`.
    pub fn start(more: &str) -> Standalone {
        Standalone::with("", more)
    }

    /// As [`Standalone::start`], with more lines in the section `[router]`.
    pub fn with(of_router: &str, more: &str) -> Standalone {
        let folder = tempfile::tempdir().unwrap();
        let (left, right, third, home) = (Node::new(), Node::new(), Node::new(), Node::new());
        let file = write(&folder, of_router, more);
        let mut router = home.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
        router.wait_for("forwarding");
        router.wait_for("control: ");
        let lab = Standalone { left, right, third, home, router, folder };
        lab.connect_hosts();
        lab
    }

    /// Moves the interfaces to the hosts, which get addresses and routes.
    fn connect_hosts(&self) {
        for (host, name, side) in
            [(&self.left, "left", 1), (&self.right, "right", 2), (&self.third, "third", 3)]
        {
            self.hand_over(name, host);
            host.ip(&format!("addr add 10.0.{side}.2/24 dev eth0"));
            host.ip(&format!("addr add 2001:db8:{side}::2/64 dev eth0 nodad"));
            host.ip(&format!("route add default via 10.0.{side}.1"));
            host.ip(&format!("-6 route add default via 2001:db8:{side}::1"));
        }
    }

    /// Moves an interface to a host, and waits until the router reports that the link is up.
    fn hand_over(&self, name: &str, host: &Node) {
        hand_over(&self.home, name, host);
        self.await_state(name, "up");
    }

    fn await_state(&self, name: &str, state: &str) {
        await_state(&self.folder.path().join("control.sock"), name, state);
    }

    /// Makes the running router load another configuration.
    fn reload(&self, more: &str) -> (bool, String) {
        write(&self.folder, "", more);
        self.ask("reload")
    }

    fn ask(&self, line: &str) -> (bool, String) {
        ask_by_program(&self.folder.path().join("control.sock"), line)
    }

    fn show(&self, what: &str) -> String {
        let (success, output) = self.ask(&format!("show {what}"));
        assert!(success, "{what}: {output}");
        output
    }

    /// Checks that an address answers the left host.
    fn answers(&self, to: &str) {
        self.answers_to(&self.left, to);
    }

    fn answers_to(&self, host: &Node, to: &str) {
        let output = host.try_command(&format!("ping -n -c 2 -i 0.05 -W 60 {to}"));
        let answers = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{answers}\n{}\n{}", self.show("counters"), self.router.output());
    }

    /// Returns what `ping` prints on the left host, whether or not it was answered.
    fn ping(&self, arguments: &str) -> String {
        let output = self.left.try_command(&format!("ping -n {arguments}"));
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    fn end(self) -> String {
        let (code, output) = self.router.end("TERM");
        assert_eq!(code, Some(0), "{output}");
        output
    }
}

/// Waits until the router that listens at `socket` reports that an interface is in a state: `up` or `down`.
fn await_state(socket: &Path, name: &str, state: &str) {
    let shown = || ask_by_program(socket, "show interfaces").1;
    let has = |line: &str| line.split_whitespace().take(2).eq([name, state]);
    assert!(eventually(|| shown().lines().any(has)), "{name} is not {state}: {}", shown());
}

/// Moves the kernel's end of an interface to a host, where its name is `eth0`.
fn hand_over(home: &Node, name: &str, host: &Node) {
    home.ip(&format!("link set {name} netns {}", host.id()));
    host.ip(&format!("link set {name} name eth0 txqueuelen 10000"));
    host.ip("link set eth0 up");
}

fn write(folder: &tempfile::TempDir, of_router: &str, more: &str) -> PathBuf {
    let file = folder.path().join("router.toml");
    let text = CONFIG.replace("ROUTER", of_router) + more;
    std::fs::write(&file, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
    file
}

fn may_run_standalone() -> bool {
    may_run(&["ip", "ping", "setpriv"]) && has(Path::new("/dev/net/tun").exists(), "/dev/net/tun")
}

/// Counts packets by source port until none arrives within the timeout of the socket.
fn count_flows(socket: &UdpSocket, flows: &mut BTreeMap<u16, u32>) {
    while let Ok((_, from)) = socket.recv_from(&mut [0; 64]) {
        *flows.entry(from.port()).or_default() += 1;
    }
}
