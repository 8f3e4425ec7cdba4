//! Large tables, whose memory is requested for all packets of a burst before the first of them is looked up.

use std::hint::black_box;
use std::sync::Arc;

use crate::address_table::AddressTable;
use crate::packet::{Direction, Packet};
use crate::rule::{AddressMatch, CompiledRule, RuleAction, Side, TableId, Test};

/// A table with fewer entries is in the nearer caches.
const LARGE: usize = 4096;

/// To request more than rules look up most often costs more than it saves.
const MOST: usize = 4;

/// Which addresses of packets rules look up in large tables.
#[derive(Clone, Debug, Default)]
pub(super) struct TouchedTables {
    lookups: Vec<(Side, TableId)>,
    /// Whether states decide before these rules: in pf always, in ipfw from the first rule on that asks for them.
    are_behind_states: bool,
}

impl TouchedTables {
    /// Those of the first rules that look up any. Whether states decide before all rules, the language says.
    pub fn new<'r>(
        are_behind_states: bool,
        rules: impl Iterator<Item = &'r CompiledRule>,
        tables: &[Arc<AddressTable>],
    ) -> Self {
        let is_large =
            |id: TableId| tables.get(usize::from(id.0)).is_some_and(|table| table.entries().len() >= LARGE);
        let mut touched = TouchedTables { lookups: Vec::new(), are_behind_states };
        for rule in rules {
            touched.are_behind_states |=
                touched.lookups.is_empty() && matches!(rule.action, RuleAction::CheckState(_));
            let literals = rule.clauses.iter().flat_map(|clause| &clause.0);
            literals
                .filter_map(|literal| lookup(&literal.test))
                .filter(|(_, id)| is_large(*id))
                .for_each(|lookup| touched.add(lookup));
        }
        touched
    }

    fn add(&mut self, lookup: (Side, TableId)) {
        if self.lookups.len() < MOST && !self.lookups.contains(&lookup) {
            self.lookups.push(lookup);
        }
    }

    /// Reads what the packets' lookups most likely read. `has_state` says whether the packet at a place seems to belong to a state.
    #[inline]
    pub fn touch(&self, tables: &[Arc<AddressTable>], packets: &[Packet], has_state: impl Fn(usize) -> bool) {
        // What leaves has been looked up as it came in, but for the little that the router itself sends.
        if packets.first().is_none_or(|packet| packet.pass.direction == Direction::Out) {
            return;
        }
        for (side, id) in &self.lookups {
            let table = &*tables[usize::from(id.0)];
            let packets = packets.iter().enumerate();
            let without = packets
                .filter(|(place, _)| !self.are_behind_states || !has_state(*place))
                .map(|(_, packet)| packet);
            let addresses = without.map(|packet| side.of((packet.source, packet.destination)));
            black_box(addresses.fold(0, |all, address| all ^ table.touch(address)));
        }
    }
}

/// The table that a test looks up one of the addresses in, if it does.
fn lookup(test: &Test) -> Option<(Side, TableId)> {
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

/// The table that a test looks anything up in, if it does.
pub(super) fn table_of(test: &Test) -> Option<TableId> {
    match test {
        Test::Lookup(_, id) => Some(*id),
        other => lookup(other).map(|(_, id)| id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::address_table::TableEntry;
    use crate::rule::{Clause, FlowName};
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
        let touched = TouchedTables::new(true, rules.iter(), &tables).lookups;
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
        assert_eq!(set.touched_tables.lookups, []);
        let grown = set.with_tables([(TableId(0), table(LARGE))]);
        assert_eq!(grown.touched_tables.lookups, [(Side::Source, TableId(0))]);
    }

    #[test]
    fn the_order_of_rules_says_whether_states_decide_before_tables() {
        let tables = [table(LARGE), table(1)];
        let rule = |id| CompiledRule {
            clauses: vec![Clause::of(Test::Source(AddressMatch::Table(TableId(id))))],
            ..CompiledRule::new(RuleAction::Block)
        };
        let ask = CompiledRule::new(RuleAction::CheckState(FlowName::ANY));
        let is_behind = |always, rules: &[CompiledRule]| {
            TouchedTables::new(always, rules.iter(), &tables).are_behind_states
        };
        assert!(is_behind(true, &[rule(0)]));
        assert!(is_behind(false, &[rule(1), ask.clone(), rule(0)]));
        assert!(!is_behind(false, &[rule(0), ask]));
        assert!(!is_behind(false, &[rule(0)]));
    }
}
