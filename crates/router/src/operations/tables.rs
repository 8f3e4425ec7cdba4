//! Lists, tests and changes the tables of a running filter. These functions run in the threads of clients.

use std::sync::Arc;

use fullview_filter::address_table::{AddressTable, TableEntry};
use fullview_filter::rule::{NamedTable, TableKind};
use fullview_filter::ruleset::{Language, RuleSet};

use super::filter::{in_force, summary};
use super::table_edit::{MOST_ENTRIES, edited};
use crate::control::filter::{
    MAX_LIMIT, TableAction, TableAnswer, TableChange, TableChanged, TablePage, TableQuery, TableTest,
};
use crate::daemon::QueryHandle;

/// A page of a table.
pub fn page(queries: &QueryHandle, query: &TableQuery) -> Result<TablePage, String> {
    let filter = in_force(queries)?;
    let (named, table) = find(filter.rules.rules(), &query.name)?;
    let limit = query.limit.clamp(1, MAX_LIMIT);
    let entries = table.entries().iter().skip(query.from).take(limit).map(ToString::to_string).collect();
    let end = query.from.saturating_add(limit);
    let next = (end < table.entries().len()).then_some(end);
    Ok(TablePage { table: summary(filter.rules.rules(), named), entries, next })
}

/// Whether a table contains an address.
pub fn test(queries: &QueryHandle, query: &TableTest) -> Result<TableAnswer, String> {
    let filter = in_force(queries)?;
    let (named, table) = find(filter.rules.rules(), &query.name)?;
    if query.address.kind() != named.kind {
        return Err(format!("table <{}>: {}: {}", named.name, query.address, other_kind(named.kind)));
    }
    let entry = table.lookup(query.address.into()).map(ToString::to_string);
    Ok(TableAnswer { address: query.address, contained: table.contains(query.address.into()), entry })
}

/// The table with a name.
fn find<'a>(rules: &'a RuleSet, name: &str) -> Result<(&'a NamedTable, &'a Arc<AddressTable>), String> {
    let found =
        rules.table(name).and_then(|named| Some((named, rules.tables().get(usize::from(named.id.0))?)));
    found.ok_or_else(|| match rules.named_tables() {
        [] => format!("there is no table <{name}>: the rules have no tables"),
        all => {
            let names: Vec<String> = all.iter().map(|table| format!("<{}>", table.name)).collect();
            format!("there is no table <{name}>; the rules have {}", names.join(", "))
        }
    })
}

/// A change whose parts come one after the other.
#[derive(Default)]
pub struct CollectedChange {
    of: Option<(String, TableAction)>,
    entries: Vec<TableEntry>,
}

impl CollectedChange {
    /// Takes a part, and applies the change if it is the last one. A part of another change begins anew; so does the part
    /// after one that was refused.
    pub fn take(&mut self, queries: &QueryHandle, part: TableChange) -> Result<TableChanged, String> {
        let CollectedChange { of, mut entries } = std::mem::take(self);
        let (name, action) = (part.name, part.action);
        if of.is_some_and(|of| of != (name.clone(), action)) {
            entries.clear();
        }
        add(&mut entries, &part.entries)?;
        if part.more {
            *self = CollectedChange { of: Some((name, action)), entries };
            return Ok(TableChanged::default());
        }
        apply(queries, &name, action, &entries)
    }
}

fn add(entries: &mut Vec<TableEntry>, part: &[String]) -> Result<(), String> {
    if part.len() > MAX_LIMIT || entries.len() + part.len() > MOST_ENTRIES {
        return Err(format!(
            "a request has at most {MAX_LIMIT} entries, and a table {MOST_ENTRIES}; send fewer"
        ));
    }
    for word in part {
        entries.push(word.parse().map_err(|error| format!("{error}"))?);
    }
    Ok(())
}

/// Makes another table in this thread, has the router's thread hand it to the worker, and waits for the worker to take it.
fn apply(
    queries: &QueryHandle,
    name: &str,
    action: TableAction,
    named: &[TableEntry],
) -> Result<TableChanged, String> {
    let handle = in_force(queries)?.handle;
    let _changing = handle.lock_changes();
    let rules = in_force(queries)?.rules;
    let (table, addresses) = find(rules.rules(), name)?;
    check(rules.rules().language(), table, named)?;
    let (other, changed) = edited(addresses, action, named)
        .map_err(|error| format!("table <{name}>: {error}; nothing was changed"))?;
    if changed.added + changed.deleted > 0 {
        let rules = rules.with_tables([(table.id, Arc::new(other))]);
        let taken =
            queries.ask(move |state| state.change_tables(rules)).map_err(|error| error.to_string())?;
        taken.map_err(|error| error.to_string())?;
        handle.settle().map_err(|error| format!("table <{name}>: {error}"))?;
    }
    Ok(changed)
}

/// Refuses what the table cannot have.
fn check(language: Language, table: &NamedTable, named: &[TableEntry]) -> Result<(), String> {
    let name = &table.name;
    if table.is_constant {
        return Err(format!(
            "table <{name}> is const: change its definition in the rules, and `fullview reload`; nothing was changed"
        ));
    }
    let refused = named.iter().find_map(|entry| Some((entry, refusal(language, table.kind, entry)?)));
    refused.map_or(Ok(()), |(entry, why)| Err(format!("table <{name}>: {entry}: {why}; nothing was changed")))
}

/// Why a table of this kind cannot have the entry.
fn refusal(language: Language, kind: TableKind, entry: &TableEntry) -> Option<&'static str> {
    match language {
        _ if !kind.has(entry) => Some(other_kind(kind)),
        _ if language.has(entry) => None,
        Language::Pf => Some("tables of pf have no values"),
        Language::Ipfw => Some("tables of ipfw have no exceptions"),
    }
}

fn other_kind(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Addresses => "the table has addresses, not numbers",
        TableKind::Numbers => "the table has numbers, not addresses",
    }
}
