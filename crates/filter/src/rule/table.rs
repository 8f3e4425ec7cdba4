use super::ranges::TableId;
use crate::address_table::TableEntry;

/// What a table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableKind {
    #[default]
    Addresses,
    /// ipfw's `type number`.
    Numbers,
}

impl TableKind {
    /// Whether tables of this kind may have the entry.
    pub fn has(self, entry: &TableEntry) -> bool {
        entry.number().is_some() == (self == TableKind::Numbers)
    }
}

/// A table that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTable {
    pub name: String,
    pub id: TableId,
    pub kind: TableKind,
    /// It may change with the rules only (pf's `const`).
    pub is_constant: bool,
    /// The text of the rules says which addresses it has. Those of other tables stay as they are when rules change.
    pub is_given: bool,
}
