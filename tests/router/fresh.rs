//! The kernel does not see the packets that we forward. The router makes it verify the neighbours in use, and no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fullview_testnet::{Node, cable, eventually, may_run};

use crate::lab::{Lab, forward, reaches};

fn state(router: &Node, address: &str) -> String {
    let shown = router.ip(&format!("neigh show {address}"));
    shown.split_whitespace().last().unwrap_or_default().to_owned()
}

#[test]
fn neighbours_in_use_are_verified_and_others_are_not() {
    if !may_run(&["ip", "ping", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    let idle = Node::new();
    cable((&idle, "eth0"), (&lab.router, "eth3"));
    idle.ip("addr add 10.0.3.2/24 dev eth0");
    lab.router.ip("addr add 10.0.3.1/24 dev eth3");
    // The shortest time with which the kernel does not verify a neighbour again that it has just verified.
    for interface in ["eth2", "eth3"] {
        lab.router.sysctl(&format!("ipv4/neigh/{interface}/base_reachable_time_ms"), "2400");
        lab.router.sysctl(&format!("ipv4/neigh/{interface}/delay_first_probe_time"), "1");
        // The kernel removes no neighbour during the test.
        lab.router.sysctl(&format!("ipv4/neigh/{interface}/gc_stale_time"), "3600");
    }
    let program = forward(&lab.router, "eth1,eth2,eth3", &["--engine", "threads"]);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    lab.router.command("ping -c 1 -W 60 10.0.3.2");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let sending = thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            left.send_to(b"used", "10.0.2.2:9").unwrap();
            thread::sleep(Duration::from_millis(5));
        }
    });
    let is_stale = |address| eventually(|| state(&lab.router, address) == "STALE");
    assert!(is_stale("10.0.3.2"), "{}", state(&lab.router, "10.0.3.2"));
    // The neighbour in use becomes stale and is verified, twice; the idle one stays stale.
    for fresh in [false, true, false, true] {
        let becomes = eventually(|| {
            assert_eq!(state(&lab.router, "10.0.3.2"), "STALE");
            (state(&lab.router, "10.0.2.2") == "REACHABLE") == fresh
        });
        assert!(becomes, "10.0.2.2 is never reachable: {fresh}");
    }
    stop.store(true, Ordering::Relaxed);
    sending.join().unwrap();
}
