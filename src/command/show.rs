//! `fullview show`: asks a running router, and prints the answer.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::anyhow;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Exit;
use super::listing::{print, table};
use super::show_filter::filter;
use super::show_states::states;
use crate::args::operations::{RouterArgs, ShowRouterArgs, ShowWhat, ShownRoutes};
use crate::command::output::stdout;
use fullview_router::control;
use fullview_router::control::client::Client;
use fullview_router::control::request::{self, Request};
use fullview_router::control::status::{
    CountersStatus, EventStatus, FibStatus, InterfaceStatus, NeighborStatus, PathStatus, PuntStatus,
    RouteStatus, RoutesPage, TrafficCount,
};

pub fn run(args: &ShowRouterArgs) -> anyhow::Result<Exit> {
    let mut client = connect(&args.router)?;
    match &args.what {
        ShowWhat::Interfaces => show(&mut client, args, &Request::Interfaces, interfaces)?,
        ShowWhat::Fib => show(&mut client, args, &Request::Fib, fibs)?,
        ShowWhat::Neighbors => show(&mut client, args, &Request::Neighbors, neighbors)?,
        ShowWhat::Counters => show(&mut client, args, &Request::Counters, counters)?,
        ShowWhat::Events { last } => {
            let request = Request::Events(request::EventsQuery { last: *last });
            show(&mut client, args, &request, |found: &Vec<EventStatus>, out| events(found, out))?;
        }
        ShowWhat::Filter => filter(&mut client, args.json)?,
        ShowWhat::States { choice, limit } => {
            states(&mut client, &choice.query(), limit.unwrap_or(usize::MAX), args.json)?;
        }
        ShowWhat::Routes { what, table, limit } => {
            routes(&mut client, args, what.as_ref(), *table, limit.unwrap_or(usize::MAX))?;
        }
    }
    Ok(Exit::Done)
}

/// Connects to the router that the flags name.
pub fn connect(router: &RouterArgs) -> anyhow::Result<Client> {
    let named = || router.name.as_deref().map(control::default_path);
    let path: Option<PathBuf> = router.control.clone().or_else(named);
    let path = path.map_or_else(control::only_path, Ok).map_err(|error| anyhow!(error))?;
    Ok(Client::connect(&path)?)
}

/// Asks, and prints the answer as text or as JSON.
fn show<T: DeserializeOwned + Serialize>(
    client: &mut Client,
    args: &ShowRouterArgs,
    request: &Request,
    print_text: impl Fn(&T, &mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let answer: T = client.ask(request)?;
    let mut out = stdout();
    if args.json {
        writeln!(out, "{:#}", serde_json::to_value(&answer)?)?;
    } else {
        print_text(&answer, &mut out)?;
    }
    Ok(())
}

fn interfaces(interfaces: &Vec<InterfaceStatus>, out: &mut dyn Write) -> io::Result<()> {
    let headings = [
        "interface",
        "state",
        "engine",
        "MAC",
        "MTU",
        "table",
        "rx packets",
        "rx bytes",
        "tx packets",
        "tx bytes",
        "addresses",
    ];
    let mut lines = table(headings, &[4, 5, 6, 7, 8, 9]);
    for interface in interfaces {
        let TrafficCount { packets, bytes } = interface.received;
        let sent = interface.sent;
        lines.add_row([
            interface.name.clone(),
            if interface.up { "up" } else { "down" }.into(),
            interface.engine.name.clone(),
            interface.mac.clone(),
            mtu(interface),
            interface.table.to_string(),
            packets.to_string(),
            bytes.to_string(),
            sent.packets.to_string(),
            sent.bytes.to_string(),
            interface.addresses.join(" "),
        ]);
    }
    print(&lines, out)?;
    for InterfaceStatus { name, engine, .. } in interfaces.iter().filter(|interface| interface.vlan.is_none())
    {
        writeln!(out, "{name}: engine {}: {}", engine.name, engine.why)?;
    }
    for InterfaceStatus { name, overruns, .. } in interfaces.iter().filter(|interface| interface.overruns > 0)
    {
        writeln!(out, "{name} had no room for {overruns} frames")?;
    }
    for InterfaceStatus { name, drops, .. } in
        interfaces.iter().filter(|interface| !interface.drops.is_empty())
    {
        let drops: Vec<String> = drops.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        writeln!(out, "{name} dropped: {}", drops.join(", "))?;
    }
    Ok(())
}

fn mtu(interface: &InterfaceStatus) -> String {
    let of_inet6 = interface.mtu6.map(|mtu6| format!(", IPv6 {mtu6}"));
    format!("{}{}", interface.mtu, of_inet6.unwrap_or_default())
}

fn neighbors(neighbors: &Vec<NeighborStatus>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = table(["address", "interface", "MAC", "state"], &[]);
    for NeighborStatus { address, interface, mac, state } in neighbors {
        lines.add_row([address, interface, mac, state]);
    }
    print(&lines, out)
}

fn fibs(fibs: &Vec<FibStatus>, out: &mut dyn Write) -> io::Result<()> {
    let headings = ["family", "table", "routes", "algorithm", "bytes", "generation", "state"];
    let mut lines = table(headings, &[1, 2, 4, 5]);
    for fib in fibs {
        let algorithm = fib.algorithm.as_deref().unwrap_or("none");
        let pinned = if fib.pinned { " (pinned)" } else { "" };
        lines.add_row([
            fib.family.clone(),
            fib.table.to_string(),
            fib.routes.to_string(),
            format!("{algorithm}{pinned}"),
            fib.bytes.to_string(),
            fib.generation.to_string(),
            state(fib),
        ]);
    }
    print(&lines, out)?;
    for fib in fibs.iter().filter(|fib| !fib.log.is_empty()) {
        writeln!(
            out,
            "\n{} table {}: last rebuild: {}",
            fib.family,
            fib.table,
            fib.last_rebuild.as_deref().unwrap_or("none")
        )?;
        fib.log.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

fn state(fib: &FibStatus) -> String {
    match &fib.failure {
        Some(failure) => format!("failed: {failure}"),
        None if fib.synced => "synced".into(),
        None => format!("behind, the routes are at {}", fib.rib_generation),
    }
}

fn counters(counters: &CountersStatus, out: &mut dyn Write) -> io::Result<()> {
    let CountersStatus { received, sent, .. } = counters;
    writeln!(out, "received  {} packets, {} bytes", received.packets, received.bytes)?;
    writeln!(out, "forwarded {} packets, {} bytes", sent.packets, sent.bytes)?;
    let named =
        [("dropped", &counters.drops), ("for the host", &counters.punts), ("program", &counters.program)];
    for (what, counts) in named {
        for (reason, count) in counts.iter().filter(|(_, count)| **count > 0) {
            writeln!(out, "{what}: {reason} {count}")?;
        }
    }
    for (reason, PuntStatus { handed, limited, lost }) in &counters.to_kernel {
        writeln!(out, "to the kernel: {reason} {handed}, {limited} over the limit, {lost} lost")?;
    }
    for worker in counters.workers.iter().filter(|worker| worker.seconds > 0.0) {
        let share = 100.0 * worker.busy_seconds / worker.seconds;
        writeln!(
            out,
            "worker {}: {} packets, awake {share:.1} % of {:.0} s",
            worker.name, worker.received.packets, worker.seconds
        )?;
    }
    for (what, counts) in [("host", &counters.host), ("netlink", &counters.netlink)] {
        let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        if !counts.is_empty() {
            writeln!(out, "{what}: {}", counts.join(", "))?;
        }
    }
    Ok(())
}

fn events(events: &[EventStatus], out: &mut dyn Write) -> io::Result<()> {
    events.iter().try_for_each(|event| writeln!(out, "{} {:<8} {}", time(event.at), event.kind, event.text))
}

/// Formats microseconds since 1970 as a time in UTC, to the millisecond.
pub fn time(micros: u64) -> String {
    let time = i64::try_from(micros).ok().and_then(|micros| jiff::Timestamp::from_microsecond(micros).ok());
    time.map_or_else(|| format!("{micros} us"), |time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// Looks an address up, or lists the routes of a prefix; without either, lists the routes of both families.
fn routes(
    client: &mut Client,
    args: &ShowRouterArgs,
    what: Option<&ShownRoutes>,
    table: u32,
    limit: usize,
) -> anyhow::Result<()> {
    match what {
        Some(ShownRoutes::To(address)) => {
            let request = Request::Path(request::PathQuery { address: *address, table });
            show(client, args, &request, path)
        }
        Some(ShownRoutes::Within(prefix)) => list(client, args, prefix, table, limit).map(drop),
        None => {
            let listed = list(client, args, "0.0.0.0/0", table, limit)?;
            list(client, args, "::/0", table, limit - listed).map(drop)
        }
    }
}

/// Lists routes page by page, and prints each page as it comes; returns how many there were.
fn list(
    client: &mut Client,
    args: &ShowRouterArgs,
    within: &str,
    table: u32,
    limit: usize,
) -> anyhow::Result<usize> {
    let (mut listed, mut after) = (0, None);
    while listed < limit {
        let most = request::RoutesQuery::MAX_LIMIT.min(limit - listed);
        let query = request::RoutesQuery { table, within: within.to_owned(), after, limit: most };
        let page: RoutesPage = client.ask(&Request::Routes(query))?;
        listed += page.routes.len();
        print_routes(&page.routes, args.json)?;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(listed)
}

/// Prints one JSON object a line, not an array: a table may have a million routes.
fn print_routes(routes: &[RouteStatus], as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    for route in routes {
        match as_json {
            true => writeln!(out, "{}", json!(route))?,
            false => writeln!(out, "{} {} (next hop {})", route.prefix, route.leads, route.next_hop)?,
        }
    }
    Ok(())
}

fn path(path: &PathStatus, out: &mut dyn Write) -> io::Result<()> {
    let PathStatus { address, table, route, fib_next_hop, ways } = path;
    match route {
        Some(RouteStatus { prefix, next_hop, leads }) => {
            writeln!(out, "{address}: table {table}, route {prefix}, next hop {next_hop}: {leads}")?;
        }
        None => writeln!(out, "{address}: table {table}, no route")?,
    }
    let of_route = route.as_ref().map_or(0, |route| route.next_hop);
    if of_route != *fib_next_hop {
        writeln!(out, "  the FIB still answers with next hop {fib_next_hop}")?;
    }
    let slots: u32 = ways.iter().map(|way| way.share).sum();
    for way in ways {
        let share =
            if ways.len() > 1 { format!(", {}/{slots} of the flows", way.share) } else { String::new() };
        writeln!(out, "  next hop {}: {}{share}; {}", way.next_hop, way.leads, way.adjacency)?;
    }
    Ok(())
}
