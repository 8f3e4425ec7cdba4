//! A router with no kernel behind it, on TAP interfaces whose other ends are in the namespaces of Linux hosts: who is
//! out there cannot tell.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::Mac;
use pnet_datalink::{Channel, DataLinkReceiver, DataLinkSender, channel, interfaces};

use crate::control::ask_by_program;
use crate::lab::{be_everybody, reaches};
#[cfg(feature = "bpf")]
use crate::node::cable;
use crate::node::{Node, Program, eventually, may_run};
use crate::traffic::{Receiver, Sender, lost, twice};

const FULLVIEW: &str = env!("CARGO_BIN_EXE_fullview");

/// Three hosts, and a router between them whose own namespace has no interface any more.
pub struct Alone {
    pub left: Node,
    pub right: Node,
    pub third: Node,
    home: Node,
    router: Program,
    folder: tempfile::TempDir,
}

/// Host 2 of each network is one of ours, and the router is 1.
const CONFIG: &str = r#"
[router]
kernel = false
interfaces = ["left", "right", "third", "fourth"]
port = "tap"
ROUTER

[interface.left]
address = ["10.0.1.1/24", "2001:db8:1::1/64"]

[interface.right]
address = ["10.0.2.1/24", "2001:db8:2::1/64"]
mtu = 1400

[interface.third]
address = ["10.0.3.1/24", "2001:db8:3::1/64"]

[control]
socket = "FOLDER/control.sock"
"#;

impl Alone {
    /// The configuration of above, and more.
    pub fn start(more: &str) -> Alone {
        Alone::with("", more)
    }

    /// The same, with more about the router itself.
    pub fn with(of_router: &str, more: &str) -> Alone {
        let folder = tempfile::tempdir().unwrap();
        let (left, right, third, home) = (Node::new(), Node::new(), Node::new(), Node::new());
        let file = write(&folder, of_router, more);
        let mut router = home.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
        router.wait_for("forwarding");
        router.wait_for("control: ");
        let alone = Alone { left, right, third, home, router, folder };
        for (host, name, side) in
            [(&alone.left, "left", 1), (&alone.right, "right", 2), (&alone.third, "third", 3)]
        {
            alone.hand_over(name, host);
            host.ip(&format!("addr add 10.0.{side}.2/24 dev eth0"));
            host.ip(&format!("addr add 2001:db8:{side}::2/64 dev eth0 nodad"));
            host.ip(&format!("route add default via 10.0.{side}.1"));
            host.ip(&format!("-6 route add default via 2001:db8:{side}::1"));
        }
        alone
    }

    /// Until the router knows that the link is up.
    fn hand_over(&self, name: &str, host: &Node) {
        hand_over(&self.home, name, host);
        self.await_state(name, "up");
    }

    fn await_state(&self, name: &str, state: &str) {
        await_state(&self.folder.path().join("control.sock"), name, state);
    }

    /// Another configuration, while it runs.
    fn reload(&self, more: &str) -> (bool, String) {
        write(&self.folder, "", more);
        self.ask("reload")
    }

    fn ask(&self, line: &str) -> (bool, String) {
        ask_by_program(&self.folder.path().join("control.sock"), line)
    }

    fn show(&self, what: &str) -> String {
        let (success, said) = self.ask(&format!("show {what}"));
        assert!(success, "{what}: {said}");
        said
    }

    /// An address answers the left host.
    fn answers(&self, to: &str) {
        self.answers_to(&self.left, to);
    }

    fn answers_to(&self, host: &Node, to: &str) {
        let output = host.try_command(&format!("ping -n -c 2 -i 0.05 -W 60 {to}"));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}\n{}", self.show("counters"), self.router.output());
    }

    /// What a host's `ping` says, whether or not it was answered.
    fn ping(&self, arguments: &str) -> String {
        let output = self.left.try_command(&format!("ping -n {arguments}"));
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    fn end(self) -> String {
        let (code, said) = self.router.end("TERM");
        assert_eq!(code, Some(0), "{said}");
        said
    }
}

/// Until the router that listens there says that an interface is up, or down.
fn await_state(socket: &Path, name: &str, state: &str) {
    let shown = || ask_by_program(socket, "show interfaces").1;
    let has = |line: &str| line.split_whitespace().take(2).eq([name, state]);
    assert!(eventually(|| shown().lines().any(has)), "{name} is not {state}: {}", shown());
}

/// The kernel's end of an interface becomes a host's.
fn hand_over(home: &Node, name: &str, host: &Node) {
    home.ip(&format!("link set {name} netns {}", host.id()));
    host.ip(&format!("link set {name} name eth0 txqueuelen 10000"));
    host.ip("link set eth0 up");
}

fn write(folder: &tempfile::TempDir, of_router: &str, more: &str) -> PathBuf {
    let file = folder.path().join("router.toml");
    let text = CONFIG.replace("ROUTER", of_router) + more;
    std::fs::write(&file, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
    file
}

fn may() -> bool {
    may_run(&["ip", "ping", "setpriv"]) && has(Path::new("/dev/net/tun").exists(), "/dev/net/tun")
}

/// Says what is missing; in CI that is a failure.
fn has(is_there: bool, what: &str) -> bool {
    if !is_there {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "in CI nothing may be skipped: no {what}");
        eprintln!("skipped: no {what}");
    }
    is_there
}

#[test]
fn linux_hosts_talk_through_a_router_without_a_kernel() {
    if !may() {
        return;
    }
    let alone = Alone::start("");
    for to in ["10.0.2.2", "2001:db8:2::2", "10.0.2.1", "2001:db8:1::1"] {
        alone.answers(to);
    }
    let (left, right) = (alone.left.udp("10.0.1.2:0"), alone.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"));
    let (left6, right6) = (alone.left.udp("[2001:db8:1::2]:0"), alone.right.udp("[2001:db8:2::2]:9"));
    assert!(reaches(&left6, &right6, "[2001:db8:2::2]:9"));
    let neighbors = alone.show("neighbors");
    assert!(neighbors.contains("10.0.1.2") && neighbors.contains("2001:db8:2::2"), "{neighbors}");
    let counters = alone.show("counters");
    assert!(counters.contains("host: ") && !counters.contains("netlink"), "{counters}");
    let said = alone.end();
    assert!(said.contains("no kernel: 4 interfaces") && said.contains("packets received"), "{said}");
}

#[test]
fn linux_hosts_are_told_what_became_of_their_packets() {
    if !may() {
        return;
    }
    let alone = Alone::start("");
    let told = |arguments: &str, words: &str| {
        let said = alone.ping(arguments);
        assert!(said.contains(words), "{arguments}: {said}");
    };
    // As traceroute does it.
    told("-c 1 -W 60 -t 1 10.0.2.2", "From 10.0.1.1 icmp_seq=1 Time to live exceeded");
    told("-c 1 -W 60 -t 1 2001:db8:2::2", "From 2001:db8:1::1 icmp_seq=1 Time exceeded: Hop limit");
    // The second link takes 1,400 bytes: path MTU discovery, fragments by the router, fragments by the sender.
    told("-c 1 -W 60 -M do -s 1400 10.0.2.2", "Frag needed and DF set (mtu = 1400)");
    told("-c 1 -W 60 -M dont -s 1400 10.0.2.2", "1 received");
    told("-c 1 -W 60 -M do -s 1400 2001:db8:2::2", "Packet too big: mtu=1400");
    told("-c 2 -W 60 -s 1400 2001:db8:2::2", "1408 bytes from 2001:db8:2::2");
    // Nobody there, and no way.
    told("-c 1 -W 60 10.0.2.99", "From 10.0.1.1 icmp_seq=1 Destination Host Unreachable");
    told(
        "-c 1 -W 60 2001:db8:2::99",
        "From 2001:db8:1::1 icmp_seq=1 Destination unreachable: Address unreachable",
    );
    told("-c 1 -W 60 203.0.113.1", "From 10.0.1.1 icmp_seq=1 Destination Net Unreachable");
    told("-c 1 -W 60 2001:db8:ff::1", "Destination unreachable: No route");
    alone.end();
}

const ROUTES: &str = r#"
[[route]]
to = "0.0.0.0/0"
via = "10.0.2.2"

[[route]]
to = "::/0"
via = "2001:db8:2::2"

[[route]]
to = "203.0.113.0/26"
kind = "blackhole"

[[route]]
to = "203.0.113.64/26"
kind = "unreachable"

[[route]]
to = "203.0.113.128/26"
kind = "prohibit"
"#;

#[test]
fn routes_lead_where_the_configuration_says() {
    if !may() {
        return;
    }
    let alone = Alone::start(ROUTES);
    for to in ["192.0.2.77", "8.8.8.8"] {
        alone.right.ip(&format!("addr add {to}/32 dev lo"));
        alone.answers(to);
    }
    alone.right.ip("addr add 2001:db8:ff::9/128 dev lo");
    alone.answers("2001:db8:ff::9");
    let blackhole = alone.ping("-c 1 -W 1 203.0.113.1");
    assert!(blackhole.contains("100% packet loss") && !blackhole.contains("From"), "{blackhole}");
    let unreachable = alone.ping("-c 1 -W 60 203.0.113.65");
    assert!(unreachable.contains("Destination Host Unreachable"), "{unreachable}");
    let prohibited = alone.ping("-c 1 -W 60 203.0.113.129");
    assert!(prohibited.contains("Packet filtered"), "{prohibited}");
    let path = alone.show("routes 192.0.2.77");
    assert!(path.contains("table 254, route 0.0.0.0/0") && path.contains("via 10.0.2.2 dev right"), "{path}");
    assert!(alone.show("routes 203.0.113.1").contains("blackhole"));
    assert!(alone.show("counters").contains("dropped: blackhole 1"));
    alone.end();
}

const WAYS: &str = r#"
[[route]]
to = "192.0.2.0/24"
ways = [{ via = "10.0.2.2", weight = 3 }, { via = "10.0.3.2" }]
"#;

#[test]
fn flows_are_shared_by_weights_and_each_keeps_its_way() {
    if !may() {
        return;
    }
    const FLOWS: u16 = 400;
    const PACKETS: u32 = 3;
    let alone = Alone::start(WAYS);
    for host in [&alone.right, &alone.third] {
        be_everybody(host, "eth0");
    }
    let listen = |host: &Node| {
        let socket = host.udp("0.0.0.0:9");
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        socket
    };
    let hosts = [listen(&alone.right), listen(&alone.third)];
    let mut heard = [BTreeMap::new(), BTreeMap::new()];
    let mut hear = || {
        hosts.iter().zip(&mut heard).for_each(|(socket, flows)| hear(socket, flows));
        heard.clone()
    };
    let both_are_found = eventually(|| {
        for port in 100..120 {
            alone.left.udp(&format!("10.0.1.2:{port}")).send_to(b"first", "192.0.2.7:9").unwrap();
        }
        hear().iter().all(|flows| !flows.is_empty())
    });
    assert!(both_are_found, "{}", alone.router.output());
    for port in 20_000..20_000 + FLOWS {
        let socket = alone.left.udp(&format!("10.0.1.2:{port}"));
        (0..PACKETS).for_each(|_| assert!(socket.send_to(b"more", "192.0.2.7:9").is_ok()));
    }
    let mut came =
        || hear().map(|flows| flows.into_iter().filter(|(port, _)| *port >= 20_000).collect::<Vec<_>>());
    let all_came = eventually(|| {
        came().iter().flatten().map(|(_, packets)| packets).sum::<u32>() >= u32::from(FLOWS) * PACKETS
    });
    let [right, third] = came();
    assert!(all_came, "{right:?} {third:?}");
    assert!(right.iter().chain(&third).all(|(_, packets)| *packets == PACKETS), "{right:?} {third:?}");
    assert_eq!(right.len() + third.len(), usize::from(FLOWS), "every flow has one way");
    assert!((240..=360).contains(&right.len()), "three of four, about: {}", right.len());
    alone.end();
}

/// Counts packets by source port until none comes.
fn hear(socket: &UdpSocket, flows: &mut BTreeMap<u16, u32>) {
    while let Ok((_, from)) = socket.recv_from(&mut [0; 64]) {
        *flows.entry(from.port()).or_default() += 1;
    }
}

#[test]
fn interfaces_can_have_tables_of_their_own() {
    if !may() {
        return;
    }
    // The third host has the left one's addresses, and so has the router there.
    let alone = Alone::start(
        r#"
[interface.fourth]
address = ["10.0.1.1/24"]
table = 100

[[route]]
to = "0.0.0.0/0"
via = "10.0.2.2"
"#,
    );
    let fourth = Node::new();
    alone.hand_over("fourth", &fourth);
    fourth.ip("addr add 10.0.1.2/24 dev eth0");
    fourth.ip("route add default via 10.0.1.1");
    alone.right.ip("addr add 8.8.8.8/32 dev lo");
    for to in ["10.0.1.1", "10.0.2.2", "8.8.8.8"] {
        alone.answers(to);
    }
    alone.answers_to(&fourth, "10.0.1.1");
    for to in ["10.0.2.2", "8.8.8.8"] {
        let output = fourth.try_command(&format!("ping -n -c 1 -W 60 {to}"));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("From 10.0.1.1 icmp_seq=1 Destination Net Unreachable"), "{said}");
    }
    let neighbors = alone.show("neighbors");
    assert_eq!(neighbors.matches("10.0.1.2 ").count(), 2, "{neighbors}");
    // A way back: from the other table there is one to a gateway of its own only.
    let (success, said) = alone.reload(
        r#"
[interface.fourth]
address = ["10.0.1.1/24"]
table = 100

[[route]]
to = "192.0.2.0/24"
via = "10.0.1.2"
table = 100
"#,
    );
    assert!(success, "{said}");
    assert!(alone.show("routes 192.0.2.1").contains("no route"));
    assert!(alone.show("routes 192.0.2.1 --table 100").contains("via 10.0.1.2 dev fourth"));
    alone.end();
}

#[test]
fn vlans_are_interfaces_without_being_named_as_ports() {
    if !may() {
        return;
    }
    let alone = Alone::start("[interface.\"left.100\"]\naddress = [\"10.0.100.1/24\"]\ntable = 100\n");
    let asked: Mac = "02:00:00:00:00:99".parse().unwrap();
    let question = |ip: [u8; 4]| {
        let message = ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: asked,
            sender: u32::from_be_bytes([10, 0, 100, 9]),
            target_mac: Mac::default(),
            target: u32::from_be_bytes(ip),
        };
        let tag = [0x81, 0, 0, 100, 8, 6];
        [&Mac::BROADCAST.0[..], &asked.0, &tag, &message.bytes()].concat()
    };
    let (mut sender, mut receiver) = alone.left.run(|| raw("eth0"));
    let mut answered = || {
        sender.send_to(&question([10, 0, 1, 1]), None).unwrap().unwrap();
        sender.send_to(&question([10, 0, 100, 1]), None).unwrap().unwrap();
        let frame = receiver.next().map(<[u8]>::to_vec).unwrap_or_default();
        // The kernel takes the tag off before it shows the frame.
        let sent_to_us = frame.starts_with(&asked.0);
        let message = frame.get(14..).and_then(|message| ArpPacket::parse(message).ok().flatten());
        message.filter(|_| sent_to_us).map(|message| message.sender)
    };
    let mut answer = None;
    assert!(eventually(|| {
        answer = answered();
        answer.is_some()
    }));
    assert_eq!(answer, Some(u32::from_be_bytes([10, 0, 100, 1])), "and not the address of the untagged link");
    let interfaces = alone.show("interfaces");
    assert!(interfaces.contains("left.100"), "{interfaces}");
    alone.end();
}

type Raw = (Box<dyn DataLinkSender>, Box<dyn DataLinkReceiver>);

/// A socket for whole frames.
fn raw(name: &str) -> Raw {
    let interface = interfaces().into_iter().find(|interface| interface.name == name).unwrap();
    let config =
        pnet_datalink::Config { read_timeout: Some(Duration::from_millis(100)), ..Default::default() };
    match channel(&interface, config) {
        Ok(Channel::Ethernet(sender, receiver)) => (sender, receiver),
        Ok(_) => panic!("{name} is not Ethernet"),
        Err(error) => panic!("a socket on {name}: {error}"),
    }
}

#[test]
fn a_reload_changes_what_it_may_and_loses_nothing() {
    if !may() {
        return;
    }
    let alone = Alone::start("");
    alone.right.ip("addr add 192.0.2.1/24 dev lo");
    alone.third.ip("addr add 192.0.2.1/24 dev lo");
    alone.answers("10.0.2.2");
    let receiver = Receiver::start(alone.right.udp("10.0.2.2:9"));
    let sender = Sender::start(alone.left.udp("10.0.1.2:0"), |_| [10, 0, 2, 2].into());
    let leads = |gateway: &str| {
        let (success, said) =
            alone.reload(&format!("[[route]]\nto = \"192.0.2.0/24\"\nvia = \"{gateway}\"\n"));
        assert!(success && said.contains("is in force"), "{said}");
        // Not even the first packet is lost, for which the gateway has yet to be found.
        let said = alone.ping("-c 1 -W 60 192.0.2.1");
        assert!(said.contains("1 received"), "{said}");
        let path = alone.show("routes 192.0.2.1");
        assert!(path.contains(&format!("via {gateway}")), "{path}");
    };
    for _ in 0..3 {
        leads("10.0.2.2");
        leads("10.0.3.2");
    }
    // Another address on a link, another table, a station that never answers, a way through it.
    let (success, said) = alone.reload(
        r#"
[interface."left.7"]
address = ["10.0.7.1/24"]

[[neighbor]]
address = "10.0.2.50"
dev = "right"
mac = "02:00:00:00:00:50"

[[route]]
to = "192.0.2.0/24"
via = "10.0.2.50"
"#,
    );
    assert!(success, "{said}");
    alone.answers("10.0.7.1");
    let path = alone.show("routes 192.0.2.1");
    assert!(path.contains("neighbour 02:00:00:00:00:50 on right"), "{path}");
    assert!(alone.show("interfaces").contains("left.7"));
    // What cannot be changes nothing.
    let (success, said) = alone.reload("[[route]]\nto = \"192.0.2.0/24\"\nvia = \"10.9.9.9\"\n");
    assert!(!success && said.contains("10.9.9.9: it is in no network"), "{said}");
    let (success, said) = alone.reload("[framework]\nbucket-time-ms = 20\n[confine]\nseccomp = false\n");
    assert!(!success && said.contains("confine cannot change"), "{said}");
    assert!(alone.show("routes 192.0.2.1").contains("10.0.2.50"));
    // And back to nothing.
    let (success, said) = alone.reload("");
    assert!(success, "{said}");
    assert!(!alone.show("neighbors").contains("10.0.2.50") && !alone.show("routes").contains("192.0.2.0/24"));
    let sent = sender.end();
    let arrived = Receiver::end_with(sent, vec![receiver]).concat();
    assert!(sent > 100 && lost(sent, &arrived).is_empty(), "{sent} sent, lost {:?}", lost(sent, &arrived));
    assert!(twice(&arrived).is_empty());
    alone.end();
}

#[test]
fn what_happens_to_packets_is_told_as_with_a_kernel() {
    if !may() {
        return;
    }
    let alone = Alone::start(ROUTES);
    alone.right.ip("addr add 8.8.8.8/32 dev lo");
    alone.answers("8.8.8.8");
    let traced = std::thread::scope(|scope| {
        let trace = scope.spawn(|| alone.ask("trace --interface left --match dst+8.8.8.8 --count 2"));
        let until = || {
            alone.ping("-c 1 -W 1 8.8.8.8");
            alone.ping("-c 1 -W 1 203.0.113.1");
            trace.is_finished()
        };
        assert!(eventually(until));
        trace.join().unwrap()
    });
    assert!(traced.0 && traced.1.contains("table 254: 0.0.0.0/0 via next hop"), "{}", traced.1);
    assert!(!traced.1.contains("BUT THE ROUTER DID OTHERWISE"), "{}", traced.1);
    let file = alone.folder.path().join("drops.pcapng");
    let captured = std::thread::scope(|scope| {
        let capture =
            scope.spawn(|| alone.ask(&format!("capture-drops --write {} --count 1", file.display())));
        let until = || {
            alone.ping("-c 1 -W 1 203.0.113.1");
            capture.is_finished()
        };
        assert!(eventually(until));
        capture.join().unwrap()
    });
    assert!(captured.0 && captured.1.contains("1 dropped packets"), "{}", captured.1);
    alone.end();
}

#[test]
fn two_workers_share_the_flows_and_one_host() {
    let ours = rustix::thread::sched_getaffinity(None).unwrap();
    if !(may() && has(ours.count() >= 2, "second core")) {
        return;
    }
    let cores: Vec<usize> = (0..1024).filter(|core| ours.is_set(*core)).take(2).collect();
    let alone = Alone::with(&format!("workers = 2\ncores = {cores:?}"), "");
    let right = alone.right.udp("10.0.2.2:9");
    assert!(reaches(&alone.left.udp("10.0.1.2:0"), &right, "10.0.2.2:9"));
    for port in 20_000..20_064 {
        alone.left.udp(&format!("10.0.1.2:{port}")).send_to(b"a flow", "10.0.2.2:9").unwrap();
    }
    // Whatever else a core has to do.
    right.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut heard = BTreeMap::new();
    assert!(eventually(|| {
        hear(&right, &mut heard);
        heard.len() == 64
    }));
    for to in ["10.0.1.1", "10.0.3.2", "2001:db8:3::2"] {
        alone.answers(to);
    }
    let counters = alone.show("counters");
    assert!(counters.contains("worker 0:") && counters.contains("worker 1:"), "{counters}");
    let pid = alone.router.id();
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
    alone.end();
}

#[test]
fn an_interface_that_goes_leaves_the_others_at_work() {
    if !may() {
        return;
    }
    let mut alone = Alone::start("");
    alone.answers("10.0.3.2");
    alone.third.ip("link del eth0");
    alone.router.wait_for("interface third was removed; it is used again after a restart");
    alone.await_state("third", "down");
    alone.answers("10.0.2.2");
    alone.answers("10.0.3.1");
    alone.left.ip("link set eth0 down");
    alone.left.ip("link set eth0 up");
    alone.left.ip("route add default via 10.0.1.1");
    alone.answers("10.0.2.2");
    assert!(alone.router.is_running());
    alone.left.ip("link del eth0");
    alone.right.ip("link del eth0");
    alone.home.ip("link del fourth");
    alone.router.wait_for("all interfaces are gone");
    assert!(eventually(|| !alone.router.is_running()));
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
fn routes_by_a_link_that_is_down_give_way_to_others() {
    if !may() {
        return;
    }
    let known_as = |mac: &str| FALLBACKS.replace("MAC", mac);
    let (first, other) = (known_as("02:00:00:00:00:99") + TAGGED, known_as("02:00:00:00:00:98"));
    let mut alone = Alone::start(&first);
    for host in [&alone.right, &alone.third] {
        // On loopback, of all the network.
        host.ip("addr add 192.0.2.1/24 dev lo");
        host.ip("addr add 198.51.100.7/32 dev lo");
    }
    alone.right.ip("link set eth0 address 02:00:00:00:00:99");
    let leads_by = |alone: &Alone, to: &str, dev: &str| {
        let led = eventually(|| alone.show(&format!("routes {to}")).contains(&format!("dev {dev}")));
        assert!(led, "{}", alone.show(&format!("routes {to}")));
    };
    for _ in 0..2 {
        leads_by(&alone, "203.0.113.1 --table 100", "right.9");
        alone.right.ip("link set eth0 down");
        alone.await_state("right", "down");
        alone.await_state("right.9", "down");
        assert!(alone.show("routes 203.0.113.1 --table 100").contains("no route"));
        // The less specific one, and the way that is left; even of a station that is known for good.
        leads_by(&alone, "198.51.100.7", "third");
        assert!(alone.show("routes 10.0.2.2").contains("no route"));
        assert!(!alone.show("neighbors").contains("10.0.2.2"), "{}", alone.show("neighbors"));
        let path = alone.show("routes 192.0.2.7");
        assert!(path.contains("via 10.0.3.2") && !path.contains("via 10.0.2.2"), "{path}");
        (1..=20).for_each(|host| alone.answers(&format!("192.0.2.{host}")));
        // The router is itself on all its links.
        alone.answers("10.0.2.1");
        let (success, said) = alone.reload(&other);
        assert!(success, "{said}");
        leads_by(&alone, "198.51.100.7", "third");
        assert!(!alone.show("interfaces").contains("10.0.9.1"), "{}", alone.show("interfaces"));
        let (success, said) = alone.reload(&first);
        assert!(success, "{said}");
        alone.right.ip("link set eth0 up");
        alone.right.ip("route add default via 10.0.2.1");
        alone.await_state("right", "up");
        leads_by(&alone, "198.51.100.7", "right");
        alone.answers("198.51.100.7");
        let path = alone.show("routes 192.0.2.7");
        assert!(path.contains("via 10.0.3.2") && path.contains("via 10.0.2.2"), "{path}");
    }
    assert!(alone.router.is_running());
    let events = alone.show("events");
    assert!(events.contains("right is down") && events.contains("right is up"), "{events}");
    alone.end();
}

/// What examples/static.toml and docs/reference/standalone.md show.
#[test]
fn the_example_works() {
    if !may() {
        return;
    }
    let text = include_str!("../../examples/static.toml");
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("static.toml"), folder.path().join("control.sock"));
    // Names in /run are for one router of the machine.
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

#[test]
fn routes_of_a_file_are_dealt_to_gateways() {
    if !may() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("view.txt");
    std::fs::write(&file, "192.0.2.0/24 1\n198.51.100.0/24 2\n203.0.113.0/24 3\n2001:db8:ff::/48 1\n")
        .unwrap();
    let feed = format!(
        "[feed]\nfile = \"{}\"\ngateways = [\"10.0.2.2\", \"10.0.3.2\", \"2001:db8:3::2\"]\n",
        file.display()
    );
    let alone = Alone::start(&feed);
    for (to, gateway) in [
        ("192.0.2.1", "10.0.2.2"),
        ("198.51.100.1", "10.0.3.2"),
        ("203.0.113.1", "10.0.2.2"),
        ("2001:db8:ff::1", "2001:db8:3::2"),
    ] {
        let path = alone.show(&format!("routes {to}"));
        assert!(path.contains(&format!("via {gateway}")), "{path}");
    }
    alone.right.ip("addr add 203.0.113.1/32 dev lo");
    alone.answers("203.0.113.1");
    alone.end();
}

/// Cards of the system: their frames are ours alone.
#[test]
#[cfg(feature = "bpf")]
fn by_xdp_a_router_has_cards_of_which_the_kernel_hears_nothing() {
    if !may_run(&["ip", "ping", "setpriv", "ethtool"]) {
        return;
    }
    let (left, right, home) = (Node::new(), Node::new(), Node::new());
    for (host, name, side) in [(&left, "left", 1), (&right, "right", 2)] {
        cable((host, "eth0"), (&home, name));
        host.command("ethtool -K eth0 tx off txvlan off");
        home.command(&format!("ethtool -K {name} rxvlan off"));
        home.sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1");
        host.ip(&format!("addr add 10.0.{side}.2/24 dev eth0"));
        host.ip(&format!("addr add 2001:db8:{side}::2/64 dev eth0 nodad"));
        host.ip(&format!("route add default via 10.0.{side}.1"));
        host.ip(&format!("-6 route add default via 2001:db8:{side}::1"));
    }
    // The kernel would answer for this one, and forward, if it heard.
    home.ip("addr add 10.0.1.1/24 dev left");
    home.sysctl("net.ipv4.conf.all.forwarding", "1");
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
    let before = received();
    for to in ["10.0.1.1", "10.0.2.2", "2001:db8:2::2", "2001:db8:1::1"] {
        left.command(&format!("ping -n -c 2 -i 0.05 -W 60 {to}"));
    }
    let ping = left.try_command("ping -n -c 1 -W 60 -t 1 10.0.2.2");
    assert!(String::from_utf8_lossy(&ping.stdout).contains("From 10.0.1.1 icmp_seq=1 Time to live exceeded"));
    let socket = folder.path().join("control.sock");
    right.ip("link set eth0 down");
    await_state(&socket, "right", "down");
    // Until the FIB has followed, packets are dropped for the interface's sake, without an answer.
    let is_told = || {
        let ping = left.try_command("ping -n -c 1 -W 1 10.0.2.2");
        String::from_utf8_lossy(&ping.stdout).contains("From 10.0.1.1 icmp_seq=1 Destination Net Unreachable")
    };
    assert!(eventually(is_told), "{}", router.output());
    right.ip("link set eth0 up");
    right.ip("route add default via 10.0.2.1");
    await_state(&socket, "right", "up");
    left.command("ping -n -c 2 -i 0.05 -W 60 10.0.2.2");
    assert_eq!(received(), before, "IPv4 packets that the kernel received");
    // To another namespace and back: the router has nothing to send by any more, and knows it.
    home.ip(&format!("link set right netns {}", right.id()));
    router.wait_for("interface right was removed; it is used again after a restart");
    right.ip(&format!("link set right netns {}", home.id()));
    home.ip("link set right up");
    assert!(eventually(is_told), "{}", router.output());
    assert!(router.is_running(), "{}", router.output());
    await_state(&socket, "right", "down");
    let (code, said) = router.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    // And afterwards it does as before.
    left.command("ping -n -c 2 -i 0.05 -W 60 10.0.1.1");
}
