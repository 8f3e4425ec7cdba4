//! Tables of addresses with entries added, deleted or replaced.

use std::collections::BTreeMap;

use fullview_filter::address::Address;
use fullview_filter::address_table::{AddressTable, TableEntry};

use crate::control::filter::{TableAction, TableChanged};

/// A table has at most so many entries.
pub const MOST_ENTRIES: usize = 2_000_000;

/// Why a table cannot change so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableEditError {
    #[error("the table has {there} already, which differs from {named}; delete that first")]
    Differs { there: TableEntry, named: TableEntry },
    #[error("the table would have {0} entries; {MOST_ENTRIES} are possible")]
    TooMany(usize),
}

type Entries = BTreeMap<(Address, u8), TableEntry>;

fn by_prefix(entries: impl IntoIterator<Item = TableEntry>) -> Entries {
    let keyed = |entry: TableEntry| ((entry.address, entry.length), entry);
    entries.into_iter().map(|entry| keyed(entry.masked())).collect()
}

/// The table with a change applied, and what the change did.
///
/// # Errors
/// An entry contradicts one that is there, or there would be too many.
pub fn edited(
    table: &AddressTable,
    action: TableAction,
    named: &[TableEntry],
) -> Result<(AddressTable, TableChanged), TableEditError> {
    let before = by_prefix(table.entries().iter().copied());
    let named = by_prefix(named.iter().copied());
    let after = match action {
        TableAction::Add => with(before.clone(), &named)?,
        TableAction::Delete => before.iter().filter(|(_, entry)| !is_in(entry, &named)).map(owned).collect(),
        TableAction::Replace => named.clone(),
    };
    if after.len() > MOST_ENTRIES {
        return Err(TableEditError::TooMany(after.len()));
    }
    let changed = TableChanged {
        named: named.len(),
        added: after.values().filter(|entry| before.get(&key(entry)) != Some(entry)).count(),
        deleted: before.values().filter(|entry| after.get(&key(entry)) != Some(entry)).count(),
        addresses: after.len(),
    };
    Ok((AddressTable::new(after.into_values()), changed))
}

fn key(entry: &TableEntry) -> (Address, u8) {
    (entry.address, entry.length)
}

fn owned((key, entry): (&(Address, u8), &TableEntry)) -> ((Address, u8), TableEntry) {
    (*key, *entry)
}

fn with(mut entries: Entries, named: &Entries) -> Result<Entries, TableEditError> {
    for (key, entry) in named {
        let there = *entries.entry(*key).or_insert(*entry);
        if there != *entry {
            return Err(TableEditError::Differs { there, named: *entry });
        }
    }
    Ok(entries)
}

/// Whether an entry is named. Its value need not be.
fn is_in(entry: &TableEntry, named: &Entries) -> bool {
    named.get(&key(entry)).is_some_and(|named| named.negated == entry.negated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<TableEntry> {
        text.split_whitespace().map(|word| word.parse().unwrap()).collect()
    }

    fn change(table: &str, action: TableAction, named: &str) -> Result<(String, [usize; 4]), TableEditError> {
        let (table, changed) = edited(&AddressTable::new(entries(table)), action, &entries(named))?;
        let text: Vec<String> = table.entries().iter().map(ToString::to_string).collect();
        let TableChanged { named, added, deleted, addresses } = changed;
        Ok((text.join(" "), [named, added, deleted, addresses]))
    }

    #[test]
    fn entries_are_added_deleted_and_replaced() {
        use TableAction::{Add, Delete, Replace};
        let table = "10.0.0.0/8 !10.1.0.0/16 2001:db8::/32";
        let all = |text: &str, counts| Ok((text.to_owned(), counts));
        assert_eq!(
            change(table, Add, "10.2.3.4 10.0.0.9/8"),
            all("10.0.0.0/8 !10.1.0.0/16 10.2.3.4 2001:db8::/32", [2, 1, 0, 4])
        );
        assert_eq!(
            change(table, Delete, "10.0.0.0/8 10.1.0.0/16 10.0.0.0/9"),
            all("!10.1.0.0/16 2001:db8::/32", [3, 0, 1, 2])
        );
        assert_eq!(
            change(table, Replace, "10.1.0.0/16 2001:db8::/32"),
            all("10.1.0.0/16 2001:db8::/32", [2, 1, 2, 2])
        );
        assert_eq!(change(table, Replace, ""), all("", [0, 0, 3, 0]));
        let refused = change(table, Add, "10.3.0.0/16 10.1.0.0/16").unwrap_err().to_string();
        assert!(
            refused.contains("has !10.1.0.0/16 already") && refused.contains("from 10.1.0.0/16;"),
            "{refused}"
        );
    }

    #[test]
    fn a_value_is_part_of_an_entry_except_for_its_deletion() {
        assert!(change("10.0.0.1=5", TableAction::Add, "10.0.0.1=6").is_err());
        assert_eq!(change("10.0.0.1=5", TableAction::Delete, "10.0.0.1"), Ok((String::new(), [1, 0, 1, 0])));
    }
}
