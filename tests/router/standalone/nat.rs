//! A router without a kernel that translates addresses, beside Linux with the same rules.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use fullview_testnet::eventually;

use super::filter::{filtered, filtered_with};
use super::*;
use crate::datagrams::socket;
use crate::lab::Lab;

/// The left network appears as the router's own address on the right.
const PF: &str = "nat on right inet from 10.0.1.0/24 to any -> (right)\npass all\n";

const IPFW: &str = "nat 1 config if right
add nat 1 ip from any to any via right
add allow ip from any to any
";

/// The sender and the text of the next datagram, if one comes in time.
fn receive(socket: &UdpSocket) -> Option<(SocketAddr, Vec<u8>)> {
    let mut room = [0; 2000];
    let (len, from) = socket.recv_from(&mut room).ok()?;
    Some((from, room[..len].to_vec()))
}

/// Sends until something arrives: the first packets may be lost while hosts resolve each other.
fn eventually_received(sender: &UdpSocket, to: &str, receiver: &UdpSocket) -> Option<SocketAddr> {
    let mut from = None;
    eventually(|| {
        let _ = sender.send_to(b"question", to);
        from = receive(receiver).map(|(from, _)| from);
        from.is_some()
    });
    from
}

/// What hosts on both sides of a router see.
struct Hosts<'a> {
    left: &'a Node,
    right: &'a Node,
}

impl Hosts<'_> {
    /// What a client sees that connects, and the addresses that the server sees: the peer's and its own.
    fn tcp(&self, from: &str, to: &str, client: &Node, server: &Node, listen: &str) -> String {
        let (listen, from, to) = (listen.to_owned(), from.to_owned(), to.parse::<SocketAddr>().unwrap());
        let listener = server.run(move || TcpListener::bind(listen).unwrap());
        let serving = thread::spawn(move || echo_once(&listener));
        let got = client.run(move || connect(&from, to));
        let seen = serving.join().unwrap();
        format!("client {got}, server {seen}")
    }

    /// The sender that a server sees, and that of its answer at the client.
    fn udp(&self, client: (&Node, &str), to: &str, server: (&Node, &str)) -> String {
        let (client, server) = (socket(client.0, client.1), socket(server.0, server.1));
        let from = eventually_received(&client, to, &server);
        let Some(from) = from else { return "nothing".to_owned() };
        server.send_to(b"answer", from).unwrap();
        let answered = receive(&client).map(|(sender, _)| sender);
        format!("server {from}, client {answered:?}")
    }

    /// What a host hears. The host of our router may send no error about the first packets to a neighbour: they are
    /// translated by then.
    fn ping(&self, host: &Node, arguments: &str) -> String {
        let mut heard = String::new();
        eventually(|| {
            let output = host.try_command(&format!("ping -n -c 1 -W 2 {arguments}"));
            let output = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines = output.lines().filter(|line| line.contains("icmp_seq"));
            // Times differ.
            let lines = lines.map(|line| line.split(" time=").next().unwrap_or_default());
            heard = lines.collect::<Vec<_>>().join("; ");
            !heard.is_empty()
        });
        heard
    }

    /// Everything that translation changes, as both sides see it.
    fn observe(&self) -> Vec<(&'static str, String)> {
        let (left, right) = (self.left, self.right);
        vec![
            ("ping", self.ping(left, "10.0.2.2")),
            ("long ping, in fragments", self.ping(left, "-s 3001 10.0.2.2")),
            ("longer than the link takes", self.ping(left, "-M do -s 1400 10.0.2.2")),
            ("in fragments by the router", self.ping(left, "-M dont -s 1401 10.0.2.2")),
            ("udp", self.udp((left, "10.0.1.2:5000"), "10.0.2.2:4000", (right, "10.0.2.2:4000"))),
            ("tcp", self.tcp("10.0.1.2:5001", "10.0.2.2:4000", left, right, "10.0.2.2:4000")),
            ("a closed port", refused(left, "10.0.1.2:5002", "10.0.2.2:4999")),
            ("beyond the right host", self.ping(left, "-t 2 10.0.9.9")),
            ("the router's own error", self.ping(left, "-t 1 10.0.2.2")),
            ("a redirected service", self.tcp("10.0.2.2:5003", "10.0.2.1:8080", right, left, "10.0.1.2:80")),
            ("by UDP", self.udp((right, "10.0.2.2:5004"), "10.0.2.1:8080", (left, "10.0.1.2:80"))),
            ("a closed redirected port", refused(right, "10.0.2.2:5005", "10.0.2.1:8081")),
            ("both ways, out", self.tcp("10.0.1.7:5006", "10.0.2.2:4001", left, right, "10.0.2.2:4001")),
            ("both ways, in", self.tcp("10.0.2.2:5007", "10.0.2.7:81", right, left, "10.0.1.7:81")),
            ("both ways, ping", self.ping(right, "10.0.2.7")),
            ("the router itself", self.ping(right, "10.0.2.1")),
            ("a port without a flow", refused(right, "10.0.2.2:5008", "10.0.2.1:5999")),
            ("ping of IPv6", self.ping(left, "2001:db8:2::2")),
            ("long ping of IPv6, in fragments", self.ping(left, "-s 3001 2001:db8:2::2")),
            ("ping of IPv6 beyond the right host", self.ping(left, "-t 2 2001:db8:9::9")),
            (
                "udp over IPv6",
                self.udp(
                    (left, "[2001:db8:1::2]:5000"),
                    "[2001:db8:2::2]:4000",
                    (right, "[2001:db8:2::2]:4000"),
                ),
            ),
            ("a closed port over IPv6", refused(left, "[2001:db8:1::2]:5001", "[2001:db8:2::2]:4999")),
        ]
    }

    /// The addresses and routes that the observations need.
    fn prepare(&self) {
        self.left.ip("addr add 10.0.1.7/24 dev eth0");
        self.right.ip("route add 10.0.2.7/32 via 10.0.2.1");
        self.right.sysctl("ipv4/conf/all/forwarding", "1");
        self.right.sysctl("ipv6/conf/all/forwarding", "1");
        self.right.sysctl("ipv4/conf/all/send_redirects", "0");
        self.right.sysctl("ipv4/conf/eth0/send_redirects", "0");
        for host in [self.left, self.right] {
            host.sysctl("ipv4/icmp_ratelimit", "0");
            host.sysctl("ipv6/icmp/ratelimit", "0");
        }
    }
}

/// Sends back what the first client sends, and returns its address and the one that it connected to.
fn echo_once(listener: &TcpListener) -> String {
    let (mut stream, peer) = listener.accept().unwrap();
    let mut bytes = vec![0; LONG];
    stream.read_exact(&mut bytes).unwrap();
    stream.write_all(&bytes).unwrap();
    format!("{peer} at {}", stream.local_addr().unwrap())
}

/// Bytes that a connection carries each way: many segments.
const LONG: usize = 300_000;

fn connect(from: &str, to: SocketAddr) -> String {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &from.parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let sent: Vec<u8> = (0..LONG).map(|at| (at % 251) as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = thread::spawn(move || writer.write_all(&copy).unwrap());
    let mut back = vec![0; LONG];
    stream.read_exact(&mut back).unwrap();
    writing.join().unwrap();
    format!("{} to {}, intact: {}", stream.local_addr().unwrap(), stream.peer_addr().unwrap(), back == sent)
}

/// The error that a UDP socket gets for a port at which no process listens.
fn refused(host: &Node, from: &str, to: &str) -> String {
    let socket = socket(host, from);
    socket.connect(to).unwrap();
    let mut error = None;
    eventually(|| {
        let _ = socket.send(b"question");
        error = socket
            .recv(&mut [0; 9])
            .err()
            .filter(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        error.is_some()
    });
    format!("{:?}", error.map(|error| error.kind()))
}

const ALL_PF: &str = "binat on right inet from 10.0.1.7 to any -> 10.0.2.7
nat on right inet from 10.0.1.2 to any -> (right) static-port
nat on right inet6 from 2001:db8:1::/64 to any -> 2001:db8:2::1 static-port
rdr on right inet proto { tcp, udp } from any to (right) port 8080 -> 10.0.1.2 port 80
rdr on right inet proto udp from any to (right) port 8081 -> 10.0.1.2 port 79
pass all
";

const ALL_NFT: &str = "table ip own {
    chain pre {
        type nat hook prerouting priority -100;
        iifname eth2 ip daddr 10.0.2.1 tcp dport 8080 dnat to 10.0.1.2:80
        iifname eth2 ip daddr 10.0.2.1 udp dport 8080 dnat to 10.0.1.2:80
        iifname eth2 ip daddr 10.0.2.1 udp dport 8081 dnat to 10.0.1.2:79
        iifname eth2 ip daddr 10.0.2.7 dnat to 10.0.1.7
    }
    chain post {
        type nat hook postrouting priority 100;
        oifname eth2 ip saddr 10.0.1.7 snat to 10.0.2.7
        oifname eth2 ip saddr 10.0.1.2 snat to 10.0.2.1
    }
}
table ip6 own6 {
    chain post {
        type nat hook postrouting priority 100;
        oifname eth2 ip6 saddr 2001:db8:1::/64 snat to 2001:db8:2::1
    }
}
";

/// A Linux router with the rules of a file for nft; `None` if this machine has no such rules.
pub fn linux(rules: &str) -> Option<Lab> {
    let lab = Lab::new();
    for of in ["all", "default", "eth1", "eth2"] {
        lab.router.sysctl(&format!("ipv4/conf/{of}/forwarding"), "1");
        lab.router.sysctl(&format!("ipv4/conf/{of}/send_redirects"), "0");
        lab.router.sysctl(&format!("ipv6/conf/{of}/forwarding"), "1");
    }
    lab.router.sysctl("ipv4/icmp_ratelimit", "0");
    lab.router.sysctl("ipv6/icmp/ratelimit", "0");
    lab.router.ip("route add default via 10.0.2.2");
    lab.router.ip("-6 route add default via 2001:db8:2::2");
    lab.router.ip("link set eth2 mtu 1400");
    lab.right.ip("link set eth0 mtu 1400");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rules).unwrap();
    let output = lab.router.try_command(&format!("nft -f {}", file.path().display()));
    let error = String::from_utf8_lossy(&output.stderr);
    has(output.status.success(), &format!("nftables with these rules ({error})")).then_some(lab)
}

#[test]
fn packets_are_translated_as_linux_does_it() {
    if !may_run_standalone() || !may_run(&["nft"]) {
        return;
    }
    let Some(kernel) = linux(ALL_NFT) else { return };
    let expected = Hosts { left: &kernel.left, right: &kernel.right };
    expected.prepare();
    let expected = expected.observe();
    let of = |name: &str| &expected.iter().find(|(of, _)| *of == name).unwrap().1;
    assert!(of("tcp").contains("server 10.0.2.1:5001 at 10.0.2.2:4000"), "{expected:?}");
    assert!(
        of("beyond the right host").contains("From 10.0.2.2 icmp_seq=1 Time to live exceeded"),
        "{expected:?}"
    );
    let lab = filtered_with("pf", ALL_PF, ROUTES);
    let hosts = Hosts { left: &lab.left, right: &lab.right };
    hosts.prepare();
    for (found, expected) in hosts.observe().into_iter().zip(expected) {
        assert_eq!(found, expected, "{}", lab.show("counters"));
    }
    lab.end();
}

#[test]
fn udp_appears_with_the_routers_address_and_its_answers_come_back() {
    if !may_run_standalone() {
        return;
    }
    for (language, rules) in [("pf", PF), ("ipfw", IPFW)] {
        let lab = filtered(language, rules);
        let (left, right) = (socket(&lab.left, "10.0.1.2:5000"), socket(&lab.right, "10.0.2.2:4000"));
        let from = eventually_received(&left, "10.0.2.2:4000", &right);
        let from = from.unwrap_or_else(|| panic!("{language}: {}", lab.show("counters")));
        assert_eq!(from.ip().to_string(), "10.0.2.1", "{language}");
        for size in [0, 1, 8, 9, 1000, 1371] {
            let payload = vec![0x5a; size];
            right.send_to(&payload, from).unwrap();
            let answer = (SocketAddr::from(([10, 0, 2, 2], 4000)), payload.clone());
            assert_eq!(receive(&left), Some(answer), "{language}: {}", lab.show("counters"));
            left.send_to(&payload, "10.0.2.2:4000").unwrap();
            assert_eq!(receive(&right), Some((from, payload)), "{language}: {}", lab.show("counters"));
        }
        lab.end();
    }
}

#[test]
fn a_trace_says_what_the_filter_made_of_a_packet() {
    if !may_run_standalone() {
        return;
    }
    let lab = filtered("pf", "nat on right inet from any to any -> (right) static-port\npass all\n");
    let (left, right) = (socket(&lab.left, "10.0.1.2:5000"), socket(&lab.right, "10.0.2.2:4000"));
    let from = eventually_received(&left, "10.0.2.2:4000", &right).unwrap();
    // The first packets take the way through the host, which resolves the neighbour.
    let traced = |arguments: &str, sender: &UdpSocket, to: &str| {
        let mut text = String::new();
        eventually(|| {
            text = trace_one(&lab, arguments, || _ = sender.send_to(b"question", to));
            !text.contains("punt: glean")
        });
        text
    };
    let there = traced("--interface left --match dst+10.0.2.2", &left, "10.0.2.2:4000");
    let back = traced("--interface right --match dst+10.0.2.1", &right, &from.to_string());
    for (text, ends) in [
        (there, "it left from 10.0.2.1:5000 to 10.0.2.2:4000"),
        (back, "it left from 10.0.2.2:4000 to 10.0.1.2:5000"),
    ] {
        assert!(text.contains("the filter, which translated the packet") && text.contains(ends), "{text}");
        assert!(!text.contains("BUT THE ROUTER DID OTHERWISE"), "{text}");
    }
    lab.end();
}

/// Traces one packet, while packets are sent.
fn trace_one(lab: &Standalone, arguments: &str, send: impl Fn()) -> String {
    thread::scope(|scope| {
        let trace = scope.spawn(|| lab.ask(&format!("trace {arguments} --count 1")));
        assert!(eventually(|| {
            send();
            trace.is_finished()
        }));
        trace.join().unwrap().1
    })
}
