//! Where packets go: the routes that follow from the configuration, and those to neighbours as they are found.
//!
//! A neighbour on a link gets a route of its own, to itself, once its link address is known: the loop then forwards by
//! longest match alone. Until then the network's route punts (glean). A gateway has one next hop however many routes
//! lead to it; its adjacency changes from glean to neighbour and back.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fullview_table::fib::CompileError;
use fullview_table::fib::framework::{Attachment, Origin, Settings};
use fullview_table::fib::registry::Registered;
use fullview_table::nexthop::TooManyNextHops;
use fullview_table::{Address, Change, NextHop, Prefix, Rib, Target as FeedTarget};
use rustc_hash::{FxHashMap, FxHashSet};

use super::config::{HostConfigError, StaticNeighbor};
use super::next_hop::{Hop, Key, NextHopResolver, RouteQuery};
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader, Views};
use fullview_plane::wire::ethernet::Mac;

/// One family's routes.
struct Table<A: Address> {
    rib: Rib<A>,
    attachment: Attachment<A>,
}

impl<A: Registered> Table<A> {
    fn new(now: Duration) -> Table<A> {
        let modules = A::ALGORITHMS.iter().copied().skip(1).collect();
        let attachment = Attachment::new(now, 0, modules, Arc::new(Settings::default()));
        Table { rib: Rib::default(), attachment }
    }

    fn apply(&mut self, now: Duration, addr: A, len: u8, next_hop: Option<NextHop>) {
        let change = Change { prefix: Prefix::containing(addr, len), next_hop };
        self.rib.apply(change);
        self.attachment.changed(now, &self.rib, &[change], Origin::Interface);
    }

    fn find(&self, addr: A) -> Option<NextHop> {
        self.rib.longest_match(addr).map(|route| route.next_hop)
    }
}

/// Both families' routes, and what the loop is told of them.
pub struct RouteTables {
    inet: Table<u32>,
    inet6: Table<u128>,
    hops: Vec<Option<Hop>>,
    numbers: FxHashMap<Hop, NextHop>,
    /// Numbers to be used again, longest unused first: a worker may meet one in a FIB it still has.
    free: VecDeque<NextHop>,
    /// Next hops of routes of the configuration, which stay.
    configured: FxHashSet<NextHop>,
    adjacencies: Adjacencies,
    interfaces: Vec<Interface>,
    views: Views,
}

impl RouteTables {
    /// No routes yet.
    pub(super) fn new(now: Duration, interfaces: &[Interface]) -> Result<RouteTables, HostConfigError> {
        let (inet, inet6) = (Table::new(now), Table::new(now));
        let adjacencies = Adjacencies::new();
        let view = view(&inet, &inet6, interfaces, &adjacencies)?;
        let (hops, numbers, configured) = (vec![None], FxHashMap::default(), FxHashSet::default());
        let (free, views, interfaces) = (VecDeque::new(), Views::new(view), interfaces.to_vec());
        Ok(RouteTables { inet, inet6, hops, numbers, free, configured, adjacencies, interfaces, views })
    }

    /// What a forwarder goes by.
    pub(super) fn reader(&self) -> ViewReader {
        self.views.reader()
    }

    /// Adds a route of the configuration. The loop sees it after [`RouteTables::compile`].
    pub(super) fn add(&mut self, network: InterfaceAddress, hop: Hop) -> Result<(), HostConfigError> {
        let number = self.number(hop)?;
        self.configured.insert(number);
        match network.ip {
            IpAddr::V4(ip) => self.inet.rib.announce(Prefix::containing(ip.to_bits(), network.len), number),
            IpAddr::V6(ip) => self.inet6.rib.announce(Prefix::containing(ip.to_bits(), network.len), number),
        };
        Ok(())
    }

    /// Makes tables of all routes added so far.
    pub(super) fn compile(&mut self, now: Duration) -> Result<(), CompileError> {
        self.inet.attachment.evaluate(now, &self.inet.rib)?;
        self.inet6.attachment.evaluate(now, &self.inet6.rib)
    }

    /// Link addresses that are known from the beginning.
    pub(super) fn know(
        &mut self,
        now: Duration,
        neighbors: &[StaticNeighbor],
    ) -> Result<(), TooManyNextHops> {
        for StaticNeighbor { interface, ip, mac } in neighbors.iter().copied() {
            let number = self.number(Hop::Station(interface, ip))?;
            self.adjacencies.set(number, Adjacency::Neighbor { interface, mac });
        }
        self.publish();
        neighbors
            .iter()
            .try_for_each(|neighbor| self.known(now, (neighbor.interface, neighbor.ip), neighbor.mac))
    }

    fn leads(&self, addr: IpAddr) -> Option<Hop> {
        let number = match addr {
            IpAddr::V4(addr) => self.inet.find(addr.to_bits()),
            IpAddr::V6(addr) => self.inet6.find(addr.to_bits()),
        };
        self.hop(number?)
    }

    fn own_route(&self, ip: IpAddr) -> Option<NextHop> {
        match ip {
            IpAddr::V4(ip) => self.inet.rib.get(Prefix::host(ip.to_bits())),
            IpAddr::V6(ip) => self.inet6.rib.get(Prefix::host(ip.to_bits())),
        }
    }

    fn release(&mut self, hop: Hop, number: NextHop) {
        self.numbers.remove(&hop);
        self.hops[number.index()] = None;
        self.adjacencies.remove(number);
        self.free.push_back(number);
    }

    /// The number of a next hop, a new one if it has none.
    fn number(&mut self, hop: Hop) -> Result<NextHop, TooManyNextHops> {
        if let Some(number) = self.numbers.get(&hop) {
            return Ok(*number);
        }
        let number = self.unused().ok_or_else(|| exhausted(hop))?;
        self.hops[number.index()] = Some(hop);
        self.numbers.insert(hop, number);
        self.adjacencies.set(number, unresolved(hop));
        Ok(number)
    }

    /// Numbers are used again only when many are in use, so that none is for a long time.
    fn unused(&mut self) -> Option<NextHop> {
        const FRESH: usize = 1 << 15;
        let fresh = u16::try_from(self.hops.len()).ok().filter(|number| *number <= NextHop::MAX);
        let used_before = self.free.front().filter(|_| self.hops.len() >= FRESH || fresh.is_none());
        if used_before.is_some() {
            return self.free.pop_front();
        }
        let number = fresh?;
        self.hops.push(None);
        Some(NextHop(number))
    }

    fn apply(&mut self, now: Duration, network: InterfaceAddress, next_hop: Option<NextHop>) {
        match network.ip {
            IpAddr::V4(ip) => self.inet.apply(now, ip.to_bits(), network.len, next_hop),
            IpAddr::V6(ip) => self.inet6.apply(now, ip.to_bits(), network.len, next_hop),
        }
    }

    /// Has the loop go by the adjacencies as they stand.
    pub fn publish(&mut self) {
        #[allow(clippy::expect_used)]
        // what fitted together once does so whatever adjacencies name these interfaces
        let view = view(&self.inet, &self.inet6, &self.interfaces, &self.adjacencies).expect(
            "the interfaces were checked when the first view was made, and no adjacency names another",
        );
        self.views.publish(view);
    }
}

/// One table serves all interfaces, and a next hop is never several.
impl NextHopResolver for RouteTables {
    fn find(&self, wanted: RouteQuery<'_>) -> Option<Hop> {
        self.leads(wanted.to)
    }

    fn hop(&self, number: NextHop) -> Option<Hop> {
        *self.hops.get(number.index())?
    }

    fn known(&mut self, now: Duration, (interface, ip): Key, mac: Mac) -> Result<(), TooManyNextHops> {
        let number = self.number(Hop::Station(interface, ip))?;
        let neighbor = Adjacency::Neighbor { interface, mac };
        if self.adjacencies.get(number) != Some(neighbor) {
            self.adjacencies.set(number, neighbor);
            self.publish();
        }
        // A host route of the configuration is stronger, and so is one's own address.
        if self.leads(ip) == Some(Hop::Link(interface)) {
            self.apply(now, host(ip), Some(number));
        }
        Ok(())
    }

    fn unknown(&mut self, now: Duration, (interface, ip): Key) {
        let hop = Hop::Station(interface, ip);
        let Some(number) = self.numbers.get(&hop).copied() else { return };
        self.adjacencies.set(number, Adjacency::Glean { interface });
        let is_own_route = self.own_route(ip) == Some(number);
        if is_own_route {
            self.apply(now, host(ip), None);
        }
        if is_own_route && !self.configured.contains(&number) {
            self.release(hop, number);
        }
        self.publish();
    }

    fn tick(&mut self, now: Duration) {
        self.inet.attachment.tick(now, &self.inet.rib);
        self.inet6.attachment.tick(now, &self.inet6.rib);
    }

    fn next_deadline(&self) -> Option<Duration> {
        let (inet, inet6) = (&self.inet.attachment, &self.inet6.attachment);
        inet.next_deadline().into_iter().chain(inet6.next_deadline()).min()
    }
}

fn view(
    inet: &Table<u32>,
    inet6: &Table<u128>,
    interfaces: &[Interface],
    adjacencies: &Adjacencies,
) -> Result<View, HostConfigError> {
    let (inet, inet6) = (inet.attachment.shared_reader(), inet6.attachment.shared_reader());
    let parts = ViewParts::new(interfaces.to_vec(), adjacencies.clone(), TableReaders { inet, inet6 });
    Ok(View::new(parts)?)
}

/// A host's prefix.
pub(super) fn host(ip: IpAddr) -> InterfaceAddress {
    InterfaceAddress { ip, len: if ip.is_ipv4() { 32 } else { 128 } }
}

fn unresolved(hop: Hop) -> Adjacency {
    match hop {
        Hop::Station(interface, _) | Hop::Link(interface) => Adjacency::Glean { interface },
        Hop::Own => Adjacency::Local,
        Hop::Broadcast => Adjacency::Broadcast,
        Hop::Blackhole => Adjacency::Blackhole,
        Hop::Unreachable => Adjacency::Unreachable,
        Hop::Prohibit => Adjacency::Prohibit,
    }
}

fn exhausted(hop: Hop) -> TooManyNextHops {
    let target = if let Hop::Station(_, ip) = hop { FeedTarget::Gateway(ip) } else { FeedTarget::Number(0) };
    TooManyNextHops { target }
}
