//! `fullview reload` and `fullview check-config`.

use std::io::Write;
use std::time::Duration;

use super::filter::warning::warn;
use super::show::connect;
use super::{Exit, host_facts};
use crate::args::operations::{CheckConfigArgs, ReloadArgs};
use crate::command::output::stdout;
use anyhow::Context;
use fullview_filter::interfaces::UnknownInterface;
use fullview_filter::pf::files::FileSystem;
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::wire::ethernet::Mac;
use fullview_router::control::request::Request;
use fullview_router::control::status::Reloaded;
use fullview_router::daemon::check_filter;
use fullview_router::error::BadInput;
use fullview_router::filter::{self, FilterOptions};
use fullview_router::privileges::check_user;
use fullview_router::{bypass, config};

/// How long the router may take: it reads a feed of a million routes, and applies them.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Prints what is in force, or fails with what is wrong with the file.
pub fn reload(args: &ReloadArgs) -> anyhow::Result<Exit> {
    let mut client = connect(&args.router)?;
    client.wait_for(TIMEOUT)?;
    match client.ask(&Request::Reload)? {
        Reloaded::InForce(text) => writeln!(stdout(), "{text}")?,
        Reloaded::Refused(text) => return Err(BadInput(text).into()),
    }
    Ok(Exit::Done)
}

/// Checks rules for these ports of this host and their VLANs, which are the interfaces that a router beside its kernel has.
fn check_filter_of_kernel(rules: &FilterOptions, ports: &[String]) -> anyhow::Result<Vec<UnknownInterface>> {
    let vlans = bypass::vlans(ports).context("cannot list the VLANs of this host")?;
    let facts = host_facts::read()?;
    let addresses = |name: &String| {
        let interface = facts.interfaces.iter().find(|interface| interface.name == *name);
        let own = interface.into_iter().flat_map(|interface| &interface.addresses);
        own.map(|own| InterfaceAddress { ip: own.address, len: own.length }).collect()
    };
    let interface = |name: &String| Interface {
        name: name.clone(),
        addresses: addresses(name),
        ..Interface::new(0, Mac::default())
    };
    let interfaces: Vec<Interface> = ports.iter().chain(&vlans).map(interface).collect();
    Ok(filter::compile(rules, &FileSystem::default(), &interfaces)?.unknown)
}

pub fn check(args: &CheckConfigArgs) -> anyhow::Result<Exit> {
    let config = config::load(&args.file)?;
    // This reads and checks the files that the configuration names.
    let live = config::live_options(&config).map_err(|error| config::in_file(&args.file, error))?;
    let user = config.confine.user.as_deref();
    user.map_or(Ok(()), check_user).with_context(|| format!("{}: confine.user", args.file.display()))?;
    if let Some(rules) = config::filter_options(&config) {
        let unknown = match &live.plan {
            Some(plan) => check_filter(&rules, plan)?,
            None => check_filter_of_kernel(&rules, &config.router.interfaces)?,
        };
        unknown.iter().for_each(warn);
    }
    let interfaces = config.router.interfaces.join(", ");
    writeln!(stdout(), "{}: correct; forwards between {interfaces}", args.file.display())?;
    Ok(Exit::Done)
}
