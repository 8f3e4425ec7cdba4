//! Packets between Linux hosts, and the errors that the hosts receive for packets that are not delivered.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_testnet::{Node, eventually, has};

use super::{FULLVIEW, Standalone, await_state, count_flows, hand_over, may_run_standalone};
use crate::control::ask_by_program;
use crate::lab::reaches;

#[test]
fn linux_hosts_talk_through_a_router_without_a_kernel() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("");
    for to in ["10.0.2.2", "2001:db8:2::2", "10.0.2.1", "2001:db8:1::1"] {
        lab.answers(to);
    }
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"));
    let (left6, right6) = (lab.left.udp("[2001:db8:1::2]:0"), lab.right.udp("[2001:db8:2::2]:9"));
    assert!(reaches(&left6, &right6, "[2001:db8:2::2]:9"));
    let neighbors = lab.show("neighbors");
    assert!(neighbors.contains("10.0.1.2") && neighbors.contains("2001:db8:2::2"), "{neighbors}");
    let counters = lab.show("counters");
    assert!(counters.contains("host: ") && !counters.contains("netlink"), "{counters}");
    let said = lab.end();
    assert!(said.contains("no kernel: 4 interfaces") && said.contains("packets received"), "{said}");
}

#[test]
fn linux_hosts_receive_errors_for_packets_that_are_not_delivered() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("");
    let reports = |arguments: &str, words: &str| {
        let output = lab.ping(arguments);
        assert!(output.contains(words), "{arguments}: {output}");
    };
    // Expired packets, as traceroute sends them.
    reports("-c 1 -W 60 -t 1 10.0.2.2", "From 10.0.1.1 icmp_seq=1 Time to live exceeded");
    reports("-c 1 -W 60 -t 1 2001:db8:2::2", "From 2001:db8:1::1 icmp_seq=1 Time exceeded: Hop limit");
    // The MTU of the second link is 1,400: path MTU discovery, fragments by the router, fragments by the sender.
    reports("-c 1 -W 60 -M do -s 1400 10.0.2.2", "Frag needed and DF set (mtu = 1400)");
    reports("-c 1 -W 60 -M dont -s 1400 10.0.2.2", "1 received");
    reports("-c 1 -W 60 -M do -s 1400 2001:db8:2::2", "Packet too big: mtu=1400");
    reports("-c 2 -W 60 -s 1400 2001:db8:2::2", "1408 bytes from 2001:db8:2::2");
    // No such host, and no route.
    reports("-c 1 -W 60 10.0.2.99", "From 10.0.1.1 icmp_seq=1 Destination Host Unreachable");
    reports(
        "-c 1 -W 60 2001:db8:2::99",
        "From 2001:db8:1::1 icmp_seq=1 Destination unreachable: Address unreachable",
    );
    reports("-c 1 -W 60 203.0.113.1", "From 10.0.1.1 icmp_seq=1 Destination Net Unreachable");
    reports("-c 1 -W 60 2001:db8:ff::1", "Destination unreachable: No route");
    lab.end();
}

#[test]
fn long_packets_to_the_router_are_reassembled_and_answered() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("");
    for to in ["10.0.1.1", "2001:db8:1::1"] {
        for len in [5000, 60_000] {
            let output = lab.ping(&format!("-c 1 -W 10 -s {len} {to}"));
            assert!(output.contains("1 received"), "{len} bytes: {output}\n{}", lab.show("counters"));
        }
    }
    lab.end();
}

/// Sends bursts to 128 addresses that no station has, until `stop`.
fn send_to_unused_addresses(from: &UdpSocket, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        for number in 0..1280 {
            // ICMP errors about earlier packets make a call fail.
            let _ = from.send_to(b"unused", format!("10.0.2.{}:9", 100 + number % 128));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn packets_to_unused_addresses_do_not_stop_new_neighbours() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("");
    let hosts: Vec<_> = (10..22).flat_map(|host| [(2, host), (3, host)]).collect();
    for (side, host) in &hosts {
        let node = if *side == 2 { &lab.right } else { &lab.third };
        node.ip(&format!("addr add 10.0.{side}.{host}/24 dev eth0"));
    }
    let (flood, stop) = (lab.left.udp("10.0.1.2:0"), AtomicBool::new(false));
    let (is_flooded, silent) = std::thread::scope(|scope| {
        scope.spawn(|| send_to_unused_addresses(&flood, &stop));
        let is_flooded = eventually(|| !lab.show("counters").contains(" 0 queue-full"));
        let is_silent = |(side, host): &&(u8, u8)| {
            !lab.ping(&format!("-c 3 -i 0.2 -W 2 10.0.{side}.{host}")).contains(" bytes from ")
        };
        let silent: Vec<_> = hosts.iter().filter(is_silent).collect();
        stop.store(true, Ordering::Relaxed);
        (is_flooded, silent)
    });
    assert!(is_flooded && silent.is_empty(), "{silent:?}\n{}", lab.show("counters"));
    lab.end();
}

#[test]
fn two_workers_share_the_flows_and_one_host() {
    let ours = rustix::thread::sched_getaffinity(None).unwrap();
    if !(may_run_standalone() && has(ours.count() >= 2, "second core")) {
        return;
    }
    let cores: Vec<usize> = (0..1024).filter(|core| ours.is_set(*core)).take(2).collect();
    let lab = Standalone::with(&format!("workers = 2\ncores = {cores:?}"), "");
    let right = lab.right.udp("10.0.2.2:9");
    assert!(reaches(&lab.left.udp("10.0.1.2:0"), &right, "10.0.2.2:9"));
    for port in 20_000..20_064 {
        lab.left.udp(&format!("10.0.1.2:{port}")).send_to(b"a flow", "10.0.2.2:9").unwrap();
    }
    right.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut flows = BTreeMap::new();
    assert!(eventually(|| {
        count_flows(&right, &mut flows);
        flows.len() == 64
    }));
    for to in ["10.0.1.1", "10.0.3.2", "2001:db8:3::2"] {
        lab.answers(to);
    }
    let counters = lab.show("counters");
    assert!(counters.contains("worker 0:") && counters.contains("worker 1:"), "{counters}");
    let pid = lab.router.id();
    let lines = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let allowed = lines.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let allowed: Vec<String> = allowed
        .filter_map(|status| {
            Some(status.lines().find(|line| line.starts_with("Cpus_allowed_list:"))?.to_owned())
        })
        .collect();
    for core in cores {
        assert!(allowed.contains(&format!("Cpus_allowed_list:\t{core}")), "core {core}: {allowed:?}");
    }
    lab.end();
}

/// The configuration that examples/static.toml and docs/reference/standalone.md show.
#[test]
fn the_example_works() {
    if !may_run_standalone() {
        return;
    }
    let text = include_str!("../../../examples/static.toml");
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("static.toml"), folder.path().join("control.sock"));
    // A name in /run is for one router of the machine; tests run several.
    let text = text.replace("name = \"static\"", &format!("socket = {socket:?}"));
    std::fs::write(&file, text).unwrap();
    let (left, right, home) = (Node::new(), Node::new(), Node::new());
    let mut router = home.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
    router.wait_for("forwarding");
    for (host, name, inet, inet6) in
        [(&left, "fv-left", "192.0.2", "2001:db8:1:"), (&right, "fv-right", "198.51.100", "2001:db8:2:")]
    {
        hand_over(&home, name, host);
        host.ip(&format!("addr add {inet}.2/24 dev eth0"));
        host.ip(&format!("addr add {inet6}:2/64 dev eth0 nodad"));
        host.ip(&format!("route add default via {inet}.1"));
        host.ip(&format!("-6 route add default via {inet6}:1"));
    }
    right.ip("addr add 8.8.8.8/32 dev lo");
    ["fv-left", "fv-right", "fv-right.100"].iter().for_each(|name| await_state(&socket, name, "up"));
    for to in ["198.51.100.2", "8.8.8.8", "2001:db8:2::2"] {
        left.command(&format!("ping -n -c 2 -i 0.05 -W 60 {to}"));
    }
    let (_, said) = ask_by_program(&socket, "show routes 203.0.113.1");
    assert!(said.contains("48/64 of the flows") && said.contains("via 198.51.100.3 dev fv-right"), "{said}");
    let (code, said) = router.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}
