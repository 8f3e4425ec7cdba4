//! How `tbl24` publishes a group, in every interleaving and every order of memory that the language allows.
//!
//! This is a model, because the table is zeroed mapped memory that vector code reads, where loom's atomics cannot be
//! used. The steps and their orderings are those of `Tbl24::write_part` and `Tbl24::lookup`, with `set` and `get` of
//! `memory::AtomicEntry`. Groups have two entries instead of 256, which changes only the time of a fill. Change this
//! model together with them.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU16, Ordering};
use loom::thread;

/// Marks an entry that holds the number of a group.
const LINK: u16 = 1 << 15;
/// Entries in a group.
const GROUP: usize = 2;
/// Bits of an address in the model, one for each level.
const LEVELS: usize = 2;

/// One entry of the top table, and the groups. All entries are zero at first, like mapped memory.
struct Table {
    top: AtomicU16,
    groups: [[AtomicU16; GROUP]; LEVELS],
    /// The order of stores: `Release`, except in the proof that it is needed.
    store: Ordering,
}

impl Table {
    fn new(hop: u16, store: Ordering) -> Self {
        let zero = || AtomicU16::new(0);
        Table { top: AtomicU16::new(hop), groups: [[zero(), zero()], [zero(), zero()]], store }
    }

    /// The answer for an address, whose first bit selects in the first group and whose second bit in the second.
    fn lookup(&self, addr: usize) -> u16 {
        let mut entry = self.top.load(Ordering::Acquire);
        let mut shift = LEVELS;
        while entry & LINK != 0 {
            shift -= 1;
            let group = &self.groups[usize::from(entry & !LINK)];
            entry = group[addr >> shift & 1].load(Ordering::Acquire);
        }
        entry
    }

    fn set(&self, entry: &AtomicU16, value: u16) {
        entry.store(value, self.store);
    }

    /// Fills group `number` with the old answer of its block, lets `write` change it, and then links it.
    fn divide(&self, entry: &AtomicU16, number: u16, write: impl FnOnce(&[AtomicU16; GROUP])) {
        let had = entry.load(Ordering::Relaxed);
        let group = &self.groups[usize::from(number)];
        group.iter().for_each(|entry| self.set(entry, had));
        write(group);
        self.set(entry, LINK | number);
    }
}

/// Explores a reader that looks up `addrs` in turn while `write` runs, and passes its answers to `check`.
fn explore<const N: usize>(
    store: Ordering,
    addrs: [usize; N],
    write: fn(&Table),
    check: fn([u16; N]) -> bool,
) {
    loom::model(move || {
        let table = Arc::new(Table::new(1, store));
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || addrs.map(|addr| table.lookup(addr)))
        };
        write(&table);
        let seen = reader.join().unwrap();
        assert!(check(seen), "{addrs:?} were answered {seen:?}");
    });
}

/// Announces hop 2 for the upper half of the block.
fn announce_half(table: &Table) {
    table.divide(&table.top, 0, |group| table.set(&group[1], 2));
}

/// Announces hop 2 for the last quarter of the block, which needs a group in a group.
fn announce_quarter(table: &Table) {
    table.divide(&table.top, 0, |group| {
        table.divide(&group[1], 1, |inner| table.set(&inner[1], 2));
    });
}

/// Announces the last quarter, which needs a group of its own, after the half was published.
fn announce_half_then_quarter(table: &Table) {
    announce_half(table);
    table.divide(&table.groups[0][1], 1, |inner| table.set(&inner[1], 3));
}

/// Withdraws and announces again: the group stays, its entries change.
fn flap(table: &Table) {
    announce_half(table);
    table.set(&table.groups[0][1], 1);
    table.set(&table.groups[0][1], 3);
}

mod interleavings {
    use super::*;

    #[test]
    fn the_unchanged_half_keeps_its_answer() {
        explore(Ordering::Release, [0b00, 0b00], announce_half, |seen| seen == [1, 1]);
    }

    #[test]
    fn the_changed_half_has_its_old_answer_and_then_its_new_one() {
        let old_then_new = |seen: [u16; 2]| matches!(seen, [1, 1 | 2] | [2, 2]);
        explore(Ordering::Release, [0b10, 0b10], announce_half, old_then_new);
    }

    #[test]
    fn a_group_in_a_group_is_seen_whole() {
        let whole = |[unchanged, changed, beside]: [u16; 3]| {
            unchanged == 1 && matches!(changed, 1 | 2) && beside == 1
        };
        explore(Ordering::Release, [0b00, 0b11, 0b10], announce_quarter, whole);
    }

    #[test]
    fn a_linked_group_can_be_divided_again() {
        let in_order = |seen: [u16; 2]| seen.is_sorted() && seen.iter().all(|hop| (1..=3).contains(hop));
        explore(Ordering::Release, [0b11, 0b11], announce_half_then_quarter, in_order);
    }

    #[test]
    fn a_route_that_flaps_is_seen_in_one_of_its_states() {
        explore(Ordering::Release, [0b11, 0b01], flap, |[flapping, beside]| {
            matches!(flapping, 1..=3) && beside == 1
        });
    }

    /// Shows that the model can fail: without the release order a reader sees the link before the content, and the
    /// zeroes of fresh memory.
    #[test]
    #[should_panic(expected = "were answered")]
    fn a_link_without_release_is_found_out() {
        explore(Ordering::Relaxed, [0b00], announce_half, |seen| seen == [1]);
    }
}
