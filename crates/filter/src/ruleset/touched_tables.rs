//! Large tables, whose memory is requested for all packets of a burst before the first of them is looked up.

use std::ops::BitXor;
use std::sync::Arc;

use crate::address_table::AddressTable;
use crate::packet::Packet;
use crate::rule::{AddressMatch, CompiledRule, Side, TableId, Test};

/// A table with fewer entries is in the nearer caches.
const LARGE: usize = 4096;

/// To request more than rules look up most often costs more than it saves.
const MOST: usize = 4;

/// Which addresses of packets rules look up in large tables.
#[derive(Clone, Debug, Default)]
pub(super) struct TouchedTables(Vec<(Side, TableId)>);

impl TouchedTables {
    /// Those of the first rules that look up any.
    pub fn of<'r>(rules: impl Iterator<Item = &'r CompiledRule>, tables: &[Arc<AddressTable>]) -> Self {
        let is_large =
            |id: TableId| tables.get(usize::from(id.0)).is_some_and(|table| table.entries().len() >= LARGE);
        let literals = rules.flat_map(|rule| &rule.clauses).flat_map(|clause| &clause.0);
        let mut lookups = Vec::new();
        for lookup in literals.filter_map(|literal| lookup(&literal.test)).filter(|lookup| is_large(lookup.1))
        {
            if lookups.len() < MOST && !lookups.contains(&lookup) {
                lookups.push(lookup);
            }
        }
        TouchedTables(lookups)
    }

    /// Reads what the packets' lookups most likely read.
    #[inline]
    pub fn touch(&self, tables: &[Arc<AddressTable>], packets: &[Packet]) -> u32 {
        let of = |(side, id): &(Side, TableId)| {
            let address = |packet: &Packet| match side {
                Side::Source => packet.source,
                Side::Destination => packet.destination,
            };
            let table = &tables[usize::from(id.0)];
            packets.iter().fold(0, |all, packet| all ^ table.touch(address(packet)))
        };
        self.0.iter().map(of).fold(0, u32::bitxor)
    }
}

/// The table that a test looks up one of the addresses in, if it does.
pub(super) fn lookup(test: &Test) -> Option<(Side, TableId)> {
    let (side, addresses) = match test {
        Test::Source(addresses) => (Side::Source, addresses),
        Test::Destination(addresses) => (Side::Destination, addresses),
        _ => return None,
    };
    match addresses {
        AddressMatch::Table(id) | AddressMatch::TableValue(id, _) => Some((side, *id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::address_table::TableEntry;
    use crate::rule::{Clause, RuleAction};
    use crate::ruleset::{Language, RuleSet, RuleSetParts};

    fn table(entries: usize) -> Arc<AddressTable> {
        Arc::new(AddressTable::new((0..entries as u32).map(|n| TableEntry::new(Address::inet(n), 32))))
    }

    #[test]
    fn the_first_large_tables_are_touched_once_for_each_address() {
        let tables = [table(LARGE), table(LARGE - 1), table(LARGE), table(LARGE)];
        let source = |id| Test::Source(AddressMatch::Table(TableId(id)));
        let destination = |id| Test::Destination(AddressMatch::TableValue(TableId(id), 7));
        let tests = [source(1), source(0), source(0), destination(0), destination(2), source(3), source(2)];
        let rules = tests.map(|test| CompiledRule {
            clauses: vec![Clause::of(test)],
            ..CompiledRule::new(RuleAction::Block)
        });
        let touched = TouchedTables::of(rules.iter(), &tables).0;
        let expected = [(Side::Source, 0), (Side::Destination, 0), (Side::Destination, 2), (Side::Source, 3)];
        assert_eq!(touched, expected.map(|(side, id)| (side, TableId(id))));
    }

    #[test]
    fn a_table_that_has_grown_is_touched() {
        let mut parts = RuleSetParts::new(Language::Pf);
        let clauses = vec![Clause::of(Test::Source(AddressMatch::Table(TableId(0))))];
        parts.rules = vec![CompiledRule { clauses, ..CompiledRule::new(RuleAction::Block) }];
        parts.tables = vec![table(1)];
        let set = RuleSet::new(parts).unwrap();
        assert_eq!(set.touched_tables.0, []);
        let grown = set.with_tables([(TableId(0), table(LARGE))]);
        assert_eq!(grown.touched_tables.0, [(Side::Source, TableId(0))]);
    }
}
