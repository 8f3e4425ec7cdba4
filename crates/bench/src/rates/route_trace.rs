//! Changes of routes that were recorded: a trace of BGP updates, made to fit a table that packets go by.

use std::collections::BTreeSet;
use std::path::Path;

use fullview_table::feed::FeedError;
use fullview_table::feed::updates::{self, FamilyChange};
use fullview_table::{Change, NextHops, Prefix};
use serde::{Deserialize, Serialize};

/// So many changes at most: an agent gets them in one message.
const MOST: usize = 100_000;

/// First octets of addresses that are no host's in the Internet, or that test beds use.
const NOT_ROUTED: [u8; 3] = [0, 10, 127];
const MULTICAST: u8 = 224;

/// IPv4 updates in their order. Each is an address, the length of its prefix, and which of the two gateways an announcement
/// leads to; a withdrawal has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouteTrace(Vec<(u32, u8, Option<u8>)>);

/// A change of a route: to the gateway of this number, or its withdrawal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedChange {
    pub prefix: Prefix<u32>,
    pub gateway: Option<usize>,
}

impl RouteTrace {
    /// The first updates of a file.
    ///
    /// # Errors
    /// A [`FeedError`] with the first line that is not an update.
    pub fn load(path: &Path) -> Result<RouteTrace, FeedError> {
        let all = updates::load(path, &mut NextHops::default())?;
        let changes = all.iter().filter_map(|update| match update.change {
            FamilyChange::Inet(change) => Some(traced(change)),
            FamilyChange::Inet6(_) => None,
        });
        Ok(RouteTrace(changes.take(MOST).collect()))
    }

    fn changes(&self) -> impl Iterator<Item = TracedChange> {
        self.0.iter().filter_map(|(address, length, gateway)| {
            let gateway = gateway.map(|number| usize::from(number % 2));
            Some(TracedChange { prefix: Prefix::new(*address, *length)?, gateway })
        })
    }

    /// What of the trace can be done to a table again and again: no withdrawal of a route that is not there, or to which
    /// packets go, and no route that is kept out. The table is the same again at the end.
    pub fn fit(
        &self,
        table: &BTreeSet<Prefix<u32>>,
        used: &BTreeSet<Prefix<u32>>,
        keeps_out: impl Fn(&Prefix<u32>) -> bool,
    ) -> Vec<TracedChange> {
        let (mut known, mut fitting) = (table.clone(), Vec::new());
        for change in self.changes().filter(|change| is_routed(&change.prefix) && !keeps_out(&change.prefix))
        {
            let is_done = match change.gateway {
                Some(_) => {
                    known.insert(change.prefix);
                    true
                }
                None => !used.contains(&change.prefix) && known.remove(&change.prefix),
            };
            fitting.extend(is_done.then_some(change));
        }
        let back = |prefix: &Prefix<u32>, gateway| TracedChange { prefix: *prefix, gateway };
        fitting.extend(known.difference(table).map(|prefix| back(prefix, None)));
        fitting.extend(table.difference(&known).map(|prefix| back(prefix, Some(0))));
        fitting
    }
}

fn traced(change: Change<u32>) -> (u32, u8, Option<u8>) {
    let gateway = change.next_hop.map(|hop| (hop.0 % 2) as u8);
    (change.prefix.first(), change.prefix.len(), gateway)
}

fn is_routed(prefix: &Prefix<u32>) -> bool {
    let first = prefix.first().to_be_bytes()[0];
    prefix.len() > 0 && first < MULTICAST && !NOT_ROUTED.contains(&first)
}
