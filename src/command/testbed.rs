//! `fullview testbed`: inventories of hosts, and what killed measurements left behind.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use fullview_bench::remote::{
    BedCheck, Wiring, draw_svg, draw_text, put_back_on_nodes, put_back_settings, read_inventory, serve_agent,
};
use fullview_bench::testbed::{Leftover, LeftoverKind, remove_leftovers};
use fullview_router::error::BadInput;

use super::{Exit, shown};
use crate::args::testbed::{CheckTestbedArgs, CleanTestbedArgs, DrawTestbedArgs, TestbedCommand};
use crate::command::output::stdout;

pub fn run(asked: &TestbedCommand) -> anyhow::Result<Exit> {
    match asked {
        TestbedCommand::Draw(args) => draw(args),
        TestbedCommand::Check(args) => check(args),
        TestbedCommand::Clean(args) => clean(args),
    }
}

/// What runs on the nodes.
pub fn agent() -> anyhow::Result<Exit> {
    serve_agent()?;
    Ok(Exit::Done)
}

/// Reads an inventory.
pub fn read(path: &Path) -> anyhow::Result<Wiring> {
    Ok(read_inventory(path).map_err(|error| BadInput(error.to_string()))?)
}

fn draw(args: &DrawTestbedArgs) -> anyhow::Result<Exit> {
    let wiring = read(&args.inventory)?;
    match &args.svg {
        Some(path) => {
            fs::write(path, draw_svg(&wiring)).with_context(|| format!("{}: cannot write", path.display()))?
        }
        None => write!(stdout(), "{}", draw_text(&wiring))?,
    }
    Ok(Exit::Done)
}

fn check(args: &CheckTestbedArgs) -> anyhow::Result<Exit> {
    let check = BedCheck::of(&read(&args.inventory)?);
    let text = if args.json { serde_json::to_string_pretty(&check)? + "\n" } else { check.text() };
    let exit = if check.is_right() { Exit::Done } else { Exit::Failed };
    shown(write!(stdout(), "{text}").map_err(Into::into), exit)
}

fn clean(args: &CleanTestbedArgs) -> anyhow::Result<Exit> {
    let found = match &args.inventory {
        Some(path) => put_back_on_nodes(&read(path)?, args.dry_run)?,
        None => found_here(args.dry_run)?,
    };
    if args.json {
        let shown = serde_json::json!({ "dry_run": args.dry_run, "found": found });
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&shown)?)?;
    } else if found.is_empty() {
        writeln!(stdout(), "nothing is left behind")?;
    } else {
        found.iter().try_for_each(|one| writeln!(stdout(), "{}", line(one, args.dry_run)))?;
    }
    Ok(Exit::Done)
}

fn found_here(dry_run: bool) -> anyhow::Result<Vec<Leftover>> {
    let settings = put_back_settings(dry_run).context("/run/fullview-testbed")?;
    let settings = settings.into_iter().map(|name| Leftover { kind: LeftoverKind::Setting, name });
    Ok(settings.chain(remove_leftovers(dry_run)?).collect())
}

fn line(leftover: &Leftover, dry_run: bool) -> String {
    let (done, back) = if dry_run { ("would remove", "would put back") } else { ("removed", "put back") };
    let name = &leftover.name;
    match leftover.kind {
        LeftoverKind::Namespace => format!("{done} network namespace {name}"),
        LeftoverKind::Process => format!("{done} process {name}"),
        LeftoverKind::Folder => format!("{done} folder {name}"),
        LeftoverKind::Setting => format!("{back} {name}"),
        LeftoverKind::File => format!("{back} file {name}"),
        LeftoverKind::NotOurs => {
            format!("kept network namespace {name}: it is not the one that was recorded under this name")
        }
    }
}
