//! The structure under `dpdk_lpm4` and `dpdk_lpm6`: a table of 2^24 entries and groups ("tbl8") of 256.
//!
//! ```text
//!   address   |  24 bits  |  8  |  8  | …
//!                  │          │
//!   top     [ … next hop … group g … ]
//!                              │
//!   groups          g: [ next hop … group h … ]  256 entries, for the next 8 bits
//! ```
//!
//! It follows DIR-24-8 (Gupta, Lin, McKeown, "Routing lookups in hardware at memory access speeds", INFOCOM 1998) as in
//! DPDK's `rte_lpm` and `rte_lpm6`. Here every answer is stored where the lookup ends, and there is no default beside
//! the table: the RIB provides the answer that replaces a withdrawn route.
//!
//! # Readers during a write
//!
//! One writer stores entries while readers look up. A lookup reads a chain of entries, each an atomic, and ends at the
//! first next hop:
//! - Entries change from next hop to next hop, or from next hop to a group; never back, never to another group. So a
//!   group belongs to one block of addresses for the life of the table. It is never freed, hence never reused while a
//!   reader may read it; when groups run out the table is compiled again, and readers of the old table keep it.
//! - A group is filled with the old answer of its block, then with the new answers, and only then linked, with release
//!   order. Lookups load with acquire order, so a reader that sees the link sees the content.
//!
//! So a lookup that reads the old entry answers as before the change, and one that reads the new entry as after it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::addr::Address;
use crate::memory::{CachePadded, Full, Pages, Word};
use crate::nexthop::NextHop;
use crate::rib::{Change, Range, Rib};

use super::{CompileError, Footprint};

/// Bits of an address that index the top table.
const TOP_BITS: u8 = 24;
/// Bits that index a group.
const GROUP_BITS: u8 = 8;
/// Entries in a group.
pub(super) const GROUP: usize = 1 << GROUP_BITS;
/// Fewest groups of a table, as in FreeBSD's modules; doubled until they suffice.
const FEWEST_GROUPS: usize = 8;
/// More would put entries beyond the reach of a gather, whose indices are signed 32-bit numbers.
const MOST_GROUPS: usize = 1 << (31 - GROUP_BITS);

/// The table. Entries with [`Word::TOP_BIT`] hold the number of a group, others a next hop.
pub(super) struct Tbl24<W> {
    pub(super) top: Pages<W>,
    pub(super) groups: Pages<W>,
    capacity: usize,
    used: CachePadded<AtomicUsize>,
}

/// The top table, or a group, during a descent.
#[derive(Clone, Copy)]
struct Stage {
    /// The index of its first entry.
    base: usize,
    /// Bits of the address that lead to one of its entries; 24 for the top table.
    bits: u8,
}

impl Stage {
    const TOP: Stage = Stage { base: 0, bits: TOP_BITS };

    fn group(self, number: u32) -> Stage {
        Stage { base: number as usize * GROUP, bits: self.bits + GROUP_BITS }
    }

    fn entry<A: Address>(self, addr: A) -> usize {
        match self.bits {
            TOP_BITS => addr.bits(0, TOP_BITS),
            bits => self.base + addr.bits(bits - GROUP_BITS, GROUP_BITS),
        }
    }
}

impl<W: Word> Tbl24<W> {
    /// The highest next hop or group number an entry can hold.
    pub(super) const MAX_VALUE: u32 = W::TOP_BIT - 1;

    /// Builds the table from ranges that cover the address space in order.
    pub(super) fn build<A: Address>(
        algorithm: &'static str,
        ranges: &[Range<A>],
        groups: usize,
    ) -> Result<Self, CompileError> {
        let limit = (Self::MAX_VALUE as usize + 1).min(MOST_GROUPS);
        let over = CompileError::Limit { algorithm, what: "groups", needed: groups, limit };
        if groups > limit {
            return Err(over);
        }
        let table = Self::empty(capacity_for(groups).min(limit))
            .map_err(|error| CompileError::Memory { algorithm, reason: error.to_string() })?;
        // A new table is all zero, and zero means no route: most of the address space of a small table need not be
        // written.
        for range in ranges.iter().filter(|range| range.next_hop.is_some()) {
            table.write(range).map_err(|Full| over.clone())?;
        }
        Ok(table)
    }

    fn empty(capacity: usize) -> io::Result<Self> {
        Ok(Tbl24 {
            top: Pages::zeroed(1 << TOP_BITS)?,
            groups: Pages::zeroed(capacity * GROUP)?,
            capacity,
            used: CachePadded(AtomicUsize::new(0)),
        })
    }

    /// The top table, of a length that the compiler knows: 24 bits of an address need no check.
    #[inline(always)]
    #[allow(clippy::expect_used)]
    pub(super) fn top(&self) -> &[W::Entry; 1 << TOP_BITS] {
        self.top.entries().first_chunk().expect("`empty` makes the top table of this length")
    }

    /// Looks up one address.
    #[inline]
    pub(super) fn lookup<A: Address>(&self, addr: A) -> NextHop {
        let mut entry = self.top.get(addr.bits(0, TOP_BITS));
        let mut bits = TOP_BITS;
        while entry & W::TOP_BIT != 0 {
            let index = (entry & Self::MAX_VALUE) as usize * GROUP + addr.bits(bits, GROUP_BITS);
            entry = self.groups.get(index);
            bits += GROUP_BITS;
        }
        NextHop(entry as u16)
    }

    /// Writes the answers of `rib` for the changed prefixes. If the groups run out, some of the changes are written and
    /// some are not; each address has its old answer or its new one.
    pub(super) fn patch<A: Address>(&self, rib: &Rib<A>, changes: &[Change<A>]) -> Result<(), Full> {
        for change in changes {
            for range in rib.ranges_within(change.prefix) {
                self.write(&range)?;
            }
        }
        Ok(())
    }

    pub(super) fn footprint(&self) -> Footprint {
        let entry = size_of::<W>() / W::ENTRIES;
        let groups = self.used.0.load(Ordering::Relaxed) * GROUP;
        Footprint(vec![("top", entry << TOP_BITS), ("groups", entry * groups)])
    }

    fn write<A: Address>(&self, range: &Range<A>) -> Result<(), Full> {
        self.write_node(Stage::TOP, range.first, range.last, u32::from(range.next_hop.0))
    }

    /// Sets the answer of `first..=last`, which lie in the block of `node`.
    fn write_node<A: Address>(&self, node: Stage, first: A, last: A, hop: u32) -> Result<(), Full> {
        let (mut from, mut to) = (node.entry(first), node.entry(last) + 1);
        let inside = !A::mask(node.bits);
        let starts_inside = first & inside != A::zero();
        let ends_inside = last & inside != inside;
        if starts_inside || (ends_inside && from + 1 == to) {
            self.write_part(node, from, (first, last.min(first | inside)), hop)?;
            from += 1;
        }
        if ends_inside && from < to {
            self.write_part(node, to - 1, (last & !inside, last), hop)?;
            to -= 1;
        }
        for index in from..to {
            self.write_whole(node, index, hop);
        }
        Ok(())
    }

    /// Sets the answer of one entry's whole block.
    fn write_whole(&self, node: Stage, index: usize, hop: u32) {
        let entry = self.get(node, index);
        if entry & W::TOP_BIT != 0 {
            let group = node.group(entry & Self::MAX_VALUE);
            (group.base..group.base + GROUP).for_each(|index| self.write_whole(group, index, hop));
        } else if entry != hop {
            // Pages of the table that are all zero are not written, so that they cost no memory.
            self.set(node, index, hop);
        }
    }

    /// Sets the answer of a part of one entry's block, which needs a group of its own.
    fn write_part<A: Address>(
        &self,
        node: Stage,
        index: usize,
        (first, last): (A, A),
        hop: u32,
    ) -> Result<(), Full> {
        let entry = self.get(node, index);
        if entry & W::TOP_BIT != 0 {
            return self.write_node(node.group(entry & Self::MAX_VALUE), first, last, hop);
        }
        if entry == hop {
            return Ok(());
        }
        let number = self.take_group()?;
        let group = node.group(number);
        (group.base..group.base + GROUP).for_each(|index| self.set(group, index, entry));
        self.write_node(group, first, last, hop)?;
        // The group is complete, so it can be linked.
        self.set(node, index, W::TOP_BIT | number);
        Ok(())
    }

    /// Takes a group that was never used.
    fn take_group(&self) -> Result<u32, Full> {
        let number = self.used.0.load(Ordering::Relaxed);
        if number == self.capacity {
            return Err(Full);
        }
        self.used.0.store(number + 1, Ordering::Relaxed);
        Ok(number as u32) // below the capacity, which is at most MAX_VALUE + 1
    }

    fn get(&self, node: Stage, index: usize) -> u32 {
        if node.bits == TOP_BITS { self.top.get(index) } else { self.groups.get(index) }
    }

    fn set(&self, node: Stage, index: usize, value: u32) {
        let table = if node.bits == TOP_BITS { &self.top } else { &self.groups };
        table.set(index, value);
    }
}

/// Doubles as FreeBSD's modules do, and leaves as many groups free as are in use, so that few new long prefixes cause a
/// rebuild. Free groups are never written and cost no memory.
fn capacity_for(groups: usize) -> usize {
    (2 * groups).next_power_of_two().max(FEWEST_GROUPS)
}

/// Counts the groups that the ranges need: one for every block of 24, 32, 40, … bits with a boundary inside.
pub(super) fn groups_needed<A: Address>(ranges: &[Range<A>]) -> usize {
    let levels = (TOP_BITS..A::BITS).step_by(usize::from(GROUP_BITS));
    levels.map(|bits| blocks_divided(ranges, bits)).sum()
}

/// Counts the blocks of `bits` bits that have a boundary between two ranges elsewhere than at their start.
pub(super) fn blocks_divided<A: Address>(ranges: &[Range<A>], bits: u8) -> usize {
    let mask = A::mask(bits);
    let inside = ranges.iter().map(|range| range.first).filter(|first| *first & mask != *first);
    let mut before = None;
    inside.filter(|first| before.replace(*first & mask) != Some(*first & mask)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Word16, Word32};
    use crate::prefix::Prefix;
    use crate::probe;

    /// The count determines how much memory is mapped and when a table is full, so it must be the number that building
    /// takes.
    fn the_count_is_exact<A: Address, W: Word>() {
        for seed in 0..6 {
            let mut rib = Rib::<A>::default();
            for (n, addr) in probe::uniform::<A>(seed).take(200).enumerate() {
                let near = addr & !A::mask(A::BITS / 2);
                let len = (n * 7 % (usize::from(A::BITS) + 1)) as u8;
                rib.announce(Prefix::containing(near, len), NextHop(n as u16 % 5));
            }
            let ranges: Vec<_> = rib.ranges().collect();
            let groups = groups_needed(&ranges);
            let table = Tbl24::<W>::build("test", &ranges, groups).unwrap();
            assert_eq!(table.used.0.load(Ordering::Relaxed), groups, "seed {seed}");
            assert!(groups > 0 && table.capacity >= 2 * groups);
        }
    }

    #[test]
    fn groups_are_counted_exactly() {
        the_count_is_exact::<u32, Word16>();
        the_count_is_exact::<u128, Word32>();
    }

    #[test]
    fn a_table_beyond_the_limit_is_refused() {
        let error = Tbl24::<Word16>::build::<u32>("test", &[], 40_000).err().unwrap();
        assert_eq!(error.to_string(), "test cannot hold this table: 40000 groups needed, 32768 possible");
    }
}
