//! The libraries that take part: how each is built from the table, and how one address is looked up.

use std::net::{Ipv4Addr, Ipv6Addr};

use ip_network::{Ipv4Network, Ipv6Network};
use ip_network_table::IpNetworkTable;
use ip_network_table_deps_treebitmap::{IpLookupTable, address::Address};
use iptrie::map::{LCTrieMap, RTrieMap};
use iptrie::{Ipv4Prefix, Ipv6Prefix};
use prefix_trie::PrefixMap;

use crate::inputs::{Addr, Route};

/// A built structure. It contains the loop, so that the compiler can inline the library's lookup.
pub trait Lookups<A> {
    fn look_up(&self, keys: &[A], answers: &mut [u16]);
}

/// A structure together with its lookup of one address.
struct Each<F>(F);

impl<A: Copy, F: Fn(A) -> u16> Lookups<A> for Each<F> {
    fn look_up(&self, keys: &[A], answers: &mut [u16]) {
        for (key, answer) in keys.iter().zip(answers) {
            *answer = (self.0)(*key);
        }
    }
}

type Built<A> = Box<dyn Lookups<A>>;
/// A library: its name, and how it builds its structure from a table, or the reason why it cannot.
pub type Library<A> = (&'static str, fn(&[Route<A>]) -> Result<Built<A>, String>);

fn each<A: Copy>(lookup: impl Fn(A) -> u16 + 'static) -> Built<A> {
    Box::new(Each(lookup))
}

pub trait Contested: Addr {
    const LIBRARIES: &'static [Library<Self>];
}

impl Contested for Ipv4Addr {
    const LIBRARIES: &'static [Library<Self>] = &[
        ("prefix_trie_inet", prefix_trie_inet),
        ("ip_network_table_inet", ip_network_table_inet),
        ("treebitmap_inet", treebitmap),
        ("iptrie_lc_inet", |routes| Ok(iptrie_lc_inet(iptrie_inet(routes)?.compress()))),
        ("iptrie_radix_inet", |routes| Ok(iptrie_radix_inet(iptrie_inet(routes)?))),
    ];
}

impl Contested for Ipv6Addr {
    const LIBRARIES: &'static [Library<Self>] = &[
        ("prefix_trie_inet6", prefix_trie_inet6),
        ("ip_network_table_inet6", ip_network_table_inet6),
        ("treebitmap_inet6", treebitmap),
        ("iptrie_lc_inet6", |routes| Ok(iptrie_lc_inet6(iptrie_inet6(routes)?.compress()))),
        ("iptrie_radix_inet6", |routes| Ok(iptrie_radix_inet6(iptrie_inet6(routes)?))),
    ];
}

fn prefix_trie_inet(routes: &[Route<Ipv4Addr>]) -> Result<Built<Ipv4Addr>, String> {
    let map: PrefixMap<(u32, u8), u16> =
        routes.iter().map(|route| ((route.addr.to_bits(), route.len), route.next_hop)).collect();
    Ok(each(move |addr: Ipv4Addr| map.get_lpm(&(addr.to_bits(), 32)).map_or(0, |(_, hop)| *hop)))
}

fn prefix_trie_inet6(routes: &[Route<Ipv6Addr>]) -> Result<Built<Ipv6Addr>, String> {
    let map: PrefixMap<(u128, u8), u16> =
        routes.iter().map(|route| ((route.addr.to_bits(), route.len), route.next_hop)).collect();
    Ok(each(move |addr: Ipv6Addr| map.get_lpm(&(addr.to_bits(), 128)).map_or(0, |(_, hop)| *hop)))
}

fn treebitmap<A: Addr + Address>(routes: &[Route<A>]) -> Result<Built<A>, String> {
    let mut table = IpLookupTable::new();
    for route in routes {
        table.insert(route.addr, route.len.into(), route.next_hop);
    }
    Ok(each(move |addr: A| table.longest_match(addr).map_or(0, |(_, _, hop)| *hop)))
}

fn ip_network_table_inet(routes: &[Route<Ipv4Addr>]) -> Result<Built<Ipv4Addr>, String> {
    let mut table = IpNetworkTable::new();
    for route in routes {
        let network = Ipv4Network::new(route.addr, route.len).map_err(|error| error.to_string())?;
        table.insert(network, route.next_hop);
    }
    Ok(each(move |addr| table.longest_match_ipv4(addr).map_or(0, |(_, hop)| *hop)))
}

fn ip_network_table_inet6(routes: &[Route<Ipv6Addr>]) -> Result<Built<Ipv6Addr>, String> {
    let mut table = IpNetworkTable::new();
    for route in routes {
        let network = Ipv6Network::new(route.addr, route.len).map_err(|error| error.to_string())?;
        table.insert(network, route.next_hop);
    }
    Ok(each(move |addr| table.longest_match_ipv6(addr).map_or(0, |(_, hop)| *hop)))
}

/// The root of these tries is the default route; if the table has none, it means no route.
fn iptrie_inet(routes: &[Route<Ipv4Addr>]) -> Result<RTrieMap<Ipv4Prefix, u16>, String> {
    let mut trie = RTrieMap::with_root(0);
    for route in routes {
        let prefix = Ipv4Prefix::new(route.addr, route.len).map_err(|error| error.to_string())?;
        trie.insert(prefix, route.next_hop);
    }
    Ok(trie)
}

fn iptrie_inet6(routes: &[Route<Ipv6Addr>]) -> Result<RTrieMap<Ipv6Prefix, u16>, String> {
    let mut trie = RTrieMap::with_root(0);
    for route in routes {
        let prefix = Ipv6Prefix::new(route.addr, route.len).map_err(|error| error.to_string())?;
        trie.insert(prefix, route.next_hop);
    }
    Ok(trie)
}

fn iptrie_lc_inet(trie: LCTrieMap<Ipv4Prefix, u16>) -> Built<Ipv4Addr> {
    each(move |addr: Ipv4Addr| *trie.lookup(&addr).1)
}

fn iptrie_lc_inet6(trie: LCTrieMap<Ipv6Prefix, u16>) -> Built<Ipv6Addr> {
    each(move |addr: Ipv6Addr| *trie.lookup(&addr).1)
}

fn iptrie_radix_inet(trie: RTrieMap<Ipv4Prefix, u16>) -> Built<Ipv4Addr> {
    each(move |addr: Ipv4Addr| *trie.lookup(&addr).1)
}

fn iptrie_radix_inet6(trie: RTrieMap<Ipv6Prefix, u16>) -> Built<Ipv6Addr> {
    each(move |addr: Ipv6Addr| *trie.lookup(&addr).1)
}
