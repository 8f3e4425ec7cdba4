//! The addresses of tables.

use std::net::IpAddr;

use crate::address_table::TableEntry;
use crate::brief::brief;
use crate::pf::config::{PfTableEntry, TableDefinition, TableSource};
use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::expand::resolve::prefixes;
use crate::pf::files::RulesetFiles;
use crate::pf::host::HostFacts;
use crate::pf::syntax::{HostKind, HostSyntax, TableSourceSyntax, TableSyntax};

pub fn table(syntax: TableSyntax, files: &dyn RulesetFiles, facts: &HostFacts) -> PfResult<TableDefinition> {
    let mut sources = Vec::new();
    for source in &syntax.sources {
        add(&mut sources, read(source, files, facts)?);
    }
    if sources.len() > 1 {
        sources.retain(|source| *source != TableSource::List(Vec::new()));
    }
    let TableSyntax { position, name, constant, persist, counters, .. } = syntax;
    Ok(TableDefinition { position, name, constant, persist, counters, sources })
}

/// Neighbouring lists become one.
fn add(sources: &mut Vec<TableSource>, source: TableSource) {
    match (sources.last_mut(), source) {
        (Some(TableSource::List(before)), TableSource::List(entries)) => before.extend(entries),
        (_, source) => sources.push(source),
    }
}

fn read(source: &TableSourceSyntax, files: &dyn RulesetFiles, facts: &HostFacts) -> PfResult<TableSource> {
    match source {
        TableSourceSyntax::File { position, path } => {
            let entries = file(path, position, files, facts)?;
            Ok(TableSource::File { path: path.clone(), entries })
        }
        TableSourceSyntax::List(hosts) => {
            let entries: PfResult<Vec<_>> = hosts.iter().map(|host| listed(host, facts)).collect();
            Ok(TableSource::List(entries?.concat()))
        }
    }
}

fn listed(host: &HostSyntax, facts: &HostFacts) -> PfResult<Vec<PfTableEntry>> {
    let no_entry = match &host.kind {
        HostKind::Name { text, length } => {
            let prefixes = of_table(text, *length, &host.position, facts)?;
            return Ok(prefixes.into_iter().map(|prefix| PfTableEntry { not: host.not, prefix }).collect());
        }
        HostKind::Range { .. } => "address ranges are",
        HostKind::Dynamic(_) => "dynamic addresses are",
        HostKind::Table(_) => "tables are",
        HostKind::Any => "\"any\" is",
        HostKind::NoRoute => "\"no-route\" is",
        HostKind::UrpfFailed => "\"urpf-failed\" is",
    };
    let problem = format!("{no_entry} not permitted inside tables");
    Err(PfError::invalid(&host.position, problem, "write addresses and prefixes"))
}

/// The entries of a file: addresses, prefixes and interfaces between blanks, with comments after `#` or `;`.
fn file(
    path: &str,
    named_at: &Position,
    files: &dyn RulesetFiles,
    facts: &HostFacts,
) -> PfResult<Vec<PfTableEntry>> {
    let text = files.read(path).map_err(|error| PfError::unreadable(named_at, path, &error))?;
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        entries.extend(file_line(
            line,
            &Position { file: path.into(), line: index as u32 + 1, column: 1 },
            facts,
        )?);
    }
    Ok(entries)
}

fn file_line(line: &str, start: &Position, facts: &HostFacts) -> PfResult<Vec<PfTableEntry>> {
    let content = line.split(['#', ';']).next().unwrap_or_default();
    let mut entries = Vec::new();
    let mut not = false;
    for (column, word) in words(content) {
        let address = word.trim_start_matches('!');
        not |= address.len() < word.len();
        if !address.is_empty() {
            let at = Position { column, ..start.clone() };
            entries
                .extend(entry(address, &at, facts)?.into_iter().map(|prefix| PfTableEntry { not, prefix }));
            not = false;
        }
    }
    Ok(entries)
}

/// The words of a line with their columns.
fn words(mut rest: &str) -> impl Iterator<Item = (u32, &str)> {
    let characters = |text: &str| text.chars().count() as u32;
    let mut column = 1;
    std::iter::from_fn(move || {
        let from_word = rest.trim_start();
        column += characters(&rest[..rest.len() - from_word.len()]);
        let end = from_word.find(char::is_whitespace).unwrap_or(from_word.len());
        let (word, after) = from_word.split_at(end);
        let found = (column, word);
        (rest, column) = (after, column + characters(word));
        (!word.is_empty()).then_some(found)
    })
}

fn entry(text: &str, position: &Position, facts: &HostFacts) -> PfResult<Vec<ipnet::IpNet>> {
    let Some((address, length)) = text.split_once('/') else {
        return of_table(text, None, position, facts);
    };
    let no_length =
        || PfError::invalid(position, format!("'{length}' is no length of a prefix"), "write /0 to /128");
    of_table(address, Some(length.parse().map_err(|_| no_length())?), position, facts)
}

/// The prefixes that a name or an address stands for. A table has IPv4's addresses where IPv6 maps them (RFC 4291, section
/// 2.5.5.2), so that it cannot have both.
fn of_table(
    text: &str,
    length: Option<u8>,
    position: &Position,
    facts: &HostFacts,
) -> PfResult<Vec<ipnet::IpNet>> {
    let found = prefixes(text, length, position, facts)?;
    let is_mapped = |prefix: &ipnet::IpNet| matches!(prefix.addr(), IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    if found.iter().any(is_mapped) {
        let problem = format!("'{}' is an IPv4 address as IPv6 maps it", brief(text));
        return Err(PfError::invalid(position, problem, "write the IPv4 address or prefix"));
    }
    let is_entry =
        |prefix: &ipnet::IpNet| TableEntry::of_prefix(prefix.addr(), prefix.prefix_len()).is_some();
    if !found.iter().all(is_entry) {
        let problem = format!("'{}' is no address of a host", brief(text));
        return Err(PfError::invalid(position, problem, "leave it out"));
    }
    Ok(found)
}
