//! The router with AF_XDP sockets.

use fullview_testnet::{eventually, may_run};

use crate::basics::go_through;
use crate::lab::{Lab, forward, reaches};
use crate::takeover::flow_on;

const NEEDED: [&str; 4] = ["ip", "ping", "ethtool", "setpriv"];

/// Returns how many packets the workers have received, by what the program printed at its end.
fn received(said: &str) -> u64 {
    let line =
        said.lines().find(|line| line.contains(" packets received")).unwrap_or_else(|| panic!("{said}"));
    line.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn packets_of_both_families_go_through_af_xdp() {
    if !may_run(&NEEDED) {
        return;
    }
    let lab = Lab::new();
    lab.behave_as_wires();
    for options in [&["--port", "xdp"][..], &["--port", "xdp", "--no-need-wakeup", "--busy-poll", "20"]] {
        let said = go_through(&lab, options);
        assert_eq!(said.matches("AF_XDP, copy mode").count(), 2, "{said}");
        // Echo requests and replies of both families. The kernel keeps those to the router itself.
        assert!(received(&said) >= 12, "{said}");
    }
}

#[test]
fn packets_flow_while_a_program_with_af_xdp_starts_and_ends() {
    if !may_run(&NEEDED) {
        return;
    }
    let lab = Lab::new();
    lab.behave_as_wires();
    flow_on(&lab, &["--json", "--port", "xdp"]);
}

/// One interface removes VLAN tags, which AF_XDP sockets would not see; the other one does not.
#[test]
fn packet_sockets_are_used_where_af_xdp_does_not_work() {
    if !may_run(&NEEDED) {
        return;
    }
    let lab = Lab::new();
    lab.behave_as_wires();
    lab.router.command("ethtool -K eth2 rxvlan on");
    let said = go_through(&lab, &["--port", "auto"]);
    assert!(said.contains("interface eth1: AF_XDP, copy mode"), "{said}");
    assert!(said.contains("interface eth2: packet sockets, for AF_XDP does not work"), "{said}");
    assert!(received(&said) >= 12, "{said}");
    let arguments = ["forward", "--interfaces", "eth1,eth2", "--port", "xdp"];
    let mut refused = lab.router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
    refused.wait_for("--port packet works on any interface");
    let mut two =
        lab.router.start(env!("CARGO_BIN_EXE_fullview"), &[&arguments[..], &["--workers", "2"]].concat());
    two.wait_for("has 1 receive queues");
    assert!(eventually(|| !refused.is_running() && !two.is_running()));
}

/// Ports are opened repeatedly, with packet memory that earlier ones have used.
#[test]
fn an_interface_that_disappears_and_returns_is_used_again() {
    if !may_run(&NEEDED) {
        return;
    }
    let lab = Lab::new();
    lab.behave_as_wires();
    lab.router.ip("link set dev eth2 down");
    let program = lab.forward(&["--port", "xdp"]);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    let said = |words: &str, times| {
        let is_said = || program.output().matches(words).count() == times;
        assert!(eventually(is_said), "{times} {words}: {}", program.output());
    };
    said("interface eth2 is down", 1);
    for times in 1..=3 {
        lab.router.ip("link set dev eth2 up");
        said("interface eth2: AF_XDP", times);
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{times}: {}", program.output());
        lab.left.command("ping -c 10 -i 0.02 -W 60 10.0.2.2");
        lab.router.ip("link set dev eth2 down");
        lab.router.ip("link set dev eth2 name away");
        said("interface eth2 is not there", times);
        lab.router.ip("link set dev away name eth2");
    }
    // The interface may return before the router notices its absence. Then the router has never stopped to use it.
    lab.router.ip("link set dev eth2 up");
    said("interface eth2: AF_XDP", 4);
    lab.router.ip("link set dev eth2 down");
    lab.router.ip("link set dev eth2 name away");
    lab.router.ip("link set dev away name eth2");
    lab.router.ip("link set dev eth2 up");
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(received(&said) >= 45, "most of 20 packets each time: {said}");
}

/// The kernel forwards until it is gone.
#[test]
fn an_interface_that_comes_and_cannot_be_a_port_does_not_end_the_router() {
    if !may_run(&NEEDED) {
        return;
    }
    let lab = Lab::new();
    lab.behave_as_wires();
    let program = forward(&lab.router, "eth1,eth2,eth3", &["--port", "xdp", "--wait"]);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    let said = |words: &str, times| {
        let is_said = || program.output().matches(words).count() == times;
        assert!(eventually(is_said), "{times} {words}: {}", program.output());
    };
    said("interface eth2: AF_XDP", 1);
    lab.router.ip("link add eth3 numrxqueues 4 numtxqueues 4 type veth peer name eth4");
    lab.router.ip("link set eth3 up");
    said("no worker runs, the kernel forwards: --port xdp on eth3", 1);
    said("interface eth3 has 4 receive queues", 1);
    assert!(reaches(&left, &right, "10.0.2.2:9"), "the kernel forwards: {}", program.output());
    let opened = program.output().matches("interface eth2: AF_XDP").count();
    lab.router.ip("link del eth3");
    let is_opened = || program.output().matches("interface eth2: AF_XDP").count() > opened;
    assert!(eventually(is_opened), "{}", program.output());
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}
