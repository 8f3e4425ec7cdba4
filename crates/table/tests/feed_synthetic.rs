//! Synthetic tables: they are exact, canonical, repeatable, and similar to the real table.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

use std::collections::BTreeSet;

use fullview_table::feed::synthetic::parameters::{INET, INET6};
use fullview_table::feed::{self, NextHopModel, Options, synthetic::Synthetic};
use fullview_table::fib::{Algorithm, registry::Registered};
use fullview_table::{Address, Rib, Table};
use fullview_testnet::shared;
use proptest::prelude::*;

#[path = "support/facts.rs"]
mod facts;
#[path = "support/measure.rs"]
mod measure;
fn real_table() -> Option<Table> {
    let path = shared::data("tables/full-view-2025.txt.gz")?;
    Some(feed::load(&path, &Options::default()).unwrap().table)
}

/// By how much of the real value a synthetic one may differ.
const TOLERANCE: f64 = 0.10;

/// Facts in which the model differs more, and by how much; `docs/explanation/synthetic.md` describes them.
const SHORTFALLS: [(&str, f64); 14] = [
    ("inet nested 3 deep", 0.40),
    ("inet nodes below 24 bits", 0.25),
    ("inet6 routes that adjoin one of equal length", 0.20),
    ("inet6 nested 2 deep", 0.13),
    ("inet6 nested 3 deep", 0.25),
    ("inet6 nodes below 32 bits", 0.15),
    ("inet6 nodes below 36 bits", 0.12),
    ("inet6 nodes below 40 bits", 0.18),
    ("inet6 nodes below 42 bits", 0.18),
    ("inet6 nodes below 48 bits", 0.25),
    ("inet6 nodes below 54 bits", 0.35),
    ("inet6 nodes below 56 bits", 0.35),
    ("inet6 nodes below 60 bits", 0.15),
    ("inet6 ranges in the fullest hundredth", 0.45),
];

/// Counts below this are too small to compare.
const FEW: f64 = 100.0;

/// By how much the bytes of a structure may differ from those on the real table, and the number of routes of a length
/// from the real one.
const BYTES_TOLERANCE: f64 = 0.10;
const LENGTH_TOLERANCE: f64 = 0.01;

/// The bytes of the structure of every algorithm.
fn bytes<A: Registered>(rib: &Rib<A>) -> Vec<(&'static str, f64)> {
    let total = |algorithm: &&dyn Algorithm<A>| {
        (algorithm.name(), algorithm.compile(rib).unwrap().fib().footprint().total() as f64)
    };
    A::ALGORITHMS.iter().map(total).collect()
}

/// A real table: its facts, its routes by length, and the bytes of each structure.
type Known = (facts::Facts, facts::Facts, Vec<(&'static str, f64)>);

fn known<A: Registered>(rib: &Rib<A>) -> Known {
    (facts::facts(rib), routes_by_length(rib), bytes(rib))
}

fn compare<A: Registered>((facts, lengths, sizes): &Known, made: &Rib<A>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |name: String, real: f64, made: f64, tolerance: f64| {
        if (made - real).abs() > tolerance * real && real >= FEW {
            let percent = (made / real - 1.0) * 100.0;
            wrong.push(format!("{name}: {real} real, {made} synthetic: {percent:+.1} %"));
        }
    };
    for ((name, real), (_, made)) in facts.iter().zip(facts::facts(made)) {
        let name = format!("{} {name}", A::FAMILY);
        let shortfall = SHORTFALLS.iter().find(|(known, _)| *known == name);
        check(name, *real, made, shortfall.map_or(TOLERANCE, |(_, share)| *share));
    }
    for ((name, real), (_, made)) in sizes.iter().zip(bytes(made)) {
        check(format!("{} {name} bytes", A::FAMILY), *real, made, BYTES_TOLERANCE);
    }
    for ((name, real), (_, made)) in lengths.iter().zip(routes_by_length(made)) {
        check(format!("{} {name}", A::FAMILY), *real, made, LENGTH_TOLERANCE);
    }
    wrong
}

fn routes_by_length<A: Address>(rib: &Rib<A>) -> facts::Facts {
    let lengths = rib.summary().lengths;
    lengths.iter().enumerate().map(|(len, routes)| (format!("routes of /{len}"), *routes as f64)).collect()
}

#[test]
fn the_parameters_and_the_tables_made_from_them_match_the_real_table() {
    // This is one test, because reading the real table takes most of the time.
    let Some(real) = real_table() else { return };
    assert!(measure::measure(&real.inet, &INET) == INET.counted, "the counts of IPv4 differ");
    assert!(measure::measure(&real.inet6, &INET6) == INET6.counted, "the counts of IPv6 differ");
    let (inet, inet6) = (known(&real.inet), known(&real.inet6));
    for seed in [1, 2, 3] {
        let size = Synthetic { inet: real.inet.len(), inet6: real.inet6.len(), seed, ..Synthetic::default() };
        let made = size.table().unwrap();
        let wrong = [compare(&inet, &made.inet), compare(&inet6, &made.inet6)].concat();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    }
}

#[test]
fn the_default_has_the_size_of_a_full_view_in_2020() {
    let table = Synthetic::default().table().unwrap();
    assert_eq!((table.inet.len(), table.inet6.len(), table.next_hops.len()), (712_793, 104_034, 64));
}

#[test]
fn the_largest_tables_are_exact_too() {
    let size = Synthetic { inet: Synthetic::MAX_INET, inet6: Synthetic::MAX_INET6, ..Synthetic::default() };
    let table = size.table().unwrap();
    assert_eq!((table.inet.len(), table.inet6.len()), (size.inet, size.inet6));
    let over = Synthetic { inet: Synthetic::MAX_INET + 1, ..size }.table().err().unwrap();
    assert_eq!(over.to_string(), "2000001 inet routes are too many; a synthetic table has at most 2000000");
    assert!(Synthetic { inet: 0, inet6: 0, ..size }.table().is_err());
}

/// FNV-1a over all routes: the number changes unless the table is the same on every platform.
fn digest(table: &Table) -> u64 {
    let inet = table.inet.iter().map(|route| format!("{} {}", route.prefix, route.next_hop.0));
    let inet6 = table.inet6.iter().map(|route| format!("{} {}", route.prefix, route.next_hop.0));
    let bytes = inet.chain(inet6).flat_map(String::into_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn a_seed_gives_the_same_table_everywhere() {
    let size = Synthetic { inet: 20_000, inet6: 5_000, ..Synthetic::default() };
    assert_eq!(digest(&size.table().unwrap()), DIGEST);
    assert_ne!(digest(&Synthetic { seed: 1, ..size }.table().unwrap()), DIGEST);
    let next_hops = NextHopModel { seed: 1, ..NextHopModel::default() };
    assert_ne!(digest(&Synthetic { next_hops, ..size }.table().unwrap()), DIGEST);
}

/// The digest of the table in the test above.
const DIGEST: u64 = 3_977_666_808_185_148_165;

/// The blocks of IANA's special-purpose registries, in which no route may lie, written here a second time.
const SPECIAL: [&str; 18] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];
const SPECIAL6: [&str; 5] = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"];

fn special_routes<A: Address>(rib: &Rib<A>, special: &[&str]) -> Vec<String> {
    let special: Vec<fullview_table::Prefix<A>> = special.iter().map(|text| text.parse().unwrap()).collect();
    let inside = |prefix| special.iter().any(|special| special.covers(prefix));
    rib.iter().filter(|route| inside(route.prefix)).map(|route| route.prefix.to_string()).collect()
}

/// The sizes are the usual one, and one at which many routes are near the special blocks.
#[test]
fn no_route_lies_in_special_use_space() {
    for (inet, inet6) in [(712_793, 104_034), (Synthetic::MAX_INET, Synthetic::MAX_INET6)] {
        for seed in [1, 2, 3] {
            let table = Synthetic { inet, inet6, seed, ..Synthetic::default() }.table().unwrap();
            assert_eq!(special_routes(&table.inet, &SPECIAL), [""; 0]);
            assert_eq!(special_routes(&table.inet6, &SPECIAL6), [""; 0]);
        }
    }
}

fn is_unicast(table: &Table) -> bool {
    table.inet.iter().all(|route| route.prefix.len() >= 8)
        && table.inet6.iter().all(|route| route.prefix.first() >> 125 == 1)
        && special_routes(&table.inet, &SPECIAL).is_empty()
        && special_routes(&table.inet6, &SPECIAL6).is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn any_size_is_exact_canonical_and_without_repeats(
        inet in prop_oneof![0..50usize, 0..5_000usize],
        inet6 in prop_oneof![1..50usize, 1..2_000usize],
        seed: u64,
    ) {
        let table = Synthetic { inet, inet6, seed, ..Synthetic::default() }.table().unwrap();
        // The table cannot hold one prefix twice, so an exact count is a count of different prefixes.
        prop_assert_eq!((table.inet.len(), table.inet6.len()), (inet, inet6));
        let prefixes: BTreeSet<_> = table.inet.iter().map(|route| route.prefix.to_string()).collect();
        prop_assert!(prefixes.iter().all(|text| text.parse::<fullview_table::Prefix<u32>>().is_ok()));
        prop_assert!(is_unicast(&table));
    }

    #[test]
    fn text_round_trips(inet in 1..2_000usize, inet6 in 0..500usize, seed: u64, count in 1..300u16) {
        use fullview_table::feed::write::{Dialect, write};
        let next_hops = NextHopModel { count, mean_run: 2.0, seed };
        let table = Synthetic { inet, inet6, seed, next_hops }.table().unwrap();
        let mut text = Vec::new();
        write(&table, Dialect::Text, &mut text).unwrap();
        let again = feed::read(text.as_slice(), "text".as_ref(), &Options::default()).unwrap().table;
        prop_assert_eq!(routes(&table.inet, &table), routes(&again.inet, &again));
        prop_assert_eq!(routes(&table.inet6, &table), routes(&again.inet6, &again));
    }
}

fn routes<A: Address>(rib: &Rib<A>, table: &Table) -> Vec<(String, Option<fullview_table::Target>)> {
    rib.iter().map(|route| (route.prefix.to_string(), table.next_hops.target(route.next_hop))).collect()
}
