//! Flow export: a collector behind the router reads what the router sends to it. The decoder is written from the
//! specification of sFlow version 5, not from the encoder.

use std::net::UdpSocket;
use std::time::Duration;

use fullview_testnet::{Program, eventually, may_run};
use serde_json::Value;

use crate::control::Control;
use crate::lab::{Lab, reaches};

/// Bytes of a datagram, read from the front.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, len: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    fn long(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes(8).try_into().unwrap())
    }

    fn opaque(&mut self) -> &'b [u8] {
        let len = self.word() as usize;
        let bytes = self.bytes(len);
        assert!(self.bytes(len.next_multiple_of(4) - len).iter().all(|byte| *byte == 0), "padding");
        bytes
    }
}

#[derive(Debug)]
struct Flow {
    sequence: u32,
    interface: u32,
    pool: u32,
    drops: u32,
    output: (u32, u32),
    frame_len: u32,
    header: Vec<u8>,
}

#[derive(Debug)]
struct InterfaceCounts {
    interface: u32,
    /// Bit 0: set up; bit 1: with a carrier.
    status: u32,
    received: (u64, u32),
    sent: (u64, u32),
    /// Of received packets, and of those to be sent.
    discards: [u32; 2],
}

/// Everything that came in at a collector.
#[derive(Debug, Default)]
struct Collected {
    datagrams: u32,
    flows: Vec<Flow>,
    counters: Vec<InterfaceCounts>,
}

impl Collected {
    /// Reads the datagrams that have come in. The agent is the router's address towards the collector.
    fn read(&mut self, collector: &UdpSocket) {
        let mut buffer = [0; 2048];
        while let Ok(len) = collector.recv(&mut buffer) {
            let mut datagram = Reader(&buffer[..len]);
            assert!(len <= 1472, "{len}");
            assert_eq!([datagram.word(), datagram.word(), datagram.word()], [5, 1, 0x0a00_0201]);
            assert_eq!(datagram.word(), 0, "sub-agent");
            self.datagrams += 1;
            assert_eq!(datagram.word(), self.datagrams, "sequence of datagrams");
            let (_uptime, samples) = (datagram.word(), datagram.word());
            (0..samples).for_each(|_| self.sample(&mut datagram));
            assert!(datagram.0.is_empty());
        }
    }

    fn sample(&mut self, datagram: &mut Reader<'_>) {
        let format = datagram.word();
        let mut body = Reader(datagram.opaque());
        match format {
            3 => self.flows.push(flow(&mut body)),
            4 => self.counters.push(counts(&mut body)),
            other => panic!("a sample of format {other}"),
        }
        assert!(body.0.is_empty());
    }

    /// The sampled frames of UDP datagrams to this port.
    fn to_port(&self, port: u16) -> Vec<&Flow> {
        let is_to = |flow: &&Flow| {
            let header = &flow.header;
            let is_udp = header.len() > 38 && header[12..14] == [8, 0] && header[23] == 17;
            is_udp && header[36..38] == port.to_be_bytes()
        };
        self.flows.iter().filter(is_to).collect()
    }
}

fn flow(body: &mut Reader<'_>) -> Flow {
    let (sequence, source_type, interface) = (body.word(), body.word(), body.word());
    let (rate, pool, drops) = (body.word(), body.word(), body.word());
    let (input, output) = ((body.word(), body.word()), (body.word(), body.word()));
    assert_eq!((source_type, rate, input), (0, 1, (0, interface)));
    assert_eq!([body.word(), body.word()], [1, 1], "one record, a raw packet header");
    let mut record = Reader(body.opaque());
    assert_eq!(record.word(), 1, "Ethernet");
    let (frame_len, stripped, header) = (record.word(), record.word(), record.opaque().to_vec());
    assert!(stripped == 4 && record.0.is_empty());
    assert_eq!(header.len() as u32, (frame_len - 4).min(128));
    Flow { sequence, interface, pool, drops, output, frame_len, header }
}

fn counts(body: &mut Reader<'_>) -> InterfaceCounts {
    let (_sequence, source_type, interface) = (body.word(), body.word(), body.word());
    assert_eq!([source_type, body.word(), body.word()], [0, 1, 1], "one record, generic counters");
    let mut record = Reader(body.opaque());
    assert_eq!((record.word(), record.word(), record.long()), (interface, 6, 0));
    assert_eq!(record.word(), 0, "direction unknown");
    let status = record.word();
    let received = (record.long(), record.word());
    let input_discards = discards(&mut record);
    let sent = (record.long(), record.word());
    let output_discards = discards(&mut record);
    assert_eq!(record.0.len(), 0);
    InterfaceCounts { interface, status, received, sent, discards: [input_discards, output_discards] }
}

/// The discards among five counters, of which the others are not known.
fn discards(record: &mut Reader<'_>) -> u32 {
    assert_eq!(record.bytes(2 * 4), [0xff; 8]);
    let discards = record.word();
    assert_eq!(record.bytes(2 * 4), [0xff; 8]);
    discards
}

/// What a router sends: its name in the log, its key, and the collector's port.
pub type Protocol = (&'static str, &'static str, u16);

const SFLOW: Protocol = ("sFlow", "sflow", 6343);

/// A router that samples every packet, and its collector on the right.
pub struct Exporting {
    pub lab: Lab,
    control: Control,
    pub router: Program,
    pub collector: UdpSocket,
    _folder: tempfile::TempDir,
}

impl Exporting {
    pub fn start(engine: &str, (name, key, port): Protocol) -> Exporting {
        let (lab, control) = (Lab::new(), Control::new());
        #[cfg(feature = "bpf")]
        if engine == "xdp" {
            crate::xdp::prepare(&lab, engine);
        }
        let address = format!("10.0.2.2:{port}");
        let collector = lab.right.udp(&address);
        collector.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("router.toml");
        let (socket, engine) = (control.options()[1], router_keys(engine));
        let text = format!(
            "[router]\ninterfaces = [\"eth1\", \"eth2\"]\n{engine}\n\
             [control]\nsocket = \"{socket}\"\n\
             [export]\n{key} = \"{address}\"\nsample = 1\ncounters-s = 1\n"
        );
        std::fs::write(&file, text).unwrap();
        let program = env!("CARGO_BIN_EXE_fullview");
        let mut router = lab.router.start(program, &["forward", "--config", file.to_str().unwrap()]);
        router.wait_for(&format!("export: {name} to {address}, one packet in 1"));
        Exporting { lab, control, router, collector, _folder: folder }
    }

    /// What the router has received and sent by an interface: packets, bytes.
    fn shown(&self, name: &str) -> [(u64, u64); 2] {
        let interfaces = self.control.ask("\"interfaces\"");
        let of_name = |interface: &&Value| interface["name"] == name;
        let interface = interfaces.as_array().unwrap().iter().find(of_name).unwrap();
        let count = |way: &str, unit: &str| interface[way][unit].as_u64().unwrap();
        ["received", "sent"].map(|way| (count(way, "packets"), count(way, "bytes")))
    }

    /// The kernel's number of an interface of the router.
    pub fn index(&self, name: &str) -> u32 {
        let line = self.lab.router.ip(&format!("-o link show dev {name}"));
        line.split(':').next().unwrap().parse().unwrap()
    }

    /// Sends packets until the collector has one to this port with this output.
    fn sends_until(&self, collected: &mut Collected, to: &str, output: (u32, u32)) {
        let left = self.lab.left.udp("10.0.1.2:0");
        let port = to.rsplit(':').next().unwrap().parse().unwrap();
        let arrived = eventually(|| {
            left.send_to(&[7; 200], to).unwrap();
            collected.read(&self.collector);
            collected.to_port(port).iter().any(|flow| flow.output == output)
        });
        assert!(arrived, "{to}: {:?} {}", collected.to_port(port), self.router.output());
    }
}

/// The word of an engine, with two workers if it has some.
fn router_keys(engine: &str) -> String {
    let workers = if engine == "threads" { "workers = 2\n" } else { "" };
    format!("engine = \"{engine}\"\n{workers}")
}

pub fn may_export() -> bool {
    may_run(&["ip", "setpriv", "ethtool"])
}

/// Makes tests of these functions, one for each engine.
macro_rules! with_each_engine {
    ($($test:ident),* $(,)?) => {
        mod by_threads {
            $(#[test] fn $test() { super::$test("threads"); })*
        }
        #[cfg(feature = "bpf")]
        mod at_tc {
            $(#[test] fn $test() { super::$test("tc"); })*
        }
        #[cfg(feature = "bpf")]
        mod at_xdp {
            $(#[test] fn $test() { super::$test("xdp"); })*
        }
    };
}

with_each_engine!(samples_say_what_became_of_packets, samples_and_counters_add_up_to_what_the_router_shows,);

fn samples_say_what_became_of_packets(engine: &str) {
    if !may_export() {
        return;
    }
    let exporting = Exporting::start(engine, SFLOW);
    // The program does not know of which kind the route is; the kernel answers.
    let prohibited = if engine == "threads" { 13 } else { 256 };
    let mut collected = Collected::default();
    exporting.lab.router.ip("route add prohibit 10.7.0.0/16");
    exporting.lab.router.ip("route add blackhole 10.8.0.0/16");
    let (eth1, eth2) = (exporting.index("eth1"), exporting.index("eth2"));
    for (to, output) in
        [("10.0.2.2:7001", (0, eth2)), ("10.7.0.1:7002", (1, prohibited)), ("10.8.0.1:7003", (1, 256))]
    {
        exporting.sends_until(&mut collected, to, output);
    }
    let discards = if engine == "threads" { 0 } else { u32::MAX };
    let is_counted = || {
        collected.read(&exporting.collector);
        let last = collected.counters.iter().rfind(|counts| counts.interface == eth1);
        last.is_some_and(|counts| counts.discards[0] > 0 && counts.discards[1] == discards)
    };
    assert!(eventually(is_counted), "{:?}", collected.counters.last());
    for port in 7001..=7003 {
        for flow in collected.to_port(port) {
            assert_eq!((flow.interface, flow.frame_len), (eth1, 14 + 20 + 8 + 200 + 4), "{flow:?}");
            // The TTL, which the router has not lowered yet, and the payload.
            assert!(flow.header[22] == 64 && flow.header[42..] == [7; 86], "{flow:?}");
        }
    }
    let (code, said) = exporting.router.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}

fn samples_and_counters_add_up_to_what_the_router_shows(engine: &str) {
    if !may_export() {
        return;
    }
    let exporting = Exporting::start(engine, SFLOW);
    let (left, right) = (exporting.lab.left.udp("10.0.1.2:0"), exporting.lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", exporting.router.output());
    let mut collected = Collected::default();
    let eth1 = exporting.index("eth1");
    // So few at a time that neither a worker's ring nor the collector's buffer overflows.
    for _ in 0..40 {
        (0..50).for_each(|_| assert!(left.send_to(b"fullview", "10.0.2.2:9").is_ok()));
        let sampled = || {
            collected.read(&exporting.collector);
            let sampled = collected.flows.iter().filter(|flow| flow.interface == eth1).count() as u64;
            sampled == exporting.shown("eth1")[0].0
        };
        assert!(eventually(sampled), "{:?}", exporting.shown("eth1"));
    }
    assert!(!collected.flows.is_empty() && collected.flows.iter().all(|flow| flow.drops == 0));
    for name in ["eth1", "eth2"] {
        let interface = exporting.index(name);
        let adds_up = || {
            let shown = exporting.shown(name);
            collected.read(&exporting.collector);
            let flows = || collected.flows.iter().filter(|flow| flow.interface == interface);
            let (sampled, last) = (flows().count() as u64, flows().next_back());
            let (pool, drops) = last.map_or((0, 0), |last| (u64::from(last.pool), u64::from(last.drops)));
            let counted = collected.counters.iter().rfind(|counts| counts.interface == interface);
            let is_counted = counted.is_some_and(|counts| {
                let InterfaceCounts { status, received, sent, .. } = counts;
                assert_eq!(*status, 3);
                let packets = [received, sent].map(|count| (u64::from(count.1), count.0));
                packets == shown
            });
            let is_sampled = pool == shown[0].0 && sampled + drops == pool;
            is_counted && is_sampled && last.is_none_or(|last| u64::from(last.sequence) == sampled)
        };
        assert!(eventually(adds_up), "{name}: {:?} {:?}", exporting.shown(name), collected.counters.last());
    }
}

#[test]
fn counters_tell_an_interface_without_a_carrier_from_one_that_is_set_down() {
    if !may_export() {
        return;
    }
    let exporting = Exporting::start("threads", SFLOW);
    let (eth1, mut collected) = (exporting.index("eth1"), Collected::default());
    let mut is_reported = |status| {
        eventually(|| {
            collected.read(&exporting.collector);
            let last = collected.counters.iter().rfind(|counts| counts.interface == eth1);
            last.is_some_and(|counts| counts.status == status)
        })
    };
    assert!(is_reported(3));
    exporting.lab.left.ip("link set eth0 down");
    assert!(is_reported(1), "no carrier");
    exporting.lab.router.ip("link set eth1 down");
    assert!(is_reported(0), "set down");
}
