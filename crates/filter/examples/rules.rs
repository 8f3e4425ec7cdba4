//! What rules cost a packet without a state: `cargo run --release -p fullview-filter --example rules` prints nanoseconds for
//! 1 to 10,000 rules of four kinds, and for a rule with a table of up to 100,000 addresses.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Instant;

use fullview_filter::address::Address;
use fullview_filter::address_table::{AddressTable, TableEntry};
use fullview_filter::packet::protocol::UDP;
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::rule::{AddressMatch, Clause, CompiledRule, PortRange, RuleAction, TableId, Test};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, Verdict};

const BURST: usize = 32;

fn main() {
    println!("{:>28} {:>7} {:>9} {:>9} {:>11}", "kind", "rules", "pf", "ipfw", "bytes");
    for (name, clauses) in KINDS {
        for rules in [1, 10, 100, 1000, 10_000] {
            let measured =
                [Language::Pf, Language::Ipfw].map(|language| measure(&rule_set(language, rules, *clauses)));
            let bytes = rule_set(Language::Pf, rules, *clauses).classifier_bytes();
            println!("{name:>28} {rules:>7} {:>9.1} {:>9.1} {bytes:>11}", measured[0], measured[1]);
        }
    }
    for entries in [0, 10, 1000, 100_000] {
        println!("{:>28} {entries:>7} {:>9.1}", "table", measure(&with_table(entries)));
    }
}

type Clauses = fn(u32) -> Vec<Clause>;

/// Rules that no packet matches, by their number; the default rule decides.
const KINDS: &[(&str, Clauses)] = &[
    ("source host", |number| vec![source(number)]),
    ("source, destination network", |number| vec![source(number), network(number)]),
    ("host, protocol, port", |number| vec![source(number), protocol(), port(number)]),
    ("port alone", |number| vec![protocol(), port(number)]),
];

fn source(number: u32) -> Clause {
    Clause::of(Test::Source(AddressMatch::single(Address::inet(0x0b00_0000 | number.wrapping_mul(257)))))
}

fn network(number: u32) -> Clause {
    Clause::of(Test::Destination(AddressMatch::prefix(Address::inet(number << 16), 20)))
}

fn protocol() -> Clause {
    Clause::of(Test::Protocol([UDP].into_iter().collect()))
}

fn port(number: u32) -> Clause {
    Clause::of(Test::DestinationPort(PortRange::single(10_000 + (number % 50_000) as u16)))
}

fn rule_set(language: Language, rules: u32, clauses: Clauses) -> RuleSet {
    let mut parts = RuleSetParts::new(language);
    let rule = |number| CompiledRule { clauses: clauses(number), ..CompiledRule::new(RuleAction::Block) };
    parts.rules = (0..rules).map(rule).collect();
    parts.pass_by_default = true;
    RuleSet::new(parts).unwrap()
}

fn with_table(entries: u32) -> RuleSet {
    let mut parts = RuleSetParts::new(Language::Ipfw);
    let entry = |number: u32| TableEntry::new(Address::inet(0x0b00_0000 | number.wrapping_mul(163)), 32);
    parts.tables = vec![Arc::new(AddressTable::new((0..entries).map(entry)))];
    let clauses = vec![Clause::of(Test::Source(AddressMatch::Table(TableId(0))))];
    parts.rules = vec![CompiledRule { clauses, ..CompiledRule::new(RuleAction::Block) }];
    parts.pass_by_default = true;
    RuleSet::new(parts).unwrap()
}

/// Nanoseconds a packet, in bursts of packets from many addresses.
fn measure(set: &RuleSet) -> f64 {
    const PACKETS: u32 = 1 << 18;
    let pass = Pass { direction: Direction::In, interface: 1, received_on: 1 };
    let mut worker = FilterWorker::new(WorkerLimits::default(), set.counted_rules(), 1);
    let packets: Vec<_> = (0..PACKETS)
        .map(|number| {
            let spread = number.wrapping_mul(0x9e37_79b1);
            let source = (Address::inet(0x0b00_0000 | (spread >> 8) | 1 << 23), spread as u16);
            Packet::udp(pass, source, (Address::inet(spread.rotate_left(13)), 53))
        })
        .collect();
    let nothing = Decision { verdict: Verdict::Pass, rule: None, by: DecidedBy::Rule };
    let mut decisions = [nothing; BURST];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let mut copies = packets.clone();
        let start = Instant::now();
        for burst in copies.chunks_mut(BURST) {
            set.check_burst(&mut worker, 0, burst, &mut decisions);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(PACKETS));
    }
    best
}
