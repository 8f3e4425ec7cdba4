//! Describes the state of a router. These functions run in the router's thread, which answers queries with them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::mirror::{Mirror, UsableNeighbor};
use fullview_plane::adjacency::Adjacency;
use fullview_plane::counters::{self, Counters, InterfaceCounters};
use fullview_plane::explain::describe_adjacency;
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::verdict::{Punt, Reason};
use fullview_plane::view::View;
use fullview_table::fib::framework::{FamilyTables, LogEntry};
use fullview_table::{Address, Family, NextHop, Prefix, Rib, Route};

use crate::control::request;
use crate::control::status;
use crate::daemon::{
    CountSnapshot, DaemonError, EngineInUse, NamedCounts, PuntCount, PuntCounts, RouterState, is_rebuild,
    total,
};
use crate::error::message;

pub fn interfaces(state: &RouterState<'_>) -> Result<Vec<status::InterfaceStatus>, String> {
    let view = state.mirror().views().current();
    let counters = total(&state.snapshots().map_err(describe_error)?);
    let mut program = state.program_counts_by_interface().map_err(describe_error)?.into_iter();
    let mut set_up = state.mirror().set_up_interfaces().into_iter();
    let interfaces = (0..).zip(&view.parts().interfaces);
    let described = interfaces.map(|(number, interface)| status::InterfaceStatus {
        engine: engine(state.engine(interface.port)),
        program: by_name(program.next().unwrap_or_default()),
        admin_up: set_up.next().unwrap_or_default(),
        ..describe_interface(number, interface, &counters, state.mirror())
    });
    Ok(described.collect())
}

fn engine(EngineInUse { name, why }: EngineInUse) -> status::EngineStatus {
    status::EngineStatus { name: name.to_owned(), why }
}

pub fn describe_error(error: DaemonError) -> String {
    message(&error)
}

fn by_name(counts: NamedCounts) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

fn describe_interface(
    number: u16,
    interface: &Interface,
    counters: &Counters,
    mirror: &Mirror,
) -> status::InterfaceStatus {
    let counted = counters.interfaces.get(usize::from(number)).copied().unwrap_or_default();
    let InterfaceCounters { received, sent, overruns } = counted;
    let forwards = [Family::Inet, Family::Inet6].into_iter().filter(|family| interface.forwards(*family));
    status::InterfaceStatus {
        number,
        name: interface.name.clone(),
        port: interface.port,
        vlan: interface.vlan,
        mac: interface.mac.to_string(),
        mtu: interface.mtu,
        mtu6: interface.mtu6,
        up: interface.up,
        admin_up: false,
        table: mirror.table_number(interface.table).unwrap_or_default(),
        forwards: forwards.map(|family| family.to_string()).collect(),
        source_check: source_check(interface.source_check).into(),
        redirects: interface.redirects,
        addresses: interface
            .addresses
            .iter()
            .map(|address| format!("{}/{}", address.ip, address.len))
            .collect(),
        received: traffic(received),
        sent: traffic(sent),
        overruns,
        drops: counters.interface_drops.get(usize::from(number)).map(reasons).unwrap_or_default(),
        engine: status::EngineStatus::default(),
        program: BTreeMap::new(),
    }
}

/// The counts of the reasons that occurred.
fn reasons(drops: &[u64; Reason::COUNT]) -> BTreeMap<String, u64> {
    let named = Reason::ALL.iter().map(|reason| (reason.name().to_owned(), drops[reason.index()]));
    named.filter(|(_, count)| *count > 0).collect()
}

fn source_check(check: SourceCheck) -> &'static str {
    match check {
        SourceCheck::Off => "off",
        SourceCheck::Loose => "loose",
        SourceCheck::Strict => "strict",
    }
}

fn traffic(traffic: counters::Traffic) -> status::TrafficCount {
    status::TrafficCount { packets: traffic.packets, bytes: traffic.bytes }
}

pub fn counters(state: &RouterState<'_>) -> Result<status::CountersStatus, String> {
    let snapshots = state.snapshots().map_err(describe_error)?;
    let total = total(&snapshots);
    let drops = Reason::ALL.iter().map(|reason| (reason.name().to_owned(), total.drops[reason.index()]));
    let punts = Punt::ALL.iter().map(|punt| (punt.name().to_owned(), total.punts[punt.index()]));
    let program = state.program_counts().map_err(describe_error)?;
    Ok(status::CountersStatus {
        received: traffic(total.received()),
        sent: traffic(total.sent()),
        drops: drops.collect(),
        punts: punts.collect(),
        to_kernel: to_kernel(state.punt_counts().map_err(describe_error)?),
        program: by_name(program),
        workers: snapshots.iter().map(worker).collect(),
        host: host(state),
        netlink: netlink(state),
    })
}

fn to_kernel(counts: PuntCounts) -> BTreeMap<String, status::PuntStatus> {
    let status =
        |PuntCount { handed, limited, lost }: PuntCount| status::PuntStatus { handed, limited, lost };
    counts.into_iter().map(|(reason, count)| (reason.to_owned(), status(count))).collect()
}

fn worker(snapshot: &CountSnapshot) -> status::WorkerStatus {
    status::WorkerStatus {
        name: snapshot.name.clone(),
        received: traffic(snapshot.counters.received()),
        busy_seconds: snapshot.awake.as_secs_f64(),
        seconds: snapshot.age.as_secs_f64(),
    }
}

fn host(state: &RouterState<'_>) -> BTreeMap<String, u64> {
    let Some((counters, lost)) = state.host() else { return BTreeMap::new() };
    let named = [
        ("echoes", counters.echoes),
        ("neighbor-answers", counters.neighbor_answers),
        ("errors", counters.errors),
        ("errors-limited", counters.errors_limited),
        ("forwarded", counters.forwarded),
        ("queue-full", counters.queue_full),
        ("lost-neighbors", counters.lost_neighbors),
        ("conflicts", counters.conflicts),
        ("lost", lost),
        ("unjudged", counters.unjudged),
    ];
    named.map(|(name, count)| (name.to_owned(), count)).into()
}

fn netlink(state: &RouterState<'_>) -> BTreeMap<String, u64> {
    let Some(statistics) = state.statistics() else { return BTreeMap::new() };
    let named = [
        ("messages", statistics.events),
        ("malformed", statistics.malformed),
        ("resyncs", statistics.overflows),
        ("interrupted-dumps", statistics.interrupted),
        ("dumps", statistics.dumps),
        ("corrections", statistics.repaired),
    ];
    named.map(|(name, count)| (name.to_owned(), count)).into()
}

pub fn neighbors(state: &RouterState<'_>) -> Vec<status::NeighborStatus> {
    let mut neighbors = state.mirror().usable_neighbors();
    neighbors.sort_by(|one, other| (&one.link, one.address).cmp(&(&other.link, other.address)));
    let neighbor = |usable: &UsableNeighbor| status::NeighborStatus {
        address: usable.address.to_string(),
        interface: usable.link.clone(),
        mac: usable.mac.to_string(),
        state: if usable.is_stale { "stale" } else { "usable" }.into(),
    };
    neighbors.iter().map(neighbor).collect()
}

pub fn fibs(state: &RouterState<'_>) -> Vec<status::FibStatus> {
    let tables = state.mirror().tables();
    let mut all = family(&tables.inet);
    all.extend(family(&tables.inet6));
    all
}

fn family<A: Address>(tables: &FamilyTables<A>) -> Vec<status::FibStatus> {
    let mut numbers: Vec<u32> = tables.numbers().collect();
    numbers.sort_unstable();
    numbers.into_iter().filter_map(|number| fib(tables, number)).collect()
}

/// `None` if the table never had a route.
fn fib<A: Address>(tables: &FamilyTables<A>, number: u32) -> Option<status::FibStatus> {
    let (attachment, rib) = (tables.attachment(number)?, tables.rib(number)?);
    let footprint = attachment.fib().footprint();
    let log: Vec<&LogEntry> = attachment.log().iter().collect();
    let rebuild = log.iter().rev().find(|entry| is_rebuild(&entry.event));
    Some(status::FibStatus {
        family: A::FAMILY.to_string(),
        table: number,
        routes: rib.len(),
        algorithm: attachment.algorithm().map(str::to_owned),
        pinned: attachment.pinned().is_some(),
        bytes: footprint.total(),
        parts: footprint.0.iter().map(|(part, bytes)| ((*part).to_owned(), *bytes)).collect(),
        generation: attachment.generation(),
        rib_generation: rib.generation(),
        synced: attachment.is_synced(),
        failure: attachment.failure().map(ToString::to_string),
        last_rebuild: rebuild.map(|entry| entry.to_string()),
        log: log.iter().map(ToString::to_string).collect(),
    })
}

pub fn routes(state: &RouterState<'_>, query: &request::RoutesQuery) -> Result<status::RoutesPage, String> {
    let tables = state.mirror().tables();
    if query.within.contains(':') {
        page(state, tables.inet6.rib(query.table), query)
    } else {
        page(state, tables.inet.rib(query.table), query)
    }
}

fn page<A: Address>(
    state: &RouterState<'_>,
    rib: Option<&Rib<A>>,
    query: &request::RoutesQuery,
) -> Result<status::RoutesPage, String> {
    let within: Prefix<A> = parse(&query.within)?;
    let after: Option<Prefix<A>> = query.after.as_deref().map(parse).transpose()?;
    let outside = after.filter(|after| !within.covers(*after));
    outside.map_or(Ok(()), |after| Err(format!("{after} is not below {within}")))?;
    let empty = Rib::default();
    let rib = rib.unwrap_or(&empty);
    let limit = query.limit.clamp(1, request::RoutesQuery::MAX_LIMIT);
    let mut found: Vec<Route<A>> = match after {
        Some(after) => rib.after(within, after).take(limit + 1).collect(),
        None => rib.within(within).take(limit + 1).collect(),
    };
    let more = found.len() > limit;
    found.truncate(limit);
    Ok(status::RoutesPage {
        table: query.table,
        family: A::FAMILY.to_string(),
        total: rib.len(),
        next: found.last().filter(|_| more).map(|route| route.prefix.to_string()),
        routes: found.into_iter().map(|found| route(state, found)).collect(),
    })
}

fn parse<A: Address>(text: &str) -> Result<Prefix<A>, String> {
    text.parse().map_err(|error: fullview_table::prefix::PrefixError| error.to_string())
}

fn route<A: Address>(state: &RouterState<'_>, route: Route<A>) -> status::RouteStatus {
    let leads = state.mirror().next_hop(route.next_hop).unwrap_or_else(|| "no route".into());
    status::RouteStatus { prefix: route.prefix.to_string(), next_hop: route.next_hop.0, leads }
}

pub fn path(state: &RouterState<'_>, query: &request::PathQuery) -> Result<status::PathStatus, String> {
    let mirror = state.mirror();
    let (route, fib) = match query.address {
        IpAddr::V4(ip) => look_up(state, &mirror.tables().inet, query.table, u32::from_ip(ip))?,
        IpAddr::V6(ip) => look_up(state, &mirror.tables().inet6, query.table, u128::from_ip(ip))?,
    };
    let ways = members(mirror, fib);
    Ok(status::PathStatus {
        address: query.address.to_string(),
        table: query.table,
        route,
        fib_next_hop: fib.0,
        ways,
    })
}

/// The longest match among the routes, and the next hop that the FIB answers.
fn look_up<A: Address>(
    state: &RouterState<'_>,
    tables: &FamilyTables<A>,
    table: u32,
    addr: A,
) -> Result<(Option<status::RouteStatus>, NextHop), String> {
    let reader = tables.shared_reader(table).map_err(|error| error.to_string())?;
    let longest = tables.rib(table).and_then(|rib| rib.longest_match(addr));
    Ok((longest.map(|found| route(state, found)), reader.with(|fib| fib.lookup(addr))))
}

/// A next hop, or the members of a group with the number of slots of each.
fn members(mirror: &Mirror, hop: NextHop) -> Vec<status::PathMember> {
    let view = mirror.views().current();
    let mut reader = view.parts().groups.reader();
    let mut shares: BTreeMap<NextHop, u32> = BTreeMap::new();
    let slots = reader.groups().members(hop);
    slots.iter().for_each(|member| *shares.entry(*member).or_default() += 1);
    if shares.is_empty() && hop.is_some() {
        shares.insert(hop, 1);
    }
    shares.into_iter().map(|(hop, share)| member(mirror, &view, hop, share)).collect()
}

fn member(mirror: &Mirror, view: &View, hop: NextHop, share: u32) -> status::PathMember {
    let adjacency: Option<Adjacency> = view.parts().adjacencies.get(hop);
    let named = mirror.next_hop(hop).unwrap_or_else(|| "unknown".into());
    status::PathMember {
        next_hop: hop.0,
        share,
        leads: named,
        adjacency: describe_adjacency(view, adjacency),
    }
}
