//! The kernel removes the program when its process ends, also when it is killed.

use std::thread;
use std::time::Duration;

use fullview_plane::engine::{Engine, XdpPlace};
use fullview_plane::port::link::Link;
use fullview_table::Rib;
use fullview_testnet::{Node, may_load_programs, may_run};

use super::dut::{plan, tables};

/// Marks the process that a test starts and kills.
const CHILD: &str = "FULLVIEW_TEST_HOLDS_PROGRAM";

const TEST: &str = "death::child_that_holds_the_program";

/// This is no test; it is the process that the next test kills.
#[test]
fn child_that_holds_the_program() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut engine = Engine::load().unwrap();
    engine.attach(Link::named("d0").unwrap().index(), XdpPlace::Driver).unwrap();
    engine.publish(&plan(1), vec![tables(&Rib::default(), &Rib::default())]).unwrap();
    println!("attached");
    thread::sleep(Duration::from_secs(600)); // the test kills this process long before
}

fn has_program(node: &Node) -> bool {
    node.ip("link show d0").contains("prog/xdp")
}

#[test]
fn a_killed_process_leaves_no_program() {
    if !(may_load_programs() && may_run(&["ip", "setpriv"])) {
        return;
    }
    let node = Node::bare();
    node.ip("link add d0 type veth peer name d1");
    let this = std::env::current_exe().unwrap();
    let arguments = [&format!("{CHILD}=1"), this.to_str().unwrap(), "--exact", TEST, "--nocapture"];
    let mut child = node.start("env", &arguments);
    child.wait_for("attached");
    assert!(has_program(&node));
    child.end("KILL");
    assert!(!has_program(&node));
}
