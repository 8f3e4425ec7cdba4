//! FRR in a node: zebra and a daemon of a routing protocol, with their sockets and files in a folder that is removed with them.

use fullview_testnet::{Node, Program, eventually};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

pub struct Frr {
    folder: tempfile::TempDir,
    _daemons: [Program; 2],
}

impl Frr {
    /// The protocol's daemon, such as `ospfd`, and its configuration.
    pub fn start(node: &Node, daemon: &str, config: &str) -> Frr {
        let folder = tempfile::tempdir().unwrap();
        // The daemons run as a user of their own, who has to write here.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(folder.path().join("zebra.conf"), "hostname test\n").unwrap();
        fs::write(folder.path().join(format!("{daemon}.conf")), config).unwrap();
        let zebra = start(node, &folder, "zebra");
        assert!(eventually(|| folder.path().join("zserv.api").exists()), "{}", zebra.output());
        let protocol = start(node, &folder, daemon);
        Frr { folder, _daemons: [zebra, protocol] }
    }

    pub fn ask(&self, question: &str) -> String {
        let mut vtysh = Command::new("vtysh");
        let output =
            vtysh.arg("--vty_socket").arg(self.folder.path()).args(["-c", question]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn start(node: &Node, folder: &tempfile::TempDir, daemon: &str) -> Program {
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (config, socket, pid) =
        (file(&format!("{daemon}.conf")), file("zserv.api"), file(&format!("{daemon}.pid")));
    let folder = folder.path().to_str().unwrap();
    let arguments = ["-f", &config, "-z", &socket, "-i", &pid, "--vty_socket", folder, "-P", "0"];
    node.start(daemon, &[&arguments[..], &["-u", "frr", "-g", "frr", "--log", "stdout"]].concat())
}
