//! `fullview show states`: the states of a running router's filter.

use std::io::{self, Write};
use std::net::IpAddr;

use fullview_router::control::client::Client;
use fullview_router::control::filter::{FlowEnd, MAX_LIMIT, StateStatus, StatesPage, StatesQuery};
use fullview_router::control::request::Request;
use serde_json::json;

use crate::command::output::stdout;

/// Lists states page by page, and prints each page as it comes: as JSON one object a line.
pub fn states(client: &mut Client, query: &StatesQuery, limit: usize, as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    let (mut left, mut from) = (limit, Some(query.from));
    while let Some(place) = from.filter(|_| left > 0) {
        let query = StatesQuery { from: place, limit: left.min(MAX_LIMIT), ..query.clone() };
        let page: StatesPage = client.ask(&Request::States(query))?;
        for state in &page.states {
            match as_json {
                true => writeln!(out, "{}", json!(state))?,
                false => print_state(state, &mut out)?,
            }
        }
        left -= page.states.len();
        from = page.next;
    }
    Ok(())
}

fn print_state(state: &StateStatus, out: &mut dyn Write) -> io::Result<()> {
    let bound = if state.bound { ", only there" } else { "" };
    writeln!(
        out,
        "{} {} -> {} {}:{}, {} on {}{bound}",
        state.protocol,
        end(&state.source, state.translated_source.as_ref()),
        end(&state.destination, state.translated_destination.as_ref()),
        state.phases[0],
        state.phases[1],
        state.direction,
        state.interface,
    )?;
    let rule =
        state.rule.as_ref().map_or("a rule that is gone".into(), |rule| format!("rule {}", rule.number));
    writeln!(
        out,
        "  age {}, expires in {}, {} packets, {} bytes, {rule}",
        duration(state.age_seconds),
        duration(state.expires_seconds),
        state.packets,
        state.bytes
    )
}

/// An end as it was and, in parentheses, as it became.
fn end(own: &FlowEnd, translated: Option<&FlowEnd>) -> String {
    let text = |end: &FlowEnd| match end.address {
        IpAddr::V4(address) => format!("{address}:{}", end.port),
        IpAddr::V6(address) => format!("[{address}]:{}", end.port),
    };
    translated.map_or_else(|| text(own), |to| format!("{} ({})", text(own), text(to)))
}

/// Hours, minutes and seconds.
fn duration(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
