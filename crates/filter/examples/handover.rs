//! How long a handover takes: `cargo run --release -p fullview-filter --example handover [STATES…]` prints the bytes, and
//! milliseconds for writing them, for reading them, and for both at once with a Unix socket in between; then the same for a table
//! of as many addresses.
#![allow(clippy::unwrap_used)]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use fullview_filter::address::Address;
use fullview_filter::address_table::{AddressTable, TableEntry};
use fullview_filter::handover::{StateImport, StateOwners, export};
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::rule::{CompiledRule, NamedTable, RuleAction, StateOptions, TableId, TableKind};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, WorkerLimits};

const NOW: u64 = 1000;

fn main() {
    let mut sizes: Vec<u32> = std::env::args().skip(1).map(|size| size.parse().unwrap()).collect();
    if sizes.is_empty() {
        sizes = vec![100_000, 1_000_000, 5_000_000];
    }
    println!("{:>9} {:>11} {:>6} {:>6} {:>6}", "states", "bytes", "write", "read", "both");
    for states in &sizes {
        let set = rules(0);
        let mut worker = worker(&set, *states);
        for number in 0..*states {
            set.check(&mut worker, NOW, &mut packet(number));
        }
        measure(*states, &set, worker);
    }
    println!("addresses");
    for addresses in sizes {
        let set = rules(addresses);
        measure(addresses, &set, worker(&set, 1));
    }
}

fn measure(size: u32, set: &RuleSet, mut before: FilterWorker) {
    let states = before.states().len() as u32;
    let mut bytes = Vec::new();
    let write = milliseconds(|| {
        let send = |chunk: &[u8]| bytes.write_all(chunk);
        export(set, &mut [&mut before], NOW, &[], send).unwrap();
    });
    let mut after = worker(set, states.max(1));
    let read = milliseconds(|| take(set, &mut after, &mut &bytes[..]));
    assert_eq!(after.states().len(), before.states().len());
    let mut after = worker(set, states.max(1));
    let both = milliseconds(|| hand_over(set, &mut before, &mut after));
    assert_eq!(after.states().len(), before.states().len());
    println!("{size:>9} {:>11} {write:>6.0} {read:>6.0} {both:>6.0}", bytes.len());
}

fn hand_over(set: &RuleSet, before: &mut FilterWorker, after: &mut FilterWorker) {
    let (mut one, mut other) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let send = |chunk: &[u8]| one.write_all(chunk);
            export(set, &mut [before], NOW, &[], send).unwrap();
        });
        take(set, after, &mut other);
    });
}

fn take(set: &RuleSet, worker: &mut FilterWorker, from: &mut impl Read) {
    let number = |_: &str| None;
    let mut import = StateImport::new(set, StateOwners::only(worker), &number);
    let mut bytes = vec![0; 64 << 10];
    let mut next = |import: &mut StateImport<'_>| -> io::Result<usize> {
        let length = from.read(&mut bytes)?;
        import.feed(NOW, &bytes[..length]).unwrap();
        Ok(length)
    };
    while next(&mut import).unwrap() > 0 {}
    let imported = import.finish();
    imported.result.unwrap();
    let tables = set.with_tables(imported.tables);
    assert_eq!(tables.tables()[0].entries().len(), set.tables()[0].entries().len());
}

fn milliseconds(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64() * 1000.0
}

/// A rule with states, and a table of so many addresses.
fn rules(addresses: u32) -> RuleSet {
    let mut parts = RuleSetParts::new(Language::Pf);
    let entry = |number: u32| TableEntry::new(Address::inet(0x0b00_0000 | number.wrapping_mul(163)), 32);
    parts.tables = vec![Arc::new(AddressTable::new((0..addresses).map(entry)))];
    let named = NamedTable {
        name: "open".into(),
        id: TableId(0),
        kind: TableKind::Addresses,
        is_constant: false,
        is_given: false,
    };
    parts.named_tables = vec![named];
    let state = Some(StateOptions::default());
    parts.rules = vec![CompiledRule { state, ..CompiledRule::new(RuleAction::Pass) }];
    RuleSet::new(parts).unwrap()
}

fn worker(set: &RuleSet, states: u32) -> FilterWorker {
    let limits = WorkerLimits { states, ..WorkerLimits::default() };
    FilterWorker::new(limits, set.counted_rules(), states.into())
}

/// The packet of a flow, whose number is spread so that flows come in no order.
fn packet(number: u32) -> Packet {
    let spread = number.wrapping_mul(0x9e37_79b1);
    let client = (Address::inet(0x0a00_0000 | spread >> 8), 1024 + (spread & 0xff) as u16);
    let server = (Address::inet(0xc633_6400 | number & 0xff), 443);
    Packet::udp(Pass { direction: Direction::In, interface: 1, received_on: 1 }, client, server)
}
