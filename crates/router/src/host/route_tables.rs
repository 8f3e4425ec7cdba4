//! Route tables of a host stack without a mirror: routes that follow from the configuration, and routes to neighbours
//! once they are resolved.
//!
//! A neighbour on a link gets a host route when its link address is known, so that the loop forwards by longest match
//! alone. Until then the network's route punts (glean). A gateway has one next-hop index, however many routes use it; its
//! adjacency changes from glean to neighbour and back.

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
use super::neighbor::NeighborId;
use super::next_hop::{HostAction, NextHopResolver, RouteQuery, on_link, through};
use crate::route::{NextHopVia, RouteAction};
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader, Views};
use fullview_plane::wire::ethernet::Mac;

/// One family's routes.
struct FamilyTable<A: Address> {
    rib: Rib<A>,
    attachment: Attachment<A>,
}

impl<A: Registered> FamilyTable<A> {
    fn new(now: Duration) -> FamilyTable<A> {
        let modules = A::ALGORITHMS.iter().copied().skip(1).collect();
        let attachment = Attachment::new(now, 0, modules, Arc::new(Settings::default()));
        FamilyTable { rib: Rib::default(), attachment }
    }

    fn apply(&mut self, now: Duration, addr: A, len: u8, next_hop: Option<NextHop>) {
        let change = Change { prefix: Prefix::containing(addr, len), next_hop };
        self.rib.apply(change);
        self.attachment.changed(now, &self.rib, &[change], Origin::Interface);
    }

    fn longest_match(&self, addr: A) -> Option<NextHop> {
        self.rib.longest_match(addr).map(|route| route.next_hop)
    }
}

/// Both families' routes, and the views that the loop uses.
pub struct RouteTables {
    inet: FamilyTable<u32>,
    inet6: FamilyTable<u128>,
    /// By next-hop index.
    actions: Vec<Option<HostAction>>,
    indices: FxHashMap<HostAction, NextHop>,
    adjacencies: Adjacencies,
    /// Indices to be reused, longest unused first: a worker may still find one in the FIB that it holds.
    free: VecDeque<NextHop>,
    /// Next hops of configured routes, which are never released.
    configured: FxHashSet<NextHop>,
    interfaces: Vec<Interface>,
    views: Views,
}

impl RouteTables {
    /// Makes tables without routes.
    pub(super) fn new(now: Duration, interfaces: &[Interface]) -> Result<RouteTables, HostConfigError> {
        let (inet, inet6) = (FamilyTable::new(now), FamilyTable::new(now));
        let adjacencies = Adjacencies::new();
        let views = Views::new(view(&inet, &inet6, interfaces, &adjacencies)?);
        let (actions, indices, configured) = (vec![None], FxHashMap::default(), FxHashSet::default());
        let (free, interfaces) = (VecDeque::new(), interfaces.to_vec());
        Ok(RouteTables { inet, inet6, actions, indices, adjacencies, free, configured, interfaces, views })
    }

    /// The views that a forwarder uses.
    pub(super) fn reader(&self) -> ViewReader {
        self.views.reader()
    }

    /// Adds a configured route. The loop sees it after [`RouteTables::compile`].
    pub(super) fn add(
        &mut self,
        network: InterfaceAddress,
        action: HostAction,
    ) -> Result<(), HostConfigError> {
        let index = self.acquire(action)?;
        self.configured.insert(index);
        match network.ip {
            IpAddr::V4(ip) => self.inet.rib.announce(Prefix::containing(ip.to_bits(), network.len), index),
            IpAddr::V6(ip) => self.inet6.rib.announce(Prefix::containing(ip.to_bits(), network.len), index),
        };
        Ok(())
    }

    /// Compiles all routes added so far.
    pub(super) fn compile(&mut self, now: Duration) -> Result<(), CompileError> {
        self.inet.attachment.evaluate(now, &self.inet.rib)?;
        self.inet6.attachment.evaluate(now, &self.inet6.rib)
    }

    /// Sets the link addresses that are configured.
    pub(super) fn set_static_neighbors(
        &mut self,
        now: Duration,
        neighbors: &[StaticNeighbor],
    ) -> Result<(), TooManyNextHops> {
        for neighbor in neighbors {
            let index = self.acquire(through(neighbor.id()))?;
            let (interface, mac) = (neighbor.interface, neighbor.mac);
            self.adjacencies.set(index, Adjacency::Neighbor { interface, mac });
        }
        self.publish();
        neighbors.iter().try_for_each(|neighbor| self.neighbor_resolved(now, neighbor.id(), neighbor.mac))
    }

    fn longest_match(&self, addr: IpAddr) -> Option<HostAction> {
        let index = match addr {
            IpAddr::V4(addr) => self.inet.longest_match(addr.to_bits()),
            IpAddr::V6(addr) => self.inet6.longest_match(addr.to_bits()),
        };
        self.action(index?)
    }

    fn host_route(&self, ip: IpAddr) -> Option<NextHop> {
        match ip {
            IpAddr::V4(ip) => self.inet.rib.get(Prefix::host(ip.to_bits())),
            IpAddr::V6(ip) => self.inet6.rib.get(Prefix::host(ip.to_bits())),
        }
    }

    /// The index of an action; a new one if it has none.
    fn acquire(&mut self, action: HostAction) -> Result<NextHop, TooManyNextHops> {
        let Some(adjacency) = unresolved(action) else { return Ok(NextHop::NONE) };
        if let Some(index) = self.indices.get(&action) {
            return Ok(*index);
        }
        let index = self.unused().ok_or_else(|| exhausted(action))?;
        self.actions[index.index()] = Some(action);
        self.indices.insert(action, index);
        self.adjacencies.set(index, adjacency);
        Ok(index)
    }

    fn release(&mut self, action: HostAction, index: NextHop) {
        self.indices.remove(&action);
        self.actions[index.index()] = None;
        self.adjacencies.remove(index);
        self.free.push_back(index);
    }

    /// Indices are reused only when many exist, so that each stays unused for a long time first.
    fn unused(&mut self) -> Option<NextHop> {
        const FRESH: usize = 1 << 15;
        let fresh = u16::try_from(self.actions.len()).ok().filter(|index| *index <= NextHop::MAX);
        let used_before = self.free.front().filter(|_| self.actions.len() >= FRESH || fresh.is_none());
        if used_before.is_some() {
            return self.free.pop_front();
        }
        let index = fresh?;
        self.actions.push(None);
        Some(NextHop(index))
    }

    fn apply(&mut self, now: Duration, network: InterfaceAddress, next_hop: Option<NextHop>) {
        match network.ip {
            IpAddr::V4(ip) => self.inet.apply(now, ip.to_bits(), network.len, next_hop),
            IpAddr::V6(ip) => self.inet6.apply(now, ip.to_bits(), network.len, next_hop),
        }
    }

    /// Publishes a view with the current adjacencies.
    fn publish(&mut self) {
        #[allow(clippy::expect_used)]
        // the interfaces fitted together in the first view, and adjacencies name only these interfaces
        let view = view(&self.inet, &self.inet6, &self.interfaces, &self.adjacencies).expect(
            "the interfaces were checked when the first view was made, and no adjacency names another",
        );
        self.views.publish(view);
    }
}

/// All interfaces use one table, and no next hop is a group.
impl NextHopResolver for RouteTables {
    fn lookup(&self, query: RouteQuery<'_>) -> Option<HostAction> {
        self.longest_match(query.destination)
    }

    fn action(&self, index: NextHop) -> Option<HostAction> {
        *self.actions.get(index.index())?
    }

    fn neighbor_resolved(
        &mut self,
        now: Duration,
        neighbor: NeighborId,
        mac: Mac,
    ) -> Result<(), TooManyNextHops> {
        let NeighborId { interface, ip } = neighbor;
        let index = self.acquire(through(neighbor))?;
        let adjacency = Adjacency::Neighbor { interface, mac };
        if self.adjacencies.get(index) != Some(adjacency) {
            self.adjacencies.set(index, adjacency);
            self.publish();
        }
        // A configured host route takes precedence, and so does an address of the router.
        if self.longest_match(ip) == Some(on_link(interface)) {
            self.apply(now, host_prefix(ip), Some(index));
        }
        Ok(())
    }

    fn neighbor_lost(&mut self, now: Duration, neighbor: NeighborId) {
        let NeighborId { interface, ip } = neighbor;
        let action = through(neighbor);
        let Some(index) = self.indices.get(&action).copied() else { return };
        self.adjacencies.set(index, Adjacency::Glean { interface });
        let has_host_route = self.host_route(ip) == Some(index);
        if has_host_route {
            self.apply(now, host_prefix(ip), None);
        }
        if has_host_route && !self.configured.contains(&index) {
            self.release(action, index);
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
    inet: &FamilyTable<u32>,
    inet6: &FamilyTable<u128>,
    interfaces: &[Interface],
    adjacencies: &Adjacencies,
) -> Result<View, HostConfigError> {
    let (inet, inet6) = (inet.attachment.shared_reader(), inet6.attachment.shared_reader());
    let parts = ViewParts::new(interfaces.to_vec(), adjacencies.clone(), TableReaders { inet, inet6 });
    Ok(View::new(parts)?)
}

/// The prefix that holds this address alone.
pub(super) fn host_prefix(ip: IpAddr) -> InterfaceAddress {
    InterfaceAddress { ip, len: if ip.is_ipv4() { 32 } else { 128 } }
}

/// The adjacency of a next hop before its neighbour is resolved; `None` where a table has no route.
fn unresolved(action: HostAction) -> Option<Adjacency> {
    Some(match action {
        RouteAction::Forward(NextHopVia { link, .. }) => Adjacency::Glean { interface: link },
        RouteAction::Local => Adjacency::Local,
        RouteAction::Broadcast => Adjacency::Broadcast,
        RouteAction::Blackhole => Adjacency::Blackhole,
        RouteAction::Unreachable => Adjacency::Unreachable,
        RouteAction::Prohibit => Adjacency::Prohibit,
        RouteAction::Throw => return None,
    })
}

fn exhausted(action: HostAction) -> TooManyNextHops {
    let target = match action {
        RouteAction::Forward(NextHopVia { neighbor: Some(ip), .. }) => FeedTarget::Gateway(ip),
        _ => FeedTarget::Number(0),
    };
    TooManyNextHops { target }
}
