//! The kernel removes the program when its process ends, however it ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use aya::programs::xdp::XdpMode;
use fullview_plane::engine::Engine;
use fullview_table::Rib;

use super::dut::{plan, tables};
use super::support::may_load_programs;

/// A namespace with a veth pair, removed when this value is dropped.
struct Namespace(String);

impl Namespace {
    fn new() -> Namespace {
        let namespace = Namespace(format!("fv{}death", std::process::id()));
        // Removes the namespace of a killed process with the same number.
        let _ = Command::new("ip").args(["netns", "delete", &namespace.0]).output();
        namespace.ip(&["netns", "add", &namespace.0]);
        namespace.ip(&["-n", &namespace.0, "link", "add", "d0", "type", "veth", "peer", "name", "d1"]);
        namespace
    }

    fn ip(&self, arguments: &[&str]) -> String {
        let done = Command::new("ip").args(arguments).output().unwrap();
        assert!(done.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    fn has_program(&self) -> bool {
        self.ip(&["-n", &self.0, "link", "show", "d0"]).contains("prog/xdp")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

const CHILD: &str = "FULLVIEW_TEST_HOLDS_PROGRAM";

/// The child process that the next test kills.
#[test]
fn child_that_holds_the_program() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut engine = Engine::load().unwrap();
    // By index in the namespace: loopback is 1, the veth pair follows.
    let ifindex = std::fs::read_to_string("/sys/class/net/d0/ifindex").unwrap().trim().parse().unwrap();
    engine.attach(ifindex, XdpMode::Driver).unwrap();
    engine.publish(&plan(1), vec![tables(&Rib::default(), &Rib::default())]).unwrap();
    println!("attached");
    // Ends when the pipe closes, if the test fails before it kills this process.
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn child(namespace: &Namespace) -> Child {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace.0]).arg(own);
    command.args(["--exact", "death::child_that_holds_the_program", "--nocapture"]);
    command.env(CHILD, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_killed_process_leaves_no_program() {
    if !may_load_programs() {
        return;
    }
    let namespace = Namespace::new();
    let mut child = child(&namespace);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("attached")), "the child process failed");
    assert!(namespace.has_program());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!namespace.has_program());
}
