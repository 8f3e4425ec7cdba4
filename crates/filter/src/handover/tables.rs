//! Tables of addresses, which may have changed while the other process ran.

use std::sync::Arc;

use crate::address::Address;
use crate::address_table::{AddressTable, TableEntry};
use crate::fields::{Fields, PutFields};
use crate::rule::{TableId, TableKind};
use crate::ruleset::RuleSet;

/// The bytes of an entry.
const ENTRY: usize = 22;
/// So many entries make a message.
pub(super) const ENTRIES: usize = (32 << 10) / ENTRY;
/// More than any table may have are the input of a broken process.
const MOST_ENTRIES: u32 = 1 << 24;
/// As many tables as there are numbers for.
const MOST_TABLES: usize = 1 << 16;

pub(super) fn put_entry(entry: &TableEntry, to: &mut Vec<u8>) {
    to.put(entry.address.0.to_le_bytes());
    to.put([entry.length, u8::from(entry.negated)]);
    to.put(entry.value.to_le_bytes());
}

fn read_entry(fields: &mut Fields<'_>) -> Option<TableEntry> {
    let (address, length, negated) = (Address(fields.u128()?), fields.u8()?, fields.u8()?);
    let is_entry = length <= address.family().bits() && negated <= 1;
    let value = fields.u32()?;
    is_entry.then_some(TableEntry { address, length, negated: negated == 1, value })
}

/// The tables that came from another process.
pub(super) struct ImportedTables<'a> {
    set: &'a RuleSet,
    tables: Vec<ImportedTable>,
}

struct ImportedTable {
    /// The table here that the entries are for, and what it may have. Those of other tables are dropped as they come, as are all of
    /// one with entries that this one cannot have, by its kind or by the language of the rules.
    of: Option<(TableId, TableKind)>,
    entries: Vec<TableEntry>,
    /// How many entries must come yet.
    left: u32,
}

impl<'a> ImportedTables<'a> {
    pub fn new(set: &'a RuleSet) -> ImportedTables<'a> {
        ImportedTables { set, tables: Vec::new() }
    }

    /// Begins a table. `None`: no process of this version sends that.
    pub fn begin(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let left = fields.u32()?;
        // As after a reload, a table has what the text of the rules says about it.
        let open = self.set.table(fields.text()?).filter(|table| !table.is_given);
        let table = ImportedTable { of: open.map(|table| (table.id, table.kind)), entries: Vec::new(), left };
        let may_come = left <= MOST_ENTRIES && self.tables.len() < MOST_TABLES;
        may_come.then(|| self.tables.push(table))
    }

    /// Takes entries of the table that was begun last.
    pub fn take(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let table = self.tables.last_mut()?;
        while !fields.is_empty() {
            let entry = read_entry(&mut fields)?;
            table.left = table.left.checked_sub(1)?;
            if !self.set.language().has(&entry) || table.of.is_some_and(|(_, kind)| !kind.has(&entry)) {
                *table = ImportedTable { of: None, entries: Vec::new(), ..*table };
            }
            if table.of.is_some() {
                table.entries.push(entry);
            }
        }
        Some(())
    }

    /// Whether all entries of the table that was begun last have come.
    pub fn is_whole(&self) -> bool {
        self.tables.last().is_none_or(|table| table.left == 0)
    }

    /// The tables that came whole, for those of this process.
    pub fn finish(self) -> Vec<(TableId, Arc<AddressTable>)> {
        let whole = self.tables.into_iter().filter(|table| table.left == 0);
        whole.filter_map(|table| Some((table.of?.0, Arc::new(AddressTable::new(table.entries))))).collect()
    }
}
