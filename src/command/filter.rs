//! `fullview filter`: rule sets of packet filters.

use std::io::{self, Write};

use fullview_filter::pf::config::PfConfig;
use fullview_filter::pf::files::FileSystem;
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::lower;

use super::{Exit, host_facts};
use crate::args::{FilterCheckArgs, FilterCommand};

pub fn run(command: &FilterCommand) -> anyhow::Result<Exit> {
    match command {
        FilterCommand::Check(args) => check(args),
    }
}

/// Prints the rules also if the router cannot enforce them all, which the error then says.
fn check(args: &FilterCheckArgs) -> anyhow::Result<Exit> {
    let file = args.file.to_string_lossy();
    let facts = host_facts::read()?;
    let config = load(&file, &FileSystem::default(), &facts)?;
    let mut out = io::stdout().lock();
    if args.verbose {
        write!(out, "{config}")?;
    }
    lower(&config, &host_facts::numbered(&facts))?;
    if !args.verbose {
        writeln!(out, "{file}: correct; {} rules", count(&config))?;
    }
    Ok(Exit::Done)
}

fn count(config: &PfConfig) -> usize {
    let rules = &config.rules;
    [&rules.scrub, &rules.nat, &rules.rdr, &rules.binat, &rules.filter].iter().map(|kind| kind.len()).sum()
}
