//! What operators do with a running router: they query it, scrape its metrics, trace packets, reload the configuration;
//! some clients try to disturb it.

mod metrics;
mod packets;
mod process;
mod queries;
mod reload;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullview_testnet::{Program, eventually, may_run};
use serde_json::Value;

use crate::control::ask_by_program;
use crate::lab::{Lab, reaches};

pub const FULLVIEW: &str = env!("CARGO_BIN_EXE_fullview");

/// A running router, with a folder for its sockets and files.
struct Operated {
    lab: Lab,
    router: Program,
    folder: tempfile::TempDir,
}

impl Operated {
    fn start(options: &[&str]) -> Operated {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::new();
        #[cfg(feature = "bpf")]
        if options.contains(&"xdp-generic") {
            lab.keep_tags();
        }
        let socket = folder.path().join("control.sock");
        let options = [&["--control", socket.to_str().unwrap()], options].concat();
        let router = lab.forward(&options);
        Operated { lab, router, folder }.up()
    }

    fn configured(text: &str) -> Operated {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::new();
        let file = folder.path().join("router.toml");
        std::fs::write(&file, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        let mut router = lab.router.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
        router.wait_for("forwarding");
        Operated { lab, router, folder }.up()
    }

    fn up(mut self) -> Operated {
        self.router.wait_for("control: ");
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("control.sock")
    }

    /// Runs our program with these arguments, given as one line. Returns whether it succeeded, and what it printed.
    fn try_ask(&self, line: &str) -> (bool, String) {
        ask_by_program(&self.socket(), line)
    }

    /// What a command about this router ends with.
    fn exit_code(&self, command: &str) -> Option<i32> {
        let mut program = assert_cmd::Command::new(env!("CARGO_BIN_EXE_fullview"));
        program.arg(command).arg("--control").arg(self.socket()).output().unwrap().status.code()
    }

    fn ask(&self, line: &str) -> String {
        let (success, said) = self.try_ask(line);
        assert!(success, "{line}: {said}");
        said
    }

    fn json(&self, what: &str) -> Value {
        serde_json::from_str(&self.ask(&format!("show {what} --json"))).unwrap()
    }

    /// Checks that packets from the left arrive on the right.
    fn forwards(&self) {
        let (left, right) = (self.lab.left.udp("10.0.1.2:0"), self.lab.right.udp("10.0.2.2:9"));
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", self.router.output());
    }

    /// Waits until the router itself has forwarded a packet: the kernel, which resolves neighbours, may forward the first
    /// ones.
    fn forwards_itself(&self) {
        let forwarded = || {
            self.forwards();
            self.json("counters")["sent"]["packets"].as_u64().unwrap() >= 1
        };
        assert!(eventually(forwarded), "{}", self.ask("show counters"));
    }

    fn send(&self, to: &str, count: usize) {
        let left = self.lab.left.udp("10.0.1.2:0");
        (0..count).for_each(|_| assert!(left.send_to(b"fullview", to).is_ok()));
    }
}

fn may_operate() -> bool {
    may_run(&["ip", "ping", "setpriv"])
}

/// Sends bytes, and returns what the router answers until it closes the connection.
pub fn converse(socket: &Path, bytes: &[u8], ends: bool) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The router may close the connection before it has read everything.
    let _ = stream.write_all(bytes);
    if ends {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}
