//! `fullview filter`: rule sets of packet filters.

use std::io::{self, Write};

use fullview_filter::pf::config::PfConfig;
use fullview_filter::pf::files::FileSystem;
use fullview_filter::pf::load::load;

use super::{Exit, host_facts};
use crate::args::{FilterCheckArgs, FilterCommand};

pub fn run(command: &FilterCommand) -> anyhow::Result<Exit> {
    match command {
        FilterCommand::Check(args) => check(args),
    }
}

fn check(args: &FilterCheckArgs) -> anyhow::Result<Exit> {
    let file = args.file.to_string_lossy();
    let config = load(&file, &FileSystem::default(), &host_facts::read()?)?;
    let mut out = io::stdout().lock();
    if args.verbose {
        write!(out, "{config}")?;
    } else {
        writeln!(out, "{file}: correct; {} rules", count(&config))?;
    }
    Ok(Exit::Done)
}

fn count(config: &PfConfig) -> usize {
    let rules = &config.rules;
    [&rules.scrub, &rules.nat, &rules.rdr, &rules.binat, &rules.filter].iter().map(|kind| kind.len()).sum()
}
