//! What a router without a kernel is told: the plan that follows from the file.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::ops::Range;

use fullview_plane::adjacency::MAX_MTU;
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;

use super::Config;
use crate::daemon::alone::plan::{self, Plan, Planned, PlannedRoute};
use crate::route::{MAIN_TABLE as MAIN, RouteAction};
use links::{Links, load};
pub use written::{Feed, Neighbor, Own, Station, WrittenRoute};

mod links;
#[cfg(test)]
mod tests;
mod written;

/// What cannot be, and where in the file it stands, as far as that is one place.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Misfit {
    pub text: String,
    pub at: Option<Range<usize>>,
}

impl Misfit {
    fn of(text: String) -> Misfit {
        Misfit { text, at: None }
    }

    fn at(self, at: &Range<usize>) -> Misfit {
        Misfit { at: Some(at.clone()), ..self }
    }
}

macro_rules! fits {
    ($so:expr, $($text:tt)*) => {
        if !$so { return Err(Misfit::of(format!($($text)*))); }
    };
}
use fits;

impl Config {
    /// What it comes to, but for the routes of the file that it may name.
    pub fn plan(&self) -> Result<Plan, Misfit> {
        let interfaces = self.planned()?;
        let links = Links(&interfaces);
        let routes = links.routes(&self.route)?;
        let neighbors = links.neighbors(&self.neighbor)?;
        if let Some(feed) = &self.feed {
            links.gateways(feed)?;
        }
        next_hops(&routes)?;
        Ok(Plan { routes, neighbors, interfaces, feed: None })
    }

    /// All of it. Reads a file of routes, if it names one.
    pub fn whole_plan(&self) -> anyhow::Result<Plan> {
        let plan = self.plan()?;
        let feed = self.feed.as_ref().map(|feed| load(feed, &Links(&plan.interfaces))).transpose()?;
        Ok(Plan { feed, ..plan })
    }

    /// Of each port that was given one.
    pub fn macs(&self) -> Vec<Option<Mac>> {
        let given = |name| self.interface.get(name).and_then(|interface| interface.mac);
        let names = self.router.interfaces.iter();
        names.map(|name| given(name).map(|station| station.0)).collect()
    }

    /// Ports in the order of `router.interfaces`, then VLANs in the order of their names.
    fn planned(&self) -> Result<Vec<Planned>, Misfit> {
        let names = &self.router.interfaces;
        let vlans = self.interface.keys().filter(|name| !names.contains(name));
        let interfaces: Vec<Planned> =
            names.iter().chain(vlans).map(|name| self.interface(name)).collect::<Result<_, _>>()?;
        let mut taken = HashSet::new();
        for interface in &interfaces {
            for own in &interface.addresses {
                let is_link_local = matches!(own.ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
                let is_free = is_link_local || taken.insert((interface.table, own.ip));
                let (name, ip) = (&interface.name, own.ip);
                fits!(is_free, "interface.{name}.address: another interface has {ip} already");
            }
        }
        Ok(interfaces)
    }

    fn interface(&self, name: &str) -> Result<Planned, Misfit> {
        let names = &self.router.interfaces;
        let place = |name: &str| names.iter().position(|port| port == name).map(|place| place as u16);
        let said = self.interface.get(name).cloned().unwrap_or_default();
        let (port, vlan) = match (place(name), vlan_of(name)) {
            (Some(port), _) => (port, None),
            (None, Some((of, vlan))) => {
                let port = place(of).ok_or_else(|| stray(name))?;
                (port, Some(vlan))
            }
            _ => return Err(stray(name)),
        };
        let parent = vlan.and_then(|_| self.interface.get(&names[usize::from(port)])?.mtu);
        let mtu = said.mtu.or(parent).unwrap_or(ETHERNET_MTU);
        let has_inet6 = said.address.iter().any(|own| own.0.ip.is_ipv6());
        let least = if has_inet6 { LEAST_MTU6 } else { LEAST_MTU };
        let fitting = least..=MAX_MTU.into();
        fits!(
            fitting.contains(&mtu),
            "interface.{name}.mtu: {mtu} is not possible; give {least} to {MAX_MTU}"
        );
        let table = table_number(said.table.unwrap_or(MAIN), &format!("interface.{name}.table"))?;
        let addresses: Vec<_> = said.address.iter().map(|own| own.0).collect();
        addresses.iter().try_for_each(|own| station(name, own))?;
        let link = vlan.map_or(plan::port_link(port), |vlan| plan::vlan_link(port, vlan));
        Ok(Planned { name: name.to_owned(), link, port, vlan, mtu, table, addresses })
    }
}

const ETHERNET_MTU: u32 = 1500;
/// RFC 791 and RFC 8200: every link takes packets of that length.
const LEAST_MTU: u32 = 68;
const LEAST_MTU6: u32 = 1280;

/// Next hops have numbers of 16 bits, of which neighbours need some too.
fn next_hops(routes: &[PlannedRoute]) -> Result<(), Misfit> {
    const MOST: usize = 50_000;
    let ways = |route: &PlannedRoute| match &route.action {
        RouteAction::Forward(set) => set.hops().to_vec(),
        _ => Vec::new(),
    };
    let all: HashSet<_> = routes.iter().flat_map(ways).map(|way| (way.link, way.gateway)).collect();
    let groups = routes.iter().filter(|route| ways(route).len() > 1).count();
    let count = all.len() + groups;
    fits!(count <= MOST, "route: {count} different gateways and groups are too many; at most {MOST}");
    Ok(())
}

fn stray(name: &str) -> Misfit {
    Misfit::of(format!(
        "interface.{name}: it is neither one of router.interfaces nor a VLAN of one (NAME.1 to NAME.4094)"
    ))
}

/// The port and the number of a VLAN, as in `tap0.100`.
fn vlan_of(name: &str) -> Option<(&str, u16)> {
    let (of, number) = name.rsplit_once('.')?;
    // One way to write it, or an interface could be there twice.
    let vlan =
        number.parse().ok().filter(|vlan: &u16| (1..=4094).contains(vlan) && vlan.to_string() == number)?;
    Some((of, vlan))
}

/// The kernel's numbers of tables that have a meaning of their own here are not free.
fn table_number(number: u32, what: &str) -> Result<u32, Misfit> {
    const LOCAL: u32 = 255;
    let is_free = (1..=65_535).contains(&number) && number != LOCAL;
    fits!(
        is_free,
        "{what}: {number} cannot be a table's; give 1 to 65535, but not {LOCAL}; the main one is {MAIN}"
    );
    Ok(number)
}

fn station(name: &str, own: &InterfaceAddress) -> Result<(), Misfit> {
    let InterfaceAddress { ip, len } = *own;
    let (is_station, longest) = match ip {
        IpAddr::V4(ip) => (!matches!(ip.octets()[0], 0 | 127 | 224..), 32),
        IpAddr::V6(ip) => (!(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast()), 128),
    };
    fits!(is_station, "interface.{name}.address: {ip} is no station's address");
    fits!(
        (1..=longest).contains(&len),
        "interface.{name}.address: {ip}/{len}: lengths go from 1 to {longest}"
    );
    let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
    let is_network = matches!(ip, IpAddr::V4(ip) if len < 31 && [0, host].contains(&(ip.to_bits() & host)));
    fits!(!is_network, "interface.{name}.address: {ip}/{len} is the address of the network or its broadcast");
    Ok(())
}

/// What only a router without a kernel can be told, as far as it is said.
pub fn said(config: &Config) -> Option<String> {
    let of_interface = |(name, interface): (&String, &super::Interface)| {
        let keys: BTreeMap<&str, bool> = [
            ("address", !interface.address.is_empty()),
            ("mac", interface.mac.is_some()),
            ("mtu", interface.mtu.is_some()),
            ("table", interface.table.is_some()),
        ]
        .into();
        let key = keys.into_iter().find_map(|(key, said)| said.then_some(key))?;
        Some(format!("interface.{name}.{key}"))
    };
    let lists = [
        ("route", !config.route.is_empty()),
        ("neighbor", !config.neighbor.is_empty()),
        ("feed", config.feed.is_some()),
        ("icmp", config.icmp != Default::default()),
        ("neighbors", config.neighbors != Default::default()),
    ];
    let list = lists.into_iter().find_map(|(key, said)| said.then(|| key.to_owned()));
    config.interface.iter().find_map(of_interface).or(list)
}
