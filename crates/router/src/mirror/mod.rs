//! The kernel's state (or a configuration's), and what follows from it: routes in the FIB framework's tables, next
//! hops, groups, views.
//!
//! Pure: it takes events and times, and owns no socket and no clock. [`Mirror::apply`] takes an event;
//! [`Mirror::commit`] hands on everything that changed, in the order that keeps a FIB from leading to a next hop that
//! the view does not know: groups, then the view, then the routes. A table that an interface is to look up in has its routes
//! before the view says so (the next hops of these are in a view of their own then), and one that it has left keeps its routes
//! until no worker reads the view before. A next hop that is no longer used is freed when all FIBs have followed and the
//! last view that knew it is gone.
//!
//! A dump stands between [`Mirror::begin_dump`] and [`Mirror::end_dump`]: what it did not list is removed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use fullview_plane::flow_hash::FlowFields;
use fullview_plane::view::{View, ViewError, Views};
use fullview_table::Family;
use fullview_table::fib::framework::{Settings, Tables, Time};

use crate::netlink::event::{DumpPart, Link};
use crate::route::LinkIndex;
use links::LinkTable;
use neighbors::NeighborTable;
use reclaim::Reclaim;
use routing::Routing;
use rule_list::Coverage;
use rules::RuleTable;
use view::{Publisher, Sources, TableChanges};

mod apply;
mod family;
mod hop_order;
mod hop_sets;
mod host_routes;
mod inspect;
mod links;
mod lookups;
mod neighbors;
mod next_hops;
mod reclaim;
mod resolution;
mod route_table;
mod routing;
mod rule_list;
mod rules;
mod stored_route;
mod table_places;
mod view;

pub use inspect::{Report, UsableNeighbor};
pub use resolution::StaleNeighbor;
pub use view::InterfacePolicy;

/// The least time between two looks through all routes for those that got no index.
const RETRY_PAUSE: Time = Time::from_secs(1);

/// The longest time for which tables keep routes that are gone because a worker may still use an earlier view.
const LONGEST_LEFT: Time = Time::from_secs(1);

/// The time between two looks for workers that may still use such a view: nothing reports that they use a later one.
const LOOK_PAUSE: Time = Time::from_millis(10);

/// Tables in which an interface looked up by a view that workers may still read.
struct LeftTables {
    tables: BTreeSet<u32>,
    view: u64,
    until: Time,
}

/// The kernel's state, and what follows from it.
pub struct Mirror {
    links: LinkTable,
    neighbors: NeighborTable,
    rules: RuleTable,
    routing: Routing,
    reclaim: Reclaim,
    /// Tables that keep routes that are gone.
    left: Vec<LeftTables>,
    /// When to look for workers that may use the views of `left`.
    next_look: Time,
    publisher: Publisher,
    /// The tables that rules name, and how much their routes cover.
    coverage: Vec<(Family, u32, Coverage)>,
    /// Interfaces, addresses, neighbours or rules changed: the view has to be made again.
    view_changed: bool,
    /// What the kernel may have changed silently: it drops routes and next-hop objects when links or addresses go, and
    /// restores some of them.
    suspected: Vec<DumpPart>,
    /// When routes and neighbours that got no index may be looked through again.
    next_retry: Time,
    keeps_routes: bool,
    is_complete: bool,
}

impl Mirror {
    /// A mirror without any state yet. It forwards on links of these names; their positions are the numbers of the
    /// ports.
    pub fn new(now: Time, ports: Vec<String>, settings: Settings) -> Mirror {
        let routing = Routing::new(Tables::new(now, settings));
        Mirror {
            links: LinkTable::new(ports),
            neighbors: NeighborTable::default(),
            rules: RuleTable::default(),
            publisher: Publisher::new(&routing),
            routing,
            reclaim: Reclaim::default(),
            left: Vec::new(),
            next_look: now,
            coverage: Vec::new(),
            view_changed: true,
            suspected: Vec::new(),
            next_retry: now,
            keeps_routes: false,
            is_complete: true,
        }
    }

    /// From now on the router forwards only what the kernel's settings of each link allow. Without this call it
    /// forwards everything.
    pub fn follow_kernel_forwarding(&mut self) {
        self.links.follows_kernel = true;
        self.view_changed = true;
    }

    /// From now on routes by a link that is set down stay, though nothing is sent by them. This is for a router without
    /// a kernel: a kernel drops these routes and reports them again when the link is up.
    pub fn keep_routes(&mut self) {
        self.keeps_routes = true;
    }

    /// From now on the kernel gets the packets that rules may select by protocol or ports. Without this call the data path
    /// follows these rules.
    pub fn leave_transport(&mut self) {
        self.rules.leaves_transport = true;
        self.view_changed = true;
    }

    /// Sets what is mixed into the hash of flows, from the next [`Self::commit`] on
    /// ([`FlowHash::seed`](fullview_plane::flow_hash::FlowHash::seed)).
    pub fn set_flow_seed(&mut self, seed: u64) {
        self.publisher.flow_hash.seed = seed;
        self.view_changed = true;
    }

    /// Sets which fields of a family's packets choose among several next hops, from the next [`Self::commit`] on. With `None`
    /// the kernel chooses: it gets all packets of routes with several next hops.
    pub fn set_flow_fields(&mut self, family: Family, fields: Option<FlowFields>) {
        let hash = &mut self.publisher.flow_hash;
        let of_family = if family == Family::Inet { &mut hash.inet } else { &mut hash.inet6 };
        *of_family = fields.unwrap_or_default();
        self.routing.sets.leave_several(family, fields.is_none());
        (self.routing.sets_changed, self.view_changed) = (true, true);
    }

    /// Whether packets of any route may take one of several next hops.
    pub fn has_several_next_hops(&self) -> bool {
        self.routing.sets.has_several()
    }

    /// Sets the policies of interfaces by name, from the next [`Self::commit`] on. Interfaces that are not named have
    /// the default policy.
    pub fn set_policies(&mut self, policies: BTreeMap<String, InterfacePolicy>) {
        self.publisher.policies = policies;
        self.view_changed = true;
    }

    /// From the next [`Self::commit`] on only interfaces forward that have these names, by number: those for which the rules
    /// of a filter were made.
    pub fn set_judged_interfaces(&mut self, names: Vec<String>) {
        self.publisher.judged = Some(names);
        self.view_changed = true;
    }

    /// Notes whether the mirror has all of what the kernel had told when it was last read.
    pub fn note_complete(&mut self, is_complete: bool) {
        self.is_complete = is_complete;
    }

    /// Whether the mirror has all of what the kernel had told when it was last read.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The parts that the kernel may have changed silently since the last call, so that they should be dumped.
    pub fn take_suspicions(&mut self) -> Vec<DumpPart> {
        std::mem::take(&mut self.suspected)
    }

    /// Whether the kernel may use IPv6 routes since the last call that no list had before, so that they should be dumped.
    pub fn take_revealed(&mut self) -> bool {
        std::mem::take(&mut self.routing.inet6.has_revealed)
    }

    /// Messages were lost: IPv6 routes that the kernel does not list may be others than those that are known.
    pub fn doubt_hidden(&mut self) {
        self.routing.inet6.doubt_hidden();
    }

    fn suspect(&mut self, part: DumpPart) {
        if !self.suspected.contains(&part) {
            self.suspected.push(part);
        }
    }

    /// Limits how many tables packets are looked up in, the main table among them, by how many rules of policy routing, and how
    /// many interfaces are forwarded on, from the next [`Self::commit`] on. The kernel forwards the packets of interfaces beyond
    /// that.
    pub fn limit(&mut self, tables: usize, rules: usize, interfaces: u16) {
        self.publisher.tables.limit(tables);
        self.publisher.most_rules = rules;
        self.links.limit(interfaces);
        self.view_changed = true;
    }

    /// Hands on all that changed.
    pub fn commit(&mut self, now: Time) {
        self.retry_without_index(now);
        self.view_changed |= self.routing.refresh(&self.links);
        self.view_changed |= self.update_coverage();
        self.publish(now);
        let left = self.left_tables(now);
        self.routing.commit(now, &left);
        let released = self.routing.release_tables(&(&self.links.tables() | &left));
        self.reclaim.forget(&released);
        self.tick(now);
    }

    /// Where indices are free again, gives them to routes and neighbours that got none. It looks through all of them. Each index
    /// that is given out asks for a view that knows it; without one the view stays, and with it what workers know of flows.
    fn retry_without_index(&mut self, now: Time) {
        if now >= self.next_retry && self.routing.sets.take_room() {
            self.next_retry = now + RETRY_PAUSE;
            self.place_all_hosts();
            self.routing.refresh_sets(&self.links);
        }
    }

    /// Does what is due in the tables, and frees what is no longer used.
    pub fn tick(&mut self, now: Time) {
        self.routing.tables.tick(now);
        self.reclaim.follow(&mut self.routing);
        if self.routing.sets.next_hops.wants_view() {
            self.view_changed = true;
            self.publish(now);
        }
        self.routing.sets.next_hops.reclaim();
    }

    /// When [`Self::commit`] has something to do even if nothing changes.
    pub fn next_deadline(&self) -> Option<Time> {
        let look = (!self.left.is_empty()).then_some(self.next_look);
        self.routing.tables.next_deadline().into_iter().chain(look).min()
    }

    /// Returns whether the tables that rules name have a default route, or any route, and did not have it before, or the
    /// other way round.
    fn update_coverage(&mut self) -> bool {
        let Mirror { rules, routing, .. } = &*self;
        let of_family = |family| {
            let covers = move |table| (family, table, routing.coverage(family, table));
            rules.tables(family).into_iter().map(covers)
        };
        let coverage: Vec<_> = [Family::Inet, Family::Inet6].into_iter().flat_map(of_family).collect();
        let before = std::mem::replace(&mut self.coverage, coverage);
        before != self.coverage
    }

    fn publish(&mut self, now: Time) {
        self.routing.sets.publish_groups();
        if std::mem::take(&mut self.view_changed) | self.routing.sets.next_hops.take_is_new() {
            self.change_tables(now);
            self.publish_by(Publisher::publish);
        }
    }

    /// Where interfaces are to look up in other tables, hands the routes of these over before the view that says so.
    fn change_tables(&mut self, now: Time) {
        let Mirror { links, neighbors, rules, routing, publisher, .. } = &*self;
        let TableChanges { entered, left: tables } =
            publisher.table_changes(&Sources { links, neighbors, rules, routing });
        if !entered.is_empty() {
            self.publish_by(Publisher::publish_next_hops);
            self.routing.commit_present(now, &entered);
        }
        if !tables.is_empty() {
            let view = self.routing.sets.next_hops.current_view();
            self.left.push(LeftTables { tables, view, until: now + LONGEST_LEFT });
        }
    }

    /// The tables that workers may look up in by an earlier view.
    fn left_tables(&mut self, now: Time) -> BTreeSet<u32> {
        let next_hops = &self.routing.sets.next_hops;
        self.left.retain(|left| now < left.until && next_hops.is_read(left.view));
        self.next_look = now + LOOK_PAUSE;
        self.left.iter().flat_map(|left| &left.tables).copied().collect()
    }

    /// Has the publisher make and publish a view.
    fn publish_by(
        &mut self,
        publish: impl FnOnce(&mut Publisher, &Sources<'_>) -> Result<Arc<View>, ViewError>,
    ) {
        let Mirror { links, neighbors, rules, routing, publisher, .. } = self;
        let published = publish(publisher, &Sources { links, neighbors, rules, routing });
        let warnings = &mut routing.sets.warnings;
        warnings.extend(publisher.take_warnings());
        match published {
            Ok(view) => routing.sets.next_hops.published(&view),
            Err(error) => warnings.push(format!("the view is not renewed: {error}")),
        }
    }

    /// Where workers get their views from.
    pub fn views(&self) -> &Views {
        self.publisher.views()
    }

    /// The tables that follow the routes.
    pub fn tables(&self) -> &Tables {
        &self.routing.tables
    }

    /// The same tables, to choose algorithms.
    pub fn tables_mut(&mut self) -> &mut Tables {
        &mut self.routing.tables
    }

    /// Addresses whose packets are for this host, broadcasts of its networks among them, in the table `local` and in those of
    /// VRFs that interfaces belong to.
    pub fn local_addresses(&self) -> HashSet<IpAddr> {
        self.routing.local_addresses(&self.links.tables())
    }

    /// Another number if [`Self::local_addresses`] may have changed without a new view.
    pub fn local_changes(&self) -> u64 {
        self.routing.local_changes()
    }

    /// The link that has a port's name now.
    pub fn port_link(&self, port: usize) -> Option<&Link> {
        self.links.by_name(self.links.ports().get(port)?)
    }

    /// Another number for each link that ever had this index: of one that was removed, the kernel has detached all programs and
    /// sockets. 0 of none.
    pub fn link_birth(&self, index: LinkIndex) -> u64 {
        self.links.birth(index)
    }
}
