//! Finds the links of routes, neighbours and gateways by the names and addresses that the file gives.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::route::{AnyPrefix, HopSet, LinkIndex, RouteAction, RouteHop};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::feed::NextHopModel;
use fullview_table::group::{GroupError, Groups, MOST_MEMBERS, Member};
use fullview_table::{Address, NextHops, Table, Target};

use super::table_number::table_number;
use crate::config::error::{ConfigError, PlanError, ensure_plan};
use crate::config::sections::{FeedSection, NeighborSection, WrittenHop, WrittenRoute};
use crate::feed;
use crate::options::plan::{PlannedInterface, PlannedRoute, RouteFeed};

/// The interfaces, as routes and neighbours name them.
pub struct PlanLinks<'a>(pub &'a [PlannedInterface]);

impl PlanLinks<'_> {
    fn named(&self, name: &str) -> Result<&PlannedInterface, PlanError> {
        let found = self.0.iter().find(|interface| interface.name == name);
        found.ok_or_else(|| PlanError::new(format!("dev: there is no interface {name}")))
    }

    pub fn routes(&self, routes: &[WrittenRoute]) -> Result<Vec<PlannedRoute>, PlanError> {
        let mut known = HashSet::new();
        let mut all = Vec::with_capacity(routes.len());
        for route in routes {
            let at = route.to.span();
            let resolved = self.route(route).map_err(|error| error.at(&at))?;
            if !known.insert((resolved.table, resolved.prefix)) {
                let text = "a second route to the same prefix; give one route several ways".into();
                return Err(PlanError { text, at: Some(at) });
            }
            all.push(resolved);
        }
        Ok(all)
    }

    fn route(&self, route: &WrittenRoute) -> Result<PlannedRoute, PlanError> {
        let table = table_number(route.table, "table")?;
        let prefix = route.to.get_ref().0;
        let goes_out = route.via.is_some() || route.dev.is_some();
        let forwards = route.kind == RouteAction::Forward(());
        if !forwards && (goes_out || !route.ways.is_empty()) {
            return Err(PlanError::new("a route that drops has neither via, dev nor ways".into()));
        }
        let hops = |()| self.ways(route, goes_out).map(|hops| HopSet::Hops(hops.into()));
        let action = route.kind.try_map(hops)?;
        Ok(PlannedRoute { table, prefix, action })
    }

    fn ways(&self, route: &WrittenRoute, goes_out: bool) -> Result<Vec<RouteHop>, PlanError> {
        ensure_plan!(goes_out == route.ways.is_empty(), "give via, dev or both; or ways, each with its own");
        ensure_plan!(route.ways.len() <= MOST_MEMBERS, "at most {MOST_MEMBERS} ways are possible");
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

    fn way(&self, way: &WrittenHop, is_inet: bool, table: u32) -> Result<RouteHop, PlanError> {
        let WrittenHop { via, dev, weight } = way;
        ensure_plan!(*weight > 0, "weight: a way with weight 0 takes nothing; leave it out");
        let link = match (via, dev) {
            (Some(via), dev) => {
                ensure_plan!(via.is_ipv4() == is_inet, "via {via}: an address of the other family");
                self.link_of(*via, dev.as_deref(), table)?
            }
            (None, Some(dev)) => self.named(dev)?.link,
            (None, None) => return Err(PlanError::new("a way needs via, dev or both".into())),
        };
        Ok(RouteHop::new(link, *via, *weight))
    }

    /// The link on which a gateway is: the one that the route names, or the one of the same table whose network holds the
    /// gateway.
    fn link_of(&self, gateway: IpAddr, dev: Option<&str>, table: u32) -> Result<LinkIndex, PlanError> {
        let is_own = |interface: &&PlannedInterface| interface.addresses.iter().any(|own| own.ip == gateway);
        let beside = || self.0.iter().filter(|interface| interface.table == table);
        ensure_plan!(
            !beside().any(|interface| is_own(&interface)),
            "via {gateway}: that is this router itself"
        );
        if let Some(dev) = dev {
            return Ok(self.named(dev)?.link);
        }
        let is_link_local = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        ensure_plan!(!is_link_local, "via {gateway}: such an address is on every link; give dev");
        let holds =
            |interface: &&PlannedInterface| interface.addresses.iter().any(|own| own.network_holds(gateway));
        let found = beside().find(holds).map(|interface| interface.link);
        found.ok_or_else(|| {
            PlanError::new(format!(
                "via {gateway}: it is in no network of an interface of table {table}; give dev"
            ))
        })
    }

    pub fn neighbors(
        &self,
        neighbors: &[NeighborSection],
    ) -> Result<Vec<(LinkIndex, IpAddr, Mac)>, PlanError> {
        let mut known = HashSet::new();
        let mut all = Vec::with_capacity(neighbors.len());
        for neighbor in neighbors {
            let resolved = self.neighbor(neighbor)?;
            if !known.insert((resolved.0, resolved.1)) {
                let text = "a second neighbor with the same address".into();
                return Err(PlanError { text, at: Some(neighbor.address.span()) });
            }
            all.push(resolved);
        }
        Ok(all)
    }

    fn neighbor(&self, neighbor: &NeighborSection) -> Result<(LinkIndex, IpAddr, Mac), PlanError> {
        let (ip, at) = (*neighbor.address.get_ref(), neighbor.address.span());
        let interface = self.named(&neighbor.dev).map_err(|error| error.at(&at))?;
        let is_own = interface.addresses.iter().any(|own| own.ip == ip);
        if is_own || ip.is_multicast() || ip.is_unspecified() {
            return Err(PlanError { text: format!("{ip} is not another station's address"), at: Some(at) });
        }
        Ok((interface.link, ip, neighbor.mac.0))
    }

    pub fn gateways(&self, feed: &FeedSection) -> Result<Vec<RouteHop>, PlanError> {
        let table = table_number(feed.table, "feed.table")?;
        let way = |gateway: &IpAddr| {
            let link = self.link_of(*gateway, None, table)?;
            Ok(RouteHop::new(link, Some(*gateway), 1))
        };
        let ways = feed.gateways.iter().map(way).collect::<Result<Vec<_>, PlanError>>();
        ways.map_err(|error| error.at(&feed.file.span()))
    }
}

/// Checks that flows can be shared among these next hops: makes the group that the router would make.
fn share(ways: &[RouteHop]) -> Result<(), PlanError> {
    let distinct: HashSet<_> = ways.iter().map(|way| (way.link, way.gateway)).collect();
    ensure_plan!(
        distinct.len() == ways.len(),
        "ways: one of them is there twice; give it the weight of both"
    );
    let (mut groups, mut next_hops) = (Groups::default(), NextHops::default());
    let numbered = (0..).zip(ways).map(|(number, way)| {
        let next_hop = next_hops.intern(Target::Number(number))?;
        Ok(Member { next_hop, weight: way.weight })
    });
    let members: Result<Vec<Member>, GroupError> = numbered.collect();
    let shared = members.and_then(|members| groups.create(&mut next_hops, &members));
    shared.map(drop).map_err(|error| PlanError::new(format!("ways: {error}")))
}

/// Reads the file of routes.
pub fn load(feed: &FeedSection, links: &PlanLinks<'_>) -> Result<RouteFeed, ConfigError> {
    let gateways = links.gateways(feed)?;
    let routes = feed::from_file(feed.file.get_ref(), NextHopModel::default())?;
    check_families(&routes, &gateways).map_err(|error| error.at(&feed.file.span()))?;
    Ok(RouteFeed { routes: Arc::new(routes), table: feed.table, gateways })
}

/// Checks that each family of the file's routes has a gateway.
fn check_families(routes: &Table, gateways: &[RouteHop]) -> Result<(), PlanError> {
    let is_inet = |way: &RouteHop| way.gateway.is_some_and(|gateway| gateway.is_ipv4());
    let (inet, inet6) = (gateways.iter().any(is_inet), gateways.iter().any(|way| !is_inet(way)));
    ensure_plan!(
        inet || routes.inet.is_empty(),
        "feed.gateways: the file has {} routes, and no gateway is {}",
        u32::FAMILY,
        u32::FAMILY
    );
    ensure_plan!(
        inet6 || routes.inet6.is_empty(),
        "feed.gateways: the file has {} routes, and no gateway is {}",
        u128::FAMILY,
        u128::FAMILY
    );
    Ok(())
}
