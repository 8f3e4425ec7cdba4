//! How many tests a rule may stand for.

use std::collections::BTreeMap;

use super::ast::{IpfwInterface, IpfwOption, IpfwRule};
use super::lower_options::{Lists, RuleNames, joined, or_blocks};
use crate::interfaces::{FilterInterface, Interfaces};
use crate::rule::{Clause, TableId};

/// Each term of an or-block may multiply the tests of those before it. More of them come from a mistake.
pub(super) const MOST_TESTS: usize = 16_384;

/// Whether the rule is within the bound, whatever interfaces there are: those that it names are taken for different ones.
pub(super) fn is_bounded(rule: &IpfwRule) -> bool {
    let (interfaces, tables) =
        (named_interfaces(rule), rule.tables().map(|(name, _)| name).zip((0..).map(TableId)).collect());
    let names = RuleNames { interfaces: &interfaces, tables, tags: BTreeMap::new() };
    let blocks = or_blocks(rule, &names);
    blocks.iter().map(|block| tests(block)).try_fold(0, |sum, tests| bounded(sum + tests?)).is_some()
}

/// How many tests an or-block stands for; `None` if they are too many.
fn tests(block: &[Lists]) -> Option<usize> {
    let mut clauses = vec![Clause::default()];
    for lists in block {
        let own: usize = lists.iter().map(Vec::len).sum();
        bounded((count(&clauses) * lists.len()).saturating_add(clauses.len() * own))?;
        clauses = joined(&clauses, lists);
    }
    bounded(count(&clauses))
}

fn count(clauses: &[Clause]) -> usize {
    clauses.iter().map(|clause| clause.0.len()).sum()
}

fn bounded(tests: usize) -> Option<usize> {
    (tests <= MOST_TESTS).then_some(tests)
}

fn named_interfaces(rule: &IpfwRule) -> Interfaces {
    let named = |(number, term): (u16, &IpfwOption)| match term {
        IpfwOption::Via(interface) | IpfwOption::Recv(interface) | IpfwOption::Xmit(interface) => {
            Some(named_interface(number, interface))
        }
        _ => None,
    };
    let options = rule.body.options.iter().flatten().map(|term| &term.value);
    Interfaces((0..).zip(options).filter_map(named).collect())
}

fn named_interface(number: u16, interface: &IpfwInterface) -> FilterInterface {
    let named = FilterInterface { number, ..FilterInterface::default() };
    match interface {
        IpfwInterface::Any => named,
        IpfwInterface::Name(name) => FilterInterface { name: name.clone(), ..named },
        IpfwInterface::Address(address) => {
            FilterInterface { addresses: vec![((*address).into(), 0)], ..named }
        }
    }
}
