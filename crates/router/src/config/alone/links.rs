//! From names and addresses to links: where routes, neighbours and gateways are.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::route::{AnyPrefix, HopSet, LinkIndex, RouteAction, RouteHop};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::feed::NextHopModel;
use fullview_table::group::{GroupError, Groups, MOST_MEMBERS, Member};
use fullview_table::{Address, NextHops, Table, Target};

use super::written::{Feed, Neighbor, WrittenHop, WrittenRoute};
use super::{Misfit, fits, table_number};
use crate::daemon::alone::plan::{self, Planned, PlannedRoute};
use crate::feed;

/// The interfaces, as routes and neighbours name them.
pub struct Links<'a>(pub &'a [Planned]);

impl Links<'_> {
    fn named(&self, name: &str) -> Result<&Planned, Misfit> {
        let found = self.0.iter().find(|interface| interface.name == name);
        found.ok_or_else(|| Misfit::of(format!("dev: there is no interface {name}")))
    }

    pub fn routes(&self, routes: &[WrittenRoute]) -> Result<Vec<PlannedRoute>, Misfit> {
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

    fn route(&self, route: &WrittenRoute) -> Result<PlannedRoute, Misfit> {
        let table = table_number(route.table, "table")?;
        let prefix = route.to.get_ref().0;
        let goes_out = route.via.is_some() || route.dev.is_some();
        let forwards = route.kind == RouteAction::Forward(());
        fits!(
            forwards || !goes_out && route.ways.is_empty(),
            "a route that drops has neither via, dev nor ways"
        );
        let hops = |()| self.ways(route, goes_out).map(|hops| HopSet::Hops(hops.into()));
        let action = route.kind.try_map(hops)?;
        Ok(PlannedRoute { table, prefix, action })
    }

    fn ways(&self, route: &WrittenRoute, goes_out: bool) -> Result<Vec<RouteHop>, Misfit> {
        fits!(goes_out == route.ways.is_empty(), "give via, dev or both; or ways, each with its own");
        fits!(route.ways.len() <= MOST_MEMBERS, "at most {MOST_MEMBERS} ways are possible");
        let alone = WrittenHop { via: route.via, dev: route.dev.clone(), weight: 1 };
        let ways = if goes_out { std::slice::from_ref(&alone) } else { &route.ways };
        let is_inet = matches!(route.to.get_ref().0, AnyPrefix::Inet(_));
        let ways =
            ways.iter().map(|way| self.way(way, is_inet, route.table)).collect::<Result<Vec<_>, _>>()?;
        if ways.len() > 1 {
            share(&ways)?;
        }
        Ok(ways)
    }

    fn way(&self, way: &WrittenHop, is_inet: bool, table: u32) -> Result<RouteHop, Misfit> {
        let WrittenHop { via, dev, weight } = way;
        fits!(*weight > 0, "weight: a way with weight 0 takes nothing; leave it out");
        let link = match (via, dev) {
            (Some(via), dev) => {
                fits!(via.is_ipv4() == is_inet, "via {via}: an address of the other family");
                self.link_of(*via, dev.as_deref(), table)?
            }
            (None, Some(dev)) => self.named(dev)?.link,
            (None, None) => return Err(Misfit::of("a way needs via, dev or both".into())),
        };
        Ok(RouteHop::new(link, *via, *weight))
    }

    /// The link on which a gateway is: the one that is named, or the one of the same table whose network it is in.
    fn link_of(&self, gateway: IpAddr, dev: Option<&str>, table: u32) -> Result<LinkIndex, Misfit> {
        let is_own = |interface: &&Planned| interface.addresses.iter().any(|own| own.ip == gateway);
        let beside = || self.0.iter().filter(|interface| interface.table == table);
        fits!(!beside().any(|interface| is_own(&interface)), "via {gateway}: that is this router itself");
        if let Some(dev) = dev {
            return Ok(self.named(dev)?.link);
        }
        let is_link_local = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        fits!(!is_link_local, "via {gateway}: such an address is on every link; give dev");
        let holds = |interface: &&Planned| interface.addresses.iter().any(|own| own.network_holds(gateway));
        let found = beside().find(holds).map(|interface| interface.link);
        found.ok_or_else(|| {
            Misfit::of(format!(
                "via {gateway}: it is in no network of an interface of table {table}; give dev"
            ))
        })
    }

    pub fn neighbors(&self, neighbors: &[Neighbor]) -> Result<Vec<(LinkIndex, IpAddr, Mac)>, Misfit> {
        let mut known = HashSet::new();
        let mut all = Vec::with_capacity(neighbors.len());
        for neighbor in neighbors {
            let resolved = self.neighbor(neighbor)?;
            if !known.insert((resolved.0, resolved.1)) {
                let text = "a second neighbor with the same address".into();
                return Err(Misfit { text, at: Some(neighbor.address.span()) });
            }
            all.push(resolved);
        }
        Ok(all)
    }

    fn neighbor(&self, neighbor: &Neighbor) -> Result<(LinkIndex, IpAddr, Mac), Misfit> {
        let (ip, at) = (*neighbor.address.get_ref(), neighbor.address.span());
        let interface = self.named(&neighbor.dev).map_err(|misfit| misfit.at(&at))?;
        let is_own = interface.addresses.iter().any(|own| own.ip == ip);
        if is_own || ip.is_multicast() || ip.is_unspecified() {
            return Err(Misfit { text: format!("{ip} is no other station's address"), at: Some(at) });
        }
        Ok((interface.link, ip, neighbor.mac.0))
    }

    pub fn gateways(&self, feed: &Feed) -> Result<Vec<RouteHop>, Misfit> {
        let table = table_number(feed.table, "feed.table")?;
        let way = |gateway: &IpAddr| {
            let link = self.link_of(*gateway, None, table)?;
            Ok(RouteHop::new(link, Some(*gateway), 1))
        };
        let ways = feed.gateways.iter().map(way).collect::<Result<Vec<_>, Misfit>>();
        ways.map_err(|misfit| misfit.at(&feed.file.span()))
    }
}

/// Flows are shared as the router would share them, or the reason why that cannot be.
fn share(ways: &[RouteHop]) -> Result<(), Misfit> {
    let distinct: HashSet<_> = ways.iter().map(|way| (way.link, way.gateway)).collect();
    fits!(distinct.len() == ways.len(), "ways: one of them is there twice; give it the weight of both");
    let (mut groups, mut next_hops) = (Groups::default(), NextHops::default());
    let numbered = (0..).zip(ways).map(|(number, way)| {
        let next_hop = next_hops.intern(Target::Number(number))?;
        Ok(Member { next_hop, weight: way.weight })
    });
    let members: Result<Vec<Member>, GroupError> = numbered.collect();
    let shared = members.and_then(|members| groups.create(&mut next_hops, &members));
    shared.map(drop).map_err(|error| Misfit::of(format!("ways: {error}")))
}

/// Reads a file of routes.
pub fn load(feed: &Feed, links: &Links<'_>) -> anyhow::Result<plan::Feed> {
    let gateways = links.gateways(feed)?;
    let routes = feed::from_file(feed.file.get_ref(), NextHopModel::default())?;
    lacking(&routes, &gateways).map_err(|misfit| misfit.at(&feed.file.span()))?;
    Ok(plan::Feed { routes: Arc::new(routes), table: feed.table, gateways })
}

fn lacking(routes: &Table, gateways: &[RouteHop]) -> Result<(), Misfit> {
    let is_inet = |way: &RouteHop| way.gateway.is_some_and(|gateway| gateway.is_ipv4());
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
