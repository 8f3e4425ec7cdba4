//! A view: the interfaces, adjacencies and tables that every worker forwards with, consistent with each other.
//!
//! The writer makes a new [`View`] when links, neighbours or tables change, and publishes it whole ([`Views::publish`]).
//! A worker compares one pointer per burst ([`ViewReader`]) and never waits. A view contains no routes: they reach the
//! workers through the FIBs, which the [`SharedReader`]s of the tables point to, and need no new view.
//!
//! The writer keeps this order, so that no FIB returns a next hop that the view does not know:
//! - a new next hop or group: publish the view (the groups) first, then the route;
//! - a removed one: withdraw the routes first, then publish the view without it.
//!
//! For one burst, a worker may use the view before a change together with the FIB after it. A next hop that the view does
//! not know yet gives the verdict [`crate::verdict::Reason::NoAdjacency`], and the slow path may still resolve it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use arc_swap::cache::Cache;
use fullview_table::fib::Fib;
use fullview_table::fib::framework::SharedReader;
use fullview_table::group::{GroupView, SharedGroupReader};
use fullview_table::{Family, NextHop};

use crate::adjacency::{Adjacencies, Adjacency, CompiledAdjacencies, NO_INTERFACE};
use crate::flow_hash::FlowHash;
use crate::interface::{Interface, SourceCheck};
use crate::policy::{self, CompiledRule};
use ports::PortTable;

mod error;
mod ports;

pub use error::ViewError;
pub(crate) use ports::PortIngress;
pub use ports::PortInterfaces;

/// The two FIBs of one routing table (VRF).
#[derive(Clone)]
pub struct TableReaders {
    /// IPv4.
    pub inet: SharedReader<u32>,
    /// IPv6.
    pub inet6: SharedReader<u128>,
}

impl TableReaders {
    /// Two FIBs that never change.
    pub fn fixed(inet: Arc<dyn Fib<u32>>, inet6: Arc<dyn Fib<u128>>) -> TableReaders {
        TableReaders { inet: SharedReader::fixed(inet), inet6: SharedReader::fixed(inet6) }
    }
}

/// What a view is made of.
#[derive(Clone)]
pub struct ViewParts {
    /// By interface number. An interface keeps its number in all views, because its counters have that index.
    pub interfaces: Vec<Interface>,
    /// By next-hop index, the same for all tables and both families.
    pub adjacencies: Adjacencies,
    /// By table index.
    pub tables: Vec<TableReaders>,
    /// The next-hop groups of all tables.
    pub groups: SharedGroupReader,
    /// The policy of all interfaces.
    pub policy: Policy,
}

impl ViewParts {
    /// Parts of a router with one table, without groups, that drops martians.
    pub fn new(interfaces: Vec<Interface>, adjacencies: Adjacencies, table: TableReaders) -> ViewParts {
        let (groups, policy) = (SharedGroupReader::default(), Policy::default());
        ViewParts { interfaces, adjacencies, tables: vec![table], groups, policy }
    }
}

/// The policy of all interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether packets from and to 0/8, 127/8, 240/4 and similar blocks are dropped, whatever the table says. Packets with
    /// link-local and multicast addresses are never forwarded.
    pub drops_martians: bool,
    /// The flow hash that picks the member of a group.
    pub flow_hash: FlowHash,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { drops_martians: true, flow_hash: FlowHash::default() }
    }
}

/// The state that every worker forwards with, at one moment.
pub struct View {
    parts: ViewParts,
    ports: PortTable,
    adjacencies: CompiledAdjacencies,
    /// By interface number: IPv4, IPv6.
    rules: Box<[[Box<[CompiledRule]>; 2]]>,
    /// Whether any interface has a source check.
    checks_sources: bool,
    /// Whether any interface sends ICMP redirects.
    has_redirects: bool,
    /// Whether all packets are looked up in the same table.
    has_one_table: bool,
    /// The view that this one was made from: its next hops keep their meaning until no worker uses this one.
    origin: Option<Arc<View>>,
    /// Interfaces whose links have failed since then, and the next hops by them.
    left: Vec<u16>,
    failed: BTreeSet<NextHop>,
}

impl View {
    /// Compiles parts for the loop.
    ///
    /// # Errors
    /// Fails if the parts do not fit together.
    pub fn new(parts: ViewParts) -> Result<View, ViewError> {
        let count = parts.interfaces.len();
        if count > NO_INTERFACE.into() {
            return Err(ViewError::TooManyInterfaces(count));
        }
        if parts.tables.is_empty() {
            return Err(ViewError::NoTable);
        }
        parts.interfaces.iter().try_for_each(|interface| check(interface, parts.tables.len()))?;
        let rules = parts.interfaces.iter().map(|interface| rules_of(interface, parts.tables.len()));
        let rules: Box<[[Box<[CompiledRule]>; 2]]> = rules.collect::<Result<_, _>>()?;
        let ports = PortTable::new(&parts.interfaces)?;
        let adjacencies =
            CompiledAdjacencies::new(&parts.adjacencies, &parts.interfaces).map_err(|(hop, interface)| {
                ViewError::NoSuchInterface { hop: hop.0, interface, interfaces: count }
            })?;
        let checks_sources =
            parts.interfaces.iter().any(|interface| interface.source_check != SourceCheck::Off);
        let has_redirects = parts.interfaces.iter().any(|interface| interface.redirects);
        let has_one_table = parts.tables.len() == 1 && rules.iter().flatten().all(|rules| rules.is_empty());
        Ok(View {
            parts,
            ports,
            adjacencies,
            rules,
            checks_sources,
            has_redirects,
            has_one_table,
            origin: None,
            left: Vec::new(),
            failed: BTreeSet::new(),
        })
    }

    /// The parts it was compiled from.
    pub fn parts(&self) -> &ViewParts {
        &self.parts
    }

    /// An interface by its number.
    pub fn interface(&self, number: u16) -> Option<&Interface> {
        self.parts.interfaces.get(usize::from(number))
    }

    /// The interfaces of a port, if it has any.
    pub fn port(&self, number: u16) -> Option<&PortInterfaces> {
        self.ports.get(number)
    }

    /// The ingress of the untagged frames of a port.
    #[inline(always)]
    pub(crate) fn ingress(&self, port: u16) -> &PortIngress {
        self.ports.ingress(port)
    }

    #[inline(always)]
    pub(crate) fn adjacencies(&self) -> &CompiledAdjacencies {
        &self.adjacencies
    }

    /// The rules that packets of an interface meet; none if there is no such interface.
    pub(crate) fn rules(&self, interface: u16, family: Family) -> &[CompiledRule] {
        let of_both = self.rules.get(usize::from(interface));
        of_both.map_or(&[], |[inet, inet6]| if family == Family::Inet { inet } else { inet6 })
    }

    pub(crate) fn checks_sources(&self) -> bool {
        self.checks_sources
    }

    pub(crate) fn has_redirects(&self) -> bool {
        self.has_redirects
    }

    pub(crate) fn has_one_table(&self) -> bool {
        self.has_one_table
    }

    /// Whether this view forwards packets as another one does, except those whose next hops have other adjacencies.
    pub fn differs_by_adjacencies_only(&self, other: &View) -> bool {
        let (own, others) = (&self.parts, &other.parts);
        let is_same = |(own, other): (&TableReaders, &TableReaders)| {
            own.inet.is_same_table(&other.inet) && own.inet6.is_same_table(&other.inet6)
        };
        own.interfaces == others.interfaces
            && own.policy == others.policy
            && own.tables.len() == others.tables.len()
            && own.tables.iter().zip(&others.tables).all(is_same)
            && (&self.left, &self.failed) == (&other.left, &other.failed)
    }

    /// The member of a group for a flow with this hash: another one while the first one's link has failed and the group still
    /// has it. The slow path, which would get these packets, may itself lose what it sends there.
    #[inline]
    pub(crate) fn member(&self, groups: &GroupView, group: NextHop, flow_hash: u32) -> NextHop {
        let member = groups.select(group, flow_hash);
        match self.failed.contains(&member) {
            true => groups.select_working(group, flow_hash, |hop| self.leads_to_neighbor(hop)),
            false => member,
        }
    }

    /// Whether packets may leave by an interface of this port.
    pub(crate) fn sends_by(&self, port: u16) -> bool {
        let mut interfaces = (0..).zip(&self.parts.interfaces);
        interfaces
            .any(|(number, interface)| interface.port == port && interface.up && !self.left.contains(&number))
    }

    fn leads_to_neighbor(&self, hop: NextHop) -> bool {
        let Some(Adjacency::Neighbor { interface, .. }) = self.parts.adjacencies.get(hop) else {
            return false;
        };
        self.interface(interface).is_some_and(|interface| interface.up)
    }
}

fn check(interface: &Interface, tables: usize) -> Result<(), ViewError> {
    let (name, table) = (interface.name.clone(), interface.table);
    match interface.vlan {
        Some(vlan @ (0 | 4095..)) => Err(ViewError::Vlan { name, vlan }),
        _ if interface.mtu_of(Family::Inet6) == 0 => Err(ViewError::Mtu { name }),
        _ if usize::from(table) >= tables => Err(ViewError::Table { name, table, tables }),
        _ => Ok(()),
    }
}

fn rules_of(interface: &Interface, tables: usize) -> Result<[Box<[CompiledRule]>; 2], ViewError> {
    let compile = |family| {
        let compiled = policy::compile(interface.rules.of(family), family, tables);
        compiled.map_err(|error| ViewError::Rules { name: interface.name.clone(), error })
    };
    Ok([compile(Family::Inet)?, compile(Family::Inet6)?])
}

/// The writer's end, which publishes views.
pub struct Views {
    current: Arc<ArcSwap<View>>,
    failures: ViewLinkFailures,
}

impl Views {
    /// Publishes the first view.
    pub fn new(view: View) -> Views {
        let current = Arc::new(ArcSwap::from_pointee(view));
        Views { failures: ViewLinkFailures::new(Arc::clone(&current)), current }
    }

    /// Publishes a view; workers use it from their next burst on. Where links have failed that it has not
    /// left yet, another one that is made of it is published instead, and keeps it alive.
    pub fn publish(&self, view: View) -> Arc<View> {
        let view = Arc::new(view);
        self.failures.publish(&view);
        view
    }

    /// What notes failed links, from any thread.
    pub fn link_failures(&self) -> ViewLinkFailures {
        self.failures.clone()
    }

    /// The current view.
    pub fn current(&self) -> Arc<View> {
        self.current.load_full()
    }

    /// A reader for one worker.
    pub fn reader(&self) -> ViewReader {
        ViewReader(Cache::new(Arc::clone(&self.current)))
    }
}

/// Leaves failed links before the next view does: other members of a group get the packets, or the slow path. Clones share the
/// links.
#[derive(Clone)]
pub struct ViewLinkFailures {
    current: Arc<ArcSwap<View>>,
    /// The names of interfaces. Views are published only while this is locked, so that none is overwritten by an older one.
    failed: Arc<Mutex<BTreeSet<String>>>,
}

impl ViewLinkFailures {
    fn new(current: Arc<ArcSwap<View>>) -> ViewLinkFailures {
        ViewLinkFailures { current, failed: Arc::default() }
    }

    /// Notes that the link of an interface has failed, or works again; returns whether that was not noted yet. Interfaces are
    /// noted by their names, whether a view has them or not.
    pub fn note(&self, interface: &str, has_failed: bool) -> bool {
        let is_new = |failed: &mut BTreeSet<String>| match has_failed {
            true => failed.insert(interface.to_owned()),
            false => failed.remove(interface),
        };
        self.change(is_new)
    }

    /// Takes all links for working ones; returns whether any was noted.
    pub fn forget(&self) -> bool {
        self.change(|failed| !std::mem::take(failed).is_empty())
    }

    /// Publishes the current view by other failed links, if `change` says that they are others.
    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) -> bool {
        // No code that holds the lock panics.
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let has_changed = change(&mut failed);
        if has_changed {
            let current = self.current.load_full();
            let origin = current.origin.as_ref().unwrap_or(&current);
            self.current.store(without_failed(origin, &failed));
        }
        has_changed
    }

    fn publish(&self, view: &Arc<View>) {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        self.current.store(without_failed(view, &failed));
    }
}

/// A view like this one, in which no packet leaves by failed links; this one, if that is so already.
fn without_failed(view: &Arc<View>, failed: &BTreeSet<String>) -> Arc<View> {
    let has_failed = |number: u16| {
        view.interface(number).is_some_and(|interface| interface.up && failed.contains(&interface.name))
    };
    let left: Vec<u16> =
        (0..).take(view.parts.interfaces.len()).filter(|number| has_failed(*number)).collect();
    if left.is_empty() {
        return Arc::clone(view);
    }
    let failed = hops_by(&view.parts.adjacencies, &left);
    let mut adjacencies = view.parts.adjacencies.clone();
    failed.iter().for_each(|hop| adjacencies.set(*hop, Adjacency::Local));
    let parts = ViewParts { adjacencies, ..view.parts.clone() };
    let without = View::new(parts).map(|made| View { origin: Some(Arc::clone(view)), left, failed, ..made });
    // The other parts are as they were, so this cannot fail.
    without.map_or_else(|_| Arc::clone(view), Arc::new)
}

/// The next hops that are neighbours on these interfaces.
fn hops_by(all: &Adjacencies, interfaces: &[u16]) -> BTreeSet<NextHop> {
    let is_there = |adjacency| matches!(adjacency, Adjacency::Neighbor { interface, .. } if interfaces.contains(&interface));
    all.iter().filter(|(_, adjacency)| is_there(*adjacency)).map(|(hop, _)| hop).collect()
}

/// A worker's end. It compares one pointer, and counts a reference only after a new view was published.
#[derive(Clone)]
pub struct ViewReader(Cache<Arc<ArcSwap<View>>, Arc<View>>);

impl ViewReader {
    /// A reader of a view that never changes.
    pub fn fixed(view: View) -> ViewReader {
        Views::new(view).reader()
    }

    /// The view for one burst.
    #[inline]
    pub fn view(&mut self) -> &Arc<View> {
        self.0.load()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ethernet::Mac;
    use fullview_table::Rib;
    use fullview_table::fib::{Algorithm, linear::Linear};
    use fullview_table::group::{Groups, Member};
    use fullview_table::nexthop::{NextHops, Target};

    fn parts(interfaces: Vec<Interface>) -> ViewParts {
        let inet = Linear.compile(&Rib::<u32>::default()).unwrap().fib();
        let inet6 = Linear.compile(&Rib::<u128>::default()).unwrap().fib();
        ViewParts::new(interfaces, Adjacencies::new(), TableReaders::fixed(inet, inet6))
    }

    fn on(port: u16, vlan: Option<u16>) -> Interface {
        Interface { vlan, ..Interface::new(port, Mac([2; 6])) }
    }

    fn refused(interfaces: Vec<Interface>) -> String {
        View::new(parts(interfaces)).err().unwrap().to_string()
    }

    #[test]
    fn parts_that_do_not_fit_are_refused_with_a_hint() {
        assert!(refused(vec![on(0, Some(4095))]).contains("VLAN 4095"));
        assert!(refused(vec![on(0, None), on(1, None), on(0, None)]).contains("port0 and port0"));
        assert!(refused(vec![on(3, Some(5)), on(3, Some(5))]).contains("of port 3"));
        assert!(refused(vec![Interface { table: 1, ..on(0, None) }]).contains("only 1 tables"));
        assert!(refused(vec![Interface { mtu: 0, ..on(0, None) }]).contains("port0: an MTU of 0"));
        let none = ViewParts { tables: Vec::new(), ..parts(Vec::new()) };
        assert_eq!(View::new(none).err(), Some(ViewError::NoTable));
        let mut parts = parts(vec![on(0, None)]);
        parts.adjacencies.set(NextHop(7), Adjacency::Glean { interface: 1 });
        let error = View::new(parts).err().unwrap();
        assert_eq!(error, ViewError::NoSuchInterface { hop: 7, interface: 1, interfaces: 1 });
    }

    #[test]
    fn interfaces_are_found_by_port_and_vlan() {
        let view = View::new(parts(vec![on(2, Some(7)), on(0, None), on(2, None), on(5, Some(1))])).unwrap();
        let found = |port: u16, vlan| view.port(port)?.interface(vlan);
        assert_eq!([found(2, 7), found(0, 0), found(2, 0)], [Some(0), Some(1), Some(2)]);
        assert_eq!([found(0, 7), found(2, 8), found(1, 0), found(5, 0), found(9, 0)], [None; 5]);
        assert_eq!(view.ingress(2).interface, 2);
        assert_eq!([1, 5, 9].map(|port| view.ingress(port).interface), [NO_INTERFACE; 3]);
    }

    #[test]
    fn readers_see_the_view_published_last() {
        let views = Views::new(View::new(parts(vec![on(0, None)])).unwrap());
        let mut reader = views.reader();
        assert_eq!(reader.view().parts().interfaces.len(), 1);
        views.publish(View::new(parts(vec![on(0, None), on(1, None)])).unwrap());
        assert_eq!(reader.view().parts().interfaces.len(), 2);
        assert!(Arc::ptr_eq(reader.view(), &views.current()));
    }

    /// With a neighbour on each of two interfaces, the second of which may be down.
    fn two_neighbors(up: bool) -> ViewParts {
        let mut parts = parts(vec![on(0, None), Interface { up, ..on(1, None) }]);
        for interface in [0, 1] {
            let adjacency = Adjacency::Neighbor { interface, mac: Mac([2; 6]) };
            parts.adjacencies.set(NextHop(interface + 1), adjacency);
        }
        parts
    }

    #[test]
    fn flows_by_a_failed_link_take_another_member_of_their_group() {
        let (mut next_hops, mut groups) = (NextHops::default(), Groups::default());
        (1..=2).for_each(|number| drop(next_hops.intern(Target::Number(number))));
        let both = [1, 2].map(|hop| Member { next_hop: NextHop(hop), weight: 1 });
        let group = groups.acquire(&mut next_hops, &both).unwrap();
        groups.publish();
        let parts = ViewParts { groups: groups.shared_reader(), ..two_neighbors(true) };
        let views = Views::new(View::new(parts).unwrap());
        let taken = || {
            let (view, mut reader) = (views.current(), groups.reader());
            let mut members: Vec<u16> =
                (0..64).map(|hash| view.member(reader.groups(), group, hash).0).collect();
            members.sort_unstable();
            members.dedup();
            members
        };
        let failures = views.link_failures();
        assert_eq!(taken(), [1, 2]);
        failures.note("port1", true);
        assert_eq!(taken(), [1]);
        failures.note("port0", true);
        assert_eq!(taken(), [1, 2], "none works");
        failures.note("port1", false);
        assert_eq!(taken(), [2]);
        failures.forget();
        assert_eq!(taken(), [1, 2]);
    }

    #[test]
    fn next_hops_by_a_failed_link_are_left_to_the_slow_path() {
        let view = |up| View::new(two_neighbors(up)).unwrap();
        let views = Views::new(view(true));
        let (before, failures) = (views.current(), views.link_failures());
        let is_left = || {
            let view = views.current();
            [1, 2].map(|hop| view.parts().adjacencies.get(NextHop(hop)) == Some(Adjacency::Local))
        };
        let sends = || [0, 1].map(|port| views.current().sends_by(port));
        assert_eq!(sends(), [true, true]);
        failures.note("port1", true);
        failures.note("port7", true);
        assert_eq!((is_left(), sends()), ([false, true], [true, false]));
        let kept = Arc::downgrade(&before);
        drop(before);
        assert!(kept.upgrade().is_some(), "its next hops are in use");
        let still_up = views.publish(view(true));
        assert_eq!((is_left(), kept.upgrade().is_none()), ([false, true], true));
        failures.note("port1", false);
        assert!(Arc::ptr_eq(&views.current(), &still_up));
        failures.note("port1", true);
        let followed = views.publish(view(false));
        assert!(Arc::ptr_eq(&views.current(), &followed), "it leaves the link itself");
    }
}
