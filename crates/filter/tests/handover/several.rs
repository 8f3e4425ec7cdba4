//! States that several workers go on with, each with those of some flows, and states of several workers.

use fullview_filter::address::Address;
use fullview_filter::handover::{ImportSummary, StateImport, StateOwners, export};
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::state::RuleCounters;
use fullview_filter::verdict::Verdict;

use crate::{Firewall, NAMES, address};

const RULES: &str = "nat on em0 inet from 10.9.0.0/16 to any -> 192.0.2.7
block all
pass out on em0 proto udp to port 53 keep state
pass out on em0 proto udp to port 54 keep state (source-track rule, max-src-states 3)
";

/// Those of the rules that several workers enforce.
const OF_SEVERAL: &str = "block all\npass out on em0 proto udp to port 53 keep state\n";
const WORKERS: usize = 3;
const FLOWS: u32 = 9;

fn query(flow: u32, port: u16) -> Packet {
    let pass = Pass { direction: Direction::Out, interface: 1, received_on: 2 };
    Packet::udp(pass, (Address::inet(0x0a00_0000 + flow), 5000), (address("198.51.100.2"), port))
}

fn answer(packet: &Packet) -> Packet {
    let pass = Pass { direction: Direction::In, ..packet.pass };
    Packet::udp(pass, (packet.destination, packet.destination_port), (packet.source, packet.source_port))
}

/// Flows have their numbers in the last byte of their sources.
fn owner(source: Address, _: Address) -> usize {
    source.0 as usize % 256 % WORKERS
}

/// What several workers remember of these bytes.
fn imported(bytes: &[u8]) -> (Vec<Firewall>, ImportSummary) {
    let mut workers: Vec<Firewall> = (0..WORKERS).map(|_| Firewall::new(OF_SEVERAL, 64)).collect();
    let set = workers[0].set.clone();
    let number = |name: &str| NAMES.iter().position(|one| *one == name).map(|number| number as u16);
    let mut parts = workers.iter_mut().map(|worker| &mut worker.worker);
    let owners = StateOwners { first: parts.next().unwrap(), others: parts.collect(), owner: &owner };
    let mut import = StateImport::new(&set, owners, &number);
    import.feed(1000, bytes).unwrap();
    let imported = import.finish();
    imported.result.unwrap();
    (workers, imported.summary)
}

fn exported(workers: &mut [Firewall]) -> Vec<u8> {
    let (set, mut bytes) = (workers[0].set.clone(), Vec::new());
    let names = NAMES.map(str::to_owned);
    let mut parts: Vec<_> = workers.iter_mut().map(|worker| &mut worker.worker).collect();
    let take = |chunk: &[u8]| {
        bytes.extend_from_slice(chunk);
        Ok::<(), ()>(())
    };
    export(&set, &mut parts, 1000, &names, take).unwrap();
    bytes
}

#[test]
fn each_worker_goes_on_with_the_states_of_its_flows() {
    let mut before = Firewall::new(RULES, 64);
    for flow in 0..FLOWS {
        assert!(before.passes(&query(flow, 53)) && before.passes(&answer(&query(flow, 53))));
    }
    let of_limited_source = query(4, 54);
    assert!(before.passes(&of_limited_source));
    assert!(matches!(before.check(&query(0x9_0000, 53)).verdict, Verdict::Translate(_)));
    let (mut workers, summary) = imported(&before.export());
    let without_rule = 1;
    let expected = ImportSummary {
        states: FLOWS + without_rule,
        without_rule,
        translated: 1,
        ..ImportSummary::default()
    };
    assert_eq!(summary, expected);
    for flow in 0..FLOWS {
        for (number, worker) in workers.iter_mut().enumerate() {
            let is_owner = flow as usize % WORKERS == number;
            assert_eq!(worker.passes(&answer(&query(flow, 53))), is_owner, "flow {flow}, worker {number}");
        }
    }
    let number = 4 % WORKERS;
    assert!(workers[number].passes(&answer(&of_limited_source)), "it goes on without its limit");
    assert_eq!(workers[number].worker.sources().len(), 0);
    // Every packet is counted once: two of each flow before, the translated one, and one of each flow since.
    let counters = || workers.iter().map(|worker| &**worker.worker.counters());
    assert_eq!(RuleCounters::sum(counters(), 2).0, 3 * u64::from(FLOWS) + 1);
}

#[test]
fn one_worker_goes_on_with_the_states_of_several() {
    let mut before = Firewall::new(OF_SEVERAL, 64);
    (0..FLOWS).for_each(|flow| assert!(before.passes(&query(flow, 53))));
    let (mut workers, _) = imported(&before.export());
    let mut after = Firewall::new(OF_SEVERAL, 64);
    let (summary, result) = after.import(&exported(&mut workers), 1000);
    assert_eq!((summary, result), (ImportSummary { states: FLOWS, ..ImportSummary::default() }, Ok(())));
    assert_eq!(after.worker.counters().get(2).0, u64::from(FLOWS));
    (0..FLOWS).for_each(|flow| assert!(after.passes(&answer(&query(flow, 53)))));
}
