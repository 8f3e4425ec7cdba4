//! What hosts do to a filter that keeps states: connections, a flood of beginnings, and the segments of a port scanner.

use std::thread;
use std::time::{Duration, Instant};

use fullview_filter::packet::Packet;
use fullview_filter::packet::protocol::tcp::{ACK, FIN, PUSH, RST, SYN, URG};
use fullview_filter::packet::protocol::{TCP, UDP};
use fullview_testnet::{ANSWER, PacketSocket};

use super::filter::{filtered, filtered_with};
use super::raw_sender::{MARKER, RawSender, inet, inet_from};
use super::*;
use crate::connections::EchoedConnection;
use crate::raw_packets::{parsed, segment, udp};

/// Ports 81 and 82 are rejected, connections to port 4000 may begin, and all other segments are dropped. Without more words, the states of
/// pf compare windows, and a segment of TCP makes one only if it begins a connection.
const PF: &str = "block all
block return in quick on left proto tcp to port 81
pass in on left proto tcp to port 4000
block return in quick on left proto udp to port 82
pass in on left proto udp to port 83
pass out on right
pass inet proto icmp
pass inet6 proto icmp6
";

const IPFW: &str = "add 10 reset tcp from any to any 81 in recv left
add 20 check-state
add 30 allow tcp from any to any 4000 setup keep-state
add 35 unreach port udp from any to any 82 in recv left
add 40 allow udp from any to any 83 keep-state
add 50 allow icmp from any to any
add 60 allow ipv6-icmp from any to any
add 70 deny ip from any to any
";

const LANGUAGES: [(&str, &str); 2] = [("pf", PF), ("ipfw", IPFW)];

#[test]
fn connections_pass_by_their_states() {
    if !may_run_standalone() {
        return;
    }
    for (language, rules) in LANGUAGES {
        let lab = filtered(language, rules);
        for address in ["10.0.2.2:4000", "[2001:db8:2::2]:4000"] {
            let mut connection = EchoedConnection::open(&lab.left, &lab.right, address);
            (0..3).for_each(|_| connection.carries());
            let states = lab.show("states --protocol tcp");
            assert!(states.contains(address) && states.contains("ESTABLISHED"), "{language}: {states}");
            connection.close();
        }
        let counters = lab.show("counters");
        assert!(!counters.contains("filter_state"), "{language}: {counters}");
        lab.end();
    }
}

/// At most one of them can lie in the window.
#[test]
fn segments_outside_the_window_of_a_connection_are_dropped() {
    if !may_run_standalone() {
        return;
    }
    let lab = filtered("pf", PF);
    let mut connection = EchoedConnection::open(&lab.left, &lab.right, "10.0.2.2:4000");
    connection.carries();
    let mut sender = RawSender::new(&lab.left);
    let mut forged = segment(connection.port(), 4000, ACK | PUSH, b"forged");
    for first_byte in [0x01, 0x81] {
        forged[4] = first_byte;
        sender.exchange(&inet(TCP, &forged));
    }
    let counters = lab.show("counters");
    assert!(counters.contains("filter_state"), "{counters}");
    connection.carries();
    lab.end();
}

/// How many connections the flood begins, none of which goes on.
const BEGINNINGS: u32 = 20_000;

/// Sends the first segment of so many connections, each from another end.
fn flood(sender: &mut RawSender) {
    for number in 0..BEGINNINGS {
        let (source, port) = (0xcb00_7100 | number & 0xff, 1024 + (number >> 8) as u16);
        // Where the queue is full, one is lost.
        let _ = sender.send(&inet_from(source, TCP, &segment(port, 4000, SYN, b"")));
        if number % 32 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn a_connection_goes_on_in_a_flood(language: &str, rules: &str) {
    let lab = filtered_with(language, rules, "states = 1000\n");
    // The host's answers would end the states of the flood.
    lab.right.ip("route add blackhole 203.0.113.0/24");
    let mut connection = EchoedConnection::open(&lab.left, &lab.right, "10.0.2.2:4000");
    connection.carries();
    let mut sender = RawSender::new(&lab.left);
    let flooding = thread::spawn(move || flood(&mut sender));
    while !flooding.is_finished() {
        connection.carries();
    }
    flooding.join().unwrap();
    let filter = lab.show("filter");
    assert!(filter.contains("states 1000 of 1000"), "{language}: {filter}");
    assert!(filter.contains("states that ended for new ones"), "{language}: {filter}");
    connection.carries();
    lab.end();
}

#[test]
fn a_connection_goes_on_while_a_flood_fills_the_table_of_states() {
    if may_run_standalone() {
        LANGUAGES.iter().for_each(|(language, rules)| a_connection_goes_on_in_a_flood(language, rules));
    }
}

/// Nmap's scans, and segments that continue or end connections that never began.
const SCANS: [(&str, u8); 8] = [
    ("SYN", SYN),
    ("FIN", FIN),
    ("NULL", 0),
    ("XMAS", FIN | PUSH | URG),
    ("Maimon", FIN | ACK),
    ("ACK", ACK),
    ("SYN and ACK", SYN | ACK),
    ("RST", RST),
];

/// A segment of a scanner, from a port that no other one has.
struct Probe {
    name: &'static str,
    flags: u8,
    from: u16,
    to: u16,
}

fn probes() -> Vec<Probe> {
    let kinds = [81, 4000, 4001].into_iter().flat_map(|to| SCANS.map(|(name, flags)| (name, flags, to)));
    kinds.zip(20_000..).map(|((name, flags, to), from)| Probe { name, flags, from, to }).collect()
}

impl Probe {
    fn packet(&self) -> Vec<u8> {
        inet(TCP, &segment(self.from, self.to, self.flags, b""))
    }

    /// Whether it reaches the host, and the flags of the answer, which is the host's or the router's.
    fn expected(&self) -> (bool, Option<u8>) {
        match (self.to, self.flags) {
            (4000, SYN) => (true, Some(SYN | ACK)),
            (81, flags) => (false, reset_for(flags)),
            _ => (false, None),
        }
    }
}

/// A reset acknowledges what acknowledges nothing itself, and nothing answers a reset (RFC 9293, section 3.10.7.1).
fn reset_for(flags: u8) -> Option<u8> {
    match flags {
        RST => None,
        _ if flags & ACK != 0 => Some(RST),
        _ => Some(RST | ACK),
    }
}

/// The flags of segments, by the scanner's port.
#[derive(Default)]
struct Segments(BTreeMap<u16, Vec<u8>>);

impl Segments {
    fn add(&mut self, frames: &[Vec<u8>], scanner: fn(&Packet) -> u16) {
        for packet in frames.iter().filter_map(|frame| parsed(frame)) {
            let flags = packet.tcp().map(|segment| segment.flags);
            self.0.entry(scanner(&packet)).or_default().extend(flags);
        }
    }

    fn of(&self, probe: &Probe) -> &[u8] {
        self.0.get(&probe.from).map_or(&[], Vec::as_slice)
    }
}

/// What reaches the host before a packet that the rules let pass. Nothing else passes with this source port.
fn arrived(sender: &mut RawSender, host: &mut PacketSocket) -> Segments {
    sender.send(&inet(UDP, &udp(MARKER, 83))).unwrap();
    let deadline = Instant::now() + ANSWER;
    let is_marker = |frame: &[u8]| {
        parsed(frame).is_some_and(|packet| (packet.source_port, packet.destination_port) == (MARKER, 83))
    };
    let frames = std::iter::from_fn(|| Some(host.receive(deadline).expect("the last packet")));
    let frames: Vec<Vec<u8>> = frames.take_while(|frame| !is_marker(frame)).collect();
    let mut arrived = Segments::default();
    arrived.add(&frames, |packet| packet.source_port);
    arrived
}

/// What comes back: so many answers, and all that the router answers itself.
fn answers(sender: &mut RawSender, number: usize) -> Segments {
    let mut answers = Segments::default();
    let mut collect = || {
        answers.add(&sender.exchange(&inet(UDP, &udp(MARKER, 83))), |packet| packet.destination_port);
        answers.0.values().filter(|flags| !flags.is_empty()).count()
    };
    eventually(|| collect() >= number);
    collect();
    answers
}

fn a_scanner_sees_what_the_rules_say(language: &str, rules: &str) {
    let lab = filtered(language, rules);
    lab.right.sysctl("ipv4/icmp_ratelimit", "0");
    let _open = EchoedConnection::open(&lab.left, &lab.right, "10.0.2.2:4000");
    let (mut sender, mut host) = (RawSender::new(&lab.left), lab.right.packet_socket("eth0"));
    let probes = probes();
    probes.iter().for_each(|probe| sender.send(&probe.packet()).unwrap());
    let answered = probes.iter().filter(|probe| probe.expected().1.is_some()).count();
    let (answers, arrived) = (answers(&mut sender, answered), arrived(&mut sender, &mut host));
    for probe in &probes {
        let (arrives, answer) = probe.expected();
        let context = format!("{language}, {} to port {}: {}", probe.name, probe.to, lab.show("counters"));
        // The scanner's host resets what answers it.
        assert_eq!(arrived.of(probe).first(), arrives.then_some(&probe.flags), "{context}");
        assert_eq!(answers.of(probe), answer.as_slice(), "{context}");
    }
    lab.end();
}

#[test]
fn a_port_scanner_sees_only_what_the_rules_let_through() {
    if may_run_standalone() {
        LANGUAGES.iter().for_each(|(language, rules)| a_scanner_sees_what_the_rules_say(language, rules));
    }
}
