//! The commands of a script about tables.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::addresses::{prefix, table_value};
use super::ast::IpfwRule;
use super::config::{IpfwConfig, IpfwTable};
use super::error::IpfwError;
use super::words::{Parsed, Words};
use crate::address::Address;
use crate::address_table::TableEntry;
use crate::rule::TableKind;

/// What follows the word `table`.
pub(super) fn command(config: &mut IpfwConfig, words: &mut Words<'_>) -> Parsed<()> {
    let name = words.need("the name of a table")?;
    match words.need("create, add, delete, swap, flush or destroy")? {
        "create" => create_table(config, name, words),
        "destroy" => {
            config.tables.remove(name);
            words.end()
        }
        "flush" => {
            flush_table(config, name);
            words.end()
        }
        "add" => {
            let (kind, table) = open_table(config, name, words);
            add_entries(kind, table, words)
        }
        "delete" => {
            let (kind, table) = open_table(config, name, words);
            delete_entries(kind, table, words)
        }
        "swap" => swap_tables(config, name, words),
        other => Err(words
            .error(format!("`{other}` is not supported; create, add, delete, swap, flush and destroy are"))),
    }
}

fn create_table(config: &mut IpfwConfig, name: &str, words: &mut Words<'_>) -> Parsed<()> {
    let mut kind = TableKind::Addresses;
    while let Some(word) = words.next() {
        let value = words.need("a value")?;
        match (word, value) {
            ("type", "addr") => kind = TableKind::Addresses,
            ("type", "number") => kind = TableKind::Numbers,
            ("valtype", "legacy" | "skipto" | "ipv4") | ("algo" | "limit", _) => {}
            _ => {
                return Err(words.error(format!(
                    "`{word} {value}` is not supported; tables hold addresses (type addr) or numbers (type number)"
                )));
            }
        }
    }
    claim_table(config, name, kind, words)?;
    config.tables.entry(name.to_owned()).or_default();
    Ok(())
}

/// The tables of a rule that is about to be added.
pub(super) fn claim_tables(config: &mut IpfwConfig, rule: &IpfwRule, words: &Words<'_>) -> Parsed<()> {
    let mut kinds = BTreeMap::new();
    for (name, kind) in rule.tables() {
        claim_table(config, name, kind, words)?;
        let first = *kinds.entry(name).or_insert(kind);
        if first != kind {
            return Err(differs(name, first, kind, words));
        }
    }
    Ok(())
}

/// Says what a table has, which does not change while it exists or a rule names it.
fn claim_table(config: &mut IpfwConfig, name: &str, kind: TableKind, words: &Words<'_>) -> Parsed<()> {
    match config.table_kinds.get(name) {
        Some(known) if *known != kind && is_in_use(config, name) => Err(differs(name, *known, kind, words)),
        _ => {
            config.table_kinds.insert(name.to_owned(), kind);
            Ok(())
        }
    }
}

fn is_in_use(config: &IpfwConfig, name: &str) -> bool {
    let is_named = || config.rules.iter().flat_map(|rule| rule.tables()).any(|(other, _)| other == name);
    config.tables.contains_key(name) || is_named()
}

/// A table to change. What a new one has, its first entry says, which is the next word.
fn open_table<'c>(
    config: &'c mut IpfwConfig,
    name: &str,
    words: &Words<'_>,
) -> (TableKind, &'c mut IpfwTable) {
    let is_number = words.peek().is_some_and(|word| word.parse::<u32>().is_ok());
    let guess = if is_number { TableKind::Numbers } else { TableKind::Addresses };
    let known = config.table_kinds.get(name).copied();
    let kind = known.filter(|known| *known != guess && is_in_use(config, name)).unwrap_or(guess);
    config.table_kinds.insert(name.to_owned(), kind);
    (kind, config.tables.entry(name.to_owned()).or_default())
}

/// The table is empty then, and what it has is still open if it is new.
fn flush_table(config: &mut IpfwConfig, name: &str) {
    if !is_in_use(config, name) {
        config.table_kinds.remove(name);
    }
    config.tables.entry(name.to_owned()).or_default().entries.clear();
}

fn swap_tables(config: &mut IpfwConfig, name: &str, words: &mut Words<'_>) -> Parsed<()> {
    let other = words.need("the name of the other table")?;
    if let Some(missing) = [name, other].into_iter().find(|name| !is_in_use(config, name)) {
        return Err(words.error(format!("there is no table {missing}; create it before")));
    }
    let known = config.table_kinds.get(name).or(config.table_kinds.get(other)).copied();
    if let Some(kind) = known {
        claim_table(config, other, kind, words)?;
        claim_table(config, name, kind, words)?;
    }
    let [table, others] = [name, other].map(|name| config.tables.remove(name).unwrap_or_default());
    config.tables.insert(name.to_owned(), others);
    config.tables.insert(other.to_owned(), table);
    words.end()
}

fn differs(name: &str, known: TableKind, wanted: TableKind, words: &Words<'_>) -> IpfwError {
    let [known, wanted] = [known, wanted].map(|kind| match kind {
        TableKind::Addresses => "addresses",
        TableKind::Numbers => "numbers",
    });
    words.error(format!("table {name} holds {known}, not {wanted}; use another one"))
}

fn add_entries(kind: TableKind, table: &mut IpfwTable, words: &mut Words<'_>) -> Parsed<()> {
    while !words.is_done() {
        let key = entry(kind, words)?;
        let value = words.peek().and_then(table_value);
        // A value looks like an address or a number: it is one only if it follows a key.
        let is_value = value.is_some() && words.peek().is_some_and(|word| !word.contains(['/', ':']));
        let value = if is_value { words.next().and(value) } else { None };
        table.entries.insert(key, value.unwrap_or(0));
    }
    Ok(())
}

fn delete_entries(kind: TableKind, table: &mut IpfwTable, words: &mut Words<'_>) -> Parsed<()> {
    while !words.is_done() {
        let key = entry(kind, words)?;
        if table.entries.remove(&key).is_none() {
            return Err(words.error("the table has no such entry"));
        }
    }
    Ok(())
}

fn entry(kind: TableKind, words: &mut Words<'_>) -> Parsed<(IpAddr, u8)> {
    match kind {
        TableKind::Addresses => prefix_entry(words),
        TableKind::Numbers => {
            let number = words.number("a number", u32::MAX)?;
            Ok((Address::number(number).into(), 128))
        }
    }
}

/// A prefix, with the bits behind its length cleared.
fn prefix_entry(words: &mut Words<'_>) -> Parsed<(IpAddr, u8)> {
    let word = words.need("a prefix")?;
    let read = prefix(word, 32).or_else(|| prefix(word, 128));
    let entry = read.and_then(|(address, length)| TableEntry::of_prefix(address, length));
    let entry = entry.ok_or_else(|| {
        words.error(format!(
            "`{word}` is no prefix; write 192.0.2.0/24 or 2001:db8::/32, an IPv4 address not as IPv6 maps it"
        ))
    })?;
    Ok((entry.address.into(), entry.length))
}
