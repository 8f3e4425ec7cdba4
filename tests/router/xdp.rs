//! The router with a program in the kernel that forwards packets, at each place where it may run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use fullview_testnet::{Node, Program, eventually, may_run};
use serde_json::{Value, json};

use crate::control::Control;
use crate::interface_changes::links;
use crate::lab::{Lab, forward, reaches};

with_each_program!(
    the_program_forwards_packets_of_both_families,
    the_program_follows_the_kernels_routes_and_is_removed_when_the_process_is_killed,
    the_program_follows_groups_whose_next_hops_are_known,
    a_neighbour_with_another_mac_address_is_detected,
    the_program_drops_packets_with_wrong_sources,
    frames_of_unconfigured_vlans_are_not_forwarded_although_the_driver_strips_their_tags,
    the_kernel_forwards_while_the_process_is_stopped,
    packets_of_a_blackhole_end_in_the_program,
);

/// Makes the hosts' interfaces finish checksums and accept frames that an XDP program redirects. At tc, the program works
/// with the offloads that interfaces have when they are made.
pub fn prepare(lab: &Lab, engine: &str) {
    if engine == "tc" {
        return;
    }
    for host in [&lab.left, &lab.right] {
        host.send_finished_frames("eth0");
        host.accept_redirected_frames("eth0");
    }
}

/// Ends the program, and returns how many packets of both families the XDP program has forwarded.
fn forwarded(program: Program) -> u64 {
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    // Other lines may end with the same word; this one has a number before it.
    let count = |line: &str| line.strip_suffix(" forwarded")?.rsplit(' ').next()?.parse().ok();
    said.lines().find_map(count).unwrap_or_else(|| panic!("{said}"))
}

fn the_program_forwards_packets_of_both_families(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    if engine == "xdp-generic" {
        lab.keep_tags();
    }
    let control = Control::new();
    let program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    let (left6, right6) = (lab.left.udp("[2001:db8:1::2]:0"), lab.right.udp("[2001:db8:2::2]:9"));
    assert!(reaches(&left6, &right6, "[2001:db8:2::2]:9"), "{}", program.output());
    // The kernel forwards until the router knows the neighbours.
    control.wait_until("\"neighbors\"", |known| {
        let known = known.to_string();
        ["10.0.1.2", "10.0.2.2", "2001:db8:1::2", "2001:db8:2::2"]
            .iter()
            .all(|address| known.contains(address))
    });
    lab.left.command("ping -c 20 -i 0.02 -W 60 10.0.2.2");
    lab.left.command("ping -c 20 -i 0.02 -W 60 2001:db8:2::2");
    // The kernel answers for the router's addresses and for packets with no hop left.
    lab.left.command("ping -c 2 -i 0.05 -W 60 10.0.1.1");
    assert!(
        lab.left.try_command("ping -c 1 -W 60 -t 1 10.0.2.2").stdout.windows(4).any(|word| word == b"live")
    );
    // Requests and replies of 40 exchanges, except the first ones, during which neighbours were resolved.
    let count = forwarded(program);
    assert!(count >= 60, "{count} only");
}

#[test]
fn the_kernel_forwards_packets_of_both_families_behind_any_driver() {
    the_program_forwards_packets_of_both_families("xdp-generic");
}

/// Routes are added and removed while the program runs; after it is killed, the kernel forwards by them.
fn the_program_follows_the_kernels_routes_and_is_removed_when_the_process_is_killed(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    lab.right.ip("addr add 192.0.2.1/32 dev lo");
    let program = lab.forward(&["--engine", engine]);
    lab.router.ip("route add 192.0.2.0/24 via 10.0.2.2");
    lab.left.command("ping -c 10 -i 0.05 -W 60 192.0.2.1");
    lab.router.ip("route replace blackhole 192.0.2.0/24");
    let is_silent = || !lab.left.try_command("ping -c 2 -i 0.05 -W 1 192.0.2.1").status.success();
    assert!(eventually(is_silent));
    lab.router.ip("route replace 192.0.2.0/24 via 10.0.2.2");
    lab.left.command("ping -c 10 -i 0.05 -W 60 192.0.2.1");
    assert_eq!(lab.router.ip("link show eth1").contains("prog/xdp"), engine == "xdp");
    let _ = program.end("KILL");
    assert!(!lab.router.ip("link show eth1").contains("prog/xdp"));
    lab.router.ip("route replace blackhole 192.0.2.0/24");
    assert!(is_silent());
    lab.router.ip("route replace 192.0.2.0/24 via 10.0.2.2");
    lab.left.command("ping -c 3 -i 0.05 -W 60 192.0.2.1");
}

/// The number of a group is used again for another group, while links, neighbours and next hops stay as they are.
fn the_program_follows_groups_whose_next_hops_are_known(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    lab.right.ip("addr add 192.0.2.1/32 dev lo");
    let right = &lab.right.mac("eth0");
    // Two stations that do not exist, and two more addresses of the right host.
    let stations = [(50, "02:00:00:00:00:50"), (51, "02:00:00:00:00:51"), (52, right), (53, right)];
    for (host, mac) in stations {
        lab.router.ip(&format!("neigh replace 10.0.2.{host} lladdr {mac} dev eth2 nud permanent"));
        lab.router.ip(&format!("route add 198.51.100.{host}/32 via 10.0.2.{host}"));
    }
    lab.left.command("ping -c 3 -i 0.05 -W 60 10.0.2.2");
    let control = Control::new();
    let _program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
    let ways = r#"{"path":{"address":"192.0.2.1","table":254}}"#;
    let leads = |path: &Value, to: &str| {
        path["ways"].as_array().unwrap().iter().any(|way| way["leads"].as_str().unwrap().contains(to))
    };
    lab.router.ip("route add 192.0.2.0/24 nexthop via 10.0.2.50 nexthop via 10.0.2.51");
    control.wait_until(ways, |path| leads(path, "10.0.2.50 ") && leads(path, "10.0.2.51 "));
    // The neighbour makes the engine publish again; afterwards it certainly has the first group.
    lab.router.ip("neigh replace 10.0.2.60 lladdr 02:00:00:00:00:60 dev eth2 nud permanent");
    control.wait_until("\"neighbors\"", |neighbors| neighbors.to_string().contains("\"10.0.2.60\""));
    lab.router.ip("route del 192.0.2.0/24");
    control.wait_until(ways, |path| path["ways"] == json!([]));
    lab.router.ip("route add 192.0.2.0/24 nexthop via 10.0.2.52 nexthop via 10.0.2.53");
    control.wait_until(ways, |path| leads(path, "10.0.2.52 ") && leads(path, "10.0.2.53 "));
    lab.left.command("ping -c 10 -i 0.05 -W 60 192.0.2.1");
}

/// The kernel does not see the packets to a neighbour, so it would never verify the neighbour by itself.
fn a_neighbour_with_another_mac_address_is_detected(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    lab.router.sysctl("ipv4/neigh/eth2/base_reachable_time_ms", "2400");
    lab.router.sysctl("ipv4/neigh/eth2/delay_first_probe_time", "1");
    let _program = lab.forward(&["--engine", engine]);
    lab.left.command("ping -c 3 -i 0.05 -W 60 10.0.2.2");
    // Without ARP, the host does not announce its new address.
    lab.right.ip("link set eth0 arp off");
    lab.right.ip("link set eth0 address 02:00:00:00:00:77");
    assert!(!lab.left.try_command("ping -c 1 -W 1 10.0.2.2").status.success());
    lab.right.ip("link set eth0 arp on");
    let is_found = || lab.left.try_command("ping -c 1 -W 1 10.0.2.2").status.success();
    assert!(eventually(is_found), "{}", lab.router.ip("neigh show"));
}

const CHECKED: &str = r#"[router]
interfaces = ["eth1", "eth2"]
engine = "ENGINE"
[interface.eth1]
source-check = "strict"
"#;

/// The kernel would forward these packets, because its own check is off.
fn the_program_drops_packets_with_wrong_sources(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    for name in ["all", "eth1"] {
        lab.router.sysctl(&format!("ipv4/conf/{name}/rp_filter"), "0");
    }
    lab.left.ip("addr add 198.51.100.1/32 dev lo");
    // Only the kernel uses the way back to this source, so it judges.
    lab.router.ip("link add elsewhere type veth peer name nowhere");
    ["elsewhere", "nowhere"].iter().for_each(|name| drop(lab.router.ip(&format!("link set {name} up"))));
    lab.router.ip("route add 203.0.113.0/24 dev elsewhere");
    lab.left.ip("addr add 203.0.113.1/32 dev lo");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.toml");
    std::fs::write(&file, CHECKED.replace("ENGINE", engine)).unwrap();
    let mut program =
        lab.router.start(env!("CARGO_BIN_EXE_fullview"), &["forward", "--config", file.to_str().unwrap()]);
    program.wait_for("forwarding");
    let (right_source, wrong_source, right) =
        (lab.left.udp("10.0.1.2:0"), lab.left.udp("198.51.100.1:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&right_source, &right, "10.0.2.2:9"), "{}", program.output());
    let kernels_source = lab.left.udp("203.0.113.1:0");
    assert!(reaches(&kernels_source, &right, "10.0.2.2:9"), "{}", program.output());
    for _ in 0..20 {
        wrong_source.send_to(b"wrong source", "10.0.2.2:9").unwrap();
    }
    // A later packet has arrived, so the packets with wrong sources are lost.
    assert!(reaches(&right_source, &right, "10.0.2.2:9"), "{}", program.output());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("\n20 source_check") && said.contains(" way_back"), "{said}");
}

/// Only the kernel knows which frames of a veth device have no checksums yet.
#[test]
fn the_log_warns_of_checksums_that_senders_leave_unfinished() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    for (engine, warns) in [("xdp", true), ("tc", false)] {
        let mut program = lab.forward(&["--engine", engine]);
        program.wait_for("interface eth2: ");
        let said = program.output();
        let warned = ["eth1", "eth2"].map(|name| {
            said.contains(&format!("interface {name}: it is a veth device"))
                && said.contains("`ethtool -K PEER tx off`")
        });
        assert_eq!(warned, [warns; 2], "{engine}: {said}");
        program.end("TERM");
    }
}

/// The number of packets with this outcome in the program.
pub fn counted(control: &Control, outcome: &str) -> u64 {
    control.ask("\"counters\"")["program"][outcome].as_u64().unwrap()
}

/// Lets requests pass until the program has forwarded some.
fn wait_until_forwarded(lab: &Lab, control: &Control, address: &str) {
    let before = counted(control, "forwarded");
    let is_forwarded = || {
        lab.left.try_command(&format!("ping -c 1 -W 1 {address}"));
        counted(control, "forwarded") > before
    };
    assert!(eventually(is_forwarded), "{}", control.ask("\"counters\""));
}

/// Makes the left host a bridge. It removes the tags of frames that come in by its port `port`, and sends them with the
/// tags beside them: the veth device of the router receives them so, whatever its own offloads are.
fn send_tags_beside_frames(lab: &Lab) {
    let left = &lab.left;
    left.command("ethtool -K eth0 txvlan on");
    left.ip("link add br0 type bridge");
    left.ip("link add trunk type veth peer name port");
    left.ip("addr del 10.0.1.2/24 dev eth0");
    for name in ["eth0", "port"] {
        left.ip(&format!("link set {name} master br0"));
    }
    for name in ["br0", "trunk", "port"] {
        left.ip(&format!("link set {name} up"));
    }
    left.ip("addr add 10.0.1.2/24 dev br0");
    left.ip("route replace default via 10.0.1.1");
}

/// An Ethernet frame of a VLAN with a UDP packet from 10.0.1.2 to port 9 of 10.0.2.2, without a checksum of UDP.
fn tagged_frame(to: &str, vlan: u16, payload: &[u8]) -> Vec<u8> {
    let mac = to.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    let mut frame: Vec<u8> = mac.chain([2, 0, 0, 0, 0, 9, 0x81, 0]).chain(vlan.to_be_bytes()).collect();
    let udp = 8 + payload.len() as u16;
    let [high, low] = (20 + udp).to_be_bytes();
    let mut ip = [0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2];
    let sum: u32 = ip.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&folded.to_be_bytes());
    frame.extend([8, 0]);
    frame.extend(ip);
    frame.extend([0, 9, 0, 9]);
    frame.extend(udp.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// VRF, source check and isolation of VLANs depend on the tag, which the driver has removed from the frame.
fn frames_of_unconfigured_vlans_are_not_forwarded_although_the_driver_strips_their_tags(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    send_tags_beside_frames(&lab);
    let control = Control::new();
    let _program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
    wait_until_forwarded(&lab, &control, "10.0.2.2");
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    let before = counted(&control, "no_interface");
    let mut trunk = lab.left.packet_socket("trunk");
    let frame = tagged_frame(&lab.router.mac("eth1"), 7, b"tagged");
    (0..200).for_each(|_| trunk.send(&frame).unwrap());
    assert!(eventually(|| counted(&control, "no_interface") >= before + 200));
    // A later packet arrives first.
    left.send_to(b"untagged", "10.0.2.2:9").unwrap();
    let mut buffer = [0; 64];
    let len = right.recv(&mut buffer).unwrap();
    assert_eq!(String::from_utf8_lossy(&buffer[..len]), "untagged");
}

/// Behind the driver, no program can ask for tags.
#[test]
fn interfaces_whose_tags_the_program_cannot_see_are_refused() {
    if !may_run(&["ip", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    let arguments = ["forward", "--interfaces", "eth1,eth2", "--engine", "xdp-generic"];
    let mut program = lab.router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
    assert!(eventually(|| !program.is_running()), "{}", program.output());
    assert!(program.output().contains("`ethtool -K eth1 rxvlan off`"), "{}", program.output());
}

/// A veth device takes them only if its peer polls for frames.
#[test]
fn packets_to_a_driver_that_takes_no_redirected_frames_go_through_the_kernel() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    for host in [&lab.left, &lab.right] {
        host.send_finished_frames("eth0");
    }
    lab.left.accept_redirected_frames("eth0");
    let control = Control::new();
    let mut program = lab.forward(&[&["--engine", "xdp"][..], &control.options()].concat());
    program.wait_for("interface eth2: its driver takes no frames from XDP programs");
    program.wait_for("interface eth1: the XDP program forwards what comes in and leaves by it");
    // Replies leave by eth1, requests by eth2.
    wait_until_forwarded(&lab, &control, "10.0.2.2");
    let received = lab.left.command("ping -c 20 -i 0.02 -W 60 10.0.2.2");
    assert!(received.contains(" 20 received"), "{received}");
    assert!(counted(&control, "no_redirect") >= 20, "{}", control.ask("\"counters\""));
    lab.right.accept_redirected_frames("eth0");
    program.wait_for("interface eth2: the XDP program forwards what comes in and leaves by it");
    // The next answer comes after the program has the change.
    let kept = control.ask("\"counters\"").get("program").map(|_| counted(&control, "no_redirect"));
    let received = lab.left.command("ping -c 20 -i 0.02 -W 60 10.0.2.2");
    assert!(received.contains(" 20 received"), "{received}");
    assert_eq!(Some(counted(&control, "no_redirect")), kept);
}

/// A stopped process cannot follow the kernel, so its program must not forward by what it knew.
fn the_kernel_forwards_while_the_process_is_stopped(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv", "kill"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    lab.right.ip("addr add 192.0.2.1/32 dev lo");
    lab.router.ip("route add 192.0.2.0/24 via 10.0.2.2");
    let control = Control::new();
    let program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
    // Nothing is there, and the program loses the packets.
    lab.router.ip("neigh replace 10.0.2.50 lladdr 02:00:00:00:00:50 dev eth2 nud permanent");
    lab.router.ip("route replace 192.0.2.0/24 via 10.0.2.50");
    wait_until_forwarded(&lab, &control, "192.0.2.1");
    let reaches = || lab.left.try_command("ping -c 1 -W 1 192.0.2.1").status.success();
    assert!(eventually(|| !reaches()));
    program.signal("STOP");
    lab.router.ip("route replace 192.0.2.0/24 via 10.0.2.2");
    assert!(eventually(reaches));
    program.signal("CONT");
    wait_until_forwarded(&lab, &control, "192.0.2.1");
    assert!(counted(&control, "router_stalled") > 0);
    assert!(eventually(reaches));
}

/// The kernel would drop them too, after more work.
fn packets_of_a_blackhole_end_in_the_program(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab, engine);
    lab.router.ip("route add blackhole 198.51.100.0/24");
    lab.router.ip("route add unreachable 203.0.113.0/24");
    let control = Control::new();
    let _program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
    wait_until_forwarded(&lab, &control, "10.0.2.2");
    lab.left.try_command("ping -c 5 -i 0.05 -W 1 198.51.100.1");
    assert_eq!((counted(&control, "blackhole"), counted(&control, "discarded")), (5, 0));
    let answer = lab.left.try_command("ping -c 1 -W 60 203.0.113.1");
    assert!(String::from_utf8_lossy(&answer.stdout).contains("Host Unreachable"), "{answer:?}");
    assert_eq!(counted(&control, "discarded"), 1);
}

/// Sends this many bytes over one TCP connection from the left host to the right one.
fn transfer(lab: &Lab, len: usize) {
    let listener = lab.right.run(|| TcpListener::bind("10.0.2.2:80").unwrap());
    let receiver = std::thread::spawn(move || {
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        received.len()
    });
    lab.left.run(move || TcpStream::connect("10.0.2.2:80").unwrap().write_all(&vec![7; len]).unwrap());
    assert_eq!(receiver.join().unwrap(), len);
}

/// What an interface received, as packets and bytes.
fn received(control: &Control, name: &str) -> (u64, u64) {
    let interfaces = control.ask("\"interfaces\"");
    let all = interfaces.as_array().unwrap();
    let received = &all.iter().find(|interface| interface["name"] == name).unwrap()["received"];
    (received["packets"].as_u64().unwrap(), received["bytes"].as_u64().unwrap())
}

/// The sender leaves checksums and the splitting of its large frames to hardware that veth devices do not have.
#[test]
fn large_frames_are_forwarded_whole_or_left_to_the_kernel_if_their_segments_are_too_long() {
    if !may_run(&["ip", "ping", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    let control = Control::new();
    let _program = lab.forward(&control.options());
    wait_until_forwarded(&lab, &control, "10.0.2.2");
    let (packets, bytes) = received(&control, "eth1");
    transfer(&lab, 8 << 20);
    let (more_packets, more_bytes) = received(&control, "eth1");
    assert!(more_bytes - bytes >= 8 << 20, "{}", control.ask("\"counters\""));
    assert!((more_bytes - bytes) / (more_packets - packets) > 3000, "{}", control.ask("\"counters\""));
    assert_eq!(counted(&control, "too_big"), 0);
    // The kernel tells the sender the MTU of the next link.
    lab.router.ip("link set eth2 mtu 1400");
    control.wait_until("\"interfaces\"", |known| known.to_string().contains("1400"));
    transfer(&lab, 8 << 20);
    assert!(counted(&control, "too_big") > 0, "{}", control.ask("\"counters\""));
}

/// What leaves by another interface than XDP's passes the queueing discipline of that interface.
#[test]
fn packets_from_tc_meet_the_discipline_that_shapes_their_egress_interface() {
    if !may_run(&["ip", "tc", "ping", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    lab.router.command("tc qdisc add dev eth2 root tbf rate 200mbit burst 100k latency 50ms");
    let control = Control::new();
    let program = lab.forward(&control.options());
    assert!(
        program.output().starts_with("engine tc for eth1, eth2: what leaves is shaped"),
        "{}",
        program.output()
    );
    wait_until_forwarded(&lab, &control, "10.0.2.2");
    let before = counted(&control, "forwarded");
    transfer(&lab, 4 << 20);
    assert!(counted(&control, "forwarded") > before);
    let statistics = lab.router.command("tc -s qdisc show dev eth2");
    let sent = statistics.split_once("Sent ").and_then(|(_, rest)| rest.split(' ').next()).unwrap();
    assert!(sent.parse::<u64>().unwrap() >= 4 << 20, "{statistics}");
}

/// The other program came with the interface, which was elsewhere meanwhile.
#[test]
fn an_interface_that_another_program_has_is_the_kernels_and_no_other_one() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let (lab, elsewhere, control) = (Lab::new(), Node::new(), Control::new());
    prepare(&lab, "xdp");
    crate::lab::prepare(&elsewhere);
    let options = [&["--engine", "xdp"][..], &control.options()].concat();
    let mut program = lab.forward(&options);
    let engine_of_right = |found: &Value| found[1]["engine"]["name"].clone();
    let moved = |from: &Node, to: &Node| {
        from.ip(&format!("link set eth2 netns {}", to.id()));
        to.ip("link set eth2 up");
    };
    moved(&lab.router, &elsewhere);
    control.wait_until("\"interfaces\"", |found| engine_of_right(found) == "none");
    let left = links(&program);
    assert_eq!(left.len(), 1, "{left:?}");
    let other = forward(&elsewhere, "eth2", &["--engine", "xdp"]);
    // It would give the interface back when that leaves.
    other.signal("STOP");
    moved(&elsewhere, &lab.router);
    lab.router.ip("addr add 10.0.2.1/24 dev eth2");
    program.wait_for("interface eth2: the kernel forwards what comes in by it");
    let all = control.ask("\"interfaces\"");
    let why = all[1]["engine"]["why"].as_str().unwrap();
    assert!(engine_of_right(&all) == "none" && why.contains("busy"), "{all}");
    assert!(all[0]["engine"]["name"] == "xdp" && links(&program) == left, "{all}");
    lab.left.command("ping -c 3 -i 0.05 -W 60 10.0.2.2");
    other.end("KILL");
    control.wait_until("\"interfaces\"", |found| engine_of_right(found) == "xdp");
    wait_until_forwarded(&lab, &control, "10.0.2.2");
    assert_eq!(program.end("TERM").0, Some(0));
}

/// What was chosen is the first line, and `show interfaces` repeats it.
#[test]
fn the_chosen_engine_is_named_with_the_reason() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    let choices: [(&[&str], &str, &str); 4] = [
        (&[], "tc", "driver veth passes TCP segments in one large frame"),
        (&["--engine", "tc"], "tc", "as configured"),
        (&["--port", "packet"], "threads", "`router.port` is a setting of threads"),
        (&["--engine", "threads"], "threads", "as configured"),
    ];
    for (options, name, why) in choices {
        let control = Control::new();
        let program = lab.forward(&[options, &control.options()].concat());
        let output = program.output();
        let first = output.lines().next().unwrap();
        assert!(first.starts_with(&format!("engine {name}")) && first.contains(why), "{output}");
        let interfaces = control.ask("\"interfaces\"");
        let engine = &interfaces[0]["engine"];
        assert_eq!(engine["name"], name);
        assert!(engine["why"].as_str().unwrap().contains(why), "{engine}");
    }
}
