//! The test bed for forwarding in the kernel: all forwarders are ready together, and none disturbs another.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)] // helpers of a test stand outside the function that is marked as one

use std::time::Duration;

use fullview_bench::testbed::{Forwarder, Forwarders, Testbed, TestbedHeaders, station_of};
use fullview_plane::engine::{INET_ALGORITHM, INET6_ALGORITHM};
use fullview_plane::view::TableReaders;
use fullview_router::algorithm::{self, Names, RouterSettings};
use fullview_table::{Address, NextHop, Rib};
use fullview_testnet::{may_load_programs, may_run};

/// More than a batch, and no power of two.
const DESTINATIONS: usize = 300;

/// The routes of one family, and packets to them.
struct Routes<A: Address> {
    rib: Rib<A>,
    destinations: Vec<A>,
}

impl<A: TestbedHeaders> Routes<A> {
    fn new(prefixes: &[(&str, u16)], destination: impl Fn(usize) -> A) -> Routes<A> {
        let mut rib = Rib::default();
        for (prefix, hop) in prefixes {
            rib.announce(prefix.parse().unwrap(), NextHop(*hop));
        }
        Routes { rib, destinations: (0..DESTINATIONS).map(destination).collect() }
    }

    /// The station of each destination by the longest matching prefix.
    fn stations(&self) -> Vec<u16> {
        let hop = |addr: &A| self.rib.longest_match(*addr).unwrap().next_hop;
        self.destinations.iter().map(|addr| station_of(hop(addr))).collect()
    }
}

fn inet() -> Routes<u32> {
    let prefixes = [("198.18.0.0/16", 1), ("198.18.128.0/17", 2), ("198.18.129.0/24", 64)];
    Routes::new(&prefixes, |number| 0xc612_0000 + number as u32 * 200)
}

fn inet6() -> Routes<u128> {
    let prefixes = [("2001:2::/48", 3), ("2001:2:0:8000::/49", 4), ("2001:2:0:9000::/52", 5)];
    Routes::new(&prefixes, |number| (0x2001_0002 << 96) + ((number as u128 * 200) << 64))
}

fn engine(inet: &Rib<u32>, inet6: &Rib<u128>) -> Forwarder {
    let named =
        |name: &str| RouterSettings { algorithm: Some(Names::One(name.into())), ..RouterSettings::default() };
    let inet = algorithm::compile(&named(INET_ALGORITHM), inet).unwrap();
    let inet6 = algorithm::compile(&named(INET6_ALGORITHM), inet6).unwrap();
    Forwarder::Engine(TableReaders::fixed(inet.fib, inet6.fib))
}

/// Makes all forwarders ready together, two engines among them, and sends to each.
fn all_forward<A: TestbedHeaders>(testbed: &mut Testbed, routes: &Routes<A>, engine: impl Fn() -> Forwarder) {
    let other: Vec<A> = routes.destinations.iter().rev().copied().collect();
    let mut ready = Forwarders::new(testbed, &[&routes.destinations, &other], 0).unwrap();
    for forwarder in [Forwarder::Kernel, Forwarder::FibLookup, engine(), engine()] {
        ready.add(forwarder, 0).unwrap();
    }
    ready.add(engine(), 1).unwrap();
    ready.add(Forwarder::Redirect, 0).unwrap();
    let stations = routes.stations();
    let backwards: Vec<u16> = stations.iter().rev().copied().collect();
    let only = vec![1; DESTINATIONS];
    let expected = [&stations, &stations, &stations, &stations, &backwards, &only];
    for (forwarder, expected) in expected.into_iter().enumerate() {
        let went = ready.stations(ready.through(forwarder), DESTINATIONS as u32).unwrap();
        assert_eq!(went, *expected, "forwarder {forwarder}");
    }
    count(&ready, expected.len());
}

/// Turns in which all frames count: the counters are read before each batch of 64, so the last one is not in them.
fn count(ready: &Forwarders<'_>, forwarders: usize) {
    let whole = (Duration::ZERO, Duration::MAX);
    for path in (0..forwarders).map(|number| ready.through(number)).chain([ready.beside(0)]) {
        let counted = ready.turn(path, 1_000, whole).unwrap().counted;
        assert_eq!(counted.sent, 960, "{path:?}");
        let lead_in_only = ready.turn(path, 1_000, (Duration::MAX, Duration::ZERO)).unwrap().counted;
        assert_eq!(lead_in_only.sent, 0, "nothing of the lead-in counts");
        assert_eq!(ready.wrong(path), 0, "{path:?}");
    }
    assert!((2..=4).all(|engine| ready.passed(engine).unwrap().is_some_and(|passed| passed < 100)));
    assert_eq!(ready.passed(0).unwrap(), None);
}

fn namespaces() -> Vec<String> {
    let mine = format!("fv{}", std::process::id());
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&mine))
        .collect()
}

#[test]
fn all_forwarders_are_ready_together() {
    if !may_run(&["ip", "ethtool"]) || !may_load_programs() {
        return;
    }
    let (inet, inet6) = (inet(), inet6());
    let mut testbed = Testbed::new().unwrap();
    testbed.route(&inet.rib).unwrap();
    testbed.route(&inet6.rib).unwrap();
    let engine = || engine(&inet.rib, &inet6.rib);
    // The second panel finds the links of the first one.
    all_forward(&mut testbed, &inet, engine);
    all_forward(&mut testbed, &inet6, engine);
    assert_eq!(namespaces().len(), 3);
    drop(testbed);
    assert!(namespaces().is_empty());
}
