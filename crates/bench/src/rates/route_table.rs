//! Synthetic routes of a device's kernel, where packets go by them, and an endless sequence of changes.

use std::net::Ipv4Addr;

use fullview_router::netlink::route_writer::RouteWrite;
use fullview_table::Prefix;
use fullview_table::feed::synthetic::{Synthetic, SyntheticError};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::frame::FLOWS;
use super::route_trace::{RouteTrace, TracedChange};

/// The stations of the right host by which all routes lead. A change between them loses no packet by itself.
pub const GATEWAYS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 2, 2), Ipv4Addr::new(10, 0, 2, 3)];

/// The same by the spare link.
pub const SPARE_GATEWAYS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 3, 2), Ipv4Addr::new(10, 0, 3, 3)];

/// The first addresses of networks (/24) whose routes fail. They are for documentation, so that no lab uses them.
pub const FAILING_NETWORKS: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 0), Ipv4Addr::new(198, 51, 100, 0)];

/// Of so many changes one withdraws a route or announces it again; the others move a route to the other gateway.
const CYCLE: usize = 4;

/// What a table is made from: the same gives the same one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TableSource {
    pub routes: usize,
    pub seed: u64,
    /// Changes, in place of synthetic ones.
    pub trace: Option<RouteTrace>,
}

/// Why a table was not made.
#[derive(Debug, thiserror::Error)]
pub enum RouteTableError {
    #[error("{0}")]
    Synthetic(#[from] SyntheticError),
    #[error(
        "the trace changes nothing: it needs IPv4 updates of networks that hosts of the Internet have, and withdrawals of \
         other routes than packets go by"
    )]
    Unchanged,
}

/// Routes in the order in which they are loaded.
#[derive(Clone, Debug)]
pub struct RouteTable {
    /// Random, except that no other one covers the last.
    prefixes: Vec<Prefix<u32>>,
    /// Routes to which no packet goes.
    unused: Vec<Prefix<u32>>,
    /// One for each flow, spread over the table.
    pub destinations: Vec<Ipv4Addr>,
    gateways: [Ipv4Addr; 2],
    /// Changes that leave the table as it was; none if they are synthetic.
    traced: Vec<TracedChange>,
}

impl RouteTable {
    pub fn new(source: &TableSource) -> Result<RouteTable, RouteTableError> {
        RouteTable::beside(source, GATEWAYS, &[])
    }

    /// The same by these gateways, without routes inside of networks that others need or whose routes fail, and
    /// without those of single hosts that others need.
    pub fn beside(
        source: &TableSource,
        gateways: [Ipv4Addr; 2],
        others: &[Prefix<u32>],
    ) -> Result<RouteTable, RouteTableError> {
        let (inet, seed) = (source.routes, source.seed);
        let table = Synthetic { inet, inet6: 0, seed, ..Synthetic::default() }.table()?.inet;
        let all = table.iter().map(|route| route.prefix);
        let failing = FAILING_NETWORKS.map(|network| Prefix::containing(network.to_bits(), 24));
        // A shorter route takes nothing from a network that has its own, but everything from a host without one.
        let takes = |prefix: &Prefix<u32>, other: &Prefix<u32>| {
            other.covers(*prefix) || other.len() == 32 && prefix.covers(*other)
        };
        let overlaps = |prefix: &Prefix<u32>| others.iter().chain(&failing).any(|other| takes(prefix, other));
        let mut prefixes: Vec<Prefix<u32>> = all.filter(|prefix| !overlaps(prefix)).collect();
        let (used, unused) = divide(&prefixes);
        let destinations = used.iter().map(|prefix| Ipv4Addr::from_bits(prefix.first())).collect();
        let (all, used) = (prefixes.iter().copied().collect(), used.into_iter().collect());
        let fit = |trace: &RouteTrace| trace.fit(&all, &used, overlaps);
        let traced = source.trace.as_ref().map(fit);
        if traced.as_ref().is_some_and(Vec::is_empty) {
            return Err(RouteTableError::Unchanged);
        }
        prefixes.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let alone = prefixes.iter().rposition(|prefix| table.covering(*prefix).is_none());
        if let (Some(alone), Some(last)) = (alone, prefixes.len().checked_sub(1)) {
            prefixes.swap(alone, last);
        }
        Ok(RouteTable { prefixes, unused, destinations, gateways, traced: traced.unwrap_or_default() })
    }

    /// The same routes by the spare link.
    pub fn by_spare(&self) -> RouteTable {
        RouteTable { gateways: SPARE_GATEWAYS, ..self.clone() }
    }

    pub fn count(&self) -> usize {
        self.prefixes.len()
    }

    /// All of them by the first gateway.
    pub fn load(&self) -> impl Iterator<Item = RouteWrite> {
        self.prefixes.iter().map(|prefix| RouteWrite::Replace(*prefix, self.gateways[0]))
    }

    /// What removes all of them, and all that changes may have added.
    pub fn remove(&self) -> impl Iterator<Item = RouteWrite> {
        let all = self.prefixes.iter().copied().chain(self.traced.iter().map(|change| change.prefix));
        all.map(RouteWrite::Remove)
    }

    /// An address of the route that is loaded last. Nothing is forwarded there before.
    pub fn last(&self) -> Option<Ipv4Addr> {
        self.prefixes.last().map(|prefix| Ipv4Addr::from_bits(prefix.first()))
    }

    /// The change of this number, after all those before it.
    pub fn change(&self, number: usize) -> RouteWrite {
        if !self.traced.is_empty() {
            let TracedChange { prefix, gateway } = self.traced[number % self.traced.len()];
            return gateway.map_or(RouteWrite::Remove(prefix), |number| {
                RouteWrite::Replace(prefix, self.gateways[number])
            });
        }
        self.synthetic_change(number)
    }

    fn synthetic_change(&self, number: usize) -> RouteWrite {
        let cycle = number / CYCLE;
        if number % CYCLE != CYCLE - 1 {
            let moved = number - cycle;
            let round = moved / self.prefixes.len();
            return RouteWrite::Replace(
                self.prefixes[moved % self.prefixes.len()],
                self.gateways[(round + 1) % 2],
            );
        }
        let prefix = self.unused[cycle / 2 % self.unused.len()];
        if cycle.is_multiple_of(2) {
            RouteWrite::Remove(prefix)
        } else {
            RouteWrite::Replace(prefix, self.gateways[0])
        }
    }
}

/// Routes to which packets go, and those between them. The smallest table has one of each.
fn divide(prefixes: &[Prefix<u32>]) -> (Vec<Prefix<u32>>, Vec<Prefix<u32>>) {
    let step = 2 * (prefixes.len() / (2 * usize::from(FLOWS))).max(1);
    let used = prefixes.iter().step_by(step).copied().take(FLOWS.into()).collect();
    (used, prefixes.iter().skip(1).step_by(2).copied().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn synthetic(routes: usize, seed: u64) -> RouteTable {
        RouteTable::new(&TableSource { routes, seed, trace: None }).unwrap()
    }

    #[test]
    fn the_last_route_is_covered_by_no_other() {
        let table = synthetic(5000, 3);
        let last = table.prefixes[4999];
        assert!(table.prefixes[..4999].iter().all(|prefix| !prefix.covers(last)));
        assert_eq!(table.load().count(), 5000);
        assert_eq!(table.last(), Some(Ipv4Addr::from_bits(last.first())));
    }

    #[test]
    fn destinations_are_spread_over_the_table() {
        let table = synthetic(20_000, 3);
        assert_eq!(table.destinations.len(), usize::from(FLOWS));
        let networks: BTreeSet<u8> = table.destinations.iter().map(|address| address.octets()[0]).collect();
        assert!(networks.len() > 50, "{networks:?}");
    }

    #[test]
    fn changes_remove_only_routes_that_exist() {
        let table = synthetic(100, 1);
        let mut known: BTreeSet<Prefix<u32>> = table.prefixes.iter().copied().collect();
        let mut removed = 0;
        for number in 0..1000 {
            match table.change(number) {
                RouteWrite::Remove(prefix) => {
                    assert!(known.remove(&prefix), "change {number}");
                    removed += 1;
                }
                RouteWrite::Replace(prefix, _) => drop(known.insert(prefix)),
            }
        }
        assert_eq!((removed, known.len()), (125, 100));
    }

    /// A table of 100 routes that changes by this trace.
    fn traced(lines: &str) -> Result<RouteTable, RouteTableError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines).unwrap();
        let trace = Some(RouteTrace::load(file.path()).unwrap());
        RouteTable::new(&TableSource { routes: 100, seed: 1, trace })
    }

    #[test]
    fn a_trace_is_repeated_and_takes_no_packet_its_route() {
        let base = synthetic(100, 1);
        let (used, unused) = (base.destinations[0], base.unused[0]);
        let used = base.prefixes.iter().find(|prefix| prefix.first() == used.to_bits()).unwrap();
        let lines = format!(
            "1 a 198.51.100.0/24 192.0.2.1\n1 a 10.0.2.0/24 192.0.2.1\n1 a 0.0.0.0/0 192.0.2.1\n1 w 198.18.7.0/24\n\
             1 a 2001:db8::/32 2001:db8::1\n2 w {used}\n2 w {unused}\n3 a 198.18.8.0/24 192.0.2.2\n3 a {used} 192.0.2.1\n"
        );
        let table = traced(&lines).unwrap();
        let added: Prefix<u32> = "198.18.8.0/24".parse().unwrap();
        let is_replaced = |change, of| matches!(change, RouteWrite::Replace(prefix, _) if prefix == of);
        for round in 0..3 {
            let changes: Vec<RouteWrite> = (0..5).map(|number| table.change(5 * round + number)).collect();
            assert_eq!(changes[0], RouteWrite::Remove(unused), "{changes:?}");
            assert!(is_replaced(changes[1], added) && is_replaced(changes[2], *used), "{changes:?}");
            assert_eq!(changes[3], RouteWrite::Remove(added), "{changes:?}");
            assert!(is_replaced(changes[4], unused), "{changes:?}");
        }
        assert!(table.remove().any(|removed| removed == RouteWrite::Remove(added)));
        assert!(matches!(traced("1 w 198.18.7.0/24\n"), Err(RouteTableError::Unchanged)));
    }
}
