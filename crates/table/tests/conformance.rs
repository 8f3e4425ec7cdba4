//! One suite for every algorithm in the registry, and every instruction set this machine has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use fullview_table::fib::linear::Linear;
use fullview_table::fib::preference::Preferences;
use fullview_table::fib::registry::Registered;
use fullview_table::fib::selection::choose;
use fullview_table::fib::{Algorithm, registry};
use fullview_table::rib::Summary;
use fullview_table::simd::Isa;
use fullview_table::{Address, Family, NextHop, Prefix, Rib, probe};

use support::{Tested, compile, full_view, random_table, subjects, table, verify};

/// Keys that reveal errors in any small table.
fn keys<A: Address>(rib: &Rib<A>) -> impl Iterator<Item = A> {
    let ends = [A::zero(), A::max_value()].into_iter();
    ends.chain(probe::edges(rib)).chain(probe::uniform(1).take(100)).chain(probe::in_prefix(rib, 2).take(100))
}

fn conforms<A: Tested>(rib: &Rib<A>) {
    for (name, algorithm) in subjects::<A>() {
        let (fib, keys) = (compile(algorithm, rib), Vec::from_iter(keys(rib)));
        // Prefetches do not change answers.
        fib.prefetch(&keys);
        fib.prefetch_deeper(&keys);
        verify(&name, &*fib, rib, keys.into_iter());
    }
}

/// Routes of all lengths from the default route to the host route, each inside the one before.
fn nested<A: Address>(addr: A) -> Rib<A> {
    let mut rib = Rib::default();
    for len in 0..=A::BITS {
        rib.announce(Prefix::containing(addr, len), NextHop(u16::from(len) + 1));
    }
    rib
}

fn hand_made<A: Tested>(tables: &[&[(&str, u16)]]) {
    for routes in tables {
        conforms::<A>(&table(routes));
    }
    for addr in [A::zero(), A::max_value(), A::max_value() / A::from(3).unwrap()] {
        conforms::<A>(&nested(addr));
    }
}

#[test]
fn hand_made_tables_inet() {
    hand_made::<u32>(&[
        &[],
        &[("0.0.0.0/0", 1)],
        &[("0.0.0.0/0", 1), ("192.0.2.1/32", 2)],
        &[("0.0.0.0/32", 1), ("255.255.255.255/32", 2)],
        &[("0.0.0.0/1", 1), ("128.0.0.0/1", 2)],
        &[("10.0.0.0/24", 1), ("10.0.1.0/24", 2), ("10.0.2.0/24", 1), ("10.0.0.0/23", 3)],
        &[("10.0.0.0/25", 1), ("10.0.0.128/25", 2), ("10.0.0.127/32", 3), ("10.0.0.128/32", 3)],
        &[("10.0.0.0/8", 1), ("10.0.0.0/16", 2), ("10.0.0.0/24", 3), ("10.0.0.0/32", 4)],
        // A hole: part of a covered block without a route.
        &[("10.0.0.0/8", 1), ("10.1.0.0/16", 0), ("10.1.1.0/25", 2)],
    ]);
}

#[test]
fn hand_made_tables_inet6() {
    hand_made::<u128>(&[
        &[],
        &[("::/0", 1)],
        &[("::/0", 1), ("2001:db8::1/128", 2)],
        &[("::/128", 1), ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 2)],
        &[("2001:db8::/32", 1), ("2001:db9::/32", 2), ("2001:db8::/31", 3)],
        &[("2001:db8::/48", 1), ("2001:db8:0:8000::/49", 2), ("2001:db8::/127", 3), ("2001:db8::1/128", 4)],
        &[("2000::/3", 1), ("2001::/23", 2), ("2001::/24", 3), ("2001::/25", 4), ("2001:80::/25", 5)],
        &[("2001:db8::/32", 1), ("2001:db8:1::/48", 0), ("2001:db8:1:1::/64", 2)],
    ]);
}

/// Compares with the oracle, which does not use the search of the RIB.
fn random_tables_agree_with_the_oracle<A: Tested>() {
    for seed in 0..8 {
        let rib = random_table::<A>(seed, 150, 300);
        let oracle = compile(&Linear, &rib);
        verify("linear", &*oracle, &rib, keys(&rib));
        conforms(&rib);
    }
}

#[test]
fn random_tables_inet() {
    random_tables_agree_with_the_oracle::<u32>();
}

#[test]
fn random_tables_inet6() {
    random_tables_agree_with_the_oracle::<u128>();
}

/// Verifies every edge of the real table; only the default variant of an algorithm gets all of them.
fn full_view_conforms<A: Tested>() {
    let Some(rib) = full_view::<A>() else { return };
    for algorithm in A::ALGORITHMS.iter().filter(|algorithm| algorithm.name() != "linear") {
        verify(algorithm.name(), &*compile(*algorithm, &rib), &rib, probe::edges(&rib));
    }
    for (name, algorithm) in A::by_isa() {
        verify(&name, &*compile(algorithm, &rib), &rib, probe::edges(&rib).step_by(13));
    }
}

#[test]
fn the_full_view_inet() {
    full_view_conforms::<u32>();
}

#[test]
fn the_full_view_inet6() {
    full_view_conforms::<u128>();
}

/// A table with so many next hops, each with a prefix of its own; every sixteenth prefix is longer than the others.
fn many_next_hops<A: Address>(count: u16) -> Rib<A> {
    let mut rib = Rib::default();
    for hop in 1..=count {
        let len = if hop % 16 == 0 { 28 } else { 24 };
        let block = A::from(hop).unwrap() << usize::from(A::BITS - 24);
        rib.announce(Prefix::containing(block, len), NextHop(hop));
    }
    rib
}

#[test]
fn next_hops_beyond_15_bits_and_up_to_the_last() {
    for count in [32_767, 32_768, NextHop::MAX] {
        let (inet, inet6) = (many_next_hops::<u32>(count), many_next_hops::<u128>(count));
        for (name, algorithm) in subjects::<u32>().into_iter().filter(|(name, _)| name != "linear") {
            verify(&name, &*compile(algorithm, &inet), &inet, probe::edges(&inet).step_by(5));
        }
        for (name, algorithm) in subjects::<u128>().into_iter().filter(|(name, _)| name != "linear") {
            verify(&name, &*compile(algorithm, &inet6), &inet6, probe::edges(&inet6).step_by(5));
        }
    }
}

/// Batches of any length, and slices of unequal length: elements beyond the shorter one do not change.
fn batches_of_every_length<A: Tested>() {
    const UNTOUCHED: NextHop = NextHop(u16::MAX);
    let rib = random_table::<A>(9, 60, 50);
    let addrs: Vec<A> = probe::in_prefix(&rib, 3).take(601).collect();
    for (name, algorithm) in subjects::<A>() {
        let fib = compile(algorithm, &rib);
        let expected: Vec<NextHop> = addrs.iter().map(|addr| fib.lookup(*addr)).collect();
        for len in 0..=600 {
            let mut out = vec![UNTOUCHED; len + 1];
            fib.lookup_batch(&addrs[..len], &mut out);
            assert_eq!(out[..len], expected[..len], "{name}: batch of {len}");
            assert_eq!(out[len], UNTOUCHED, "{name}: batch of {len}");
            out.fill(UNTOUCHED);
            fib.lookup_batch(&addrs, &mut out[..len]);
            assert_eq!(out[..len], expected[..len], "{name}: batch cut to {len}");
        }
    }
}

/// Prints one line, from which `./ci.sh isa` checks that all instruction sets of the processor were tested.
#[test]
fn batches_inet() {
    let forced: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
    println!("instruction sets forced: {}", forced.join(" "));
    batches_of_every_length::<u32>();
}

#[test]
fn batches_inet6() {
    batches_of_every_length::<u128>();
}

#[test]
fn footprints_name_their_parts() {
    let rib = random_table::<u32>(1, 100, 10);
    for (name, algorithm) in subjects::<u32>() {
        let footprint = compile(algorithm, &rib).footprint();
        assert!(footprint.total() > 0, "{name}");
        assert_eq!(footprint.total(), footprint.0.iter().map(|part| part.1).sum::<usize>(), "{name}");
    }
    let dir24 = compile(registry::find::<u32>("dpdk_lpm4").unwrap(), &table(&[("10.0.0.0/25", 1)]));
    assert_eq!(dir24.footprint().0, [("top", 32 << 20), ("groups", 512)]);
}

fn summary(family: Family, prefixes: usize) -> Summary {
    Summary { family, prefixes, next_hops: 1, lengths: Vec::new() }
}

/// The values of FreeBSD's `get_pref` functions.
#[test]
fn preferences_are_freebsds() {
    let inet = ["bsearch4", "radix_lockless", "radix", "dpdk_lpm4"];
    let inet6 = ["radix_lockless", "radix", "dpdk_lpm6"];
    let table = [
        (5, [253, 250, 50, 1], [255, 50, 1]),
        (10, [175, 252, 50, 1], [255, 50, 1]),
        (29, [23, 247, 50, 2], [255, 50, 2]),
        (100, [1, 229, 50, 10], [253, 50, 10]),
        (868, [1, 37, 50, 86], [234, 50, 86]),
        (1_000, [1, 1, 50, 100], [230, 50, 101]),
        (10_000, [1, 1, 50, 102], [1, 50, 114]),
        (100_000, [1, 1, 50, 129], [1, 50, 250]),
        (500_000, [1, 1, 50, 250], [1, 50, 250]),
    ];
    for (prefixes, expected4, expected6) in table {
        let of4 = |name| registry::find::<u32>(name).unwrap().preference(&summary(Family::Inet, prefixes));
        let of6 = |name| registry::find::<u128>(name).unwrap().preference(&summary(Family::Inet6, prefixes));
        assert_eq!(inet.map(of4), expected4, "{prefixes} IPv4 prefixes");
        assert_eq!(inet6.map(of6), expected6, "{prefixes} IPv6 prefixes");
    }
}

/// FreeBSD has no `bsearch6`. It has the curve of `bsearch4`, except for a few routes.
#[test]
fn preferences_of_the_ipv6_twin() {
    let (inet, inet6) =
        (registry::find::<u32>("bsearch4").unwrap(), registry::find::<u128>("bsearch6").unwrap());
    for prefixes in [10, 29, 30, 100_000] {
        let expected = inet.preference(&summary(Family::Inet, prefixes));
        assert_eq!(inet6.preference(&summary(Family::Inet6, prefixes)), expected, "{prefixes} prefixes");
    }
    let modules = &u128::ALGORITHMS[1..];
    let guessed = Preferences::Guessed;
    let chosen =
        |prefixes| choose(&guessed, modules, None, &summary(Family::Inet6, prefixes)).unwrap().name();
    assert_eq!([2, 9, 10].map(chosen), ["bsearch6", "bsearch6", "radix_lockless"]);
}

/// The sizes at which a table that grows or shrinks through `sizes` changes its algorithm, and the new algorithms.
fn switches<A: Tested>(
    modules: &[&str],
    start: &str,
    sizes: impl Iterator<Item = usize>,
) -> Vec<(usize, &'static str)> {
    let modules: Vec<&'static dyn Algorithm<A>> =
        modules.iter().map(|name| registry::find(name).unwrap()).collect();
    let mut current = registry::find::<A>(start);
    let mut switches = Vec::new();
    for prefixes in sizes {
        let next = choose(&Preferences::Guessed, &modules, current, &summary(A::FAMILY, prefixes)).unwrap();
        if current.is_some_and(|current| current.name() != next.name()) {
            switches.push((prefixes, next.name()));
        }
        current = Some(next);
    }
    switches
}

/// A router has routes of its own links before those of its neighbours come.
#[test]
fn a_table_that_grows_is_served_by_the_fastest_whatever_it_began_with() {
    let ours =
        |names: &[&'static str]| names.iter().copied().filter(|name| *name != "linear").collect::<Vec<_>>();
    let inet: Vec<&str> = u32::ALGORITHMS.iter().map(|algorithm| algorithm.name()).collect();
    let inet6: Vec<&str> = u128::ALGORITHMS.iter().map(|algorithm| algorithm.name()).collect();
    let sizes = |first: usize| (first..1_000).chain((1_000..1_000_000).step_by(100));
    for first in [1, 15, 25, 50, 99, 150] {
        for start in ours(&inet) {
            let last = switches::<u32>(&inet, start, sizes(first));
            assert_eq!(
                last.last().map_or(start, |(_, name)| *name),
                "dir18",
                "{start} from {first} prefixes on"
            );
        }
        for start in ours(&inet6) {
            let last = switches::<u128>(&inet6, start, sizes(first));
            assert_eq!(
                last.last().map_or(start, |(_, name)| *name),
                "btree6",
                "{start} from {first} prefixes on"
            );
        }
    }
    let around = (0..1_000).flat_map(|_| [99, 100]);
    assert_eq!(switches::<u32>(&inet, "dir18", around.clone()), [], "no algorithm comes and goes");
    assert_eq!(switches::<u128>(&inet6, "btree6", around), []);
}

#[test]
fn algorithms_switch_where_freebsds_do() {
    let built_in = ["bsearch4", "radix_lockless", "radix"];
    let with_dpdk = ["bsearch4", "radix_lockless", "radix", "dpdk_lpm4"];
    assert_eq!(
        switches::<u32>(&built_in, "bsearch4", 1..2_000),
        [(10, "radix_lockless"), (868, "radix")],
        "growing"
    );
    assert_eq!(
        switches::<u32>(&built_in, "radix", (700..2_000).rev()),
        [(767, "radix_lockless")],
        "shrinking"
    );
    assert_eq!(
        switches::<u32>(&with_dpdk, "bsearch4", 1..2_000),
        [(10, "radix_lockless"), (764, "dpdk_lpm4")],
        "growing"
    );
    assert_eq!(switches::<u32>(&with_dpdk, "dpdk_lpm4", (600..2_000).rev()), [(691, "radix_lockless")]);
    let inet6 = ["radix_lockless", "radix"];
    assert_eq!(switches::<u128>(&inet6, "radix_lockless", 1..20_000), [(8_720, "radix")]);
    let with_dpdk = ["radix_lockless", "radix", "dpdk_lpm6"];
    let growing = switches::<u128>(&with_dpdk, "radix_lockless", 1..20_000);
    assert!(matches!(growing[..], [(6_300..6_500, "dpdk_lpm6")]), "{growing:?}");
}
