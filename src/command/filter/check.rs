//! `fullview filter check`: what is wrong with a rule set.

use std::io::Write;

use fullview_filter::ipfw::{IpfwConfig, missing_nats};
use fullview_filter::pf::config::PfConfig;
use fullview_filter::pf::files::FileSystem;
use fullview_filter::pf::host::HostFacts;
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::lower;
use fullview_filter::pf::named_interfaces::named_interfaces;
use fullview_filter::ruleset::RuleSet;

use super::read::{name, text};
use super::warning::warn;
use crate::args::FilterCheckArgs;
use crate::command::output::stdout;
use crate::command::{Exit, host_facts};
use fullview_router::filter::FilterLanguage;

pub fn run(args: &FilterCheckArgs) -> anyhow::Result<Exit> {
    let facts = host_facts::read()?;
    match args.language {
        FilterLanguage::Pf => check_pf(args, &facts),
        FilterLanguage::Ipfw => check_ipfw(args, &facts),
    }
}

fn check_ipfw(args: &FilterCheckArgs, facts: &HostFacts) -> anyhow::Result<Exit> {
    let file = name(&args.file)?;
    let config = IpfwConfig::load(file, &text(file)?)?;
    let interfaces = host_facts::numbered(facts);
    RuleSet::new(config.lower(&interfaces))?;
    let at = |(number, interface)| (format!("{file}: rule {number}"), interface);
    interfaces.unknown(config.named_interfaces().map(at)).iter().for_each(warn);
    let missing = missing_nats(&config, &interfaces);
    missing.iter().for_each(|missing| warn(&format!("{file}: {missing}")));
    let mut out = stdout();
    match args.verbose {
        true => write!(out, "{config}")?,
        false => writeln!(out, "{file}: correct; {} rules", config.rules.len())?,
    }
    Ok(Exit::Done)
}

/// Prints the rules also if the router cannot enforce them all, which the error then says, whether or not they could be
/// printed.
fn check_pf(args: &FilterCheckArgs, facts: &HostFacts) -> anyhow::Result<Exit> {
    let file = name(&args.file)?;
    let config = load(file, &FileSystem::default(), facts)?;
    let mut out = stdout();
    let printed = if args.verbose { write!(out, "{config}") } else { Ok(()) };
    let interfaces = host_facts::numbered(facts);
    lower(&config, &interfaces)?;
    interfaces.unknown(named_interfaces(&config)).iter().for_each(warn);
    printed?;
    if !args.verbose {
        writeln!(out, "{file}: correct; {} rules", count(&config))?;
    }
    Ok(Exit::Done)
}

fn count(config: &PfConfig) -> usize {
    let rules = &config.rules;
    [&rules.scrub, &rules.nat, &rules.rdr, &rules.binat, &rules.filter].iter().map(|kind| kind.len()).sum()
}
