//! `poptrie`: the last level, where fewer than six bits of an address are left, and copies of paths.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use fullview_table::fib::poptrie::Poptrie;
use fullview_table::fib::{Algorithm, Outcome};
use fullview_table::simd::IsaChoice;
use fullview_table::{Address, Change, NextHop, Prefix, Rib, probe};

use support::{Tested, compile, random_table, subjects, table, verify};

fn subjects_of<A: Tested>() -> impl Iterator<Item = (String, &'static dyn Algorithm<A>)> {
    subjects::<A>().into_iter().filter(|(name, _)| name.starts_with("poptrie"))
}

/// Tables with all lengths in the last eight bits, and a lookup of every address: 665 of 2^24 keys are wrong in an
/// implementation that ignores that the last node has two bits.
fn last_level<A: Tested>(block: Prefix<A>) {
    for seed in 0..20 {
        let mut rib = Rib::default();
        for (n, draw) in probe::uniform::<u32>(seed).take(12).enumerate() {
            let len = A::BITS - (draw % 6) as u8;
            let addr = block.first() | A::from(draw >> 24).unwrap();
            rib.announce(Prefix::containing(addr, len), NextHop(n as u16 + 1));
        }
        let keys = || (0..256).map(|n| block.first() | A::from(n).unwrap());
        for (name, algorithm) in subjects_of::<A>() {
            verify(&name, &*compile(algorithm, &rib), &rib, keys());
        }
    }
}

#[test]
fn the_last_two_bits() {
    last_level::<u32>("192.0.2.0/24".parse().unwrap());
    last_level::<u32>("255.255.255.0/24".parse().unwrap());
    last_level::<u128>("2001:db8::/120".parse().unwrap());
    last_level::<u128>("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120".parse().unwrap());
}

/// Prefixes that end with a level (18, 24, 30 and so on), and prefixes one bit shorter and longer.
fn ends_of_levels<A: Tested>() {
    for len in (18..A::BITS).step_by(6) {
        let mut rib = Rib::default();
        for (hop, len) in [len - 1, len, len + 1].into_iter().enumerate() {
            let first = A::from(hop + 1).unwrap() << usize::from(A::BITS - 3)
                | A::one() << usize::from(A::BITS - len);
            rib.announce(Prefix::containing(first, len), NextHop(hop as u16 + 1));
        }
        for (name, algorithm) in subjects_of::<A>() {
            verify(&name, &*compile(algorithm, &rib), &rib, probe::edges(&rib));
        }
    }
}

#[test]
fn prefixes_that_end_with_a_level() {
    ends_of_levels::<u32>();
    ends_of_levels::<u128>();
}

#[test]
fn equal_neighbours_share_a_leaf() {
    let parts =
        |routes: &[(&str, u16)]| compile(&Poptrie(IsaChoice::Best), &table::<u32>(routes)).footprint().0;
    assert_eq!(parts(&[("10.0.0.0/18", 1)]), [("direct", 1 << 20), ("nodes", 0), ("leaves", 0)]);
    // A node of three runs of leaves: none, 1, none.
    assert_eq!(parts(&[("10.0.4.0/22", 1)]), [("direct", 1 << 20), ("nodes", 24), ("leaves", 6)]);
    // The child does not separate the leaves before and after it: one leaf above, three runs below.
    assert_eq!(parts(&[("10.0.4.64/26", 1)]), [("direct", 1 << 20), ("nodes", 48), ("leaves", 8)]);
}

/// After any changes the structure has exactly the bytes that compiling the table gives.
fn patched_is_as_small_as_compiled<A: Tested>() {
    for seed in 0..4 {
        let mut rib = random_table::<A>(seed, 60, 9);
        let mut instance = Poptrie(IsaChoice::Best).compile(&rib).unwrap();
        let other = random_table::<A>(seed + 100, 200, 9);
        let more: Vec<_> = other.iter().filter(|route| route.prefix.len() > 8).collect();
        for (n, route) in more.iter().chain(&more).enumerate() {
            let next_hop = (n < more.len()).then_some(route.next_hop);
            let change = Change { prefix: route.prefix, next_hop };
            rib.apply(change);
            assert_eq!(instance.patch(&rib, &[change]), Outcome::Applied);
            if n % 16 == 0 {
                verify("poptrie", &*instance.fib(), &rib, probe::edges(&rib));
            }
        }
        verify("poptrie", &*instance.fib(), &rib, probe::edges(&rib).chain(probe::edges(&other)));
        assert_eq!(
            instance.fib().footprint(),
            compile(&Poptrie(IsaChoice::Best), &rib).footprint(),
            "seed {seed}"
        );
    }
}

#[test]
fn patched_tables_are_as_small_as_compiled_ones() {
    patched_is_as_small_as_compiled::<u32>();
    patched_is_as_small_as_compiled::<u128>();
}

fn flap<A: Address>(rib: &mut Rib<A>, prefix: Prefix<A>, n: u16) -> Change<A> {
    let change = Change { prefix, next_hop: (!n.is_multiple_of(3)).then_some(NextHop(n % 3)) };
    rib.apply(change);
    change
}

/// More changes than there are places: the places of replaced parts are used again once their readers have ended.
#[test]
fn replaced_parts_are_used_again() {
    let mut rib = table::<u128>(&[("2001:db8::/32", 7), ("2001:db8::1/128", 8)]);
    let mut instance = Poptrie(IsaChoice::Best).compile(&rib).unwrap();
    let prefix: Prefix<u128> = "2001:db8::4/126".parse().unwrap();
    for n in 0..30_000 {
        let change = flap(&mut rib, prefix, n);
        assert_eq!(instance.patch(&rib, &[change]), Outcome::Applied, "change {n}");
    }
    verify("poptrie", &*instance.fib(), &rib, probe::edges(&rib));
}

/// A reader that keeps its view finally causes a rebuild, but never a wrong answer.
#[test]
fn a_view_keeps_the_parts_that_it_can_reach() {
    let mut rib = table::<u128>(&[("2001:db8::/32", 7), ("2001:db8::1/128", 8)]);
    let mut instance = Poptrie(IsaChoice::Best).compile(&rib).unwrap();
    let prefix: Prefix<u128> = "2001:db8::4/126".parse().unwrap();
    let held = instance.fib();
    let mut applied = rib.clone();
    for n in 0.. {
        let change = flap(&mut rib, prefix, n);
        match instance.patch(&rib, &[change]) {
            Outcome::Applied => applied = rib.clone(),
            outcome => {
                assert_eq!(outcome, Outcome::Rebuild);
                break;
            }
        }
    }
    verify("poptrie", &*held, &applied, probe::edges(&rib));
    verify("poptrie", &*instance.fib(), &applied, probe::edges(&rib));
    drop(held);
    let again = Change { prefix, next_hop: rib.get(prefix) };
    assert_eq!(instance.patch(&rib, &[again]), Outcome::Applied, "there is room again");
    verify("poptrie", &*instance.fib(), &rib, probe::edges(&rib));
}
