//! Helpers of the benches: the table to measure, and the conditions of the machine.

#![allow(dead_code)] // no bench uses all of it

pub mod pair;
pub mod statistics;

use std::path::Path;

use fullview_table::feed::{self, Options};
use fullview_table::{Address, Family, NextHop, Prefix, Rib, Route, Table, probe};

/// The routes of one family in a file.
pub fn load(path: &Path, family: Family) -> anyhow::Result<Table> {
    let options = Options { family: Some(family), ..Options::default() };
    Ok(feed::load(path, &options)?.table)
}

/// The same routes with next hops that are independent of the neighbours: the worst case for structures that merge
/// ranges.
pub fn with_next_hops<A: Address>(rib: &Rib<A>, next_hops: u16) -> Rib<A> {
    let mut dealt = Rib::default();
    for Route { prefix, .. } in rib.iter() {
        dealt.announce(prefix, NextHop((hash(prefix) % u64::from(next_hops)) as u16 + 1));
    }
    dealt
}

/// Hashes all bits of the prefix, 32 at a time.
fn hash<A: Address>(prefix: Prefix<A>) -> u64 {
    let draw = |seed| probe::uniform::<u128>(seed).next().map_or(0, |draw| (draw >> 64) as u64);
    let words = (0..A::BITS).step_by(32).map(|offset| prefix.first().bits(offset, 32) as u64);
    words.fold(draw(u64::from(prefix.len())), |hash, word| draw(hash ^ word))
}

/// Prints a setting of the system that large tables depend on.
pub fn print_page_sizes() {
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    println!("transparent huge pages: {}", if huge.is_empty() { "unknown" } else { huge.trim() });
    if std::env::var_os("GLIBC_TUNABLES").is_none() {
        println!("keys on small pages: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 puts them on large ones");
    }
}
