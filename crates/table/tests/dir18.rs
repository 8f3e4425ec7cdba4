//! `dir18`: arrays that move while readers look up, parts, and running out of leaves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use fullview_table::fib::dir18::Dir18;
use fullview_table::fib::{Algorithm, CompileError, Fib, Outcome};
use fullview_table::simd::IsaChoice;
use fullview_table::{Change, NextHop, Prefix, Rib, probe};

use support::{Follower, compile, table, verify};

fn announce(rib: &mut Rib<u32>, follower: &mut Follower<u32>, prefix: Prefix<u32>, hop: Option<u16>) {
    let change = Change { prefix, next_hop: hop.map(NextHop) };
    rib.apply(change);
    follower.follow(rib, &[change]);
}

/// The first next hop with which a table has leaves of two bytes.
const WIDE: u16 = 255;

fn leaf_bytes(fib: &dyn Fib<u32>) -> usize {
    fib.footprint().0.iter().find(|part| part.0 == "leaves").unwrap().1
}

/// The number of leaves beyond the fixed ones, in this table and in the same with next hops that need two bytes.
fn arrays(routes: &[(&str, u16)]) -> [usize; 2] {
    let mut rib = table(routes);
    let narrow = leaf_bytes(&*compile(&Dir18(IsaChoice::Best), &rib)) - (1 << 8);
    // This route is in a block with one next hop, so it adds no leaves.
    rib.announce("240.0.0.0/4".parse().unwrap(), NextHop(WIDE));
    [narrow, leaf_bytes(&*compile(&Dir18(IsaChoice::Best), &rib)) / 2 - (1 << 16)]
}

#[test]
fn a_block_has_the_leaves_that_its_boundaries_need() {
    assert_eq!(arrays(&[]), [0; 2]);
    assert_eq!(arrays(&[("10.0.0.0/8", 1), ("10.64.0.0/18", 2)]), [0; 2], "one answer a block");
    assert_eq!(arrays(&[("10.0.0.0/19", 1)]), [2; 2]);
    assert_eq!(arrays(&[("10.0.0.0/24", 1)]), [64; 2]);
    assert_eq!(arrays(&[("10.0.0.0/24", 1), ("10.0.64.0/20", 1)]), [64 + 4; 2]);
    // The entries of the parts take twice as many leaves of half the size.
    assert_eq!(
        arrays(&[("10.0.0.0/25", 1)]),
        [512 + 2, 256 + 2],
        "a divided block, and one part of two leaves"
    );
    assert_eq!(arrays(&[("10.0.0.0/32", 1), ("10.0.63.255/32", 2)]), [512 + 2 * 256, 256 + 2 * 256]);
    assert_eq!(arrays(&[("10.0.0.0/24", 1), ("10.0.1.0/24", 1)]), [32; 2], "equal neighbours are one range");
}

/// A hundred thousand host routes in fifty thousand /24s: all blocks are divided.
fn host_routes_everywhere(next_hops: u16) {
    let mut rib = Rib::default();
    for (n, addr) in probe::uniform::<u32>(1).take(50_000).enumerate() {
        let hop = NextHop(n as u16 % next_hops + 1);
        rib.announce(Prefix::host(addr), hop);
        rib.announce(Prefix::host(addr ^ 0x55), hop);
        rib.announce(Prefix::containing(addr, 18 + n as u8 % 12), NextHop(n as u16 % 7));
    }
    verify("dir18", &*compile(&Dir18(IsaChoice::Best), &rib), &rib, probe::edges(&rib).step_by(3));
}

#[test]
fn host_routes_everywhere_in_leaves_of_two_bytes() {
    host_routes_everywhere(1_000);
}

#[test]
fn host_routes_everywhere_in_leaves_of_one_byte() {
    host_routes_everywhere(254);
}

/// The first next hop that does not fit in one byte causes a rebuild with wider leaves; once it is withdrawn, the next
/// compile makes the narrow table.
#[test]
fn a_table_becomes_wide_with_its_next_hops_and_narrow_again() {
    let mut rib = table::<u32>(&[("10.0.0.0/8", WIDE - 1), ("10.0.0.128/25", 7)]);
    let mut follower = Follower::new(&Dir18(IsaChoice::Best), &rib);
    let narrow = leaf_bytes(&*follower.fib());
    let wide: Prefix<u32> = "10.1.0.0/16".parse().unwrap();
    announce(&mut rib, &mut follower, wide, Some(WIDE));
    assert_eq!(follower.rebuilds, 1);
    assert_eq!(leaf_bytes(&*follower.fib()), 2 * ((1 << 16) + 256 + 2));
    verify("dir18", &*follower.fib(), &rib, probe::edges(&rib));
    announce(&mut rib, &mut follower, wide, None);
    assert_eq!(leaf_bytes(&*compile(&Dir18(IsaChoice::Best), &rib)), narrow);
}

/// The RIB has all changes of a batch when the first of them is applied, and the table serves until it is compiled again.
#[test]
fn a_batch_with_a_next_hop_that_does_not_fit_changes_nothing() {
    let change = |prefix: &str, hop: Option<u16>| Change {
        prefix: prefix.parse().unwrap(),
        next_hop: hop.map(NextHop),
    };
    let batches = [
        vec![
            change("10.0.0.0/8", Some(1)),
            change("10.1.0.0/16", Some(WIDE + 45)),
            change("10.2.0.0/24", Some(258)),
        ],
        vec![change("10.0.0.1/32", None), change("10.0.0.0/8", Some(WIDE))],
    ];
    for batch in batches {
        let before = table::<u32>(&[("10.0.0.1/32", 7), ("10.2.0.128/25", 9)]);
        let mut rib = before.clone();
        let mut instance = Dir18(IsaChoice::Best).compile(&rib).unwrap();
        batch.iter().for_each(|change| _ = rib.apply(*change));
        assert_eq!(instance.patch(&rib, &batch), Outcome::Rebuild);
        verify("dir18", &*instance.fib(), &before, probe::edges(&rib));
    }
}

#[test]
fn the_next_hop_that_marks_parts_is_refused() {
    let mut rib = table::<u32>(&[("10.0.0.0/8", 1)]);
    let mut instance = Dir18(IsaChoice::Best).compile(&rib).unwrap();
    let change = Change { prefix: "10.1.0.0/16".parse().unwrap(), next_hop: Some(NextHop(u16::MAX)) };
    rib.apply(change);
    assert_eq!(instance.patch(&rib, &[change]), Outcome::Rebuild);
    let error = Dir18(IsaChoice::Best).compile(&rib).err().unwrap();
    assert!(matches!(error, CompileError::Limit { what: "next hops", .. }), "{error}");
}

/// As long as a reader keeps the first view, no array that it may be in is used again, so leaves run out; with a reader
/// that fetches the table now and then there is no rebuild.
#[test]
fn leaves_run_out_only_if_a_reader_keeps_its_view() {
    for (keeps, expected) in [(true, 1..100), (false, 0..1)] {
        let mut rib = table::<u32>(&[("0.0.0.0/1", 1)]);
        let mut follower = Follower::new(&Dir18(IsaChoice::Best), &rib);
        let kept = keeps.then(|| follower.fib());
        let block: Prefix<u32> = "10.0.0.0/18".parse().unwrap();
        for turn in 0..5_000u32 {
            announce(
                &mut rib,
                &mut follower,
                Prefix::containing(block.first() + turn % 64 * 256, 26),
                Some(2),
            );
            announce(&mut rib, &mut follower, Prefix::containing(block.first() + turn % 64 * 256, 26), None);
            // With one answer for the whole block its array is retired.
            rib.announce(block, NextHop(3));
            announce(&mut rib, &mut follower, block, None);
        }
        assert!(expected.contains(&follower.rebuilds), "{} rebuilds, kept: {keeps}", follower.rebuilds);
        verify("dir18", &*follower.fib(), &rib, probe::edges(&rib));
        drop(kept);
    }
}

/// Routes that flap without end leave the table as small as its finest arrays.
#[test]
fn flapping_routes_are_stores_into_existing_leaves() {
    let mut rib = table::<u32>(&[("10.0.0.0/8", 1), ("10.0.0.0/24", 2), ("10.0.1.128/25", 3)]);
    let mut follower = Follower::new(&Dir18(IsaChoice::Best), &rib);
    let before = leaf_bytes(&*follower.fib());
    for prefix in ["10.0.0.0/24", "10.0.1.128/25", "10.0.0.0/22"].map(|prefix| prefix.parse().unwrap()) {
        for hop in [None, Some(4), None, Some(5)] {
            announce(&mut rib, &mut follower, prefix, hop);
            assert_eq!(leaf_bytes(&*follower.fib()), before, "{prefix}");
            verify("dir18", &*follower.fib(), &rib, probe::edges(&rib));
        }
    }
    assert_eq!(follower.rebuilds, 0);
}

/// A reader looks up without a pause, and a writer makes one block coarser and finer, divides it and undivides it. The
/// writer publishes the steps begun and done: an answer must be right after one of the steps in between.
fn every_answer_is_that_of_a_state_during_the_lookup(next_hops: usize) {
    const STEPS: usize = 6_000;
    let block: Prefix<u32> = "10.0.0.0/18".parse().unwrap();
    let watched: Vec<u32> = (0..64).map(|n| block.first() + n * 256 + n).collect();
    let steps: Vec<Change<u32>> = (0..STEPS)
        .map(|step| {
            let len = [18, 24, 30, 20, 32, 26, 18][step % 7];
            let prefix = Prefix::containing(watched[step * 5 % 64], len);
            Change { prefix, next_hop: (step % 3 > 0).then_some(NextHop((step % next_hops) as u16 + 1)) }
        })
        .collect();
    let start = table::<u32>(&[("10.0.0.0/8", 1), ("11.0.0.0/8", next_hops as u16)]);
    let answers = answers_after_each(&start, &steps, &watched);
    let mut rib = start.clone();
    let mut follower = Follower::new(&Dir18(IsaChoice::Best), &rib);
    let published = Mutex::new(follower.fib());
    let (begun, done, over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let sweeps = AtomicUsize::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = vec![NextHop::NONE; watched.len()];
            while !over.load(Ordering::SeqCst) {
                let fib = Arc::clone(&published.lock().unwrap());
                for _ in 0..4 {
                    let from = done.load(Ordering::SeqCst);
                    fib.lookup_batch(&watched, &mut seen);
                    let to = begun.load(Ordering::SeqCst);
                    for (n, hop) in seen.iter().enumerate() {
                        let allowed = &mut answers[from..=to].iter();
                        assert!(allowed.any(|state| state[n] == *hop), "{hop:?} for {n} in {from}..={to}");
                    }
                    sweeps.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        for (n, step) in steps.iter().enumerate() {
            if n % 8 == 0 {
                let before = sweeps.load(Ordering::SeqCst);
                while sweeps.load(Ordering::SeqCst) == before && !reader.is_finished() {
                    thread::yield_now();
                }
            }
            begun.store(n + 1, Ordering::SeqCst);
            rib.apply(*step);
            follower.follow(&rib, &[*step]);
            done.store(n + 1, Ordering::SeqCst);
            *published.lock().unwrap() = follower.fib();
        }
        over.store(true, Ordering::SeqCst);
        reader.join().unwrap();
    });
    assert_eq!(follower.rebuilds, 0, "a rebuild, so that the reader did not see the patches");
    verify("dir18", &*follower.fib(), &rib, probe::edges(&rib).chain(watched));
}

#[test]
fn readers_see_states_in_leaves_of_two_bytes() {
    every_answer_is_that_of_a_state_during_the_lookup(500);
}

#[test]
fn readers_see_states_in_leaves_of_one_byte() {
    every_answer_is_that_of_a_state_during_the_lookup(254);
}

/// The right answers for the watched addresses before the first step and after each.
fn answers_after_each(start: &Rib<u32>, steps: &[Change<u32>], watched: &[u32]) -> Vec<Vec<NextHop>> {
    let mut rib = start.clone();
    let answers = |rib: &Rib<u32>| -> Vec<NextHop> {
        let answer = |addr: &u32| rib.longest_match(*addr).map_or(NextHop::NONE, |route| route.next_hop);
        watched.iter().map(answer).collect()
    };
    let mut all = vec![answers(&rib)];
    for step in steps {
        rib.apply(*step);
        all.push(answers(&rib));
    }
    all
}
