//! Connection establishment, tear-down and capacity after RFC 9693, in memory and with TCP: `cargo run --release -p
//! fullview-filter --example connections [CONNECTIONS…]` prints for each language how many connections a second are set up (SYN, SYN and ACK, ACK, each
//! judged as it comes in and as it leaves) and closed (FIN and its ACK from both ends), how many states of closed
//! connections a second the sweep removes, and how many connections fit into a table of so many states.
#![allow(clippy::unwrap_used)]

use std::io;
use std::time::{Duration, Instant};

use fullview_filter::address::Address;
use fullview_filter::interfaces::Interfaces;
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::packet::protocol::TCP;
use fullview_filter::packet::protocol::tcp::{ACK, FIN, SYN};
use fullview_filter::packet::{Direction, Packet, Pass, TcpSegment, Transport};
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::HostFacts;
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::lower;
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, Verdict};

const BURST: usize = 32;
const UNDECIDED: Decision = Decision { verdict: Verdict::Pass, rule: None, by: DecidedBy::Rule };
const PF: &str = "pass all flags S/SA keep state\n";
const IPFW: &str = "add 100 check-state\nadd 200 allow tcp from any to any setup keep-state\nadd 300 deny ip from any to any\n";

/// A segment without payload. Both ends begin with the sequence number zero.
struct Segment {
    is_from_client: bool,
    flags: u8,
    seq: u32,
    ack: u32,
}

const fn segment(is_from_client: bool, flags: u8, seq: u32, ack: u32) -> Segment {
    Segment { is_from_client, flags, seq, ack }
}

const SETUP: [Segment; 3] =
    [segment(true, SYN, 0, 0), segment(false, SYN | ACK, 0, 1), segment(true, ACK, 1, 1)];
const CLOSE: [Segment; 4] = [
    segment(true, FIN | ACK, 1, 1),
    segment(false, ACK, 1, 2),
    segment(false, FIN | ACK, 1, 2),
    segment(true, ACK, 2, 2),
];

fn main() {
    let mut sizes: Vec<u32> = std::env::args().skip(1).map(|size| size.parse().unwrap()).collect();
    if sizes.is_empty() {
        sizes = vec![1000, 100_000, 1_000_000];
    }
    println!(
        "{:>8} {:>11} {:>10} {:>11} {:>10} {:>10} {:>17}",
        "language", "connections", "states", "set up / s", "closed / s", "removed/s", "fit into as many"
    );
    for connections in sizes {
        [("pf", pf()), ("ipfw", ipfw())].iter().for_each(|(name, set)| measure(name, set, connections));
    }
}

/// The only file is the rule set.
struct Rules;

impl RulesetFiles for Rules {
    fn read(&self, _path: &str) -> io::Result<String> {
        Ok(PF.to_owned())
    }
}

fn pf() -> RuleSet {
    let config = load("rules", &Rules, &HostFacts::default()).unwrap();
    RuleSet::new(lower(&config, &Interfaces(Vec::new())).unwrap().parts).unwrap()
}

fn ipfw() -> RuleSet {
    let config = IpfwConfig::load("rules", IPFW).unwrap();
    RuleSet::new(config.lower(&Interfaces(Vec::new()))).unwrap()
}

fn measure(name: &str, set: &RuleSet, connections: u32) {
    let mut table = Table::new(set, 2 * connections);
    let all: Vec<u32> = (0..connections).collect();
    let per_second = |taken: Duration| f64::from(connections) / taken.as_secs_f64();
    let set_up = table.exchange(&all, &SETUP);
    let states = table.worker.states().len();
    let closed = table.exchange(&all, &CLOSE);
    let removed = states as f64 / table.remove_all().as_secs_f64();
    println!(
        "{name:>8} {connections:>11} {states:>10} {:>11.0} {:>10.0} {removed:>10.0} {:>17}",
        per_second(set_up),
        per_second(closed),
        capacity(set, connections)
    );
}

/// How many connections are complete before the first one is refused, in a table of so many states.
fn capacity(set: &RuleSet, states: u32) -> u32 {
    let mut table = Table::new(set, states);
    let is_complete = |number: &u32| SETUP.iter().all(|segment| table.passes(*number, segment));
    (0..).take_while(is_complete).count() as u32
}

/// Rules, and what a worker remembers.
struct Table<'a> {
    set: &'a RuleSet,
    worker: FilterWorker,
    now: u64,
}

impl<'a> Table<'a> {
    fn new(set: &'a RuleSet, states: u32) -> Table<'a> {
        let limits = WorkerLimits { states, ..WorkerLimits::default() };
        Table { set, worker: FilterWorker::new(limits, set.counted_rules(), 7), now: 1000 }
    }

    /// The time for these segments of all connections, a burst of connections after the other.
    fn exchange(&mut self, connections: &[u32], segments: &[Segment]) -> Duration {
        let mut taken = Duration::ZERO;
        for numbers in connections.chunks(BURST) {
            for segment in segments {
                taken += self.burst(numbers, segment);
            }
        }
        taken
    }

    /// The time for this segment of these connections, as it comes in and as it leaves.
    fn burst(&mut self, connections: &[u32], segment: &Segment) -> Duration {
        let mut decisions = [UNDECIDED; BURST];
        let mut taken = Duration::ZERO;
        for direction in [Direction::In, Direction::Out] {
            let mut packets: Vec<Packet> =
                connections.iter().map(|number| packet(*number, segment, direction)).collect();
            let decisions = &mut decisions[..packets.len()];
            let start = Instant::now();
            self.set.check_burst(&mut self.worker, self.now, &mut packets, decisions);
            taken += start.elapsed();
            assert!(decisions.iter().all(|decision| decision.verdict == Verdict::Pass), "{decisions:?}");
        }
        taken
    }

    fn passes(&mut self, connection: u32, segment: &Segment) -> bool {
        [Direction::In, Direction::Out].iter().all(|direction| {
            let mut packet = packet(connection, segment, *direction);
            self.set.check(&mut self.worker, self.now, &mut packet).verdict == Verdict::Pass
        })
    }

    /// The time for the calls of the sweep that remove all states, after they have expired.
    fn remove_all(&mut self) -> Duration {
        let mut taken = Duration::ZERO;
        self.now += 1_000_000;
        while !self.worker.states().is_empty() {
            self.now += 10;
            let start = Instant::now();
            self.set.sweep(&mut self.worker, self.now);
            taken += start.elapsed();
        }
        taken
    }
}

/// A segment of this connection between the client at interface 1 and the server at interface 2.
fn packet(number: u32, segment: &Segment, direction: Direction) -> Packet {
    let spread = number.wrapping_mul(0x9e37_79b1);
    let client = (1, (Address::inet(0x0a00_0000 | spread >> 8), 1024 + (spread & 0xff) as u16));
    let server = (2, (Address::inet(0xc633_6401), 443));
    let (from, to) = if segment.is_from_client { (client, server) } else { (server, client) };
    let interface = if direction == Direction::In { from.0 } else { to.0 };
    let pass = Pass { direction, interface, received_on: from.0 };
    let &Segment { flags, seq, ack, .. } = segment;
    let header = TcpSegment { seq, ack, flags, window: 8192, ..TcpSegment::default() };
    Packet { protocol: TCP, transport: Transport::Tcp(header), ..Packet::udp(pass, from.1, to.1) }
}
