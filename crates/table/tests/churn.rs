//! Tables that change: every algorithm follows its RIB, readers see old or new answers, and no structure grows without
//! end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fullview_table::fib::Algorithm;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{Address, Change, NextHop, Prefix, Rib, probe};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use support::{Follower, random_table, shared_lines, table, verify};

/// Changes that concern each other: few addresses, all lengths, withdrawals as often as announcements.
fn changes<A: Registered>() -> impl Strategy<Value = Vec<Change<A>>> {
    let change = (0..24u64, 0..=A::BITS, prop::option::of(1..40u16)).prop_map(|(place, len, hop)| {
        let addr: A = probe::uniform(place % 6).nth(place as usize / 6).unwrap_or(A::zero());
        Change { prefix: Prefix::containing(addr, len), next_hop: hop.map(NextHop) }
    });
    prop::collection::vec(change, 1..40)
}

fn apply<A: Address>(rib: &mut Rib<A>, changes: &[Change<A>]) {
    for change in changes {
        rib.apply(*change);
    }
}

/// Every registered algorithm; changes do not depend on the instruction set of lookups.
fn registered<A: Registered>() -> impl Iterator<Item = &'static dyn Algorithm<A>> {
    A::ALGORITHMS.iter().copied()
}

/// Proptest with a fixed seed: a failure is repeated, and shrunk.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn follows_random_changes<A: Registered>() {
    for algorithm in registered::<A>() {
        let name = algorithm.name();
        // These include prefixes as short as /0, each of which rewrites up to 2^24 entries of a direct table.
        runner(if name.starts_with("dpdk") { 8 } else { 300 })
            .run(&changes::<A>(), |changes| {
                let mut rib = random_table::<A>(5, 20, 30);
                let mut follower = Follower::new(algorithm, &rib);
                for batch in changes.chunks(3) {
                    apply(&mut rib, batch);
                    follower.follow(&rib, batch);
                    let changed =
                        batch.iter().flat_map(|change| [change.prefix.first(), change.prefix.last()]);
                    verify(name, &*follower.fib(), &rib, changed.chain(probe::edges(&rib)));
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn random_changes_inet() {
    follows_random_changes::<u32>();
}

#[test]
fn random_changes_inet6() {
    follows_random_changes::<u128>();
}

/// The real updates of one exchange point: `time a|w prefix next-hop`.
fn linx_updates() -> Option<Vec<Change<u32>>> {
    let lines = shared_lines("linx-2014-updates.txt.gz")?;
    let change = |line: String| {
        let fields: Vec<&str> = line.split(' ').collect();
        let router: std::net::Ipv4Addr = fields[3].parse().unwrap();
        let next_hop = (fields[1] == "a").then_some(NextHop(router.to_bits() as u16 % 500 + 1));
        Change { prefix: fields[2].parse().unwrap(), next_hop }
    };
    Some(lines.map(change).collect())
}

/// Changes one by one for algorithms that patch; for the others a table is compiled a few times.
#[test]
fn real_updates() {
    let Some(updates) = linx_updates() else { return };
    assert!(updates.len() > 20_000, "{} updates only", updates.len());
    for algorithm in registered::<u32>().filter(|algorithm| algorithm.name() != "linear") {
        let mut rib = Rib::default();
        let mut follower = Follower::new(algorithm, &rib);
        for many in updates.chunks(4_000) {
            let patches = !matches!(algorithm.name(), "bsearch4" | "radix_lockless");
            for few in many.chunks(if patches { 1 } else { many.len() }) {
                apply(&mut rib, few);
                follower.follow(&rib, few);
            }
            verify(algorithm.name(), &*follower.fib(), &rib, probe::edges(&rib));
        }
    }
}

/// A reader looks up without a pause while the writer changes routes: each address has its old answer or its new one.
fn readers_see_old_or_new<A: Registered>(
    name: &str,
    stable: &[(&str, u16)],
    flipped: &str,
    answers: &[NextHop],
) {
    let algorithm = registry::find::<A>(name).unwrap();
    let mut rib = table::<A>(stable);
    let prefix: Prefix<A> = flipped.parse().unwrap();
    let mut follower = Follower::new(algorithm, &rib);
    let fib = follower.fib();
    let keys: Vec<A> = (0..64u32).map(|i| prefix.first() + A::from(i).unwrap()).collect();
    let (ready, done) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            ready.wait();
            let mut seen = vec![NextHop::NONE; keys.len()];
            while !done.load(Ordering::Relaxed) {
                fib.lookup_batch(&keys, &mut seen);
                let wrong = seen.iter().find(|hop| !answers.contains(hop));
                assert_eq!(wrong, None, "{name}");
                assert!(answers.contains(&fib.lookup(keys[0])), "{name}");
            }
        });
        ready.wait();
        for flip in 0..3_000 {
            let next_hop = [Some(NextHop(2)), Some(NextHop(3)), None][flip % 3];
            let change = Change { prefix, next_hop };
            rib.apply(change);
            follower.follow(&rib, &[change]);
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(follower.rebuilds, 0, "{name}: the reader did not watch what was patched");
    verify(name, &*fib, &rib, keys.into_iter());
}

#[test]
fn readers_of_a_patched_table_see_old_or_new() {
    let answers = [NextHop(1), NextHop(2), NextHop(3)];
    for name in ["radix", "dpdk_lpm4", "poptrie", "dir18"] {
        for flipped in ["10.0.0.0/16", "10.0.0.0/26"] {
            readers_see_old_or_new::<u32>(name, &[("10.0.0.0/8", 1)], flipped, &answers);
        }
    }
    for name in ["radix", "dpdk_lpm6", "poptrie", "btree6"] {
        for flipped in ["2001:db8::/32", "2001:db8::/64", "2001:db8::/122"] {
            // With the host route the table has enough groups for the whole depth.
            let stable = [("2001::/16", 1), ("2001:db8:ffff::1/128", 4)];
            readers_see_old_or_new::<u128>(name, &stable, flipped, &answers);
        }
    }
}

/// New groups while a reader looks up: block after block gets its first longer prefix, and the reader looks up the last
/// address of the next blocks. Their answer never changes, but a group linked before it is filled would lose it.
fn readers_see_whole_groups<A: Registered>(name: &str) {
    const BLOCKS: u32 = 500;
    const WATCHED: usize = 16;
    let block = |number: u32| A::from(number).unwrap() << usize::from(A::BITS - 24);
    let mut rib = Rib::default();
    rib.announce(Prefix::containing(block(0x0a_0000), 8), NextHop(1));
    // As many groups again are spare, so that none of the changes below needs a rebuild.
    for number in 0..BLOCKS {
        rib.announce(Prefix::containing(block(0x0a_8000 + number), 25), NextHop(5));
    }
    let mut follower = Follower::new(registry::find::<A>(name).unwrap(), &rib);
    let fib = follower.fib();
    let blocks: Vec<Prefix<A>> = (0..BLOCKS).map(|n| Prefix::containing(block(0x0a_0000 + n), 24)).collect();
    let lasts: Vec<A> = blocks.iter().map(|block| block.last()).collect();
    let (next, sweeps) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = [NextHop::NONE; WATCHED];
            while let Some(watched) =
                lasts.get(next.load(Ordering::Relaxed)..).filter(|left| !left.is_empty())
            {
                let watched = &watched[..watched.len().min(WATCHED)];
                fib.lookup_batch(watched, &mut seen);
                assert!(seen[..watched.len()].iter().all(|hop| *hop == NextHop(1)), "{name}: {seen:?}");
                sweeps.fetch_add(1, Ordering::Relaxed);
            }
        });
        for (n, block) in blocks.iter().enumerate() {
            // The reader is looking up during every change, however busy the machine is.
            let before = sweeps.load(Ordering::Relaxed);
            while sweeps.load(Ordering::Relaxed) == before && !reader.is_finished() {
                thread::yield_now();
            }
            let change = Change { prefix: Prefix::containing(block.first(), 26), next_hop: Some(NextHop(2)) };
            rib.apply(change);
            follower.follow(&rib, &[change]);
            next.store(n + 1, Ordering::Relaxed);
        }
        reader.join().unwrap();
    });
    assert_eq!(follower.rebuilds, 0, "{name}: the reader did not watch what was patched");
    verify(name, &*fib, &rib, probe::edges(&rib));
}

#[test]
fn readers_never_see_a_group_half_filled() {
    readers_see_whole_groups::<u32>("dpdk_lpm4");
    readers_see_whole_groups::<u32>("dir18");
    readers_see_whole_groups::<u128>("dpdk_lpm6");
    readers_see_whole_groups::<u128>("btree6");
}

/// Announcing and withdrawing the same prefixes again and again changes neither the answers nor the size.
fn flapping_leaves_no_trace<A: Registered>(routes: &[(&str, u16)], prefixes: &[Prefix<A>]) {
    for algorithm in registered::<A>() {
        let name = algorithm.name();
        let mut rib = table::<A>(routes);
        let mut follower = Follower::new(algorithm, &rib);
        let mut sizes = Vec::new();
        for round in 0..40 {
            for next_hop in [Some(NextHop(7 + round % 2)), None] {
                for &prefix in prefixes {
                    let change = Change { prefix, next_hop };
                    rib.apply(change);
                    follower.follow(&rib, &[change]);
                }
            }
            sizes.push(follower.fib().footprint().total());
        }
        verify(
            name,
            &*follower.fib(),
            &rib,
            probe::edges(&table::<A>(routes)).chain(probe::uniform(4).take(500)),
        );
        assert!(sizes[1..].iter().all(|size| *size <= sizes[0]), "{name} grows: {sizes:?}");
    }
}

#[test]
fn flapping_inet() {
    let prefixes = ["10.0.0.1/32", "10.0.1.0/30", "10.0.0.0/24", "10.0.0.0/9"].map(|p| p.parse().unwrap());
    flapping_leaves_no_trace::<u32>(&[("10.0.0.0/8", 1), ("10.0.0.0/25", 2)], &prefixes);
}

#[test]
fn flapping_inet6() {
    let prefixes = ["2001:db8::1/128", "2001:db8:1::/52", "2001:db8::/48"].map(|p| p.parse().unwrap());
    flapping_leaves_no_trace::<u128>(&[("2001::/16", 1), ("2001:db8::/33", 2)], &prefixes);
}

/// Long prefixes in new places use up the groups; a rebuild frees those no longer needed.
#[test]
fn groups_of_withdrawn_prefixes_are_freed() {
    let algorithm = registry::find::<u32>("dpdk_lpm4").unwrap();
    let mut rib = table::<u32>(&[("10.0.0.0/8", 1)]);
    let mut follower = Follower::new(algorithm, &rib);
    let places = 20;
    for place in 0..places {
        let prefix = Prefix::containing(0x0a00_0000 + (place << 8), 32);
        for next_hop in [Some(NextHop(2)), None] {
            let change = Change { prefix, next_hop };
            rib.apply(change);
            follower.follow(&rib, &[change]);
        }
        assert!(follower.fib().footprint().total() <= (32 << 20) + 8 * 512, "{place}");
    }
    assert_eq!(
        follower.rebuilds,
        places as usize / 8,
        "there are eight groups at first and after each rebuild"
    );
    verify("dpdk_lpm4", &*follower.fib(), &rib, probe::uniform(6).take(1_000));
}

/// More next hops are added than entries of two bytes can number.
#[test]
fn a_narrow_table_widens_when_it_must() {
    let algorithm = registry::find::<u32>("dpdk_lpm4").unwrap();
    let mut rib = table::<u32>(&[("10.0.0.0/8", 1)]);
    let mut follower = Follower::new(algorithm, &rib);
    for hop in [32_767, 32_768, NextHop::MAX] {
        let prefix = Prefix::containing(u32::from(hop) << 16, 20);
        let change = Change { prefix, next_hop: Some(NextHop(hop)) };
        rib.apply(change);
        follower.follow(&rib, &[change]);
        verify("dpdk_lpm4", &*follower.fib(), &rib, probe::edges(&rib));
    }
    assert_eq!(follower.rebuilds, 1);
    assert_eq!(follower.fib().footprint().0[0], ("top", 64 << 20));
}
