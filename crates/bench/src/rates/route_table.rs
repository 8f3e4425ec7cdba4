//! Synthetic routes of a device's kernel, where packets go by them, and an endless sequence of changes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fullview_router::netlink::route_writer::RouteWrite;
use fullview_table::Family;
use fullview_table::feed::synthetic::{Synthetic, SyntheticError};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::bed_addresses::{BedLink, FailingNetwork, gateways};
use super::frame::FLOWS;
use super::route_trace::{RouteTrace, TracedChange};
use super::wide_prefix::{WidePrefix, family_of, first, route_prefix, wide, widened};

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
        "the trace changes nothing: it needs updates of networks of the family that hosts of the Internet have, and withdrawals of \
         other routes than packets go by"
    )]
    Unchanged,
}

/// Routes in the order in which they are loaded.
#[derive(Clone, Debug)]
pub struct RouteTable {
    /// Random, except that no other one covers the last.
    prefixes: Vec<WidePrefix>,
    /// Routes to which no packet goes.
    unused: Vec<WidePrefix>,
    /// One for each flow, spread over the table.
    pub destinations: Vec<IpAddr>,
    gateways: [IpAddr; 2],
    family: Family,
    /// Changes that leave the table as it was; none if they are synthetic.
    traced: Vec<TracedChange>,
}

impl RouteTable {
    pub fn new(source: &TableSource, family: Family) -> Result<RouteTable, RouteTableError> {
        RouteTable::beside(source, gateways(family, BedLink::Right), &[])
    }

    /// The same by these gateways, of one family, without routes inside of networks that others need or whose routes fail, and
    /// without those of single hosts that others need.
    pub fn beside(
        source: &TableSource,
        gateways: [IpAddr; 2],
        others: &[WidePrefix],
    ) -> Result<RouteTable, RouteTableError> {
        let (family, seed) = (family_of(gateways[0]), source.seed);
        let all = synthetic(source, family)?;
        let failing = FailingNetwork::ALL.map(|network| network.prefix(family));
        let failing: Vec<WidePrefix> =
            failing.iter().filter_map(|prefix| wide(prefix.first, prefix.len)).collect();
        let host = if family == Family::Inet { 32 } else { 128 };
        // A shorter route takes nothing from a network that has its own, but everything from a host without one.
        let takes = |prefix: &WidePrefix, other: &WidePrefix| {
            other.covers(*prefix) || other.len() == host && prefix.covers(*other)
        };
        let overlaps = |prefix: &WidePrefix| others.iter().chain(&failing).any(|other| takes(prefix, other));
        let mut prefixes: Vec<WidePrefix> = all.iter().copied().filter(|prefix| !overlaps(prefix)).collect();
        let (used, unused) = divide(&prefixes);
        let destinations = used.iter().map(|prefix| first(family, *prefix)).collect();
        let fit = |trace: &RouteTrace| {
            let [known, used] = [&prefixes, &used].map(|all| all.iter().copied().collect());
            trace.fit(family, [&known, &used], overlaps)
        };
        let traced = source.trace.as_ref().map(fit);
        if traced.as_ref().is_some_and(Vec::is_empty) {
            return Err(RouteTableError::Unchanged);
        }
        prefixes.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let alone = prefixes.iter().rposition(|prefix| !is_covered(*prefix, &all));
        if let (Some(alone), Some(last)) = (alone, prefixes.len().checked_sub(1)) {
            prefixes.swap(alone, last);
        }
        let traced = traced.unwrap_or_default();
        Ok(RouteTable { prefixes, unused, destinations, gateways, family, traced })
    }

    /// The same routes by the spare link.
    pub fn by_spare(&self) -> RouteTable {
        RouteTable { gateways: gateways(self.family, BedLink::Spare), ..self.clone() }
    }

    pub fn count(&self) -> usize {
        self.prefixes.len()
    }

    /// All of them by the first gateway.
    pub fn load(&self) -> impl Iterator<Item = RouteWrite> {
        self.prefixes.iter().map(|prefix| self.replace(*prefix, 0))
    }

    /// What removes all of them, and all that changes may have added.
    pub fn remove(&self) -> impl Iterator<Item = RouteWrite> {
        let all = self.prefixes.iter().copied().chain(self.traced.iter().map(|change| change.prefix));
        all.map(|prefix| self.withdraw(prefix))
    }

    /// By the gateway of this number.
    fn replace(&self, prefix: WidePrefix, gateway: usize) -> RouteWrite {
        RouteWrite::Replace(route_prefix(self.family, prefix), self.gateways[gateway])
    }

    fn withdraw(&self, prefix: WidePrefix) -> RouteWrite {
        RouteWrite::Remove(route_prefix(self.family, prefix))
    }

    /// An address of the route that is loaded last. Nothing is forwarded there before.
    pub fn last(&self) -> Option<IpAddr> {
        self.prefixes.last().map(|prefix| first(self.family, *prefix))
    }

    /// The change of this number, after all those before it.
    pub fn change(&self, number: usize) -> RouteWrite {
        if !self.traced.is_empty() {
            let TracedChange { prefix, gateway } = self.traced[number % self.traced.len()];
            return gateway.map_or_else(|| self.withdraw(prefix), |number| self.replace(prefix, number));
        }
        self.synthetic_change(number)
    }

    fn synthetic_change(&self, number: usize) -> RouteWrite {
        let cycle = number / CYCLE;
        if number % CYCLE != CYCLE - 1 {
            let moved = number - cycle;
            let round = moved / self.prefixes.len();
            return self.replace(self.prefixes[moved % self.prefixes.len()], (round + 1) % 2);
        }
        let prefix = self.unused[cycle / 2 % self.unused.len()];
        if cycle.is_multiple_of(2) { self.withdraw(prefix) } else { self.replace(prefix, 0) }
    }
}

/// All prefixes of a table of one family.
fn synthetic(source: &TableSource, family: Family) -> Result<BTreeSet<WidePrefix>, SyntheticError> {
    let TableSource { routes, seed, .. } = *source;
    let [inet, inet6] = if family == Family::Inet { [routes, 0] } else { [0, routes] };
    let table = Synthetic { inet, inet6, seed, ..Synthetic::default() }.table()?;
    let of_inet = table.inet.iter().filter_map(|route| widened(route.prefix));
    Ok(of_inet.chain(table.inet6.iter().filter_map(|route| widened(route.prefix))).collect())
}

/// Whether a shorter prefix covers it.
fn is_covered(prefix: WidePrefix, all: &BTreeSet<WidePrefix>) -> bool {
    std::iter::successors(prefix.parent(), |shorter| shorter.parent()).any(|shorter| all.contains(&shorter))
}

/// Routes to which packets go, spread over the whole table, and those between them. The smallest table has one of each. Those
/// with even places are used, so that none is both.
fn divide(prefixes: &[WidePrefix]) -> (Vec<WidePrefix>, Vec<WidePrefix>) {
    let count = (prefixes.len() / 2).clamp(1, FLOWS.into());
    let place = |number: usize| number * prefixes.len() / count / 2 * 2;
    let used = (0..count).filter_map(|number| prefixes.get(place(number)).copied()).collect();
    (used, prefixes.iter().skip(1).step_by(2).copied().collect())
}

#[cfg(test)]
mod tests {
    use fullview_router::netlink::route_writer::RoutePrefix;

    use super::*;

    fn made(routes: usize, seed: u64) -> RouteTable {
        RouteTable::new(&TableSource { routes, seed, trace: None }, Family::Inet).unwrap()
    }

    #[test]
    fn the_last_route_is_covered_by_no_other() {
        let table = made(5000, 3);
        let last = table.prefixes[4999];
        assert!(table.prefixes[..4999].iter().all(|prefix| !prefix.covers(last)));
        assert_eq!(table.load().count(), 5000);
        assert_eq!(table.last(), Some(first(Family::Inet, last)));
    }

    #[test]
    fn destinations_are_spread_over_the_table() {
        let table = made(20_000, 3);
        assert_eq!(table.destinations.len(), usize::from(FLOWS));
        let octet = |address: &IpAddr| address.to_string().split('.').next().unwrap().to_owned();
        let networks: BTreeSet<String> = table.destinations.iter().map(octet).collect();
        assert!(networks.len() > 50, "{networks:?}");
    }

    #[test]
    fn destinations_reach_from_the_first_to_the_last_route_of_a_table_of_any_size() {
        let all: Vec<WidePrefix> =
            made(20_000, 3).prefixes.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        for len in [0, 1, 2, 101, 8191, 8192, 8193, 16_000, 16_383, 20_000] {
            let (used, unused) = divide(&all[..len]);
            assert_eq!(used.len(), (len / 2).clamp(len.min(1), FLOWS.into()), "{len}");
            let places: BTreeSet<WidePrefix> = used.iter().copied().collect();
            assert!(
                places.len() == used.len() && unused.iter().all(|prefix| !places.contains(prefix)),
                "{len}"
            );
            let step = len / used.len().max(1);
            let last = used.last().map_or(0, |last| all.binary_search(last).unwrap());
            assert!(last + step + 2 >= len, "{len}: {last}");
        }
    }

    #[test]
    fn changes_remove_only_routes_that_exist() {
        let table = made(100, 1);
        let mut known: BTreeSet<RoutePrefix> =
            table.prefixes.iter().map(|prefix| route_prefix(Family::Inet, *prefix)).collect();
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

    #[test]
    fn a_table_of_ipv6_leads_by_its_gateways_and_follows_a_trace() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines = "1 a 2001:db8:9::/48 2001:db8::1\n1 a 2001:2:0:2::/64 2001:db8::1\n1 a fe80::/10 2001:db8::1\n\
                     1 a 198.18.7.0/24 192.0.2.1\n1 a 2001:db8:1:7::/64 2001:db8::1\n";
        std::fs::write(file.path(), lines).unwrap();
        let trace = Some(RouteTrace::load(file.path(), Family::Inet6).unwrap());
        let table = RouteTable::new(&TableSource { routes: 500, seed: 1, trace }, Family::Inet6).unwrap();
        assert!(table.destinations.len() > 200 && table.destinations.iter().all(IpAddr::is_ipv6));
        let gateway: IpAddr = "2001:2:0:2::2".parse().unwrap();
        assert!(table.load().all(|write| matches!(write, RouteWrite::Replace(_, by) if by == gateway)));
        let added = RoutePrefix { first: "2001:db8:9::".parse().unwrap(), len: 48 };
        assert!(matches!(table.change(0), RouteWrite::Replace(prefix, _) if prefix == added));
        assert_eq!(table.change(1), RouteWrite::Remove(added), "nothing else of the trace is of hosts");
    }

    fn shown(prefix: WidePrefix) -> String {
        text(route_prefix(Family::Inet, prefix))
    }

    fn text(prefix: RoutePrefix) -> String {
        format!("{}/{}", prefix.first, prefix.len)
    }

    /// A table of 100 routes that changes by this trace.
    fn traced(lines: &str) -> Result<RouteTable, RouteTableError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines).unwrap();
        let trace = Some(RouteTrace::load(file.path(), Family::Inet).unwrap());
        RouteTable::new(&TableSource { routes: 100, seed: 1, trace }, Family::Inet)
    }

    #[test]
    fn a_trace_is_repeated_and_takes_no_packet_its_route() {
        let base = made(100, 1);
        let (used, unused) = (base.destinations[0], shown(base.unused[0]));
        let used = base.prefixes.iter().find(|prefix| first(Family::Inet, **prefix) == used).unwrap();
        let used = shown(*used);
        let lines = format!(
            "1 a 198.51.100.0/24 192.0.2.1\n1 a 10.0.2.0/24 192.0.2.1\n1 a 0.0.0.0/0 192.0.2.1\n1 w 198.18.7.0/24\n\
             1 a 2001:db8::/32 2001:db8::1\n2 w {used}\n2 w {unused}\n3 a 198.18.8.0/24 192.0.2.2\n3 a {used} 192.0.2.1\n"
        );
        let table = traced(&lines).unwrap();
        let is_replaced =
            |change, of: &str| matches!(change, RouteWrite::Replace(prefix, _) if text(prefix) == of);
        let is_removed =
            |change, of: &str| matches!(change, RouteWrite::Remove(prefix) if text(prefix) == of);
        let added = "198.18.8.0/24";
        for round in 0..3 {
            let changes: Vec<RouteWrite> = (0..5).map(|number| table.change(5 * round + number)).collect();
            assert!(is_removed(changes[0], &unused), "{changes:?}");
            assert!(is_replaced(changes[1], added) && is_replaced(changes[2], &used), "{changes:?}");
            assert!(is_removed(changes[3], added) && is_replaced(changes[4], &unused), "{changes:?}");
        }
        assert!(table.remove().any(|removed| is_removed(removed, added)));
        assert!(matches!(traced("1 w 198.18.7.0/24\n"), Err(RouteTableError::Unchanged)));
    }
}
