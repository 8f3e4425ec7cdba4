//! VLANs, links that go down or away, and network cards that the kernel does not see packets of.

use std::time::{Duration, Instant};

use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::Mac;
use fullview_testnet::eventually;
#[cfg(feature = "bpf")]
use fullview_testnet::{Node, cable, may_run};

#[cfg(feature = "bpf")]
use super::{CONFIG, FULLVIEW, await_state};
use super::{Standalone, may_run_standalone};

#[test]
fn vlans_are_interfaces_without_being_named_as_ports() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("[interface.\"left.100\"]\naddress = [\"10.0.100.1/24\"]\ntable = 100\n");
    let sender: Mac = "02:00:00:00:00:99".parse().unwrap();
    let request = |ip: [u8; 4]| {
        let message = ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: sender,
            sender: u32::from_be_bytes([10, 0, 100, 9]),
            target_mac: Mac::default(),
            target: u32::from_be_bytes(ip),
        };
        let tag = [0x81, 0, 0, 100, 8, 6];
        [&Mac::BROADCAST.0[..], &sender.0, &tag, &message.bytes()].concat()
    };
    let mut socket = lab.left.packet_socket("eth0");
    let mut answered = || {
        socket.send(&request([10, 0, 1, 1])).unwrap();
        socket.send(&request([10, 0, 100, 1])).unwrap();
        let frame = socket.receive(Instant::now() + Duration::from_millis(100)).unwrap_or_default();
        // The kernel removes the tag before the socket receives the frame.
        let is_answer = frame.starts_with(&sender.0);
        let message = frame.get(14..).and_then(|message| ArpPacket::parse(message).ok().flatten());
        message.filter(|_| is_answer).map(|message| message.sender)
    };
    let mut answer = None;
    assert!(eventually(|| {
        answer = answered();
        answer.is_some()
    }));
    assert_eq!(answer, Some(u32::from_be_bytes([10, 0, 100, 1])), "the VLAN answers, not the untagged link");
    let interfaces = lab.show("interfaces");
    assert!(interfaces.contains("left.100"), "{interfaces}");
    lab.end();
}

#[test]
fn a_station_that_claims_an_address_of_the_router_is_reported() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("");
    let mac: Mac = "02:00:00:00:00:99".parse().unwrap();
    let own = u32::from_be_bytes([10, 0, 1, 1]);
    let (operation, target_mac) = (ArpOperation::Request, Mac::default());
    let claim = ArpPacket { operation, sender_mac: mac, sender: own, target_mac, target: own };
    let frame = [&Mac::BROADCAST.0[..], &mac.0, &[8, 6], &claim.bytes()].concat();
    let mut socket = lab.left.packet_socket("eth0");
    (0..20).for_each(|_| assert!(socket.send(&frame).is_ok()));
    assert!(eventually(|| lab.show("counters").contains("host: 20 conflicts")), "{}", lab.show("counters"));
    let events = lab.show("events");
    let report = "left: the station 02:00:00:00:00:99 claims 10.0.1.1, an address of this router";
    assert_eq!(events.matches(report).count(), 1, "{events}");
    lab.answers("10.0.1.1");
    lab.end();
}

#[test]
fn the_router_keeps_the_other_interfaces_when_one_is_removed() {
    if !may_run_standalone() {
        return;
    }
    let mut lab = Standalone::start("");
    lab.answers("10.0.3.2");
    lab.third.ip("link del eth0");
    lab.router.wait_for("interface third was removed; it is used again after a restart");
    lab.await_state("third", "down");
    lab.answers("10.0.2.2");
    lab.answers("10.0.3.1");
    lab.left.ip("link set eth0 down");
    lab.left.ip("link set eth0 up");
    lab.left.ip("route add default via 10.0.1.1");
    lab.answers("10.0.2.2");
    assert!(lab.router.is_running());
    lab.left.ip("link del eth0");
    lab.right.ip("link del eth0");
    lab.home.ip("link del fourth");
    lab.router.wait_for("all interfaces are gone");
    assert!(eventually(|| !lab.router.is_running()));
}

const TAGGED: &str = r#"
[interface."right.9"]
address = ["10.0.9.1/24"]
table = 100

[[route]]
to = "0.0.0.0/0"
via = "10.0.9.2"
table = 100
"#;

const FALLBACKS: &str = r#"
[[route]]
to = "192.0.2.0/24"
ways = [{ via = "10.0.2.2" }, { via = "10.0.3.2" }]

[[route]]
to = "198.51.0.0/16"
via = "10.0.3.2"

[[route]]
to = "198.51.100.0/24"
via = "10.0.2.2"

[[neighbor]]
address = "10.0.2.2"
dev = "right"
mac = "MAC"
"#;

#[test]
fn routes_by_a_link_that_is_down_are_replaced_by_others() {
    if !may_run_standalone() {
        return;
    }
    let known_as = |mac: &str| FALLBACKS.replace("MAC", mac);
    let (first, other) = (known_as("02:00:00:00:00:99") + TAGGED, known_as("02:00:00:00:00:98"));
    let mut lab = Standalone::start(&first);
    for host in [&lab.right, &lab.third] {
        // An address of loopback makes the whole network local.
        host.ip("addr add 192.0.2.1/24 dev lo");
        host.ip("addr add 198.51.100.7/32 dev lo");
    }
    lab.right.ip("link set eth0 address 02:00:00:00:00:99");
    let leads_by = |lab: &Standalone, to: &str, dev: &str| {
        let led = eventually(|| lab.show(&format!("routes {to}")).contains(&format!("dev {dev}")));
        assert!(led, "{}", lab.show(&format!("routes {to}")));
    };
    for _ in 0..2 {
        leads_by(&lab, "203.0.113.1 --table 100", "right.9");
        lab.right.ip("link set eth0 down");
        lab.await_state("right", "down");
        lab.await_state("right.9", "down");
        assert!(lab.show("routes 203.0.113.1 --table 100").contains("no route"));
        // The less specific route, and the next hop that is left; a permanent neighbour does not change that.
        leads_by(&lab, "198.51.100.7", "third");
        assert!(lab.show("routes 10.0.2.2").contains("no route"));
        assert!(!lab.show("neighbors").contains("10.0.2.2"), "{}", lab.show("neighbors"));
        let path = lab.show("routes 192.0.2.7");
        assert!(path.contains("via 10.0.3.2") && !path.contains("via 10.0.2.2"), "{path}");
        (1..=20).for_each(|host| lab.answers(&format!("192.0.2.{host}")));
        // The router answers for all its addresses, whatever the state of their links.
        lab.answers("10.0.2.1");
        let (success, said) = lab.reload(&other);
        assert!(success, "{said}");
        leads_by(&lab, "198.51.100.7", "third");
        assert!(!lab.show("interfaces").contains("10.0.9.1"), "{}", lab.show("interfaces"));
        let (success, said) = lab.reload(&first);
        assert!(success, "{said}");
        lab.right.ip("link set eth0 up");
        lab.right.ip("route add default via 10.0.2.1");
        lab.await_state("right", "up");
        leads_by(&lab, "198.51.100.7", "right");
        lab.answers("198.51.100.7");
        let path = lab.show("routes 192.0.2.7");
        assert!(path.contains("via 10.0.3.2") && path.contains("via 10.0.2.2"), "{path}");
    }
    assert!(lab.router.is_running());
    let events = lab.show("events");
    assert!(events.contains("right is down") && events.contains("right is up"), "{events}");
    lab.end();
}

/// The router takes all frames of these network cards.
#[test]
#[cfg(feature = "bpf")]
fn with_af_xdp_the_kernel_receives_nothing_from_the_routers_interfaces() {
    if !may_run(&["ip", "ping", "setpriv", "ethtool"]) {
        return;
    }
    let (left, right, home) = (Node::new(), Node::new(), Node::new());
    for (host, name, side) in [(&left, "left", 1), (&right, "right", 2)] {
        cable((host, "eth0"), (&home, name));
        host.send_finished_frames("eth0");
        home.keep_tags(name);
        home.sysctl(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
        host.ip(&format!("addr add 10.0.{side}.2/24 dev eth0"));
        host.ip(&format!("addr add 2001:db8:{side}::2/64 dev eth0 nodad"));
        host.ip(&format!("route add default via 10.0.{side}.1"));
        host.ip(&format!("-6 route add default via 2001:db8:{side}::1"));
    }
    // The kernel would answer for this address, and forward, if it received packets.
    home.ip("addr add 10.0.1.1/24 dev left");
    home.sysctl("ipv4/conf/all/forwarding", "1");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.toml");
    let text = CONFIG
        .replace(", \"third\", \"fourth\"", "")
        .replace("[interface.third]\naddress = [\"10.0.3.1/24\", \"2001:db8:3::1/64\"]\n", "");
    let text = text
        .replace("\"tap\"", "\"xdp\"")
        .replace("ROUTER", "")
        .replace("FOLDER", folder.path().to_str().unwrap());
    std::fs::write(&file, text).unwrap();
    let received = || home.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
    let received = || received().lines().nth(1).unwrap().split(' ').nth(3).unwrap().to_owned();
    let mut router = home.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
    router.wait_for("forwarding");
    assert!(router.output().contains("left: AF_XDP") && router.output().contains("all frames redirected"));
    // A card would pass on no solicitations of neighbours: its kernel is in no group.
    let is_promiscuous = || home.ip("-d link show left").contains("promiscuity 1");
    assert!(is_promiscuous());
    let before = received();
    for to in ["10.0.1.1", "10.0.2.2", "2001:db8:2::2", "2001:db8:1::1"] {
        left.command(&format!("ping -n -c 2 -i 0.05 -W 60 {to}"));
    }
    let ping = left.try_command("ping -n -c 1 -W 60 -t 1 10.0.2.2");
    assert!(String::from_utf8_lossy(&ping.stdout).contains("From 10.0.1.1 icmp_seq=1 Time to live exceeded"));
    let socket = folder.path().join("control.sock");
    right.ip("link set eth0 down");
    await_state(&socket, "right", "down");
    // Before the FIB has followed, the router drops packets because of the interface's state and sends no error.
    let is_unreachable = || {
        let ping = left.try_command("ping -n -c 1 -W 1 10.0.2.2");
        String::from_utf8_lossy(&ping.stdout).contains("From 10.0.1.1 icmp_seq=1 Destination Net Unreachable")
    };
    assert!(eventually(is_unreachable), "{}", router.output());
    right.ip("link set eth0 up");
    right.ip("route add default via 10.0.2.1");
    await_state(&socket, "right", "up");
    left.command("ping -n -c 2 -i 0.05 -W 60 10.0.2.2");
    assert_eq!(received(), before, "IPv4 packets that the kernel received");
    // To another namespace and back: the sockets have lost the interface, and the router notices it.
    home.ip(&format!("link set right netns {}", right.id()));
    router.wait_for("interface right was removed; it is used again after a restart");
    right.ip(&format!("link set right netns {}", home.id()));
    home.ip("link set right up");
    assert!(eventually(is_unreachable), "{}", router.output());
    assert!(router.is_running(), "{}", router.output());
    await_state(&socket, "right", "down");
    let (code, said) = router.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(!is_promiscuous());
    // The kernel answers again after the router has ended.
    left.command("ping -n -c 2 -i 0.05 -W 60 10.0.1.1");
}
