//! `fullview filter table`: the tables of a running router's filter.

use std::io::Write;

use fullview_filter::address_table::TableEntry;
use fullview_router::control::client::Client;
use fullview_router::control::filter::{
    MAX_LIMIT, TableAction, TableAnswer, TableChange, TableChanged, TablePage, TableQuery, TableTest,
};
use fullview_router::control::request::Request;
use fullview_router::control::table_key::TableKey;
use fullview_router::error::{BadInput, message};
use serde_json::json;

use super::entries;
use crate::args::operations::RouterArgs;
use crate::args::{FilterTableArgs, FilterTableCommand, TableEntries};
use crate::command::output::stdout;
use crate::command::show::connect;
use crate::command::{Exit, shown};

pub fn run(args: &FilterTableArgs) -> anyhow::Result<Exit> {
    // The name may be written as in rules.
    let name = args.table.trim_start_matches('<').trim_end_matches('>');
    let (action, entries) = match &args.what {
        FilterTableCommand::Show => return show(&mut connect(&args.router)?, name, args.json),
        FilterTableCommand::Test { address } => {
            return test(&args.router, name, *address, args.json);
        }
        FilterTableCommand::Add(entries) => (TableAction::Add, entries),
        FilterTableCommand::Delete(entries) => (TableAction::Delete, entries),
        FilterTableCommand::Replace(entries) => (TableAction::Replace, entries),
    };
    let entries = all(entries)?;
    let changed = change(&mut connect(&args.router)?, name, action, &entries)?;
    let mut out = stdout();
    match args.json {
        true => writeln!(out, "{:#}", serde_json::to_value(changed)?)?,
        false => writeln!(out, "table <{name}>: {}", described(action, &changed))?,
    }
    Ok(Exit::Done)
}

fn all(named: &TableEntries) -> anyhow::Result<Vec<TableEntry>> {
    let of_file = named.file.as_deref().map_or(Ok(Vec::new()), entries::from_file)?;
    Ok(named.entries.iter().copied().chain(of_file).collect())
}

fn show(client: &mut Client, name: &str, as_json: bool) -> anyhow::Result<Exit> {
    let mut out = stdout();
    let (mut from, mut entries) = (Some(0), Vec::new());
    while let Some(place) = from {
        let query = TableQuery { name: name.to_owned(), from: place, limit: MAX_LIMIT };
        let page: TablePage = client.ask(&Request::FilterTable(query))?;
        from = page.next;
        if !as_json {
            page.entries.iter().try_for_each(|entry| writeln!(out, "{entry}"))?;
            continue;
        }
        entries.extend(page.entries);
        if from.is_none() {
            writeln!(out, "{:#}", json!({ "table": page.table, "entries": entries }))?;
        }
    }
    Ok(Exit::Done)
}

/// Exit code 1 says that the address is not in the table, so that errors have another one.
fn test(router: &RouterArgs, name: &str, address: TableKey, as_json: bool) -> anyhow::Result<Exit> {
    let query = Request::FilterTableTest(TableTest { name: name.to_owned(), address });
    let answer = connect(router).and_then(|mut client| Ok(client.ask(&query)?));
    let answer: TableAnswer = answer.map_err(|error| BadInput(message(error.as_ref())))?;
    let (is, by) = match (answer.contained, &answer.entry) {
        (true, Some(entry)) => ("is", format!(", by {entry}")),
        (_, Some(entry)) => ("is not", format!(", by {entry}")),
        (_, None) => ("is not", String::new()),
    };
    let text = match as_json {
        true => format!("{:#}", serde_json::to_value(&answer)?),
        false => format!("{address} {is} in table <{name}>{by}"),
    };
    let exit = if answer.contained { Exit::Done } else { Exit::Failed };
    shown(writeln!(stdout(), "{text}").map_err(Into::into), exit)
}

/// Sends a change in as many requests as it takes.
fn change(
    client: &mut Client,
    name: &str,
    action: TableAction,
    entries: &[TableEntry],
) -> anyhow::Result<TableChanged> {
    let mut parts = entries.chunks(MAX_LIMIT);
    let mut part = parts.next().unwrap_or_default();
    loop {
        let next = parts.next();
        let entries = part.iter().map(ToString::to_string).collect();
        let request = TableChange { name: name.to_owned(), action, entries, more: next.is_some() };
        let changed = client.ask(&Request::FilterTableChange(request))?;
        match next {
            Some(next) => part = next,
            None => return Ok(changed),
        }
    }
}

fn described(action: TableAction, changed: &TableChanged) -> String {
    let TableChanged { named, added, deleted, addresses } = changed;
    let did = match action {
        TableAction::Add => format!("{added} of {named} added"),
        TableAction::Delete => format!("{deleted} of {named} deleted"),
        TableAction::Replace => format!("{added} added, {deleted} deleted"),
    };
    format!("{did}; it has {addresses}")
}
