//! `dxr`: chunks of every kind, shared chunks, the choice of D, and batches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use fullview_table::fib::dxr::Dxr;
use fullview_table::fib::{Algorithm, Footprint, Instance, Outcome};
use fullview_table::simd::IsaChoice;
use fullview_table::{Change, NextHop, Prefix, Rib, probe};

use support::{compile, full_view, subjects, table, verify};

/// The number of addresses in a chunk.
const CHUNK: u32 = 4096;

fn announce(rib: &mut Rib<u32>, first: u32, len: u8, hop: u16) -> Change<u32> {
    let change = Change { prefix: Prefix::containing(first, len), next_hop: Some(NextHop(hop)) };
    rib.apply(change);
    change
}

fn withdraw(rib: &mut Rib<u32>, first: u32, len: u8) -> Change<u32> {
    let change = Change { prefix: Prefix::containing(first, len), next_hop: None };
    rib.apply(change);
    change
}

/// Announces so many blocks of `len` bits from `first` on, with `hop` and the next hop after it in turns.
fn fill(rib: &mut Rib<u32>, first: u32, len: u8, blocks: u32, hop: u16) {
    for n in 0..blocks {
        announce(rib, first + (n << (32 - len)), len, hop + (n % 2) as u16);
    }
}

fn part(footprint: &Footprint, name: &str) -> usize {
    footprint.0.iter().find(|part| part.0 == name).unwrap_or_else(|| panic!("no {name} in {footprint:?}")).1
}

fn split(rib: &Rib<u32>) -> [&'static str; 3] {
    compile(&Dxr(IsaChoice::Best), rib)
        .footprint()
        .0
        .iter()
        .map(|part| part.0)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

/// Descriptors count up to 16 short ranges and up to 510 long ones; with more ranges the chunk has its own count.
#[test]
fn chunks_of_every_size() {
    for (len, counts) in [(24, &[1, 2, 3, 15, 16][..]), (32, &[1, 2, 3, 508, 509, 510, 511, 512, 4095, 4096])]
    {
        for &count in counts {
            let mut rib = table::<u32>(&[("0.0.0.0/0", 3)]);
            fill(&mut rib, 77 * CHUNK, len, count, 1);
            for (name, algorithm) in subjects::<u32>().iter().filter(|(name, _)| name.starts_with("dxr")) {
                let fib = compile(*algorithm, &rib);
                verify(&format!("{name}, {count} of /{len}"), &*fib, &rib, probe::edges(&rib));
            }
        }
    }
}

/// A range takes two bytes if it begins at a /24 and its next hop has twelve bits.
#[test]
fn ranges_are_short_where_possible() {
    let bytes =
        |routes: &[(&str, u16)]| part(&compile(&Dxr(IsaChoice::Best), &table(routes)).footprint(), "R");
    assert_eq!(bytes(&[("10.0.0.0/23", 1), ("10.0.2.0/24", 4095)]), 8, "three short ranges in two words");
    assert_eq!(bytes(&[("10.0.0.0/23", 1), ("10.0.2.0/24", 4096)]), 12);
    assert_eq!(bytes(&[("10.0.0.0/23", 1), ("10.0.2.0/25", 2)]), 12);
    assert_eq!(bytes(&[("10.0.0.0/20", 1)]), 0, "one next hop needs no range");
}

#[test]
fn equal_chunks_are_stored_once() {
    let mut rib = Rib::default();
    for n in 0..1024 {
        fill(&mut rib, n * CHUNK, 26, 64, 1);
    }
    let footprint = compile(&Dxr(IsaChoice::Best), &rib).footprint();
    assert_eq!(part(&footprint, "R"), 64 * 4, "{footprint:?}");
    announce(&mut rib, 500 * CHUNK, 26, 9);
    let footprint = compile(&Dxr(IsaChoice::Best), &rib).footprint();
    assert_eq!(part(&footprint, "R"), 2 * 64 * 4, "{footprint:?}");
}

#[test]
fn the_split_is_the_smallest() {
    assert_eq!(split(&Rib::default()), ["D11", "X9", "R"], "one row of 2^9, 2^11 times");
    // 2,048 kinds of rows in random order: hardly two pairs of rows are equal.
    let mut rib = Rib::default();
    for (n, kind) in (0..1 << 16).zip(probe::uniform::<u32>(1)) {
        announce(&mut rib, n << 16, 20, (kind % 2048) as u16 + 1);
    }
    let footprint = compile(&Dxr(IsaChoice::Best), &rib).footprint();
    assert_eq!(footprint.0, [("D16", 2 << 16), ("X4", 2048 * 16 * 4), ("R", 0)]);
}

/// The next hops of the table follow a pattern, so that some chunks are equal; with random next hops it has 3.68 MB.
#[test]
fn a_full_view_takes_four_bytes_a_route() {
    let Some(rib) = full_view::<u32>() else { return };
    assert_eq!(split(&rib), ["D16", "X4", "R"]);
    let bytes = compile(&Dxr(IsaChoice::Best), &rib).footprint().total();
    assert!((3_250_000..3_350_000).contains(&bytes), "{bytes} bytes");
}

/// Chunks of 32 ranges each, no two of them equal.
fn long_chunks(count: u32) -> Rib<u32> {
    let mut rib = Rib::default();
    for n in 0..count {
        fill(&mut rib, n * CHUNK, 25, 32, 2 * n as u16 + 1);
    }
    rib
}

fn withdraw_chunks(rib: &mut Rib<u32>, chunks: std::ops::Range<u32>) -> Vec<Change<u32>> {
    let blocks = chunks.flat_map(|chunk| (0..32).map(move |n| chunk * CHUNK + (n << 7)));
    blocks.map(|first| withdraw(rib, first, 25)).collect()
}

#[test]
fn holes_beyond_the_limit_cause_a_rebuild() {
    let mut rib = long_chunks(200);
    let mut instance = Dxr(IsaChoice::Best).compile(&rib).unwrap();
    let before = part(&instance.fib().footprint(), "R");
    let changes = withdraw_chunks(&mut rib, 0..32);
    assert_eq!(instance.patch(&rib, &changes), Outcome::Applied, "1,024 words of holes do not matter");
    verify("dxr", &*instance.fib(), &rib, probe::edges(&rib));
    assert_eq!(part(&instance.fib().footprint(), "R"), before - 32 * 32 * 4);
    let held = instance.fib();
    let mut later = rib.clone();
    let changes = withdraw_chunks(&mut later, 32..42);
    assert_eq!(instance.patch(&later, &changes), Outcome::Rebuild);
    verify("dxr", &*held, &rib, probe::edges(&rib));
}

fn patched(instance: &mut dyn Instance<u32>, rib: &Rib<u32>, changes: &[Change<u32>]) {
    assert_eq!(instance.patch(rib, changes), Outcome::Applied);
    verify("dxr", &*instance.fib(), rib, probe::edges(rib).chain(probe::uniform(3).take(200)));
}

#[test]
fn holes_are_filled_and_snapshots_do_not_change() {
    let mut rib = long_chunks(50);
    let mut instance = Dxr(IsaChoice::Best).compile(&rib).unwrap();
    let (old, size) = (instance.fib(), instance.fib().footprint().total());
    let old_rib = rib.clone();
    for round in 0..100 {
        let mut changes = withdraw_chunks(&mut rib, 10..20);
        changes.push(announce(&mut rib, 15 * CHUNK, 20, 500 + round));
        patched(&mut *instance, &rib, &changes);
        let mut changes = vec![withdraw(&mut rib, 15 * CHUNK, 20)];
        for chunk in 10..20 {
            fill(&mut rib, chunk * CHUNK, 25, 32, 2 * chunk as u16 + 1);
            changes.push(Change { prefix: Prefix::containing(chunk * CHUNK, 20), next_hop: None });
        }
        patched(&mut *instance, &rib, &changes);
        assert_eq!(instance.fib().footprint().total(), size, "round {round}");
    }
    verify("dxr", &*old, &old_rib, probe::edges(&old_rib));
}

#[test]
fn a_single_change_has_to_wait_and_the_next_call_is_the_batch() {
    let mut rib = long_chunks(3);
    let mut instance = Dxr(IsaChoice::Best).compile(&rib).unwrap();
    assert_eq!(instance.patch(&rib, &[]), Outcome::Applied, "nothing changed");
    let before = rib.clone();
    let first = announce(&mut rib, 1 << 30, 24, 5);
    assert_eq!(instance.patch(&rib, &[first]), Outcome::Batch);
    verify("dxr", &*instance.fib(), &before, probe::edges(&before));
    let second = announce(&mut rib, 1 << 31, 24, 6);
    patched(&mut *instance, &rib, &[second]);
    assert_eq!(instance.patch(&rib, &[first, second]), Outcome::Applied, "the snapshot has both already");
    let third = announce(&mut rib, 3 << 30, 24, 7);
    assert_eq!(instance.patch(&rib, &[third]), Outcome::Batch);
    patched(&mut *instance, &rib, &[third]);
}

#[test]
fn many_changes_and_another_magnitude_cause_a_rebuild() {
    let mut rib = long_chunks(3);
    let mut instance = Dxr(IsaChoice::Best).compile(&rib).unwrap();
    let everything = [announce(&mut rib, 0, 0, 9), announce(&mut rib, 0, 32, 8)];
    assert_eq!(instance.patch(&rib, &everything), Outcome::Rebuild);
    let mut instance = Dxr(IsaChoice::Best).compile(&rib).unwrap();
    let mut changes = Vec::new();
    for n in 0..5_000 {
        changes.push(announce(&mut rib, 1 << 31 | n << 8, 24, (n % 7) as u16 + 1));
    }
    assert_eq!(instance.patch(&rib, &changes), Outcome::Rebuild, "the split is chosen again");
}
