//! A router with no kernel behind it, on TAP interfaces whose other ends are in the namespaces of Linux hosts: who is
//! out there cannot tell.

use std::path::PathBuf;
use std::time::Duration;

use crate::node::{Node, Program, eventually, may_run};

const FULLVIEW: &str = env!("CARGO_BIN_EXE_fullview");

/// Two hosts, and a router between them whose namespace has no interface any more.
pub struct Alone {
    pub left: Node,
    pub right: Node,
    home: Node,
    router: Program,
    folder: tempfile::TempDir,
}

/// Host 2 of each network is one of ours, and the router is 1.
const CONFIG: &str = r#"
[router]
kernel = false
interfaces = ["left", "right"]
port = "tap"

[interface.left]
address = ["10.0.1.1/24", "2001:db8:1::1/64"]

[interface.right]
address = ["10.0.2.1/24", "2001:db8:2::1/64"]
mtu = 1400

[control]
socket = "FOLDER/control.sock"
"#;

impl Alone {
    /// The configuration of above, and more.
    pub fn start(more: &str) -> Alone {
        let folder = tempfile::tempdir().unwrap();
        let (left, right, home) = (Node::new(), Node::new(), Node::new());
        let file = write(&folder, more);
        let mut router = home.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
        router.wait_for("forwarding");
        router.wait_for("control: ");
        for (host, name, side) in [(&left, "left", 1), (&right, "right", 2)] {
            home.ip(&format!("link set {name} netns {}", host.id()));
            host.ip(&format!("link set {name} name eth0"));
            host.ip("link set eth0 up");
            host.ip(&format!("addr add 10.0.{side}.2/24 dev eth0"));
            host.ip(&format!("addr add 2001:db8:{side}::2/64 dev eth0 nodad"));
            host.ip(&format!("route add default via 10.0.{side}.1"));
            host.ip(&format!("-6 route add default via 2001:db8:{side}::1"));
        }
        Alone { left, right, home, router, folder }
    }

    /// Another configuration, while it runs.
    fn reload(&self, more: &str) -> (bool, String) {
        write(&self.folder, more);
        self.ask("reload")
    }

    /// Runs our program with these arguments, written as one line; whether it succeeded, and what it printed.
    fn ask(&self, line: &str) -> (bool, String) {
        let socket = self.folder.path().join("control.sock");
        let output = assert_cmd::Command::new(FULLVIEW)
            .args(line.split(' '))
            .arg("--control")
            .arg(socket)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.success(), said)
    }

    fn show(&self, what: &str) -> String {
        let (success, said) = self.ask(&format!("show {what}"));
        assert!(success, "{what}: {said}");
        said
    }

    /// What a host's `ping` says, whether or not it was answered.
    fn ping(&self, arguments: &str) -> String {
        let output = self.left.try_command(&format!("ping -n {arguments}"));
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    fn end(self) -> String {
        let (code, said) = self.router.end("TERM");
        assert_eq!(code, Some(0), "{said}");
        said
    }
}

fn write(folder: &tempfile::TempDir, more: &str) -> PathBuf {
    let file = folder.path().join("router.toml");
    let text = CONFIG.to_owned() + more;
    std::fs::write(&file, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
    file
}

fn may() -> bool {
    may_run(&["ip", "ping", "setpriv"])
}

#[test]
fn linux_hosts_talk_through_a_router_without_a_kernel() {
    if !may() {
        return;
    }
    let alone = Alone::start("");
    for to in ["10.0.2.2", "2001:db8:2::2", "10.0.2.1", "2001:db8:1::1"] {
        alone.left.command(&format!("ping -n -c 3 -i 0.05 -W 5 {to}"));
    }
    let said = alone.end();
    assert!(said.contains("no kernel: 2 interfaces") && said.contains("packets received"), "{said}");
}
