//! What a router without a kernel is told: the file as it is written, and the plan that follows from it.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use fullview_plane::adjacency::MAX_MTU;
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::kernel::event::{AnyPrefix, LinkIndex};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::feed::NextHopModel;
use fullview_table::group::MOST_MEMBERS;
use fullview_table::{Address, Table};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::Spanned;

use super::Config;
use crate::router::alone::macs;
use crate::router::alone::plan::{self, Leads, MAIN, Plan, Planned, Way};
use crate::workload::table;

/// `192.0.2.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own(pub InterfaceAddress);

/// `192.0.2.0/24`, without bits behind the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub AnyPrefix);

/// `02:00:00:00:00:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station(pub Mac);

/// `[[route]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Route {
    pub to: Spanned<Network>,
    pub via: Option<IpAddr>,
    pub dev: Option<String>,
    /// Several ways, in place of `via` and `dev`.
    #[serde(default)]
    pub ways: Vec<WayTo>,
    #[serde(default)]
    pub kind: Kind,
    #[serde(default = "main")]
    pub table: u32,
}

/// One of several ways.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WayTo {
    pub via: Option<IpAddr>,
    pub dev: Option<String>,
    #[serde(default = "one")]
    pub weight: u16,
}

/// What becomes of a route's packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    #[default]
    Unicast,
    Blackhole,
    Unreachable,
    Prohibit,
}

/// `[[neighbor]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Neighbor {
    pub address: Spanned<IpAddr>,
    pub dev: String,
    pub mac: Station,
}

/// `[feed]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Feed {
    pub file: Spanned<PathBuf>,
    pub gateways: Vec<IpAddr>,
    #[serde(default = "main")]
    pub table: u32,
}

fn main() -> u32 {
    MAIN
}

fn one() -> u16 {
    1
}

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

impl<'de> Deserialize<'de> for Own {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        crate::args::interface_address(&text).map(Own).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let inet6 = || text.parse().map(AnyPrefix::Inet6);
        let parsed = if text.contains(':') { inet6() } else { text.parse().map(AnyPrefix::Inet) };
        parsed.map(Network).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Station {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mac: Mac = String::deserialize(deserializer)?.parse().map_err(D::Error::custom)?;
        if mac.is_group() || mac == Mac::default() {
            return Err(D::Error::custom(format!("{mac} is no station's address")));
        }
        Ok(Station(mac))
    }
}

impl Config {
    /// What it comes to, but for the routes of the file that it may name.
    pub fn plan(&self) -> Result<Plan, Misfit> {
        let interfaces = self.planned()?;
        let links = Links(&interfaces);
        let routes = links.routes(&self.route)?;
        let neighbors =
            self.neighbor.iter().map(|neighbor| links.neighbor(neighbor)).collect::<Result<_, _>>()?;
        if let Some(feed) = &self.feed {
            links.gateways(feed)?;
        }
        Ok(Plan { routes, neighbors, interfaces, feed: None })
    }

    /// All of it. Reads a file of routes, if it names one.
    pub fn whole_plan(&self) -> anyhow::Result<Plan> {
        let plan = self.plan()?;
        let feed = self.feed.as_ref().map(|feed| load(feed, &Links(&plan.interfaces))).transpose()?;
        Ok(Plan { feed, ..plan })
    }

    /// Of each port: the one it was given, or any.
    pub fn macs(&self) -> Vec<Mac> {
        let given = |name| self.interface.get(name).and_then(|interface| interface.mac);
        let names = self.router.interfaces.iter();
        names.map(|name| given(name).map_or_else(macs::any, |station| station.0)).collect()
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

fn stray(name: &str) -> Misfit {
    Misfit::of(format!(
        "interface.{name}: it is neither one of router.interfaces nor a VLAN of one (NAME.1 to NAME.4094)"
    ))
}

/// The port and the number of a VLAN, as in `tap0.100`.
fn vlan_of(name: &str) -> Option<(&str, u16)> {
    let (of, number) = name.rsplit_once('.')?;
    let vlan = number.parse().ok().filter(|vlan| (1..=4094).contains(vlan))?;
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

/// The interfaces, as routes and neighbours name them.
struct Links<'a>(&'a [Planned]);

impl Links<'_> {
    fn named(&self, name: &str) -> Result<&Planned, Misfit> {
        let found = self.0.iter().find(|interface| interface.name == name);
        found.ok_or_else(|| Misfit::of(format!("dev: there is no interface {name}")))
    }

    fn routes(&self, routes: &[Route]) -> Result<Vec<plan::Route>, Misfit> {
        let mut known = HashSet::new();
        let mut all = Vec::with_capacity(routes.len());
        for route in routes {
            let at = route.to.span();
            let resolved = self.route(route).map_err(|misfit| misfit.at(&at))?;
            if !known.insert((resolved.table, resolved.prefix)) {
                let text = "a second route to the same prefix; give one route several ways".into();
                return Err(Misfit { text, at: Some(at) });
            }
            all.push(resolved);
        }
        Ok(all)
    }

    fn route(&self, route: &Route) -> Result<plan::Route, Misfit> {
        let table = table_number(route.table, "table")?;
        let prefix = route.to.get_ref().0;
        let goes_out = route.via.is_some() || route.dev.is_some();
        let leads = match route.kind {
            Kind::Unicast => Leads::Out(self.ways(route, goes_out)?),
            _ if goes_out || !route.ways.is_empty() => {
                return Err(Misfit::of("a route that drops has neither via, dev nor ways".into()));
            }
            Kind::Blackhole => Leads::Blackhole,
            Kind::Unreachable => Leads::Unreachable,
            Kind::Prohibit => Leads::Prohibit,
        };
        Ok(plan::Route { table, prefix, leads })
    }

    fn ways(&self, route: &Route, goes_out: bool) -> Result<Vec<Way>, Misfit> {
        fits!(goes_out == route.ways.is_empty(), "give via, dev or both; or ways, each with its own");
        fits!(route.ways.len() <= MOST_MEMBERS, "at most {MOST_MEMBERS} ways are possible");
        let alone = WayTo { via: route.via, dev: route.dev.clone(), weight: 1 };
        let ways = if goes_out { std::slice::from_ref(&alone) } else { &route.ways };
        let is_inet = matches!(route.to.get_ref().0, AnyPrefix::Inet(_));
        ways.iter().map(|way| self.way(way, is_inet, route.table)).collect()
    }

    fn way(&self, way: &WayTo, is_inet: bool, table: u32) -> Result<Way, Misfit> {
        let WayTo { via, dev, weight } = way;
        fits!(*weight > 0, "weight: a way with weight 0 takes nothing; leave it out");
        let link = match (via, dev) {
            (Some(via), dev) => {
                fits!(via.is_ipv4() == is_inet, "via {via}: an address of the other family");
                self.link_of(*via, dev.as_deref(), table)?
            }
            (None, Some(dev)) => self.named(dev)?.link,
            (None, None) => return Err(Misfit::of("a way needs via, dev or both".into())),
        };
        Ok(Way { link, gateway: *via, weight: *weight })
    }

    /// The link on which a gateway is: the one that is named, or the one of the same table whose network it is in.
    fn link_of(&self, gateway: IpAddr, dev: Option<&str>, table: u32) -> Result<LinkIndex, Misfit> {
        let is_own = |interface: &&Planned| interface.addresses.iter().any(|own| own.ip == gateway);
        let beside = || self.0.iter().filter(|interface| interface.table == table);
        fits!(!beside().any(|interface| is_own(&interface)), "via {gateway}: that is this router itself");
        if let Some(dev) = dev {
            return Ok(self.named(dev)?.link);
        }
        let holds = |interface: &&Planned| interface.addresses.iter().any(|own| own.network_holds(gateway));
        let found = beside().find(holds).map(|interface| interface.link);
        found.ok_or_else(|| {
            Misfit::of(format!(
                "via {gateway}: it is in no network of an interface of table {table}; give dev"
            ))
        })
    }

    fn neighbor(&self, neighbor: &Neighbor) -> Result<(LinkIndex, IpAddr, Mac), Misfit> {
        let ip = *neighbor.address.get_ref();
        let link = self.named(&neighbor.dev).map_err(|misfit| misfit.at(&neighbor.address.span()))?.link;
        Ok((link, ip, neighbor.mac.0))
    }

    fn gateways(&self, feed: &Feed) -> Result<Vec<Way>, Misfit> {
        let table = table_number(feed.table, "feed.table")?;
        let way = |gateway: &IpAddr| {
            let link = self.link_of(*gateway, None, table)?;
            Ok(Way { link, gateway: Some(*gateway), weight: 1 })
        };
        let ways = feed.gateways.iter().map(way).collect::<Result<Vec<_>, Misfit>>();
        ways.map_err(|misfit| misfit.at(&feed.file.span()))
    }
}

fn load(feed: &Feed, links: &Links<'_>) -> anyhow::Result<plan::Feed> {
    let gateways = links.gateways(feed)?;
    let routes = table::from_file(feed.file.get_ref(), NextHopModel::default())?;
    lacking(&routes, &gateways).map_err(|misfit| misfit.at(&feed.file.span()))?;
    Ok(plan::Feed { routes: Arc::new(routes), table: feed.table, gateways })
}

fn lacking(routes: &Table, gateways: &[Way]) -> Result<(), Misfit> {
    let is_inet = |way: &Way| way.gateway.is_some_and(|gateway| gateway.is_ipv4());
    let (inet, inet6) = (gateways.iter().any(is_inet), gateways.iter().any(|way| !is_inet(way)));
    fits!(
        inet || routes.inet.is_empty(),
        "feed.gateways: the file has {} routes, and no gateway is {}",
        u32::FAMILY,
        u32::FAMILY
    );
    fits!(
        inet6 || routes.inet6.is_empty(),
        "feed.gateways: the file has {} routes, and no gateway is {}",
        u128::FAMILY,
        u128::FAMILY
    );
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
    ];
    let list = lists.into_iter().find_map(|(key, said)| said.then(|| key.to_owned()));
    config.interface.iter().find_map(of_interface).or(list)
}
