//! Failures of links, processes and messages: afterwards the router's state is the kernel's again.

use std::net::IpAddr;
#[cfg(feature = "bpf")]
use std::net::UdpSocket;
use std::time::Duration;

use fullview_router::mirror::Mirror;
use fullview_table::Prefix;
#[cfg(feature = "bpf")]
use fullview_testnet::StoppedThread;
use fullview_testnet::{Node, cable, eventually, may_run};

use crate::bird::Bird;
#[cfg(feature = "bpf")]
use crate::control::Control;
use crate::full_view::{TO_KERNEL, pair, speaker};
#[cfg(feature = "bpf")]
use crate::lab::forwarded_by_kernel;
use crate::lab::{Lab, forward, reaches};
use crate::watch::Watch;

const PROGRAMS: [&str; 3] = ["ip", "setpriv", "ping"];

/// Changes a thousand routes by one command.
pub fn batch(node: &Node, line: impl Fn(u32) -> String) {
    batch_of(1000, node, line);
}

/// Changes that many routes by one command.
pub fn batch_of(count: u32, node: &Node, line: impl Fn(u32) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch");
    std::fs::write(&file, (0..count).map(|n| line(n) + "\n").collect::<String>()).unwrap();
    node.ip(&format!("-batch {}", file.display()));
}

pub fn network(n: u32) -> String {
    format!("172.{}.{}.0/24", 16 + n / 256, n % 256)
}

#[test]
fn the_mirror_recovers_from_lost_messages() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    settled(&lab.router);
    let mut watch = Watch::new(&lab.router, &["eth1", "eth2"], 1);
    let overflows = || watch.statistics().overflows;
    assert_eq!(overflows(), 0);
    batch(&lab.router, |n| format!("route add {} via 10.0.2.2", network(n)));
    watch.settle();
    assert!(watch.statistics().overflows > 0, "a thousand messages cannot have fitted");
    batch(&lab.router, |n| match n % 2 {
        0 => format!("route del {} via 10.0.2.2", network(n)),
        _ => format!("route replace {} via 10.0.1.2", network(n)),
    });
    watch.settle();
    let kept =
        |n: u32| watch.mirror.tables().inet.rib(254).unwrap().get(network(n).parse::<Prefix<u32>>().unwrap());
    assert!((0..1000).all(|n| kept(n).is_some() == (n % 2 == 1)));
    let addresses: Vec<IpAddr> =
        (0..1000).map(|n| IpAddr::from([172, 16 + (n / 256) as u8, (n % 256) as u8, 9])).collect();
    assert_eq!(watch.compare(&lab.router, &addresses), 500);
}

#[test]
fn lookups_of_unusual_routes_agree_with_the_kernel() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let watch = &mut Watch::new(&lab.router, &["eth1", "eth2"], 1 << 20);
    for route in [
        "172.16.0.0/24 via 10.0.2.2 realm 7 initcwnd 20 congctl cubic quickack 1",
        "172.16.1.0/24 nexthop via 10.0.1.2 weight 3 nexthop via 10.0.2.2 weight 1",
        "172.16.2.0/24 via inet6 2001:db8:2::2 dev eth2",
        "172.16.3.0/24 via 10.0.9.9 dev eth1 onlink",
        "172.16.4.0/24 dev eth2 proto 77 scope link",
        "172.16.5.0/24 via 10.0.1.2 metric 20",
        "172.16.5.0/24 via 10.0.2.2 metric 10",
        "blackhole 172.16.6.0/24",
        "unreachable 172.16.7.0/24",
        "prohibit 172.16.8.0/24",
    ] {
        lab.router.ip(&format!("route add {route}"));
    }
    lab.router.ip("nexthop add id 7 via 10.0.1.2 dev eth1");
    lab.router.ip("nexthop add id 8 via 10.0.2.2 dev eth2");
    lab.router.ip("nexthop add id 9 group 7/8,3");
    lab.router.ip("route add 172.16.9.0/24 nhid 9");
    lab.router.ip("route add 172.16.10.0/24 nhid 7");
    lab.router.ip("-6 route add 2001:db8:9::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2");
    lab.router.ip("-6 route add 2001:db8:8::/48 via 2001:db8:1::2");
    lab.router.ip("-6 route append 2001:db8:8::/48 via 2001:db8:2::2");
    let mut addresses: Vec<IpAddr> = (0..=10).map(|n| IpAddr::from([172, 16, n, 1])).collect();
    addresses.extend(
        ["2001:db8:9::1", "2001:db8:8::1", "10.0.1.77", "10.0.2.2"].map(|ip| ip.parse::<IpAddr>().unwrap()),
    );
    let mut agree = |changed: &str| {
        watch.settle();
        println!("{changed}: {} have a route", watch.compare(&lab.router, &addresses));
    };
    agree("all of them");
    for change in [
        "nexthop replace id 7 via 10.0.1.3 dev eth1",
        "nexthop del id 8",
        "nexthop del id 7",
        "-6 route del 2001:db8:8::/48 via 2001:db8:1::2",
        "route del 172.16.5.0/24 metric 10",
        "route replace 172.16.0.0/24 via 10.0.1.2",
        "route append 172.16.0.0/24 via 10.0.2.2",
        "addr add 10.0.1.9/24 dev eth1",
        "addr del 10.0.2.1/24 dev eth2",
        "link set dev eth1 down",
        "link set dev eth1 up",
        "addr flush dev eth1",
        "link del eth2",
    ] {
        lab.router.ip(change);
        agree(change);
    }
}

/// The kernel lists no route between the hops of another one, and does not report when it uses it.
#[test]
fn routes_that_were_hidden_before_the_start_are_found_when_the_kernel_uses_them() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    lab.router.ip("-6 route add default via 2001:db8:1::2 dev eth1 metric 5000");
    let prefixes = ["2001:db8:5::/48", "2001:db8:6::/48"];
    for prefix in prefixes {
        for hop in ["via 2001:db8:1::2 dev eth1", "dev eth2", "via 2001:db8:1::3 dev eth1"] {
            lab.router.ip(&format!("-6 route append {prefix} {hop} metric 1024"));
        }
    }
    let mut watch = Watch::new(&lab.router, &["eth1", "eth2"], 1 << 20);
    for prefix in prefixes {
        let address: IpAddr = prefix.replace("::/48", "::9").parse().unwrap();
        assert_eq!(watch.stations(address).len(), 2);
        for gateway in ["2001:db8:1::3", "2001:db8:1::2"] {
            lab.router.ip(&format!("-6 route del {prefix} via {gateway} dev eth1 metric 1024"));
        }
        watch.settle();
        assert_eq!(watch.compare(&lab.router, &[address]), 1);
        // Hidden routes are looked for once in ten seconds.
        watch.skip(Duration::from_secs(10));
    }
}

#[test]
fn a_vrf_is_a_table_of_its_own() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    if !lab.router.try_command("ip link add blue type vrf table 100").status.success() {
        eprintln!("skipped: this kernel has no VRFs");
        return;
    }
    let mut watch = Watch::new(&lab.router, &["eth1", "eth2"], 1 << 20);
    lab.router.ip("link set dev blue up");
    lab.router.ip("link set dev eth2 master blue");
    lab.router.ip("route add 172.16.0.0/24 via 10.0.2.2 vrf blue");
    watch.settle();
    let far: IpAddr = "172.16.0.1".parse().unwrap();
    assert_eq!(watch.mirror.stations(254, far), []);
    assert_eq!(watch.mirror.stations(100, far).len(), 1);
    let view = watch.mirror.views().current();
    assert_eq!((view.interface(0).unwrap().table, view.interface(1).unwrap().table), (0, 1));
}

#[test]
fn an_interface_is_removed_and_returns() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let mut program = lab.forward(&[]);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    lab.router.ip("link del eth2");
    program.wait_for("eth2 is not there");
    lab.left.command("ping -c 1 -W 60 10.0.1.1");
    cable((&lab.right, "eth0"), (&lab.router, "eth2"));
    lab.router.ip("addr add 10.0.2.1/24 dev eth2");
    lab.right.ip("addr add 10.0.2.2/24 dev eth0");
    lab.right.ip("route replace default via 10.0.2.1");
    assert!(eventually(|| reaches(&left, &right, "10.0.2.2:9")), "{}", program.output());
    // To another host and back: the interface is the same, but sockets have lost it.
    lab.router.ip(&format!("link set eth2 netns {}", lab.left.id()));
    lab.left.ip(&format!("link set eth2 netns {}", lab.router.id()));
    lab.router.ip("link set eth2 up");
    lab.router.ip("addr replace 10.0.2.1/24 dev eth2");
    if !cfg!(feature = "bpf") {
        lab.router.sysctl("ipv4/conf/eth2/forwarding", "0");
    }
    let answers = || lab.left.try_command("ping -c 1 -W 1 10.0.2.2").status.success();
    assert!(eventually(answers), "{}", program.output());
    assert!(program.is_running());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}

/// All programs and sockets of the interface are gone then, and the messages of both come in one turn of the router.
#[cfg(feature = "bpf")]
#[test]
fn an_interface_that_is_made_again_with_its_number_is_another_one() {
    if !may_run(&PROGRAMS) {
        return;
    }
    for engine in ["threads", "tc"] {
        let lab = Lab::new();
        let program = lab.forward(&["--engine", engine]);
        let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{engine}: {}", program.output());
        program.signal("STOP");
        make_again(&lab);
        program.signal("CONT");
        let once = || arrive_once(&lab, &left, &right);
        assert!(eventually(once), "{engine}: {}", program.output());
    }
}

/// Removes the link to the left host, and makes another one with the same number and addresses.
#[cfg(feature = "bpf")]
fn make_again(lab: &Lab) {
    let (shown, mac) = (lab.router.ip("-o link show dev eth1"), lab.router.mac("eth1"));
    let index = shown.split(':').next().unwrap();
    lab.router.ip("link del eth1");
    lab.router.ip(&format!("link add eth1 index {index} address {mac} type veth peer name eth3"));
    lab.router.ip(&format!("link set eth3 netns {} name eth0", lab.left.id()));
    for (node, interface, host) in [(&lab.router, "eth1", 1), (&lab.left, "eth0", 2)] {
        node.ip(&format!("link set dev {interface} up"));
        node.ip(&format!("addr add 10.0.1.{host}/24 dev {interface}"));
    }
    lab.left.ip("route replace default via 10.0.1.1");
}

/// Whether each of ten packets arrives once, and the kernel forwards none of them.
#[cfg(feature = "bpf")]
fn arrive_once(lab: &Lab, left: &UdpSocket, right: &UdpSocket) -> bool {
    let (before, mut buffer) = (forwarded_by_kernel(&lab.router), [0; 64]);
    right.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    (0..10).for_each(|_| _ = left.send_to(b"once", "10.0.2.2:9"));
    let arrived = std::iter::repeat_with(|| right.recv_from(&mut buffer)).take_while(Result::is_ok).count();
    arrived == 10 && forwarded_by_kernel(&lab.router) == before
}

#[cfg(feature = "bpf")]
const ENGINES: [&str; 3] = ["threads", "tc", "xdp"];

/// Whether soon nothing arrives any more.
#[cfg(feature = "bpf")]
fn ends(from: &UdpSocket, to: &UdpSocket, address: &str) -> bool {
    to.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let is_lost = || {
        from.send_to(b"lost", address).unwrap();
        to.recv_from(&mut [0; 64]).is_err()
    };
    eventually(|| (0..10).all(|_| is_lost()))
}

/// The kernel drops what arrives there, whatever its setting `forwarding` says, and does not report that it is disabled.
#[cfg(feature = "bpf")]
#[test]
fn no_ipv6_is_forwarded_from_where_it_is_disabled() {
    if !may_run(&[&PROGRAMS[..], &["ethtool"]].concat()) {
        return;
    }
    for engine in ENGINES {
        let lab = Lab::new();
        lab.keep_tags();
        let program = lab.forward(&["--engine", engine]);
        let (left, right) = (lab.left.udp("[2001:db8:1::2]:0"), lab.right.udp("[2001:db8:2::2]:9"));
        assert!(reaches(&left, &right, "[2001:db8:2::2]:9"), "{engine}: {}", program.output());
        let mac = lab.router.mac("eth1");
        lab.left.ip(&format!("-6 neigh replace 2001:db8:1::1 lladdr {mac} dev eth0 nud permanent"));
        lab.router.sysctl("ipv6/conf/eth1/disable_ipv6", "1");
        assert!(ends(&left, &right, "[2001:db8:2::2]:9"), "{engine}: {}", program.output());
        lab.router.sysctl("ipv6/conf/eth1/disable_ipv6", "0");
        lab.router.ip("addr add 2001:db8:1::1/64 dev eth1 nodad");
        assert!(reaches(&left, &right, "[2001:db8:2::2]:9"), "{engine}: {}", program.output());
    }
}

/// What arrives there is the bridge's, whose settings are others.
#[cfg(feature = "bpf")]
#[test]
fn an_interface_that_becomes_part_of_a_bridge_is_left_to_it() {
    if !may_run(&[&PROGRAMS[..], &["ethtool"]].concat()) {
        return;
    }
    for engine in ENGINES {
        let lab = Lab::new();
        lab.keep_tags();
        if !lab.router.try_command("ip link add br0 type bridge").status.success() {
            eprintln!("skipped: this kernel has no bridges");
            return;
        }
        let mut program = lab.forward(&["--engine", engine]);
        let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{engine}: {}", program.output());
        ["link set eth1 master br0", "link set br0 up", "addr del 10.0.1.1/24 dev eth1"]
            .iter()
            .for_each(|line| _ = lab.router.ip(line));
        lab.router.ip("addr add 10.0.1.1/24 dev br0");
        lab.router.sysctl("ipv4/conf/br0/forwarding", "0");
        program.wait_for("eth1 is not there, or is part of a bridge or bond");
        assert!(ends(&left, &right, "10.0.2.2:9"), "{engine}: {}", program.output());
        lab.router.sysctl("ipv4/conf/br0/forwarding", "1");
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{engine}: {}", program.output());
        ["link set eth1 nomaster", "addr del 10.0.1.1/24 dev br0", "addr add 10.0.1.1/24 dev eth1"]
            .iter()
            .for_each(|line| _ = lab.router.ip(line));
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{engine}: {}", program.output());
    }
}

/// A neighbour that was resolved a moment ago is resolved again, however many packets wait for it.
#[test]
fn neighbours_are_resolved_again_after_a_link_was_down_for_a_moment() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let program = lab.forward(&[]);
    let (left, right) = (lab.left.udp("10.0.1.2:9"), lab.right.udp("10.0.2.2:9"));
    let both_reach = || {
        let there = reaches(&left, &right, "10.0.2.2:9");
        (there, reaches(&right, &left, "10.0.1.2:9"))
    };
    assert_eq!(both_reach(), (true, true), "{}", program.output());
    for interface in ["eth2", "eth1", "eth2"] {
        lab.router.ip(&format!("link set dev {interface} down"));
        (0..3).for_each(|_| drop(left.send_to(b"lost", "10.0.2.2:9")));
        lab.router.ip(&format!("link set dev {interface} up"));
        let neighbors = || lab.router.ip("neigh show");
        assert_eq!(both_reach(), (true, true), "{interface}: {}{}", program.output(), neighbors());
    }
}

/// Netlink reports changes of an interface later: the interface may be removed while the router opens it.
#[test]
fn interfaces_that_appear_and_disappear_quickly_do_not_end_the_router() {
    if !may_run(&PROGRAMS) || (cfg!(feature = "bpf") && !may_run(&["ethtool"])) {
        return;
    }
    let engines: &[&str] =
        if cfg!(feature = "bpf") { &["threads", "tc", "xdp", "xdp-generic"] } else { &["threads"] };
    for engine in engines {
        let lab = Lab::new();
        #[cfg(feature = "bpf")]
        lab.keep_tags();
        let program = forward(&lab.router, "eth1,eth2,eth3", &["--wait", "--engine", engine]);
        for _ in 0..100 {
            lab.router.ip("link add eth3 type veth peer name eth4");
            lab.router.ip("link set eth3 up");
            lab.router.ip("link del eth3");
        }
        let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
        let (code, said) = program.end("TERM");
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn a_longer_packet_is_forwarded_once_the_mtu_allows_it() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let ends = [(&lab.left, "eth0"), (&lab.router, "eth1"), (&lab.right, "eth0"), (&lab.router, "eth2")];
    ends[..2].iter().for_each(|(node, name)| drop(node.ip(&format!("link set dev {name} mtu 1900"))));
    let program = lab.forward(&[]);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    let mut heard = [0; 2000];
    right.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let arrives = |len: usize, heard: &mut [u8]| {
        // The sender may have cached the smaller path MTU.
        lab.left.ip("route flush cache");
        let _ = left.send_to(&vec![7; len], "10.0.2.2:9");
        right.recv(heard).is_ok_and(|got| got == len)
    };
    assert!(eventually(|| arrives(1400, &mut heard)));
    assert!(!arrives(1700, &mut heard), "longer than the MTU");
    ends[2..].iter().for_each(|(node, name)| drop(node.ip(&format!("link set dev {name} mtu 1900"))));
    assert!(eventually(|| arrives(1700, &mut heard)), "{}", program.output());
}

#[test]
fn a_smaller_mtu_of_ipv6_is_applied() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let limit = |mtu: &str| lab.router.sysctl("ipv6/conf/eth2/mtu", mtu);
    limit("1400");
    let mut watch = Watch::new(&lab.router, &["eth1", "eth2"], 1 << 20);
    let known = |mirror: &Mirror| {
        mirror.views().current().parts().interfaces.iter().map(|of| (of.mtu, of.mtu6)).collect::<Vec<_>>()
    };
    assert_eq!(known(&watch.mirror), [(1500, None), (1500, Some(1400))]);
    limit("1300");
    watch.skip(Duration::from_secs(60));
    assert!(
        watch.settle_until(|mirror| known(mirror)[1] == (1500, Some(1300))),
        "the kernel sends no message about it"
    );
    lab.router.ip("link set eth2 mtu 1450");
    assert!(
        watch.settle_until(|mirror| known(mirror)[1] == (1450, None)),
        "IPv6 has the MTU of the link again"
    );
    lab.router.ip("link set eth2 mtu 1500");

    limit("1300");
    let program = lab.forward(&[]);
    let (left, right) = (lab.left.udp("[2001:db8:1::2]:0"), lab.right.udp("[2001:db8:2::2]:9"));
    assert!(reaches(&left, &right, "[2001:db8:2::2]:9"), "{}", program.output());
    let ping = |host: &str, size: u32| {
        let asked = lab.left.try_command(&format!("ping -c 1 -W 60 -M do -s {size} {host}"));
        String::from_utf8(asked.stdout).unwrap()
    };
    let fits = || {
        ping("10.0.2.2", 1400).contains(" 1 received") && ping("2001:db8:2::2", 1200).contains(" 1 received")
    };
    assert!(eventually(fits), "{}", program.output());
    if cfg!(feature = "bpf") {
        let said = ping("2001:db8:2::2", 1400);
        assert!(said.contains("Packet too big: mtu=1300"), "{said}{}", program.output());
    }
}

/// Returns routes, links, addresses, rules and programs of a host as text, without counters and times.
fn state(node: &Node) -> String {
    let shown = ["addr show", "route show table all", "-6 route show table all", "rule show", "nexthop show"];
    let shown = shown.map(|what| node.ip(what)).concat();
    let steady = |word: &&str| !word.ends_with("sec");
    shown
        .lines()
        .map(|line| line.split_whitespace().filter(steady).collect::<Vec<_>>().join(" ") + "\n")
        .collect()
}

/// Returns the state when the kernel has finished the work that follows from links that came up.
fn settled(node: &Node) -> String {
    let mut last = String::new();
    let is_settled = eventually(|| {
        let before = std::mem::replace(&mut last, state(node));
        std::thread::sleep(Duration::from_millis(300));
        last == before && !last.contains("tentative") && !last.contains("NO-CARRIER")
    });
    assert!(is_settled, "{last}");
    last
}

#[test]
fn killed_at_any_moment_it_leaves_the_host_as_it_was() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let before = settled(&lab.router);
    let arguments = ["forward", "--interfaces", "eth1,eth2"];
    for wait in [0, 5, 20, 50, 100, 200, 400, 1000] {
        let program = lab.router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
        std::thread::sleep(Duration::from_millis(wait));
        program.end("KILL");
        assert_eq!(state(&lab.router), before, "killed after {wait} ms");
    }
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    if cfg!(feature = "bpf") {
        assert!(reaches(&left, &right, "10.0.2.2:9"), "the kernel forwards");
    }
    let program = lab.forward(&[]);
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    assert_eq!(program.end("INT").0, Some(0));
    assert_eq!(state(&lab.router), before);
}

#[cfg(feature = "bpf")]
#[test]
fn the_kernel_forwards_while_workers_are_stopped() {
    if !may_run(&["ip", "setpriv", "ping", "kill"]) {
        return;
    }
    let lab = Lab::new();
    let program = lab.forward(&["--engine", "threads"]);
    lab.left.command("ping -c 1 -W 60 10.0.2.2");
    program.signal("STOP");
    let reaches = || lab.left.try_command("ping -c 1 -W 1 10.0.2.2").status.success();
    assert!(eventually(reaches), "the kernel forwards");
    program.signal("CONT");
    assert!(eventually(reaches));
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}

#[cfg(feature = "bpf")]
#[test]
fn workers_that_go_on_after_a_stop_send_nothing_that_came_in_before() {
    const OLD: usize = 100;
    if !may_run(&["ip", "setpriv", "ping", "ethtool"]) {
        return;
    }
    for port in ["packet", "xdp"] {
        let (lab, control) = (Lab::new(), Control::new());
        lab.behave_as_wires();
        let program =
            lab.forward(&[&["--engine", "threads", "--port", port], &control.options()[..]].concat());
        let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
        assert!(eventually(|| arrive_once(&lab, &left, &right)), "{port}: {}", program.output());
        right.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let (mut arrived, mut stale) = ([0; 64], 0);
        let mut stop_and_go_on = || {
            program.signal("STOP");
            (0..OLD).for_each(|_| _ = left.send_to(b"old", "10.0.2.2:9").unwrap());
            std::thread::sleep(Duration::from_millis(1500));
            // On a busy machine threads are stopped later than asked for, or the kernel forwarded already.
            let early = std::iter::from_fn(|| right.recv(&mut arrived).ok()).count();
            program.signal("CONT");
            let mut received = Vec::new();
            let is_new = eventually(|| {
                left.send_to(b"new", "10.0.2.2:9").unwrap();
                let len = right.recv(&mut arrived).unwrap_or(0);
                received.push(arrived[..len].to_vec());
                received.last().is_some_and(|last| last == b"new")
            });
            assert!(is_new && !received.iter().any(|packet| packet == b"old"), "{port}: {received:?}");
            stale += OLD - early;
            control.wait_until("\"counters\"", |of| of["drops"]["stale"].as_u64() == Some(stale as u64));
            early == 0
        };
        assert!((0..10).any(|_| stop_and_go_on()), "{port}: some were forwarded before, each time");
    }
}

/// The thread that reports to the program in the kernel goes on.
#[cfg(feature = "bpf")]
#[test]
fn the_kernel_forwards_while_one_worker_hangs() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let mut program = lab.forward(&["--engine", "threads"]);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(eventually(|| arrive_once(&lab, &left, &right)), "{}", program.output());
    let worker = StoppedThread::of(program.id(), "worker");
    assert!(reaches(&left, &right, "10.0.2.2:9"), "the kernel forwards");
    program.wait_for("a worker has begun no round for a second");
    drop(worker);
    program.wait_for("all workers begin rounds again");
    assert!(eventually(|| arrive_once(&lab, &left, &right)), "the worker forwards: {}", program.output());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn bird_restarts_gracefully_and_nothing_changes_meanwhile() {
    if !may_run(&["ip", "setpriv", "bird", "birdc"]) {
        return;
    }
    let (upstream, router) = pair();
    let routes =
        "protocol static { ipv4; route 20.0.0.0/24 via 198.18.0.77; route 20.0.1.0/24 via 198.18.0.77; }";
    upstream.ip("addr add 198.18.0.77/15 dev eth0");
    let _sender = Bird::start(&upstream, &speaker(1, routes, "import none; export all"));
    let mut receiver = Bird::start(&router, &speaker(2, TO_KERNEL, "import all; export none"));
    receiver.wait_for("master4", 2);
    let mut watch = Watch::new(&router, &["eth1"], 1 << 20);
    let far: IpAddr = "20.0.1.1".parse().unwrap();
    let there = |watch: &Watch| watch.mirror.stations(254, far).len() == 1;
    assert!(watch.settle_until(|mirror| mirror.stations(254, far).len() == 1));
    receiver.restart_gracefully(&router);
    watch.settle();
    assert!(there(&watch), "its routes stay in the kernel and in the mirror");
    receiver.wait_for("master4", 2);
    watch.settle();
    assert!(there(&watch));
}

#[test]
fn errors_name_the_interface_and_how_to_fix_them() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let mut program = lab
        .router
        .start(env!("CARGO_BIN_EXE_fullview"), &["forward", "--wait", "--interfaces", "eth1,nonsense"]);
    program.wait_for("interface nonsense is not there");
    assert!(program.is_running(), "the interface may appear later");
    assert_eq!(program.end("TERM").0, Some(0));
    let run = |arguments: &str| {
        let output =
            lab.router.try_command(&format!("{} forward {arguments}", env!("CARGO_BIN_EXE_fullview")));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run("--interfaces eth1,nonsense");
    assert!(code == Some(2) && said.contains("nonsense: there is none") && said.contains("--wait"), "{said}");
    let (code, said) = run("--interfaces eth1,eth1");
    assert!(code == Some(2) && said.contains("eth1 is named twice"), "{said}");
    let (code, said) = run("--interfaces eth1,lo");
    assert!(code == Some(2) && said.contains("interface lo is no Ethernet interface"), "{said}");
    let (code, said) = run("--interfaces eth1 --algorithm nonsense");
    assert!(code == Some(2) && said.contains("nonsense"), "{said}");
    let (code, said) = run("--interfaces eth1 --table x");
    assert_eq!(code, Some(2), "{said}");
    if !cfg!(feature = "bpf") {
        lab.router.sysctl("ipv4/conf/eth1/forwarding", "1");
        let (code, said) = run("--interfaces eth1");
        assert!(
            code == Some(2) && said.contains("net.ipv4.conf.eth1.forwarding=0") && said.contains("bpf"),
            "{said}"
        );
    }
}
