//! `fullview filter kill`: removes states of a running router's filter.

use std::io::Write;

use anyhow::ensure;
use fullview_router::control::filter::{StatesQuery, StatesRemoved};
use fullview_router::control::request::Request;
use fullview_router::error::BadInput;
use serde_json::json;

use crate::args::FilterKillArgs;
use crate::command::Exit;
use crate::command::output::stdout;
use crate::command::show::connect;

pub fn run(args: &FilterKillArgs) -> anyhow::Result<Exit> {
    let (is_all, all) = (args.choice.is_all(), args.all);
    ensure!(
        is_all == all,
        BadInput("name the states by an address, --protocol or --rule; --all alone removes all".into())
    );
    let mut client = connect(&args.router)?;
    let (mut removed, mut from) = (0, Some(0));
    while let Some(place) = from {
        let query = StatesQuery { from: place, ..args.choice.query() };
        let part: StatesRemoved = client.ask(&Request::RemoveStates(query))?;
        removed += part.removed;
        from = part.next;
    }
    let mut out = stdout();
    match args.json {
        true => writeln!(out, "{:#}", json!({ "removed": removed }))?,
        false => writeln!(out, "{removed} states removed")?,
    }
    Ok(Exit::Done)
}
