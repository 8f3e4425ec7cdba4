//! IPFIX: a collector behind the router reads what the router sends to it. The decoder is written from RFC 7011, not from the
//! encoder: it knows the lengths of records from the templates alone.

use std::collections::BTreeMap;
use std::net::UdpSocket;

use fullview_testnet::eventually;

use crate::export::{Exporting, Protocol, may_export};

const IPFIX: Protocol = ("IPFIX", "ipfix", 4739);

/// Numbers of information elements.
const OCTETS: u16 = 1;
const PROTOCOL: u16 = 4;
const SOURCE_PORT: u16 = 7;
const DESTINATION_PORT: u16 = 11;
const INGRESS: u16 = 10;
const SOURCE: u16 = 8;
const DESTINATION: u16 = 12;
const EGRESS: u16 = 14;
const STATUS: u16 = 89;
const TTL: u16 = 192;
const NOT_SENT: u16 = 167;
const SELECTOR: u16 = 302;
const ALGORITHM: u16 = 304;
const PROBABILITY: u16 = 311;
const SECTION: u16 = 315;
const OBSERVED: u16 = 318;
const SELECTED: u16 = 319;

/// The elements of a template, with their lengths.
type Template = Vec<(u16, u16)>;
/// The values of a record, by element.
type Record = BTreeMap<u16, Vec<u8>>;

/// Bytes of a message, read from the front.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, len: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn half(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes(2).try_into().unwrap())
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    fn value(&mut self, len: u16) -> Vec<u8> {
        let len = match len {
            u16::MAX => usize::from(self.bytes(1)[0]),
            len => usize::from(len),
        };
        assert!(len < 255, "a long value of variable length");
        self.bytes(len).to_vec()
    }
}

/// Everything that came in at a collector.
#[derive(Default)]
struct Collected {
    templates: BTreeMap<u16, Template>,
    records: Vec<Record>,
}

impl Collected {
    fn read(&mut self, collector: &UdpSocket) {
        let mut buffer = [0; 2048];
        while let Ok(len) = collector.recv(&mut buffer) {
            assert!(len <= 1472, "{len}");
            self.message(&buffer[..len]);
        }
    }

    fn message(&mut self, bytes: &[u8]) {
        let mut message = Reader(bytes);
        assert_eq!((message.half(), usize::from(message.half())), (10, bytes.len()));
        assert!(message.word() > 1_700_000_000, "seconds since 1970");
        assert_eq!(message.word() as usize, self.records.len(), "data records before this message");
        assert_eq!(message.word(), 1, "observation domain");
        while !message.0.is_empty() {
            let (set, len) = (message.half(), usize::from(message.half()));
            let mut body = Reader(message.bytes(len - 4));
            while !body.0.is_empty() {
                self.record(set, &mut body);
            }
        }
    }

    fn record(&mut self, set: u16, body: &mut Reader<'_>) {
        match set {
            2 | 3 => {
                let (id, count) = (body.half(), body.half());
                assert!(id >= 256 && (set == 2 || body.half() == 1), "one scope");
                let elements = (0..count).map(|_| (body.half(), body.half())).collect();
                let before = self.templates.insert(id, elements);
                assert!(before.is_none_or(|before| before == self.templates[&id]));
            }
            id => {
                let template = self.templates.get(&id).expect("the template comes before the data");
                let values = template.iter().map(|(element, len)| (*element, body.value(*len)));
                self.records.push(values.collect());
            }
        }
    }

    /// The records of packets to this port.
    fn to_port(&self, port: u16) -> Vec<&Record> {
        let is_to = |record: &&Record| number(record, DESTINATION_PORT) == Some(port.into());
        self.records.iter().filter(is_to).collect()
    }
}

fn number(record: &Record, element: u16) -> Option<u64> {
    let bytes = record.get(&element)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn records_say_what_became_of_packets(engine: &str) {
    if !may_export() {
        return;
    }
    let exporting = Exporting::start(engine, IPFIX);
    let (eth1, eth2) = (exporting.index("eth1").into(), exporting.index("eth2").into());
    exporting.lab.router.ip("route add blackhole 10.8.0.0/16");
    let left = exporting.lab.left.udp("10.0.1.2:0");
    let mut collected = Collected::default();
    for (to, port, egress, status) in [("10.0.2.2:7001", 7001, eth2, 64), ("10.8.0.1:7003", 7003, 0, 128)] {
        let arrived = eventually(|| {
            left.send_to(&[7; 200], to).unwrap();
            collected.read(&exporting.collector);
            let fates = collected.to_port(port).into_iter();
            let mut fates = fates.map(|record| (number(record, EGRESS), number(record, STATUS)));
            fates.any(|fate| fate == (Some(egress), Some(status)))
        });
        assert!(arrived, "{to}: {:?} {}", collected.to_port(port), exporting.router.output());
        for record in collected.to_port(port) {
            let numbers = [INGRESS, PROTOCOL, TTL, OCTETS].map(|element| number(record, element));
            assert_eq!(numbers, [Some(eth1), Some(17), Some(64), Some(228)]);
            let from = u64::from(left.local_addr().unwrap().port());
            assert_eq!((number(record, SOURCE_PORT), &record[&SOURCE][..]), (Some(from), &[10, 0, 1, 2][..]));
            assert!([[10, 0, 2, 2], [10, 8, 0, 1]].contains(&record[&DESTINATION][..].try_into().unwrap()));
            assert_eq!(number(record, SELECTOR), Some(1));
        }
    }
    let adds_up = || {
        collected.read(&exporting.collector);
        let of_eth1 = |record: &&Record| number(record, INGRESS) == Some(eth1);
        let packets = |record: &&Record| of_eth1(record) && record.contains_key(&STATUS);
        let totals = |record: &&Record| of_eth1(record) && record.contains_key(&OBSERVED);
        let last = collected.records.iter().rfind(totals);
        let [observed, selected, lost] =
            [OBSERVED, SELECTED, NOT_SENT].map(|element| last.and_then(|last| number(last, element)));
        let sent = collected.records.iter().filter(packets).count() as u64;
        observed == Some(sent) && selected == observed && lost == Some(0)
    };
    assert!(eventually(adds_up));
    let selector = collected.records.iter().find(|record| record.contains_key(&ALGORITHM)).unwrap();
    assert_eq!((number(selector, ALGORITHM), number(selector, SELECTOR)), (Some(4), Some(1)));
    assert_eq!(selector[&PROBABILITY], 1f64.to_be_bytes());
    let arp = |record: &&Record| record.get(&SECTION).is_some_and(|section| section[12..14] == [8, 6]);
    exporting.lab.left.ip("neigh flush dev eth0");
    let has_arp = || {
        left.send_to(&[7; 200], "10.0.2.2:7001").unwrap();
        collected.read(&exporting.collector);
        collected.records.iter().any(|record| arp(&record))
    };
    assert!(engine == "threads" || eventually(has_arp), "frames that are not IP");
}

#[test]
fn records_of_threads_say_what_became_of_packets() {
    records_say_what_became_of_packets("threads");
}

#[cfg(feature = "bpf")]
#[test]
fn records_of_the_program_say_what_became_of_packets() {
    records_say_what_became_of_packets("tc");
}
