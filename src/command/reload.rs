//! `fullview reload` and `fullview check-config`.

use std::io::{self, Write};

use super::Exit;
use super::filter::warning::warn;
use super::show::connect;
use crate::args::operations::{CheckConfigArgs, ReloadArgs};
use fullview_router::config;
use fullview_router::control::request::Request;
use fullview_router::daemon::check_filter;

/// Prints the router's answer, which says what is in force.
pub fn reload(args: &ReloadArgs) -> anyhow::Result<Exit> {
    let answer: String = connect(&args.router)?.ask(&Request::Reload)?;
    writeln!(io::stdout(), "{answer}")?;
    Ok(Exit::Done)
}

pub fn check(args: &CheckConfigArgs) -> anyhow::Result<Exit> {
    let config = config::load(&args.file)?;
    // This reads and checks the files that the configuration names.
    let live = config::live_options(&config).map_err(|error| config::in_file(&args.file, error))?;
    if let (Some(rules), Some(plan)) = (config::filter_options(&config), &live.plan) {
        check_filter(&rules, plan)?.iter().for_each(warn);
    }
    let interfaces = config.router.interfaces.join(", ");
    writeln!(io::stdout(), "{}: correct; forwards between {interfaces}", args.file.display())?;
    Ok(Exit::Done)
}
