//! Tables of addresses, with a value or a negation for each prefix.

mod entry;
mod flatten;
mod range_map;
mod text;

use crate::address::{Address, Family};
pub use entry::TableEntry;
use flatten::flatten;
pub(crate) use range_map::RangeMap;
pub use text::TableEntryError;

/// A table that does not change: the control plane makes another one and replaces it. The longest prefix that contains an
/// address decides.
#[derive(Clone, Debug)]
pub struct AddressTable {
    entries: Vec<TableEntry>,
    inet: RangeMap<u32>,
    inet6: RangeMap<u128>,
}

/// What the range maps give for addresses outside of the table. The other values are one more than an index of an entry.
const OUTSIDE: u32 = 0;

/// Set in those of negated entries: [`AddressTable::contains`] need not read the entry, which is far away in a large table.
const NEGATED: u32 = 1 << 31;

impl AddressTable {
    /// A table of these entries. Of two with the same prefix the later one counts.
    pub fn new(entries: impl IntoIterator<Item = TableEntry>) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let ranges = |family: Family| {
            let numbered = entries.iter().zip(1..).filter(move |(entry, _)| entry.address.family() == family);
            numbered
                .map(|(entry, number)| (entry.ends(), if entry.negated { number | NEGATED } else { number }))
        };
        let inet =
            ranges(Family::Inet).map(|((first, last), number)| (first.0 as u32, last.0 as u32, number));
        let inet = RangeMap::new(flatten(inet, OUTSIDE));
        let inet6 = ranges(Family::Inet6).map(|((first, last), number)| (first.0, last.0, number));
        let inet6 = RangeMap::new(flatten(inet6, OUTSIDE));
        AddressTable { entries, inet, inet6 }
    }

    /// The entries as they were given.
    pub fn entries(&self) -> &[TableEntry] {
        &self.entries
    }

    /// The entry with the longest prefix that contains the address.
    #[inline]
    pub fn lookup(&self, address: Address) -> Option<&TableEntry> {
        let number = self.number(address.family(), address) & !NEGATED;
        self.entries.get((number as usize).wrapping_sub(1))
    }

    #[inline]
    fn number(&self, family: Family, address: Address) -> u32 {
        match family {
            Family::Inet => self.inet.get(address.0 as u32),
            Family::Inet6 => self.inet6.get(address.0),
        }
    }

    /// Reads what [`Self::lookup`] most likely reads, so that it is near then.
    #[inline]
    pub(crate) fn touch(&self, address: Address) -> u32 {
        match address.family() {
            Family::Inet => self.inet.touch(address.0 as u32),
            Family::Inet6 => self.inet6.touch(address.0),
        }
    }

    /// Whether the table contains the address.
    #[inline]
    pub fn contains(&self, address: Address) -> bool {
        self.contains_in(address.family(), address)
    }

    /// Whether the prefixes of this family contain the address, whatever it looks like.
    #[inline]
    pub(crate) fn contains_in(&self, family: Family, address: Address) -> bool {
        let number = self.number(family, address);
        number != OUTSIDE && number & NEGATED == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = TableEntry> {
        let inet = (0_u32..1 << 12, 0_u32..3, 0_u8..=32)
            .prop_map(|(bits, place, length)| (Address::inet(bits << (place * 10)), length));
        let inet6 = (0_u128..1 << 12, 0_u8..=128).prop_map(|(bits, length)| (Address(bits << 100), length));
        (prop_oneof![inet, inet6], any::<bool>(), any::<u32>())
            .prop_map(|((address, length), negated, value)| TableEntry { address, length, negated, value })
    }

    fn address() -> impl Strategy<Value = Address> {
        let near = (0_u32..1 << 12, 0_u32..3, 0_u32..4)
            .prop_map(|(bits, place, low)| Address::inet(bits << (place * 10) | low));
        prop_oneof![
            near,
            (0_u128..1 << 12).prop_map(|bits| Address(bits << 100)),
            any::<u128>().prop_map(Address)
        ]
    }

    fn slowly(entries: &[TableEntry], address: Address) -> Option<&TableEntry> {
        let containing = entries.iter().filter(|entry| {
            let (first, last) = entry.ends();
            entry.address.family() == address.family() && first <= address && address <= last
        });
        containing.max_by_key(|entry| entry.length)
    }

    proptest! {
        #[test]
        fn the_longest_prefix_decides(
            entries in prop::collection::vec(entry(), 0..60),
            addresses in prop::collection::vec(address(), 1..60),
        ) {
            let table = AddressTable::new(entries.iter().copied());
            for address in addresses {
                let entry = slowly(&entries, address);
                prop_assert_eq!(table.lookup(address), entry, "{}", address);
                prop_assert_eq!(table.contains(address), entry.is_some_and(|entry| !entry.negated), "{}", address);
            }
        }
    }

    #[test]
    fn the_default_prefixes_are_of_one_family() {
        let table = AddressTable::new([TableEntry::new(Address::inet(0), 0)]);
        assert!(table.contains(Address::inet(u32::MAX)));
        assert!(!table.contains(Address(1)));
        assert!(!AddressTable::new([TableEntry::new(Address(0), 0)]).contains(Address::inet(1)));
    }
}
