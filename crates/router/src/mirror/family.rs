//! One family: its routes in the kernel's tables, and what follows from them for ours.
//!
//! The kernel asks its table `local` before any other. Ours are asked alone, so the routes of `local` are laid over
//! each of them: where one covers a prefix, the prefix is the host's own.

use fullview_table::fib::framework::{FamilyTables, Origin, Time};
use fullview_table::{Address, Change, NextHop, Prefix, Rib};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::Placement;
use crate::route::{LOCAL_TABLE, LinkIndex, RouteAction, RouteHop};

use super::indices::KERNEL;
use super::neighbors::Hosts;
use super::routes::{Entry, Routes};
use super::sets::{SetId, Sets};

/// Routes and changes of one family.
pub(super) struct Family<A: Address> {
    routes: FxHashMap<u32, Routes<A>>,
    /// The table `local`, as it is laid over the others.
    local: Rib<A>,
    /// Prefixes to look at again, by table.
    touched: FxHashMap<u32, Touched<A>>,
    pub hosts: Hosts<A>,
    /// The number of the dump that goes on, or was the last.
    dump: u8,
}

/// What changed in a table: in haste what must not wait.
struct Touched<A> {
    at_once: Vec<Prefix<A>>,
    soon: Vec<Prefix<A>>,
}

impl<A> Default for Touched<A> {
    fn default() -> Self {
        Touched { at_once: Vec::new(), soon: Vec::new() }
    }
}

impl<A: Address> Default for Family<A> {
    fn default() -> Self {
        Family {
            routes: FxHashMap::default(),
            local: Rib::default(),
            touched: FxHashMap::default(),
            hosts: Hosts::default(),
            dump: 0,
        }
    }
}

/// A route as the mirror keeps it.
pub(super) struct Kept<A: Address> {
    pub table: u32,
    pub prefix: Prefix<A>,
    pub entry: Entry,
    /// Whether the change may wait.
    pub at_once: bool,
}

impl<A: Address> Family<A> {
    pub fn add(&mut self, kept: Kept<A>, placement: Placement, sets: &mut Sets) {
        let Kept { table, prefix, entry, at_once } = kept;
        let entry = Entry { dump: self.dump, ..entry };
        let routes = self.routes.entry(table).or_default();
        if A::BITS == 128 && routes.len() > 0 {
            drop_parts(routes, prefix, &entry, sets);
        }
        let gone = routes.add(prefix, entry, placement);
        gone.and_then(|gone| gone.set()).into_iter().for_each(|id| sets.release(id));
        if !gone.is_some_and(|gone| gone.is(&entry)) {
            self.changed(table, prefix, at_once);
        }
    }

    /// Returns whether it was there.
    pub fn remove(&mut self, kept: &Kept<A>, hops: Option<&[RouteHop]>, sets: &mut Sets) -> bool {
        let Some(routes) = self.routes.get_mut(&kept.table) else { return false };
        let is_it = |entry: &Entry| is_same(entry, &kept.entry, hops, sets);
        let Some(gone) = routes.remove(kept.prefix, is_it) else { return false };
        gone.set().into_iter().for_each(|id| sets.release(id));
        self.changed(kept.table, kept.prefix, kept.at_once);
        true
    }

    /// The entries of a prefix.
    pub fn at(&self, table: u32, prefix: Prefix<A>) -> &[Entry] {
        self.routes.get(&table).map_or(&[], |routes| routes.at(prefix))
    }

    fn changed(&mut self, table: u32, prefix: Prefix<A>, at_once: bool) {
        if table == LOCAL_TABLE {
            self.local_changed(prefix);
        }
        self.touch(table, prefix, at_once);
    }

    fn touch(&mut self, table: u32, prefix: Prefix<A>, at_once: bool) {
        let touched = self.touched.entry(table).or_default();
        if at_once { touched.at_once.push(prefix) } else { touched.soon.push(prefix) }
    }

    /// What lies below is hidden by it, or comes to light.
    fn local_changed(&mut self, prefix: Prefix<A>) {
        let next_hop = self.at(LOCAL_TABLE, prefix).first().map(|entry| match entry.action {
            RouteAction::Broadcast => super::indices::BROADCAST,
            _ => KERNEL,
        });
        self.local.apply(Change { prefix, next_hop });
        let tables: Vec<u32> = self.routes.keys().copied().filter(|table| *table != LOCAL_TABLE).collect();
        for table in tables {
            self.touch(table, prefix, true);
        }
    }

    /// A table that packets may be looked up in: what is local is so there too.
    pub fn create(&mut self, table: u32) {
        if self.routes.contains_key(&table) {
            return;
        }
        self.routes.insert(table, Routes::default());
        let local: Vec<Prefix<A>> = self.local.iter().map(|route| route.prefix).collect();
        local.into_iter().for_each(|prefix| self.touch(table, prefix, true));
    }

    /// The tables that packets may be looked up in.
    pub fn tables(&self) -> impl Iterator<Item = u32> + '_ {
        self.routes.keys().copied().filter(|table| *table != LOCAL_TABLE)
    }

    /// The addresses that the table `local` has routes to.
    pub fn local_hosts(&self) -> impl Iterator<Item = A> + '_ {
        self.local
            .iter()
            .map(|route| route.prefix)
            .filter(|prefix| prefix.len() == A::BITS)
            .map(Prefix::first)
    }

    /// How many prefixes the kernel has routes to.
    pub fn len(&self) -> usize {
        self.routes.values().map(Routes::len).sum()
    }

    /// The routes of these sets are to be looked at again.
    pub fn touch_sets(&mut self, changed: &FxHashSet<SetId>) {
        let using = |(table, routes): (&u32, &Routes<A>)| (*table, routes.using(changed));
        let all: Vec<(u32, Vec<Prefix<A>>)> = self.routes.iter().map(using).collect();
        for (table, prefixes) in all {
            prefixes.into_iter().for_each(|prefix| self.touch(table, prefix, true));
        }
    }

    /// What a dump does not mention from now on is gone.
    pub fn begin_dump(&mut self) {
        self.dump = self.dump.wrapping_add(1);
    }

    /// Takes away what the dump did not mention; returns how much that was.
    pub fn end_dump(&mut self, sets: &mut Sets) -> usize {
        let dump = self.dump;
        self.sweep(sets, |entry, _| entry.dump != dump)
    }

    /// Takes away what `is_gone`.
    pub fn sweep(&mut self, sets: &mut Sets, is_gone: impl Fn(&Entry, &Sets) -> bool) -> usize {
        let mut all = Vec::new();
        for (table, routes) in &mut self.routes {
            let gone = routes.sweep(|entry| is_gone(entry, sets));
            all.extend(gone.into_iter().map(|(prefix, entry)| (*table, prefix, entry)));
        }
        for (table, prefix, entry) in &all {
            entry.set().into_iter().for_each(|id| sets.release(id));
            self.changed(*table, *prefix, false);
        }
        all.len()
    }

    /// Hands everything that changed to the tables.
    pub fn commit(&mut self, now: Time, tables: &mut FamilyTables<A>, sets: &Sets) {
        for (table, touched) in std::mem::take(&mut self.touched) {
            if table != LOCAL_TABLE {
                tables.create(table);
                self.hand_over(now, table, &touched, tables, sets);
            }
        }
        let Family { local, routes, hosts, .. } = self;
        hosts.commit(now, tables, &sets.indices, |table, prefix| {
            own(local, routes, table, prefix, sets).is_some()
        });
    }

    fn hand_over(
        &mut self,
        now: Time,
        table: u32,
        touched: &Touched<A>,
        tables: &mut FamilyTables<A>,
        sets: &Sets,
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

    /// What lies below prefixes of the table `local` that came or went.
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

    /// What a table holds for a prefix now. A neighbour's own route is not decided here.
    fn change(&self, table: u32, prefix: Prefix<A>, sets: &Sets) -> Option<Change<A>> {
        let next_hop = own(&self.local, &self.routes, table, prefix, sets);
        if next_hop.is_none() && self.hosts.is_placed(table, prefix) {
            return None;
        }
        Some(Change { prefix, next_hop })
    }
}

/// Where the kernel's routes lead from a prefix.
fn own<A: Address>(
    local: &Rib<A>,
    routes: &FxHashMap<u32, Routes<A>>,
    table: u32,
    prefix: Prefix<A>,
    sets: &Sets,
) -> Option<NextHop> {
    let covering = || Some(local.covering(prefix)?.next_hop);
    let local = (!local.is_empty()).then(|| local.get(prefix).or_else(covering)).flatten();
    local.or_else(|| routes.get(&table)?.best(prefix, sets))
}

/// The kernel tells of IPv6 next hops one by one and of all together: what names some of the hops that the new route
/// names is a part of it.
fn drop_parts<A: Address>(routes: &mut Routes<A>, prefix: Prefix<A>, entry: &Entry, sets: &mut Sets) {
    let Some(all) = entry.set().and_then(|id| sets.hops(id)) else { return };
    let all = all.to_vec();
    let is_part = |known: &Entry| {
        let hops = known.set().filter(|id| entry.set() != Some(*id)).and_then(|id| sets.hops(id));
        known.metric == entry.metric && hops.is_some_and(|hops| hops.iter().all(|hop| holds(&all, hop)))
    };
    let parts: Vec<Entry> = std::iter::from_fn(|| routes.remove(prefix, is_part)).collect();
    parts.iter().filter_map(|part| part.set()).for_each(|id| sets.release(id));
}

/// A hop that was alive when the route came may be dead when it goes, and its weight does not name it.
pub(super) fn holds(hops: &[RouteHop], hop: &RouteHop) -> bool {
    let name = |hop: &RouteHop| (hop.link, hop.gateway);
    hops.iter().any(|known| name(known) == name(hop))
}

fn is_same(known: &Entry, gone: &Entry, hops: Option<&[RouteHop]>, sets: &Sets) -> bool {
    let beside = (known.metric, known.selective) == (gone.metric, gone.selective);
    let same_hops = |known: &[RouteHop], gone: &[RouteHop]| {
        known.len() == gone.len() && known.iter().all(|hop| holds(gone, hop))
    };
    beside
        && match (known.set().and_then(|id| sets.hops(id)), hops) {
            (Some(known), Some(gone)) => same_hops(known, gone),
            _ => known.action == gone.action,
        }
}

/// The link of a neighbour.
pub(super) type HostKey<A> = (A, LinkIndex);
