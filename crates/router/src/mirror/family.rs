//! The routes of one family in the kernel's tables, and the changes that follow from them for the FIB framework's
//! tables.
//!
//! The kernel consults its table `local` before any other. A FIB is looked up alone, so the routes of `local` are
//! copied into each table, where they take precedence: a prefix that one of them covers is the host's own.

use std::collections::BTreeSet;

use fullview_table::fib::framework::{FamilyTables, Origin, Time};
use fullview_table::{Address, Change, NextHop, Prefix, Rib};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::{Placement, RouteOrigin, Selector};
use crate::route::{LOCAL_TABLE, RouteAction, RouteHop};

use super::hop_order::{hidden_by, may_reveal};
use super::hop_sets::{HopSets, SetId};
use super::host_routes::HostRoutes;
use super::links::LinkTable;
use super::next_hops::{BROADCAST, KERNEL};
use super::route_table::RouteTable;
use super::rule_list::Coverage;
use super::stored_route::StoredRoute;

/// The routes of one family, and the changes that the tables do not have yet.
pub(super) struct FamilyRoutes<A: Address> {
    routes: FxHashMap<u32, RouteTable<A>>,
    /// The tables that ever had a route that leads to the next rule (`throw`).
    throwing: FxHashSet<u32>,
    /// What the table `local` puts into every other table.
    local: Rib<A>,
    /// Prefixes whose next hop may have changed, by table.
    touched: FxHashMap<u32, Touched<A>>,
    pub hosts: HostRoutes<A>,
    /// Addresses of this host and broadcast addresses, by the table that has routes to them, and how often they changed.
    own_addresses: FxHashSet<(u32, A)>,
    own_changes: u64,
    /// Whether the kernel may now use routes that it passed over until now, and that are not known.
    pub has_revealed: bool,
    /// Whether there may be routes that neither a dump nor a report has named: from the start, from lost messages, or since
    /// such a route may be in use, up to the end of the next dump.
    is_unsure: bool,
    /// The number of the current dump, or of the last one.
    dump: u8,
}

/// Prefixes that changed in one table: those that must not wait for others, and the rest.
struct Touched<A> {
    at_once: Vec<Prefix<A>>,
    soon: Vec<Prefix<A>>,
}

impl<A> Default for Touched<A> {
    fn default() -> Self {
        Touched { at_once: Vec::new(), soon: Vec::new() }
    }
}

impl<A: Address> Default for FamilyRoutes<A> {
    fn default() -> Self {
        FamilyRoutes {
            routes: FxHashMap::default(),
            throwing: FxHashSet::default(),
            local: Rib::default(),
            touched: FxHashMap::default(),
            hosts: HostRoutes::default(),
            own_addresses: FxHashSet::default(),
            own_changes: 0,
            has_revealed: false,
            is_unsure: true,
            dump: 0,
        }
    }
}

impl<A: Address> Touched<A> {
    /// Takes out the prefixes that `is_it`; none of these waits any more.
    fn take_at_once(&mut self, is_it: impl Fn(&Prefix<A>) -> bool) -> Touched<A> {
        let is_it = |prefix: &mut Prefix<A>| is_it(prefix);
        let (at_once, soon) = (self.at_once.extract_if(.., is_it), self.soon.extract_if(.., is_it));
        Touched { at_once: at_once.chain(soon).collect(), soon: Vec::new() }
    }
}

/// A route, and where it belongs.
pub(super) struct PlacedRoute<A: Address> {
    pub table: u32,
    pub prefix: Prefix<A>,
    pub route: StoredRoute,
    /// Whether the change must not wait for others.
    pub at_once: bool,
}

/// A route that is reported to be gone.
pub(super) struct GoneRoute<'h, A: Address> {
    pub table: u32,
    pub prefix: Prefix<A>,
    pub metric: u32,
    pub selective: Option<Selector>,
    pub origin: RouteOrigin,
    pub does: GoneAction<'h>,
    /// Whether the change must not wait for others.
    pub at_once: bool,
}

/// What a route did that is gone.
#[derive(Clone, Copy)]
pub(super) enum GoneAction<'h> {
    /// It had these hops, which are compared one by one, and need no set of their own for that.
    Hops(&'h [RouteHop]),
    /// Anything else.
    Other(RouteAction<SetId>),
}

impl<A: Address> FamilyRoutes<A> {
    pub fn add(&mut self, placed: PlacedRoute<A>, placement: Placement, sets: &mut HopSets) {
        let PlacedRoute { table, prefix, route, at_once } = placed;
        let route = StoredRoute { dump: self.dump, ..route };
        if route.action == RouteAction::Throw {
            self.throwing.insert(table);
        }
        let routes = self.routes.entry(table).or_default();
        let is_new = placement == Placement::Listed || self.is_unsure;
        let may_hide = route.order.is_multipath() && may_hide(&route, is_new, routes.at(prefix));
        let route = StoredRoute { may_hide, ..route };
        if A::BITS == 128 && routes.len() > 0 && grows(routes, (prefix, route, placement), sets) {
            return self.changed(table, prefix, at_once);
        }
        let is_inet_replacement = A::BITS == 32 && placement == Placement::Replace;
        let stale = if is_inet_replacement { routes.remove_replaced(prefix, &route) } else { None };
        let placed = routes.add(prefix, route, kernel_placement::<A>(placement));
        let has_effect = placed.has_effect || stale.is_some();
        stale.into_iter().chain(placed.replaced).for_each(|gone| self.lost(table, prefix, &gone, sets));
        if has_effect {
            self.changed(table, prefix, at_once);
        }
    }

    /// Returns whether the route was there.
    pub fn remove(&mut self, gone: &GoneRoute<'_, A>, links: &LinkTable, sets: &mut HopSets) -> bool {
        let Some(routes) = self.routes.get_mut(&gone.table) else { return false };
        // The kernel reports the routes that go with a link, after they have gone here. They may look like one that it keeps; and so
        // does one that was removed by a command, which stays here until what hides it goes.
        let is_down = |hop: &RouteHop| links.is_down(hop.link);
        let may_be_kept = matches!(gone.does, GoneAction::Hops(hops) if hops.iter().all(is_down));
        let kept = if may_be_kept { kept(routes.at(gone.prefix)) } else { Vec::new() };
        let is_it = |entry: &StoredRoute| gone.is(entry, sets) && !kept.contains(entry);
        let Some(entry) = routes.remove(gone.prefix, is_it) else { return false };
        self.lost(gone.table, gone.prefix, &entry, sets);
        self.changed(gone.table, gone.prefix, gone.at_once);
        true
    }

    /// Follows the loss of a route, or of one whose place another one has now.
    fn lost(&mut self, table: u32, prefix: Prefix<A>, gone: &StoredRoute, sets: &mut HopSets) {
        gone.set().into_iter().for_each(|id| sets.release(id));
        if gone.order.is_multipath() && may_reveal(gone, self.at(table, prefix)) {
            (self.has_revealed, self.is_unsure) = (true, true);
        }
    }

    /// Messages were lost: what the kernel's lists do not have is not known.
    pub fn doubt_hidden(&mut self) {
        self.is_unsure = true;
        self.routes.values_mut().for_each(RouteTable::doubt_hidden);
    }

    /// Puts a route in the place of one that has lost the hops at these places.
    pub fn shrink(
        &mut self,
        placed: PlacedRoute<A>,
        before: &StoredRoute,
        gone: &[usize],
        sets: &mut HopSets,
    ) {
        let PlacedRoute { table, prefix, route, at_once } = placed;
        let Some(routes) = self.routes.get_mut(&table) else { return };
        let may_hide = before.may_hide && route.order.is_multipath();
        let route = StoredRoute { dump: before.dump, may_hide, ..route };
        match routes.shrink(prefix, (before, route), gone) {
            Some(replaced) => self.lost(table, prefix, &replaced, sets),
            None => route.set().into_iter().for_each(|id| sets.release(id)),
        }
        self.changed(table, prefix, at_once);
    }

    /// The routes to exactly this prefix.
    pub fn at(&self, table: u32, prefix: Prefix<A>) -> &[StoredRoute] {
        self.routes.get(&table).map_or(&[], |routes| routes.at(prefix))
    }

    fn changed(&mut self, table: u32, prefix: Prefix<A>, at_once: bool) {
        if table == LOCAL_TABLE {
            self.local_changed(prefix);
        }
        if prefix.len() == A::BITS {
            self.host_changed(table, prefix);
        }
        self.touch(table, prefix, at_once);
    }

    /// A route to one address changed. Every route of the table `local` makes it this host's.
    fn host_changed(&mut self, table: u32, prefix: Prefix<A>) {
        let is_own = |route: &StoredRoute| {
            table == LOCAL_TABLE || matches!(route.action, RouteAction::Local | RouteAction::Broadcast)
        };
        let place = (table, prefix.first());
        let has_changed = match self.at(table, prefix).iter().any(is_own) {
            true => self.own_addresses.insert(place),
            false => self.own_addresses.remove(&place),
        };
        self.own_changes += u64::from(has_changed);
    }

    fn touch(&mut self, table: u32, prefix: Prefix<A>, at_once: bool) {
        let touched = self.touched.entry(table).or_default();
        if at_once { touched.at_once.push(prefix) } else { touched.soon.push(prefix) }
    }

    /// A route of the table `local` hides the routes below it in every other table, and shows them again when it goes.
    fn local_changed(&mut self, prefix: Prefix<A>) {
        let next_hop = self.at(LOCAL_TABLE, prefix).first().map(|entry| match entry.action {
            RouteAction::Broadcast => BROADCAST,
            _ => KERNEL,
        });
        self.local.apply(Change { prefix, next_hop });
        let tables: Vec<u32> = self.routes.keys().copied().filter(|table| *table != LOCAL_TABLE).collect();
        for table in tables {
            self.touch(table, prefix, true);
        }
    }

    /// Makes a table that packets may be looked up in: local prefixes are local there too.
    pub fn create(&mut self, table: u32) {
        if self.routes.contains_key(&table) {
            return;
        }
        self.routes.insert(table, RouteTable::default());
        let local: Vec<Prefix<A>> = self.local.iter().map(|route| route.prefix).collect();
        local.into_iter().for_each(|prefix| self.touch(table, prefix, true));
    }

    /// Whether a table has no routes of its own.
    pub fn is_empty(&self, table: u32) -> bool {
        self.routes.get(&table).is_none_or(|routes| routes.len() == 0)
    }

    /// How much of the address space a table has routes for. The default route may be one that drops packets.
    pub fn coverage(&self, table: u32, sets: &HopSets) -> Coverage {
        let Some(routes) = self.routes.get(&table).filter(|routes| routes.len() > 0) else {
            return Coverage::Nothing;
        };
        let is_default =
            !self.throwing.contains(&table) && routes.best(Prefix::containing(A::zero(), 0), sets).is_some();
        if is_default { Coverage::All } else { Coverage::Some }
    }

    /// Forgets a table without routes.
    pub fn forget(&mut self, table: u32) {
        self.routes.remove(&table);
        self.throwing.remove(&table);
        self.touched.remove(&table);
    }

    /// The tables that packets may be looked up in.
    pub fn tables(&self) -> impl Iterator<Item = u32> + '_ {
        self.routes.keys().copied().filter(|table| *table != LOCAL_TABLE)
    }

    /// Addresses of this host and broadcast addresses to which the table `local` or one of these has routes.
    pub fn own_addresses<'t>(&'t self, tables: &'t BTreeSet<u32>) -> impl Iterator<Item = A> + 't {
        let is_used = |table: u32| table == LOCAL_TABLE || tables.contains(&table);
        self.own_addresses.iter().filter(move |(table, _)| is_used(*table)).map(|(_, address)| *address)
    }

    /// How often [`Self::own_addresses`] changed.
    pub fn own_changes(&self) -> u64 {
        self.own_changes
    }

    /// The number of prefixes with routes, in all tables together.
    pub fn len(&self) -> usize {
        self.routes.values().map(RouteTable::len).sum()
    }

    /// Whether a route uses any of these sets.
    pub fn uses(&self, sets: &FxHashSet<SetId>) -> bool {
        self.routes.values().any(|routes| routes.uses(sets))
    }

    /// The index of these sets changed, and with it the next hop of every route that uses them.
    pub fn touch_sets(&mut self, changed: &FxHashSet<SetId>) {
        let using = |(table, routes): (&u32, &RouteTable<A>)| (*table, routes.using(changed));
        let all: Vec<(u32, Vec<Prefix<A>>)> = self.routes.iter().map(using).collect();
        for (table, prefixes) in all {
            prefixes.into_iter().for_each(|prefix| self.touch(table, prefix, true));
        }
    }

    /// Begins a dump.
    pub fn begin_dump(&mut self) {
        self.dump = self.dump.wrapping_add(1);
    }

    /// Removes the routes that the dump did not list; returns how many.
    pub fn end_dump(&mut self, sets: &mut HopSets) -> usize {
        let removed = self.remove_unlisted(1, sets);
        // It listed what the kernel uses now.
        (self.has_revealed, self.is_unsure) = (false, false);
        removed
    }

    /// Removes the routes that none of the last so many dumps listed; returns how many.
    pub fn remove_unlisted(&mut self, dumps: u8, sets: &mut HopSets) -> usize {
        let dump = self.dump;
        let is_unlisted = |entry: &StoredRoute| dump.wrapping_sub(entry.dump) >= dumps;
        let is_gone = |entry: &StoredRoute, among: &[StoredRoute], _: &HopSets| {
            // A route that a listed one hides may be there.
            is_unlisted(entry) && hidden_by(entry, among).is_none_or(is_unlisted)
        };
        self.sweep_among(sets, is_gone)
    }

    /// Removes what the current dump listed again.
    pub fn remove_repeated(&mut self, sets: &mut HopSets) {
        let dump = self.dump;
        let mut all = Vec::new();
        for (table, routes) in &mut self.routes {
            let repeated = routes.remove_repeated(dump);
            all.extend(repeated.into_iter().map(|(prefix, entry)| (*table, prefix, entry)));
        }
        self.follow_removed(&all, sets);
    }

    /// Removes every route that `would_go` with a link, but for those that the kernel passes over.
    pub fn sweep_visible(&mut self, sets: &mut HopSets, would_go: impl Fn(&StoredRoute, &HopSets) -> bool) {
        for routes in self.routes.values_mut() {
            routes.pass_over(|entry| would_go(entry, sets));
        }
        self.sweep(sets, |entry, sets| would_go(entry, sets) && !entry.passed_over);
    }

    /// Removes every route that `is_gone`; returns how many.
    pub fn sweep(&mut self, sets: &mut HopSets, is_gone: impl Fn(&StoredRoute, &HopSets) -> bool) -> usize {
        self.sweep_among(sets, |entry, _, sets| is_gone(entry, sets))
    }

    /// The same with all routes of the prefix.
    fn sweep_among(
        &mut self,
        sets: &mut HopSets,
        is_gone: impl Fn(&StoredRoute, &[StoredRoute], &HopSets) -> bool,
    ) -> usize {
        let mut all = Vec::new();
        for (table, routes) in &mut self.routes {
            let gone = routes.sweep(|entry, among| is_gone(entry, among, sets));
            all.extend(gone.into_iter().map(|(prefix, entry)| (*table, prefix, entry)));
        }
        self.follow_removed(&all, sets);
        all.len()
    }

    fn follow_removed(&mut self, removed: &[(u32, Prefix<A>, StoredRoute)], sets: &mut HopSets) {
        for (table, prefix, entry) in removed {
            self.lost(*table, *prefix, entry, sets);
            self.changed(*table, *prefix, false);
        }
    }

    /// Hands all changes to the tables. Those of `left` keep the routes that are gone until they are left no longer.
    pub fn commit(&mut self, now: Time, left: &BTreeSet<u32>, tables: &mut FamilyTables<A>, sets: &HopSets) {
        self.hand_over_present(now, left, tables, sets);
        let all = std::mem::take(&mut self.touched);
        let (kept, all): (FxHashMap<_, _>, _) = all.into_iter().partition(|(table, _)| left.contains(table));
        self.touched = kept;
        for (table, touched) in all {
            if table != LOCAL_TABLE {
                tables.create(table);
                self.hand_over(now, table, &touched, tables, sets);
            }
        }
        self.commit_hosts((now, Origin::Protocol), tables, sets);
    }

    /// The tables that do not have all changes.
    pub fn lacking_changes(&self) -> impl Iterator<Item = u32> {
        let lacks = |touched: &Touched<A>| !(touched.at_once.is_empty() && touched.soon.is_empty());
        self.touched.iter().filter(move |(_, touched)| lacks(touched)).map(|(table, _)| *table)
    }

    /// Hands to these tables the routes that there are, at once. Routes that are gone stay there until [`Self::commit`].
    pub fn commit_present(
        &mut self,
        now: Time,
        numbers: &BTreeSet<u32>,
        tables: &mut FamilyTables<A>,
        sets: &HopSets,
    ) {
        self.hand_over_present(now, numbers, tables, sets);
        self.commit_hosts((now, Origin::Interface), tables, sets);
    }

    fn hand_over_present(
        &mut self,
        now: Time,
        numbers: &BTreeSet<u32>,
        tables: &mut FamilyTables<A>,
        sets: &HopSets,
    ) {
        for table in numbers.iter().copied().filter(|table| *table != LOCAL_TABLE) {
            let FamilyRoutes { local, routes, touched, .. } = self;
            let Some(touched) = touched.get_mut(&table) else { continue };
            let is_present = |prefix: &Prefix<A>| own(local, routes, table, *prefix, sets).is_some();
            let present = touched.take_at_once(is_present);
            tables.create(table);
            self.hand_over(now, table, &present, tables, sets);
        }
    }

    fn commit_hosts(&mut self, when: (Time, Origin), tables: &mut FamilyTables<A>, sets: &HopSets) {
        let FamilyRoutes { local, routes, hosts, .. } = self;
        hosts.commit(when, tables, &sets.next_hops, |table, prefix| {
            own(local, routes, table, prefix, sets).is_some()
        });
    }

    fn hand_over(
        &mut self,
        now: Time,
        table: u32,
        touched: &Touched<A>,
        tables: &mut FamilyTables<A>,
        sets: &HopSets,
    ) {
        for (prefixes, origin) in [(&touched.at_once, Origin::Interface), (&touched.soon, Origin::Protocol)] {
            let hidden = tables.rib(table).map_or_else(Vec::new, |rib| self.hidden(prefixes, rib));
            let all = prefixes.iter().chain(&hidden).copied();
            let changes: Vec<Change<A>> = all.filter_map(|prefix| self.change(table, prefix, sets)).collect();
            if !changes.is_empty() {
                // The table was created above.
                let _ = tables.apply(now, table, &changes, origin);
            }
            prefixes.iter().for_each(|prefix| self.hosts.touch_within(table, *prefix));
        }
    }

    /// The prefixes below those of the table `local` that were added or removed.
    fn hidden(&self, prefixes: &[Prefix<A>], rib: &Rib<A>) -> Vec<Prefix<A>> {
        let covers = |prefix: &&Prefix<A>| {
            prefix.len() < A::BITS && prefix.len() > 0 && self.is_local_or_was(**prefix, rib)
        };
        prefixes
            .iter()
            .filter(covers)
            .flat_map(|prefix| rib.within(*prefix).map(|route| route.prefix))
            .collect()
    }

    fn is_local_or_was(&self, prefix: Prefix<A>, rib: &Rib<A>) -> bool {
        self.local.get(prefix).is_some() || rib.get(prefix) == Some(KERNEL)
    }

    /// The change that makes the table's route to a prefix what it should be. Host routes of neighbours are decided
    /// elsewhere.
    fn change(&self, table: u32, prefix: Prefix<A>, sets: &HopSets) -> Option<Change<A>> {
        let next_hop = own(&self.local, &self.routes, table, prefix, sets);
        if next_hop.is_none() && self.hosts.is_placed(table, prefix) {
            return None;
        }
        Some(Change { prefix, next_hop })
    }
}

/// The index that the kernel's routes give to a prefix.
fn own<A: Address>(
    local: &Rib<A>,
    routes: &FxHashMap<u32, RouteTable<A>>,
    table: u32,
    prefix: Prefix<A>,
    sets: &HopSets,
) -> Option<NextHop> {
    let covering = || Some(local.covering(prefix)?.next_hop);
    let local = (!local.is_empty()).then(|| local.get(prefix).or_else(covering)).flatten();
    local.or_else(|| routes.get(&table)?.best(prefix, sets))
}

/// Where the kernel puts a route of a family for which it reports this placement.
fn kernel_placement<A: Address>(placement: Placement) -> Placement {
    match placement {
        // It puts a new IPv6 route behind those of its metric, whatever it is asked for.
        Placement::First if A::BITS == 128 => Placement::Last,
        // A dump may have listed an IPv4 route already. It stays there ([`RouteTable::remove_replaced`]).
        Placement::Replace if A::BITS == 32 => Placement::Updated,
        other => other,
    }
}

/// Whether a multipath route may have others between its hops that no report named. If every route up to now is known, one whose
/// hops are reported one after the other has none but those.
fn may_hide(route: &StoredRoute, is_new: bool, among: &[StoredRoute]) -> bool {
    let is_before = |known: &&StoredRoute| known.is_beside(route) && known.order.is_multipath();
    let before = among.iter().find(is_before).map(|known| known.may_hide);
    before.unwrap_or(is_new)
}

/// The routes to a prefix that the kernel passes over.
fn kept(routes: &[StoredRoute]) -> Vec<StoredRoute> {
    let passed_over = routes.iter().filter(|entry| entry.passed_over);
    passed_over.filter(|entry| hidden_by(entry, routes).is_some()).copied().collect()
}

/// The kernel reports IPv6 next hops both one by one and all together: a route with only some of the new route's hops is a part
/// of it, which grows. Returns whether one did. A route that replaces another one replaces it whole.
fn grows<A: Address>(
    routes: &mut RouteTable<A>,
    (prefix, route, placement): (Prefix<A>, StoredRoute, Placement),
    sets: &mut HopSets,
) -> bool {
    let Some(all) = route.set().and_then(|id| sets.hops(id)) else { return false };
    let is_part = |known: &StoredRoute| {
        let hops = known.set().filter(|id| route.set() != Some(*id)).and_then(|id| sets.hops(id));
        known.is_beside(&route) && hops.is_some_and(|hops| hops.iter().all(|hop| holds(all, hop)))
    };
    let (parts, grew) = match placement {
        Placement::Replace => return false,
        // A dump has it where the kernel has it now.
        Placement::Listed => {
            (std::iter::from_fn(|| routes.remove(prefix, is_part)).collect::<Vec<StoredRoute>>(), false)
        }
        _ => {
            let parts = routes.grow(prefix, route, is_part);
            let grew = !parts.is_empty();
            (parts, grew)
        }
    };
    parts.iter().filter_map(|part| part.set()).for_each(|id| sets.release(id));
    grew
}

/// Whether one of the hops has the same link and gateway. A hop that was alive when its route was added may be dead
/// when the route is removed, and its weight does not identify it.
pub(super) fn holds(hops: &[RouteHop], hop: &RouteHop) -> bool {
    let name = |hop: &RouteHop| (hop.link, hop.gateway);
    hops.iter().any(|known| name(known) == name(hop))
}

impl<A: Address> GoneRoute<'_, A> {
    /// Whether a route is the one that is gone.
    fn is(&self, known: &StoredRoute, sets: &HopSets) -> bool {
        let same_hops = |known: &[RouteHop], gone: &[RouteHop]| {
            known.len() == gone.len() && known.iter().all(|hop| holds(gone, hop))
        };
        (known.metric, known.selective, known.origin) == (self.metric, self.selective, self.origin)
            && match self.does {
                GoneAction::Hops(gone) => {
                    known.set().and_then(|id| sets.hops(id)).is_some_and(|known| same_hops(known, gone))
                }
                GoneAction::Other(action) => known.action == action,
            }
    }
}
