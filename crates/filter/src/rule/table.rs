use super::ranges::TableId;

/// A table that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTable {
    pub name: String,
    pub id: TableId,
    /// It may change with the rules only (pf's `const`).
    pub is_constant: bool,
    /// The text of the rules says which addresses it has. Those of other tables stay as they are when rules change.
    pub is_given: bool,
}
