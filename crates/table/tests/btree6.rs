//! `btree6` with the deepest and fullest trees, and with many copies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fullview_table::fib::btree6::Btree6;
use fullview_table::fib::{Algorithm, CompileError, Outcome, registry};
use fullview_table::simd::{Isa, IsaChoice};
use fullview_table::{Address, Change, NextHop, Prefix, Rib, probe};

use support::{Follower, verify};

fn follower(rib: &Rib<u128>) -> Follower<u128> {
    Follower::new(registry::find("btree6").unwrap(), rib)
}

fn prefix(text: &str) -> Prefix<u128> {
    text.parse().unwrap()
}

fn change(rib: &mut Rib<u128>, follower: &mut Follower<u128>, prefix: Prefix<u128>, hop: Option<u16>) {
    let change = Change { prefix, next_hop: hop.map(NextHop) };
    rib.apply(change);
    follower.follow(rib, &[change]);
}

/// Long prefixes below three /32s: trees below trees below trees.
fn long_prefixes(count: usize) -> Rib<u128> {
    let mut rib = Rib::default();
    rib.announce(prefix("2001:db8::/32"), NextHop(1));
    for (i, draw) in probe::uniform::<u128>(11).take(count).enumerate() {
        let block = prefix(["2001:db8::/32", "2001:db9::/32", "2a00:1::/32"][i % 3]);
        let len = [56, 64, 80, 112, 127, 128][i % 6];
        // A quarter of the prefixes share 60 bits, so that some blocks are full.
        let addr = if i % 4 == 0 { draw & (u128::MAX >> 60) } else { draw & (u128::MAX >> 32) };
        rib.announce(Prefix::containing(block.first() | addr, len), NextHop((draw >> 96) as u16 % 500 + 1));
    }
    rib
}

#[test]
fn the_next_hop_that_is_an_escape_is_refused() {
    let mut rib = Rib::default();
    let mut instance = Btree6(IsaChoice::Best).compile(&rib).unwrap();
    let change = Change { prefix: prefix("2001:db8::/32"), next_hop: Some(NextHop(u16::MAX)) };
    rib.apply(change);
    assert_eq!(instance.patch(&rib, &[change]), Outcome::Rebuild);
    let error = Btree6(IsaChoice::Best).compile(&rib).err().unwrap();
    assert!(matches!(error, CompileError::Limit { what: "next hops", .. }), "{error}");
}

#[test]
fn long_prefixes_below_a_few_short_ones() {
    let rib = long_prefixes(20_000);
    verify("btree6", &*follower(&rib).fib(), &rib, probe::edges(&rib));
}

/// Addresses that end in one tree and addresses that lead deeper: single ones, runs, and alternating ones, so that they
/// are in other places of every batch.
fn mixed_addrs(rib: &Rib<u128>) -> Vec<u128> {
    let (deep, shallow): (Vec<u128>, Vec<u128>) = probe::in_prefix(rib, 3)
        .take(4_000)
        .partition(|addr| rib.longest_match(*addr).unwrap().prefix.len() > 48);
    let (mut deep, mut shallow) = (deep.into_iter().cycle(), shallow.into_iter().cycle());
    let runs = [1, 40, 3, 7, 100, 1, 16, 2, 5, 64, 33, 200].into_iter().cycle().enumerate();
    let runs = runs.flat_map(|(i, length)| std::iter::repeat_n(i % 2 == 0, length));
    runs.take(3_000).map(|is_deep| if is_deep { deep.next() } else { shallow.next() }.unwrap()).collect()
}

#[test]
fn batches_in_which_some_addresses_lead_deeper() {
    let mut rib = long_prefixes(3_000);
    (0..3_000u128).for_each(|i| {
        let first = prefix("2001:dc0::/32").first() | i << 80;
        rib.announce(Prefix::containing(first, 48), NextHop(i as u16 % 90 + 1));
    });
    let addrs = mixed_addrs(&rib);
    for isa in Isa::available() {
        let fib = Btree6(IsaChoice::Only(isa)).compile(&rib).unwrap().fib();
        for length in [16, 31, 32, 47, 64, 96, 200, 256, 3_000] {
            for batch in addrs.chunks(length) {
                let mut found = vec![NextHop::NONE; batch.len()];
                fib.lookup_batch(batch, &mut found);
                for (addr, found) in batch.iter().zip(found) {
                    let right = rib.longest_match(*addr).unwrap().next_hop;
                    assert_eq!(found, right, "{} in {length}: {addr:#x}", isa.name());
                }
            }
        }
    }
}

/// More ranges below one /16 than a tree can hold.
fn crowded() -> Rib<u128> {
    let mut rib = Rib::default();
    for i in 0..30_000u128 {
        // Half of them are close together, the others everywhere.
        let at = if i % 2 == 0 { i << 1 } else { i.wrapping_mul(0x9e37_79b9) & 0xffff_ffff };
        let first = prefix("2001::/16").first() | at << 80;
        rib.announce(Prefix::containing(first, 48), NextHop((i % 300) as u16 + 1));
    }
    rib
}

#[test]
fn a_tree_that_would_be_too_large_is_divided() {
    let rib = crowded();
    verify("btree6", &*follower(&rib).fib(), &rib, probe::edges(&rib));
}

/// Makes changes of all lengths in tables where most slots lead deeper. Verifies the changed addresses after each
/// change, and all at the end.
fn follows(mut rib: Rib<u128>, seed: u64, changes: usize) {
    let mut follower = follower(&rib);
    let known: Vec<Prefix<u128>> = rib.iter().map(|route| route.prefix).collect();
    for (i, draw) in probe::uniform::<u128>(seed).take(changes).enumerate() {
        let near = known[draw as usize % known.len()];
        let len = if i % 3 == 0 { near.len() } else { 17 + (draw >> 64) as u8 % 112 };
        let prefix = Prefix::containing(near.first() | (draw & !u128::mask(near.len())), len);
        change(&mut rib, &mut follower, prefix, (i % 2 == 0).then_some((draw >> 100) as u16 % 700 + 1));
        let around =
            [prefix.first(), prefix.last(), prefix.first().wrapping_sub(1), prefix.last().wrapping_add(1)];
        verify("btree6", &*follower.fib(), &rib, around.into_iter());
    }
    verify("btree6", &*follower.fib(), &rib, probe::edges(&rib));
}

#[test]
fn changes_where_most_slots_lead_deeper() {
    follows(long_prefixes(3_000), 21, 2_000);
}

#[test]
fn changes_in_a_divided_tree() {
    follows(crowded(), 22, 300);
}

/// New boundaries without end, and a reader that never fetches the newest view: its lines must not change, so space
/// runs out and the table is compiled again. If the views end, lines are used again.
#[test]
fn lines_are_used_again_when_no_reader_holds_them() {
    let mut rib = Rib::default();
    rib.announce(prefix("2001::/16"), NextHop(1));
    let mut follower = follower(&rib);
    let place = |i: u128| Prefix::containing(prefix("2001::/16").first() | i << 84, 44);
    for i in 0..8_000 {
        change(&mut rib, &mut follower, place(i), Some(2 + i as u16 % 7));
        if i >= 40 {
            change(&mut rib, &mut follower, place(i - 40), None);
        }
    }
    let without_reader = follower.rebuilds;
    let held = follower.fib();
    let expected = rib.clone();
    for i in 8_000..16_000 {
        change(&mut rib, &mut follower, place(i), Some(2 + i as u16 % 7));
        change(&mut rib, &mut follower, place(i - 40), None);
    }
    assert_eq!(without_reader, 0, "rebuilds without a reader");
    assert!(follower.rebuilds > 0, "a reader holds its lines");
    verify("btree6", &*follower.fib(), &rib, probe::edges(&rib));
    // Boundaries stay and answers change in place, but never to those of another address.
    let answers = |fib: &dyn fullview_table::fib::Fib<u128>| fib.lookup(prefix("2001:ffff::/32").first());
    assert_eq!(answers(&*held), expected.longest_match(prefix("2001:ffff::/32").first()).unwrap().next_hop);
}

/// Rows are copied and written again while a reader looks up: neighbours of the changed prefixes keep their answer.
#[test]
fn neighbours_keep_their_answer_while_lines_are_copied() {
    let mut rib = Rib::default();
    rib.announce(prefix("2001::/16"), NextHop(1));
    let block = |i: u128| Prefix::containing(prefix("2001:db8::/32").first() | i << 84, 44);
    for i in 0..200 {
        rib.announce(block(2 * i), NextHop(9));
    }
    let mut follower = follower(&rib);
    let keys: Vec<u128> = (0..200).map(|i| block(2 * i).last()).collect();
    let (view, done) = (std::sync::Mutex::new(follower.fib()), AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = vec![NextHop::NONE; keys.len()];
            while !done.load(Ordering::Relaxed) {
                let fib = std::sync::Arc::clone(&view.lock().unwrap());
                fib.lookup_batch(&keys, &mut seen);
                assert!(seen.iter().all(|hop| *hop == NextHop(9)), "{seen:?}");
            }
        });
        for (i, draw) in probe::uniform::<u128>(5).take(20_000).enumerate() {
            let gap = block(2 * (draw as u16 as u128 % 200) + 1).first() | (draw >> 64 & 0xf) << 80;
            let hop = (i % 2 == 0).then_some((draw >> 100) as u16 % 5 + 2);
            change(&mut rib, &mut follower, Prefix::containing(gap, 48), hop);
            *view.lock().unwrap() = follower.fib();
            if reader.is_finished() {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    verify("btree6", &*follower.fib(), &rib, probe::edges(&rib));
}

/// Lines that list deeper trees are written over former branches, whose keys must never be taken for places: here they
/// would be places just after the last line of a table that was compiled from one route.
#[test]
fn keys_of_former_branches_are_not_taken_for_places() {
    let mut rib = Rib::default();
    rib.announce(prefix("2000::/3"), NextHop(1));
    let mut follower = follower(&rib);
    let lines = 1 + (1 << 14);
    let block = |top: u128| Prefix::containing(top << 112, 16);
    let at = |top: u128, key: u128, len| Prefix::containing(top << 112 | key << 80, len);
    for (i, draw) in probe::uniform::<u128>(31).take(6_000).enumerate() {
        let (top, hop) = (0x2000 + draw % 8, Some(2 + (draw >> 40) as u16 % 4));
        // A block that loses all its routes has one answer when its own route changes, so its branches are retired.
        if i % 300 < 8 {
            let top = 0x2000 + i as u128 % 300;
            (0..64).for_each(|key| change(&mut rib, &mut follower, at(top, lines * 64 + key, 48), None));
            change(&mut rib, &mut follower, block(top), hop);
        }
        let len = [48, 64][(draw >> 20) as usize % 2];
        let key = (draw >> 24) % 200;
        match i % 3 {
            0 => change(&mut rib, &mut follower, at(0x3000 + (draw >> 64) % 64, key, len), hop),
            _ => change(&mut rib, &mut follower, at(top, lines * 64 + key % 64, 48), hop),
        }
    }
    verify("btree6", &*follower.fib(), &rib, probe::edges(&rib));
}

/// Nested trees need more lines than there are routes: a table that was just compiled still has spare lines.
#[test]
fn a_full_table_is_not_compiled_again_for_each_boundary() {
    let mut rib = Rib::default();
    for draw in probe::uniform::<u128>(3).take(3_124) {
        let len = 49 + draw as u8 % 79;
        rib.announce(
            Prefix::containing(0x2001 << 112 | (draw >> 16), len),
            NextHop((draw >> 8) as u16 % 500 + 1),
        );
    }
    let mut follower = follower(&rib);
    for i in 0..200 {
        let place = Prefix::containing(0x2001 << 112 | (i + 7) << 90, 64);
        change(&mut rib, &mut follower, place, Some(9));
        change(&mut rib, &mut follower, place, None);
    }
    assert!(follower.rebuilds <= 2, "{} rebuilds", follower.rebuilds);
    verify("btree6", &*follower.fib(), &rib, probe::edges(&rib));
}

/// A block gets one answer after the other: trees of answers without links are freed.
#[test]
fn trees_of_former_answers_are_freed() {
    let mut rib = Rib::default();
    rib.announce(prefix("2001::/16"), NextHop(1));
    let mut follower = follower(&rib);
    let before = follower.fib().footprint().total();
    for hop in 2..20_000 {
        change(&mut rib, &mut follower, prefix("2001::/16"), Some(hop));
    }
    assert_eq!((follower.rebuilds, follower.fib().footprint().total()), (0, before));
    verify("btree6", &*follower.fib(), &rib, probe::edges(&rib));
}
