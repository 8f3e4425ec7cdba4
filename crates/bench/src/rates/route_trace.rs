//! Changes of routes that were recorded: a trace of BGP updates, made to fit a table that packets go by.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use fullview_table::feed::FeedError;
use fullview_table::feed::updates::{self, FamilyChange};
use fullview_table::{Address, Change, Family, NextHops, Prefix};
use serde::{Deserialize, Serialize};

use super::wide_prefix::{WidePrefix, family_of, wide};

/// So many changes at most: an agent gets them in one message.
const MOST: usize = 100_000;

/// First octets of addresses of IPv4 that are no host's in the Internet, or that test beds use.
const NOT_ROUTED: [u8; 3] = [0, 10, 127];
const MULTICAST: u8 = 224;
/// The addresses of hosts of the Internet in IPv6, without the network for benchmarks, which test beds use.
const UNICAST: u128 = 0x2000 << 112;
const BENCHMARKS: u128 = 0x2001_0002 << 96;

/// Updates in their order. Each is an address, the length of its prefix, and which of the two gateways an announcement
/// leads to; a withdrawal has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouteTrace(Vec<(IpAddr, u8, Option<u8>)>);

/// A change of a route: to the gateway of this number, or its withdrawal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedChange {
    pub prefix: WidePrefix,
    pub gateway: Option<usize>,
}

impl RouteTrace {
    /// The first updates of a family in a file.
    ///
    /// # Errors
    /// A [`FeedError`] with the first line that is not an update.
    pub fn load(path: &Path, family: Family) -> Result<RouteTrace, FeedError> {
        let all = updates::load(path, &mut NextHops::default())?;
        let changes = all.iter().filter_map(|update| match update.change {
            FamilyChange::Inet(change) if family == Family::Inet => Some(traced(change)),
            FamilyChange::Inet6(change) if family == Family::Inet6 => Some(traced(change)),
            _ => None,
        });
        Ok(RouteTrace(changes.take(MOST).collect()))
    }

    fn changes(&self, family: Family) -> impl Iterator<Item = TracedChange> {
        self.0.iter().filter_map(move |(address, length, gateway)| {
            let gateway = gateway.map(|number| usize::from(number % 2));
            let prefix = wide(*address, *length)?;
            (family_of(*address) == family).then_some(TracedChange { prefix, gateway })
        })
    }

    /// What of the trace can be done to a table again and again: no withdrawal of a route that is not there, or to which
    /// packets go, and no route that is kept out. The table is the same again at the end.
    pub fn fit(
        &self,
        family: Family,
        [table, used]: [&BTreeSet<WidePrefix>; 2],
        keeps_out: impl Fn(&WidePrefix) -> bool,
    ) -> Vec<TracedChange> {
        let (mut known, mut fitting) = (table.clone(), Vec::new());
        let is_usable = |prefix: &WidePrefix| is_routed(family, prefix) && !keeps_out(prefix);
        for change in self.changes(family).filter(|change| is_usable(&change.prefix)) {
            let is_done = match change.gateway {
                Some(_) => {
                    known.insert(change.prefix);
                    true
                }
                None => !used.contains(&change.prefix) && known.remove(&change.prefix),
            };
            fitting.extend(is_done.then_some(change));
        }
        let back = |prefix: &WidePrefix, gateway| TracedChange { prefix: *prefix, gateway };
        fitting.extend(known.difference(table).map(|prefix| back(prefix, None)));
        fitting.extend(table.difference(&known).map(|prefix| back(prefix, Some(0))));
        fitting
    }
}

fn traced<A: Address>(change: Change<A>) -> (IpAddr, u8, Option<u8>) {
    let gateway = change.next_hop.map(|hop| (hop.0 % 2) as u8);
    (change.prefix.first().to_ip().into(), change.prefix.len(), gateway)
}

fn is_routed(family: Family, prefix: &WidePrefix) -> bool {
    match family {
        Family::Inet => {
            let first = prefix.first().to_be_bytes()[0];
            prefix.len() > 0 && first < MULTICAST && !NOT_ROUTED.contains(&first)
        }
        Family::Inet6 => {
            let benchmarks = Prefix::containing(BENCHMARKS, 48);
            Prefix::containing(UNICAST, 3).covers(*prefix)
                && !(benchmarks.covers(*prefix) || prefix.covers(benchmarks))
        }
    }
}
