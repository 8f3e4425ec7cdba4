//! The plan of a router without a kernel, made from the configuration file.

mod interfaces;
mod links;
mod table_number;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use fullview_plane::wire::ethernet::Mac;

use super::error::{ConfigError, PlanError, ensure_plan};
use super::sections::{InterfaceSection, RouterConfig};
use crate::options::plan::{Plan, PlannedRoute};
use crate::route::{RouteAction, RouteHop};
use links::{PlanLinks, load};

/// Next hops have numbers of 16 bits, and neighbours need some of them.
const MAX_NEXT_HOPS: usize = 50_000;

/// Makes the plan, without the routes of a file that the configuration may name.
pub fn plan(config: &RouterConfig) -> Result<Plan, PlanError> {
    let interfaces = interfaces::plan(config)?;
    let links = PlanLinks(&interfaces);
    let routes = links.routes(&config.route)?;
    let neighbors = links.neighbors(&config.neighbor)?;
    if let Some(feed) = &config.feed {
        links.gateways(feed)?;
    }
    check_next_hops(&routes)?;
    Ok(Plan { routes, neighbors, interfaces, feed: None })
}

/// Makes the whole plan, for which it reads the file of routes if the configuration names one.
pub fn whole_plan(config: &RouterConfig) -> Result<Plan, ConfigError> {
    let plan = plan(config)?;
    let feed = config.feed.as_ref().map(|feed| load(feed, &PlanLinks(&plan.interfaces))).transpose()?;
    Ok(Plan { feed, ..plan })
}

/// The configured MAC of each port, if it has one.
pub fn macs(config: &RouterConfig) -> Vec<Option<Mac>> {
    let given = |name| config.interface.get(name).and_then(|interface| interface.mac);
    config.router.interfaces.iter().map(|name| given(name).map(|mac| mac.0)).collect()
}

/// The first key in the file that only a router without a kernel can have.
pub fn first_standalone_key(config: &RouterConfig) -> Option<String> {
    let of_interface = |(name, section): (&String, &InterfaceSection)| {
        Some(format!("interface.{name}.{}", interface_key(section)?))
    };
    let lists = [
        ("route", !config.route.is_empty()),
        ("neighbor", !config.neighbor.is_empty()),
        ("feed", config.feed.is_some()),
        ("icmp", config.icmp != Default::default()),
        ("neighbors", config.neighbors != Default::default()),
    ];
    let list = lists.into_iter().find_map(|(key, is_there)| is_there.then(|| key.to_owned()));
    config.interface.iter().find_map(of_interface).or(list)
}

fn interface_key(section: &InterfaceSection) -> Option<&'static str> {
    let keys = [
        ("address", !section.address.is_empty()),
        ("mac", section.mac.is_some()),
        ("mtu", section.mtu.is_some()),
        ("redirects", section.redirects),
        ("table", section.table.is_some()),
    ];
    keys.into_iter().find_map(|(key, is_there)| is_there.then_some(key))
}

fn check_next_hops(routes: &[PlannedRoute]) -> Result<(), PlanError> {
    let hops = |route: &PlannedRoute| match &route.action {
        RouteAction::Forward(set) => set.hops().to_vec(),
        _ => Vec::new(),
    };
    let gateway = |hop: RouteHop| (hop.link, hop.gateway);
    let all: HashSet<_> = routes.iter().flat_map(hops).map(gateway).collect();
    let groups = routes.iter().filter(|route| hops(route).len() > 1).count();
    let count = all.len() + groups;
    ensure_plan!(
        count <= MAX_NEXT_HOPS,
        "route: {count} different gateways and groups are too many; at most {MAX_NEXT_HOPS}"
    );
    Ok(())
}
