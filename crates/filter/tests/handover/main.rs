//! States that another worker goes on with, which has other numbers, another clock and another seed.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

mod bad_input;
mod conversation;
mod mapping;
mod several;
mod went_on;

use std::io;

use fullview_filter::address::Address;
use fullview_filter::handover::{ImportError, ImportSummary, StateImport, StateOwners, export};
use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::packet::Packet;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::HostFacts;
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::lower;
use fullview_filter::ruleset::{RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{Decision, Verdict};

/// Between the clocks of the two workers; the lower 32 bits of the second one overflow soon.
pub const CLOCKS_APART: u64 = (1 << 32) - 50_000;

struct OneFile<'a>(&'a str);

impl RulesetFiles for OneFile<'_> {
    fn read(&self, _path: &str) -> io::Result<String> {
        Ok(self.0.to_owned())
    }
}

pub fn address(text: &str) -> Address {
    text.parse::<std::net::IpAddr>().unwrap().into()
}

/// The names of interfaces by their numbers.
pub const NAMES: [&str; 3] = ["lo0", "em0", "em1"];

fn interfaces(names: &[&str]) -> Interfaces {
    let named = |(number, name): (u16, &&str)| FilterInterface {
        name: (*name).to_owned(),
        number,
        groups: Vec::new(),
        addresses: Vec::new(),
    };
    Interfaces((0..).zip(names).map(named).collect())
}

/// Rules of pf with a worker and a clock.
pub struct Firewall {
    pub set: RuleSet,
    pub worker: FilterWorker,
    pub now: u64,
    names: Vec<String>,
}

impl Firewall {
    pub fn new(rules: &str, states: u32) -> Firewall {
        Firewall::between(&NAMES, rules, WorkerLimits { states, ..WorkerLimits::default() }, 1)
    }

    pub fn between(names: &[&str], rules: &str, limits: WorkerLimits, seed: u64) -> Firewall {
        let config = load("rules", &OneFile(rules), &HostFacts::default()).unwrap();
        Firewall::of(lower(&config, &interfaces(names)).unwrap().parts, names, limits, seed)
    }

    pub fn of_ipfw(script: &str) -> Firewall {
        let config = IpfwConfig::load("rules", script).unwrap();
        Firewall::of(config.lower(&interfaces(&NAMES)), &NAMES, WorkerLimits::default(), 1)
    }

    fn of(parts: RuleSetParts, names: &[&str], limits: WorkerLimits, seed: u64) -> Firewall {
        let set = RuleSet::new(parts).unwrap();
        let worker = FilterWorker::new(limits, set.counted_rules(), seed);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Firewall { set, worker, now: 1000, names }
    }

    /// Goes on with other rules.
    pub fn reload(&mut self, rules: &str) {
        self.adopt(Firewall::new(rules, 1).set);
    }

    pub fn adopt(&mut self, set: RuleSet) {
        self.worker.adopt(set.adoption(&self.set));
        self.set = set;
    }

    pub fn check(&mut self, packet: &Packet) -> Decision {
        self.set.check(&mut self.worker, self.now, &mut packet.clone())
    }

    pub fn passes(&mut self, packet: &Packet) -> bool {
        matches!(self.check(packet).verdict, Verdict::Pass | Verdict::Translate(_))
    }

    pub fn wait(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        // After more than ten seconds one call visits the whole table.
        if milliseconds >= 10_000 {
            self.set.sweep(&mut self.worker, self.now);
        }
    }

    pub fn export(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let take = |chunk: &[u8]| {
            bytes.extend_from_slice(chunk);
            Ok::<(), ()>(())
        };
        export(&self.set, &mut [&mut self.worker], self.now, &self.names, take).unwrap();
        bytes
    }

    /// Takes exported states in pieces of so many bytes.
    pub fn import(&mut self, bytes: &[u8], piece: usize) -> (ImportSummary, Result<(), ImportError>) {
        let names = &self.names;
        let number = |name: &str| names.iter().position(|one| one == name).map(|number| number as u16);
        let (mut import, mut result) =
            (StateImport::new(&self.set, StateOwners::only(&mut self.worker), &number), Ok(()));
        for piece in bytes.chunks(piece) {
            result = result.and_then(|()| import.feed(self.now, piece));
        }
        let imported = import.finish();
        self.set = self.set.with_tables(imported.tables);
        (imported.summary, result.and(imported.result))
    }

    /// What another worker with another clock makes of its states, by the same rules.
    pub fn succeeded_by(&mut self, mut other: Firewall) -> (Firewall, ImportSummary) {
        other.now = self.now + CLOCKS_APART;
        let (summary, result) = other.import(&self.export(), 1000);
        assert_eq!(result, Ok(()));
        (other, summary)
    }
}
