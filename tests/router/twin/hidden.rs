//! Routes of IPv6 that the kernel has and does not list. A dump goes from the first hop of a multipath route to the last one,
//! and passes over routes of the same metric that were added between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv6Addr;

use fullview_testnet::Node;
use serde_json::Value;

/// A prefix with a metric, in all tables.
pub type Place = (String, u64);

/// Where the kernel has more routes than it lists.
pub fn places(node: &Node, listed: &[Value], prefix: impl Fn(&str) -> String) -> BTreeSet<Place> {
    let mut count: BTreeMap<Place, i64> = BTreeMap::new();
    let text = node.run(|| fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap());
    text.lines().filter_map(entry).for_each(|place| *count.entry(place).or_default() += 1);
    for route in listed {
        let place =
            (prefix(route["dst"].as_str().unwrap_or_default()), route["metric"].as_u64().unwrap_or(0));
        *count.entry(place).or_default() -= hops(route) as i64;
    }
    count.into_iter().filter(|(_, more)| *more > 0).map(|(place, _)| place).collect()
}

/// The hops of a route, of which each is a route in the kernel. With several, it may hide others of its table.
pub fn hops(route: &Value) -> usize {
    route["nexthops"].as_array().filter(|_| !route["nhid"].is_u64()).map_or(1, Vec::len)
}

/// A line of `/proc/net/ipv6_route`: destination, length, source, its length, next hop, metric, all in hexadecimal digits.
fn entry(line: &str) -> Option<Place> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let address = Ipv6Addr::from_bits(u128::from_str_radix(words.first()?, 16).ok()?);
    let [length, metric] = [1, 5].map(|at| words.get(at).and_then(|word| u64::from_str_radix(word, 16).ok()));
    Some((format!("{address}/{}", length?), metric?))
}
