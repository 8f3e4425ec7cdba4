//! `fullview show filter`: the rules of a running router's filter, with their counts.

use std::io::{self, Write};

use fullview_router::control::client::Client;
use fullview_router::control::filter::{
    FilterQuery, FilterStatus, KernelFlows, MAX_LIMIT, RuleStatus, UsedRoom,
};
use fullview_router::control::request::Request;

use super::listing::{print, table};
use crate::command::output::stdout;

/// Fetches all rules, page by page, and prints them: as JSON one object.
pub fn filter(client: &mut Client, as_json: bool) -> anyhow::Result<()> {
    let mut all = page(client, 0)?;
    while let Some(from) = all.next {
        let page = page(client, from)?;
        all.rules.extend(page.rules);
        all.next = page.next;
    }
    let mut out = stdout();
    match as_json {
        true => writeln!(out, "{:#}", serde_json::to_value(&all)?)?,
        false => print_filter(&all, &mut out)?,
    }
    Ok(())
}

fn page(client: &mut Client, from: u32) -> anyhow::Result<FilterStatus> {
    Ok(client.ask(&Request::Filter(FilterQuery { from, limit: MAX_LIMIT }))?)
}

fn print_filter(filter: &FilterStatus, out: &mut dyn Write) -> io::Result<()> {
    let room = |of: &UsedRoom| format!("{} of {}", of.used, of.most);
    writeln!(out, "{} rules of {}", filter.language, filter.file)?;
    writeln!(out, "states {}, sources {}", room(&filter.states), room(&filter.sources))?;
    if let [_, _, ..] = *filter.states_by_worker {
        let each: Vec<_> = filter.states_by_worker.iter().map(u32::to_string).collect();
        let share = filter.states.most.div_ceil(each.len() as u32);
        writeln!(out, "states of each worker {}, of {share} each", each.join(", "))?;
    }
    if filter.replaced_states > 0 {
        writeln!(out, "states that ended for new ones: {}", filter.replaced_states)?;
    }
    if let Some(KernelFlows { used, most, packets }) = filter.kernel_flows {
        let room = room(&UsedRoom { used, most });
        writeln!(out, "known flows in the kernel {room}, {packets} packets")?;
    }
    for (reason, count) in &filter.drops {
        writeln!(out, "dropped: {reason} {count}")?;
    }
    for table in &filter.tables {
        let constant = if table.constant { ", const" } else { "" };
        writeln!(out, "table <{}>: {} addresses{constant}", table.name, table.addresses)?;
    }
    print_rules(&filter.rules, out)
}

fn print_rules(rules: &[RuleStatus], out: &mut dyn Write) -> io::Result<()> {
    let mut lines = table(["rule", "packets", "bytes", "states", "text"], &[0, 1, 2, 3]);
    for RuleStatus { number, packets, bytes, states, text, .. } in rules {
        let counts =
            [u64::from(*number), *packets, *bytes, u64::from(*states)].map(|count| count.to_string());
        lines.add_row(counts.into_iter().chain([text.clone()]));
    }
    print(&lines, out)
}
