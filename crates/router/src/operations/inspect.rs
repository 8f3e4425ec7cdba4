//! What the router's thread says about itself, asked through its desk.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::mirror::{Mirror, UsableNeighbor};
use fullview_plane::adjacency::Adjacency;
use fullview_plane::counters::{self, Counters, InterfaceCounters};
use fullview_plane::explain::describe_adjacency;
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::verdict::{Punt, Reason};
use fullview_plane::view::View;
use fullview_table::fib::framework::{Event, FamilyTables, LogEntry, TableEvent};
use fullview_table::{Address, Family, NextHop, Prefix, Rib, Route};

use crate::control::request;
use crate::control::status;
use crate::daemon::{Inside, Named, Snapshot};

pub fn interfaces(inside: &Inside<'_>) -> Result<Vec<status::Interface>, String> {
    let view = inside.mirror().views().current();
    let counters = total(&inside.snapshots().map_err(said)?);
    let mut program = inside.not_forwarded_by_program().map_err(said)?.into_iter();
    let interfaces = (0..).zip(&view.parts().interfaces);
    let described = interfaces.map(|(number, interface)| status::Interface {
        program: by_name(program.next().unwrap_or_default()),
        ..describe_interface(number, interface, &counters, inside.mirror())
    });
    Ok(described.collect())
}

fn said(error: anyhow::Error) -> String {
    format!("{error:#}")
}

fn by_name(counts: Named) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

fn describe_interface(
    number: u16,
    interface: &Interface,
    counters: &Counters,
    mirror: &Mirror,
) -> status::Interface {
    let counted = counters.interfaces.get(usize::from(number)).copied().unwrap_or_default();
    let InterfaceCounters { received, sent, overruns } = counted;
    let forwards = [Family::Inet, Family::Inet6].into_iter().filter(|family| interface.forwards(*family));
    status::Interface {
        number,
        name: interface.name.clone(),
        port: interface.port,
        vlan: interface.vlan,
        mac: interface.mac.to_string(),
        mtu: interface.mtu,
        mtu6: interface.mtu6,
        up: interface.up,
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
        program: BTreeMap::new(),
    }
}

/// Those that occurred.
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

fn traffic(traffic: counters::Traffic) -> status::Traffic {
    status::Traffic { packets: traffic.packets, bytes: traffic.bytes }
}

/// Of all workers together, or all processors.
pub fn total(snapshots: &[Snapshot]) -> Counters {
    let mut total = Counters::new(0);
    snapshots.iter().for_each(|snapshot| total.add(&snapshot.counters));
    total
}

pub fn counters(inside: &Inside<'_>) -> Result<status::Counters, String> {
    let snapshots = inside.snapshots().map_err(said)?;
    let total = total(&snapshots);
    let drops = Reason::ALL.iter().map(|reason| (reason.name().to_owned(), total.drops[reason.index()]));
    let punts = Punt::ALL.iter().map(|punt| (punt.name().to_owned(), total.punts[punt.index()]));
    let program = inside.counted_by_program().map_err(said)?;
    Ok(status::Counters {
        received: traffic(total.received()),
        sent: traffic(total.sent()),
        drops: drops.collect(),
        punts: punts.collect(),
        program: by_name(program),
        workers: snapshots.iter().map(worker).collect(),
        host: host(inside),
        netlink: netlink(inside),
    })
}

fn worker(snapshot: &Snapshot) -> status::Worker {
    status::Worker {
        name: snapshot.name.clone(),
        received: traffic(snapshot.counters.received()),
        busy_seconds: snapshot.awake.as_secs_f64(),
        seconds: snapshot.age.as_secs_f64(),
    }
}

fn host(inside: &Inside<'_>) -> BTreeMap<String, u64> {
    let Some((counters, lost)) = inside.host() else { return BTreeMap::new() };
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
    ];
    named.map(|(name, count)| (name.to_owned(), count)).into()
}

fn netlink(inside: &Inside<'_>) -> BTreeMap<String, u64> {
    let Some(statistics) = inside.statistics() else { return BTreeMap::new() };
    let named = [
        ("messages", statistics.events),
        ("malformed", statistics.malformed),
        ("resyncs", statistics.overflows),
        ("interrupted-dumps", statistics.interrupted),
        ("dumps", statistics.dumps),
        ("mended", statistics.mended),
    ];
    named.map(|(name, count)| (name.to_owned(), count)).into()
}

pub fn neighbors(inside: &Inside<'_>) -> Vec<status::Neighbor> {
    let mut stations = inside.mirror().usable_neighbors();
    stations.sort_by(|one, other| (&one.link, one.address).cmp(&(&other.link, other.address)));
    let neighbor = |station: &UsableNeighbor| status::Neighbor {
        address: station.address.to_string(),
        interface: station.link.clone(),
        mac: station.mac.to_string(),
        state: if station.is_stale { "stale" } else { "usable" }.into(),
    };
    stations.iter().map(neighbor).collect()
}

pub fn fibs(inside: &Inside<'_>) -> Vec<status::Fib> {
    let tables = inside.mirror().tables();
    let mut all = family(&tables.inet);
    all.extend(family(&tables.inet6));
    all
}

fn family<A: Address>(tables: &FamilyTables<A>) -> Vec<status::Fib> {
    let mut numbers: Vec<u32> = tables.numbers().collect();
    numbers.sort_unstable();
    numbers.into_iter().filter_map(|number| fib(tables, number)).collect()
}

/// `None` for a table that never had a route.
fn fib<A: Address>(tables: &FamilyTables<A>, number: u32) -> Option<status::Fib> {
    let (attachment, rib) = (tables.attachment(number)?, tables.rib(number)?);
    let footprint = attachment.fib().footprint();
    let log: Vec<&LogEntry> = attachment.log().iter().collect();
    let rebuild = log.iter().rev().find(|entry| is_rebuild(&entry.event));
    Some(status::Fib {
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

/// Whether an event of the framework concerns a table that is compiled again.
pub fn is_rebuild(event: &Event) -> bool {
    let Event::Table { what, .. } = event else { return false };
    matches!(
        what,
        TableEvent::RebuildScheduled(_)
            | TableEvent::SyncRebuild
            | TableEvent::Switched { .. }
            | TableEvent::Stale { .. }
    )
}

pub fn routes(inside: &Inside<'_>, query: &request::Routes) -> Result<status::Routes, String> {
    let tables = inside.mirror().tables();
    if query.within.contains(':') {
        page(inside, tables.inet6.rib(query.table), query)
    } else {
        page(inside, tables.inet.rib(query.table), query)
    }
}

fn page<A: Address>(
    inside: &Inside<'_>,
    rib: Option<&Rib<A>>,
    query: &request::Routes,
) -> Result<status::Routes, String> {
    let within: Prefix<A> = parse(&query.within)?;
    let after: Option<Prefix<A>> = query.after.as_deref().map(parse).transpose()?;
    let outside = after.filter(|after| !within.covers(*after));
    outside.map_or(Ok(()), |after| Err(format!("{after} is not below {within}")))?;
    let empty = Rib::default();
    let rib = rib.unwrap_or(&empty);
    let limit = query.limit.clamp(1, request::Routes::MOST);
    let mut found: Vec<Route<A>> = match after {
        Some(after) => rib.after(within, after).take(limit + 1).collect(),
        None => rib.within(within).take(limit + 1).collect(),
    };
    let more = found.len() > limit;
    found.truncate(limit);
    Ok(status::Routes {
        table: query.table,
        family: A::FAMILY.to_string(),
        total: rib.len(),
        next: found.last().filter(|_| more).map(|route| route.prefix.to_string()),
        routes: found.into_iter().map(|found| route(inside, found)).collect(),
    })
}

fn parse<A: Address>(text: &str) -> Result<Prefix<A>, String> {
    text.parse().map_err(|error: fullview_table::prefix::PrefixError| error.to_string())
}

fn route<A: Address>(inside: &Inside<'_>, route: Route<A>) -> status::Route {
    let leads = inside.mirror().next_hop(route.next_hop).unwrap_or_else(|| "no route".into());
    status::Route { prefix: route.prefix.to_string(), next_hop: route.next_hop.0, leads }
}

pub fn path(inside: &Inside<'_>, query: &request::Path) -> Result<status::Path, String> {
    let mirror = inside.mirror();
    let (route, fib) = match query.address {
        IpAddr::V4(ip) => decide(inside, &mirror.tables().inet, query.table, u32::from_ip(ip))?,
        IpAddr::V6(ip) => decide(inside, &mirror.tables().inet6, query.table, u128::from_ip(ip))?,
    };
    let ways = ways(mirror, fib);
    Ok(status::Path {
        address: query.address.to_string(),
        table: query.table,
        route,
        fib_next_hop: fib.0,
        ways,
    })
}

/// The longest match among the routes, and what the FIB says.
fn decide<A: Address>(
    inside: &Inside<'_>,
    tables: &FamilyTables<A>,
    table: u32,
    addr: A,
) -> Result<(Option<status::Route>, NextHop), String> {
    let reader = tables.shared_reader(table).map_err(|error| error.to_string())?;
    let longest = tables.rib(table).and_then(|rib| rib.longest_match(addr));
    Ok((longest.map(|found| route(inside, found)), reader.with(|fib| fib.lookup(addr))))
}

/// A next hop, or the members of a group with the slots that each has.
fn ways(mirror: &Mirror, hop: NextHop) -> Vec<status::Way> {
    let view = mirror.views().current();
    let mut reader = view.parts().groups.reader();
    let mut shares: BTreeMap<NextHop, u32> = BTreeMap::new();
    let slots = reader.groups().members(hop);
    slots.iter().for_each(|member| *shares.entry(*member).or_default() += 1);
    if shares.is_empty() && hop.is_some() {
        shares.insert(hop, 1);
    }
    shares.into_iter().map(|(hop, share)| way(mirror, &view, hop, share)).collect()
}

fn way(mirror: &Mirror, view: &View, hop: NextHop, share: u32) -> status::Way {
    let adjacency: Option<Adjacency> = view.parts().adjacencies.get(hop);
    let named = mirror.next_hop(hop).unwrap_or_else(|| "unknown".into());
    status::Way { next_hop: hop.0, share, leads: named, adjacency: describe_adjacency(view, adjacency) }
}
