//! What the kernel lists and what our program has, in the same words.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fullview_testnet::Node;
use serde_json::Value;

use super::hidden;
use super::place::FOREIGN;
use crate::control::Control;

/// The tables that are compared.
pub const TABLES: [u32; 2] = [254, 100];

/// Everything that is compared, one line for each fact.
pub type Facts = BTreeSet<String>;

fn list(node: &Node, arguments: &str) -> Vec<Value> {
    let text = node.try_command(&format!("ip -j {arguments}")).stdout;
    match serde_json::from_slice(&text) {
        Ok(Value::Array(values)) => values,
        _ => Vec::new(),
    }
}

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// What the kernel of a node lists, as our program has to have it, and how lines begin of which it does not say enough.
pub fn of_kernel(node: &Node) -> (Facts, Facts) {
    let (mut facts, mut unclear) = (Facts::new(), Facts::new());
    let neighbors = neighbors_of_kernel(node);
    facts.extend(neighbors.iter().map(|(address, link, mac)| neighbor(address, link, mac)));
    facts.extend(interfaces_of_kernel(node));
    let carriers = carriers(node);
    for family in ["-4", "-6"] {
        let all = list(node, &format!("{family} route show table all"));
        let hidden = match family {
            "-6" => hidden::places(node, &all, |text| prefix(text, true)),
            _ => BTreeSet::new(),
        };
        for table in TABLES {
            let (routes, local) = routes_of_kernel(&all, (table, family == "-6"), &carriers, &hidden);
            let hosts = host_routes(&routes, &neighbors, family == "-6");
            facts.extend(routes.iter().chain(&hosts).map(|(prefix, leads)| route(table, prefix, leads)));
            if table != 254 {
                // Our program has the table `local` in a table that packets are looked up in, and keeps it there.
                local.iter().for_each(|prefix| _ = facts.remove(&route(table, prefix, &routes[prefix])));
            }
        }
        let places = hidden.iter().filter(|place| hiding(&all, place).len() > 1);
        unclear.extend(places.flat_map(|(prefix, _)| TABLES.map(|table| route(table, prefix, ""))));
    }
    (facts, unclear)
}

/// The tables that have a multipath route which may hide others.
fn hiding<'v>(all: &'v [Value], (to, metric): &hidden::Place) -> BTreeSet<&'v str> {
    let hides = |route: &&Value| {
        hidden::hops(route) > 1
            && prefix(word(route, "dst"), true) == *to
            && route["metric"].as_u64().unwrap_or(0) == *metric
    };
    all.iter().filter(hides).map(number_of).collect()
}

fn neighbor(address: &str, link: &str, mac: &str) -> String {
    format!("neighbour {address} dev {link} {mac}")
}

fn route(table: u32, prefix: &str, leads: &str) -> String {
    format!("table {table}: {prefix} {leads}")
}

/// Address, link and MAC address of the neighbours that the kernel sends to.
fn neighbors_of_kernel(node: &Node) -> Vec<(String, String, String)> {
    let usable = ["REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT"];
    let all = list(node, "neigh show");
    let is_usable = |entry: &&Value| {
        entry["state"].as_array().is_some_and(|states| {
            states.iter().any(|state| usable.contains(&state.as_str().unwrap_or_default()))
        })
    };
    let fields = |entry: &Value| ["dst", "dev", "lladdr"].map(|key| word(entry, key).to_owned()).into();
    all.iter().filter(is_usable).map(fields).collect()
}

fn interfaces_of_kernel(node: &Node) -> Vec<String> {
    let all = list(node, "addr show");
    let named = all.iter().filter(|link| word(link, "ifname").starts_with("eth"));
    let line = |link: &Value| {
        let addresses = link["addr_info"].as_array().unwrap();
        let addresses = addresses.iter().map(|of| format!("{}/{}", word(of, "local"), of["prefixlen"]));
        let flags: BTreeSet<&str> =
            link["flags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let up = flags.contains("UP") && flags.contains("LOWER_UP");
        interface(word(link, "ifname"), word(link, "address"), &link["mtu"], up, addresses.collect())
    };
    named.map(line).collect()
}

fn interface(name: &str, mac: &str, mtu: &Value, up: bool, addresses: BTreeSet<String>) -> String {
    format!("interface {name} {mac} mtu {mtu} up {up} {addresses:?}")
}

/// Where each prefix of a table leads, in our program's words; what the table `local` has comes first.
fn routes_of_kernel(
    all: &[Value],
    (table, inet6): (u32, bool),
    carriers: &BTreeSet<String>,
    hidden: &BTreeSet<hidden::Place>,
) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let of =
        |number: &str| -> Vec<&Value> { all.iter().filter(|route| number_of(route) == number).collect() };
    let mut leads = BTreeMap::new();
    let local = of("local").iter().map(|route| prefix(word(route, "dst"), inet6)).collect();
    for routes in [of("local"), of(&table.to_string())] {
        let mut best: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for route in routes {
            best.entry(prefix(word(route, "dst"), inet6)).or_default().push(route);
        }
        for (prefix, mut routes) in best {
            routes.sort_by_key(|route| route["metric"].as_u64().unwrap_or(0));
            let metric = |route: &Value| route["metric"].as_u64().unwrap_or(0);
            // The kernel takes turns among IPv6 routes of one metric, so that it gets their packets.
            let place = (prefix.clone(), metric(routes[0]));
            let is_contested = inet6 && routes.len() > 1 && metric(routes[0]) == metric(routes[1])
                || hidden.contains(&place) && hiding(all, &place).contains(number_of(routes[0]));
            // It also gets those to prefixes that have routes for some sources.
            let is_selective = routes.iter().any(|route| route["from"].is_string());
            let is_left = is_contested || is_selective;
            let this = if is_left { "this host".into() } else { leads_to(routes[0], carriers) };
            leads.entry(prefix).or_insert(this);
        }
    }
    (leads, local)
}

fn number_of(route: &Value) -> &str {
    match word(route, "table") {
        "" => "254",
        "main" => "254",
        other => other,
    }
}

fn prefix(text: &str, inet6: bool) -> String {
    match (text, inet6) {
        ("default", true) => "::/0".into(),
        ("default", false) => "0.0.0.0/0".into(),
        (host, true) if !host.contains('/') => format!("{host}/128"),
        (host, false) if !host.contains('/') => format!("{host}/32"),
        (network, _) => network.into(),
    }
}

/// The links that have a carrier.
fn carriers(node: &Node) -> BTreeSet<String> {
    let links = list(node, "link show");
    let has = |link: &&Value| {
        link["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "LOWER_UP"))
    };
    links.iter().filter(has).map(|link| word(link, "ifname").to_owned()).collect()
}

/// The kernel does not mark an IPv4 hop by an IPv6 gateway that was added while its link had no carrier.
fn is_dead(hop: &Value, carriers: &BTreeSet<String>) -> bool {
    !carriers.contains(word(hop, "dev"))
        || hop["flags"]
            .as_array()
            .is_some_and(|flags| flags.iter().any(|flag| flag == "linkdown" || flag == "dead"))
}

fn alive<'r>(route: &'r Value, carriers: &BTreeSet<String>) -> Vec<&'r Value> {
    match route["nexthops"].as_array() {
        Some(hops) => hops.iter().filter(|hop| !is_dead(hop, carriers)).collect(),
        None => Some(route).filter(|route| !is_dead(route, carriers)).into_iter().collect(),
    }
}

fn leads_to(route: &Value, carriers: &BTreeSet<String>) -> String {
    match word(route, "type") {
        "" | "unicast" => {}
        "local" | "anycast" | "multicast" => return "this host".into(),
        "throw" => return "no route".into(),
        "blackhole" if route["nhid"].is_u64() => return "group of 1".into(),
        other => return other.into(),
    }
    let alive = alive(route, carriers);
    // An object is a group also when it has one hop.
    match (route["nhid"].is_u64() || route["nexthops"].is_array(), alive.as_slice()) {
        (false, []) => "this host".into(),
        // The kernel gets what several hops without a carrier would get.
        (true, []) => "group of 1".into(),
        (true, hops) => format!("group of {}", distinct(hops)),
        (false, hops) => hop(hops[0]),
    }
}

fn distinct(hops: &[&Value]) -> usize {
    hops.iter().map(|of| hop(of)).collect::<BTreeSet<_>>().len()
}

fn hop(of: &Value) -> String {
    let gateway = if of["gateway"].is_string() { word(of, "gateway") } else { word(&of["via"], "host") };
    let dev = word(of, "dev");
    if dev == FOREIGN {
        return "this host".into();
    }
    if gateway.is_empty() { format!("dev {dev}") } else { format!("via {gateway} dev {dev}") }
}

/// The routes of neighbours that a connected network leads to.
fn host_routes(
    routes: &BTreeMap<String, String>,
    neighbors: &[(String, String, String)],
    inet6: bool,
) -> BTreeMap<String, String> {
    let mut hosts = BTreeMap::new();
    for (address, link, _) in neighbors {
        let Ok(ip) = address.parse::<IpAddr>() else { continue };
        let host = prefix(address, inet6);
        // Packets to link-local addresses are not forwarded.
        if ip.is_ipv6() != inet6 || routes.contains_key(&host) || host.starts_with("fe80") {
            continue;
        }
        if covering(routes, ip).is_some_and(|leads| *leads == format!("dev {link}")) {
            hosts.insert(host, format!("via {address} dev {link}"));
        }
    }
    hosts
}

/// Where the longest prefix that covers an address leads.
fn covering(routes: &BTreeMap<String, String>, address: IpAddr) -> Option<&String> {
    let covers = routes.iter().filter(|(prefix, _)| is_within(prefix, address));
    let length =
        |prefix: &str| prefix.split_once('/').map_or(0, |(_, length)| length.parse::<u8>().unwrap_or(0));
    covers.max_by_key(|(prefix, _)| length(prefix)).map(|(_, leads)| leads)
}

fn is_within(prefix: &str, address: IpAddr) -> bool {
    let Some((network, length)) = prefix.split_once('/') else { return false };
    let (Ok(network), Ok(length)) = (network.parse::<IpAddr>(), length.parse::<u32>()) else { return false };
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let same = length == 0 || (bits(network) ^ bits(address)) >> (128 - length) == 0;
    same && network.is_ipv4() == address.is_ipv4()
}

/// What our program has.
pub fn of_program(control: &Control, node: &Node) -> Facts {
    let mut facts = Facts::new();
    let local = local_prefixes(node);
    for known in control.ask("\"neighbors\"").as_array().unwrap() {
        facts.insert(neighbor(word(known, "address"), word(known, "interface"), word(known, "mac")));
    }
    for link in control.ask("\"interfaces\"").as_array().unwrap() {
        let addresses = link["addresses"].as_array().unwrap().iter().filter_map(Value::as_str);
        let addresses = addresses.map(str::to_owned).collect();
        let up = link["up"] == true;
        facts.insert(interface(word(link, "name"), word(link, "mac"), &link["mtu"], up, addresses));
    }
    for table in TABLES {
        for within in ["0.0.0.0/0", "::/0"] {
            let routes = routes_of_program(control, table, within);
            let routes = routes
                .into_iter()
                .filter(|(prefix, leads)| !leads.starts_with("via fe80") || !prefix.starts_with("fe80"));
            for (prefix, leads) in routes {
                if table == 254 || !local.contains(&prefix) {
                    facts.insert(route(table, &prefix, &leads));
                }
            }
        }
    }
    facts
}

fn local_prefixes(node: &Node) -> BTreeSet<String> {
    let of = |family: &str| {
        let routes = list(node, &format!("{family} route show table local"));
        routes.iter().map(|route| prefix(word(route, "dst"), family == "-6")).collect::<Vec<_>>()
    };
    ["-4", "-6"].into_iter().flat_map(of).collect()
}

fn routes_of_program(control: &Control, table: u32, within: &str) -> Vec<(String, String)> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = control.ask(&format!(r#"{{"routes":{{"table":{table},"within":"{within}"{after}}}}}"#));
        let routes = page["routes"].as_array().unwrap();
        all.extend(routes.iter().map(|of| (word(of, "prefix").to_owned(), word(of, "leads").to_owned())));
        match page["next"].as_str() {
            Some(next) => after = format!(r#","after":"{next}""#),
            None => return all,
        }
    }
}

/// The routes, addresses and next hops of a kernel, to see that both kernels have the same.
pub fn listing(node: &Node) -> Facts {
    let queries = [
        "-4 route show table all",
        "-6 route show table all",
        "nexthop show",
        "-4 rule show",
        "-6 rule show",
    ];
    let all = queries
        .iter()
        .flat_map(|query| list(node, query).into_iter().map(move |of| format!("{query}: {of}")));
    all.chain(interfaces_of_kernel(node)).collect()
}
