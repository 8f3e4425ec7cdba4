//! The routes of one kernel table and family, several to a prefix, in the order in which the kernel tries them.

use std::collections::hash_map::Entry;

use fullview_table::{Address, NextHop, Prefix};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::Placement;

use super::hop_order::{follow_added, hidden_by, lose_hops, lose_route};
use super::hop_sets::{HopSets, SetId};
use super::next_hops::KERNEL;
use super::stored_route::StoredRoute;

/// What adding a route did.
pub(super) struct Placed {
    at: usize,
    /// The route whose place it has now.
    pub replaced: Option<StoredRoute>,
    /// Whether packets may be treated otherwise than before.
    pub has_effect: bool,
}

/// The routes of one prefix. Nearly every prefix has one.
#[derive(Clone, Debug)]
enum PrefixRoutes {
    One(StoredRoute),
    Many(Vec<StoredRoute>),
}

impl PrefixRoutes {
    fn as_slice(&self) -> &[StoredRoute] {
        match self {
            PrefixRoutes::One(route) => std::slice::from_ref(route),
            PrefixRoutes::Many(routes) => routes,
        }
    }

    fn uses(&self, sets: &FxHashSet<SetId>) -> bool {
        self.as_slice().iter().any(|route| route.set().is_some_and(|id| sets.contains(&id)))
    }

    fn into_vec(self) -> Vec<StoredRoute> {
        match self {
            PrefixRoutes::One(route) => vec![route],
            PrefixRoutes::Many(routes) => routes,
        }
    }

    fn place(&mut self, route: StoredRoute, placement: Placement) -> Placed {
        if let PrefixRoutes::One(known) = self
            && known.is_again(&route, placement)
        {
            return Placed { at: 0, replaced: Some(std::mem::replace(known, route)), has_effect: false };
        }
        let mut routes = self.as_slice().to_vec();
        let mut placed = place(&mut routes, route, placement);
        let replaced = placed.replaced.map(|gone| gone.order);
        placed.has_effect |= follow_added(&mut routes, placed.at, placement, replaced);
        if let Some(routes) = PrefixRoutes::new(routes) {
            *self = routes;
        }
        placed
    }

    /// `None` without routes.
    fn new(mut routes: Vec<StoredRoute>) -> Option<PrefixRoutes> {
        match routes.len() {
            0 | 1 => routes.pop().map(PrefixRoutes::One),
            _ => Some(PrefixRoutes::Many(routes)),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct RouteTable<A: Address>(FxHashMap<Prefix<A>, PrefixRoutes>);

impl<A: Address> Default for RouteTable<A> {
    fn default() -> Self {
        RouteTable(FxHashMap::default())
    }
}

impl<A: Address> RouteTable<A> {
    /// The number of prefixes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The routes to exactly this prefix.
    pub fn at(&self, prefix: Prefix<A>) -> &[StoredRoute] {
        self.0.get(&prefix).map_or(&[], PrefixRoutes::as_slice)
    }

    /// Adds a route. The caller releases the set of the route that it replaces: maybe the same route, which was reported
    /// again.
    pub fn add(&mut self, prefix: Prefix<A>, route: StoredRoute, placement: Placement) -> Placed {
        match self.0.entry(prefix) {
            Entry::Occupied(mut known) => known.get_mut().place(route, placement),
            Entry::Vacant(free) => {
                free.insert(PrefixRoutes::One(route));
                Placed { at: 0, replaced: None, has_effect: true }
            }
        }
    }

    /// Removes the first route that `is_it`.
    pub fn remove(&mut self, prefix: Prefix<A>, is_it: impl Fn(&StoredRoute) -> bool) -> Option<StoredRoute> {
        let mut removed = None;
        self.edit(prefix, |routes| {
            removed = routes.iter().position(&is_it).map(|at| routes.remove(at));
            removed.iter().for_each(|gone| lose_route(routes, gone.metric));
        });
        removed
    }

    /// Removes the first route beside a known one, as that one is reported to have replaced the first. The kernel does not report an
    /// IPv4 route as a replacement if it has the route already (`fib_table_insert` in net/ipv4/fib_trie.c). So the route is known
    /// from a later dump, and its place with it, and the kernel does not have the one before it any more.
    pub fn remove_replaced(&mut self, prefix: Prefix<A>, route: &StoredRoute) -> Option<StoredRoute> {
        let mut beside = self.at(prefix).iter().filter(|known| known.is_beside(route));
        let first = beside.next().filter(|first| !first.is(route)).copied()?;
        let is_known = beside.any(|known| known.is(route));
        is_known.then(|| self.remove(prefix, |known| *known == first)).flatten()
    }

    /// Puts a route in the place of those that `is_part` of it, if there are any. Returns these.
    pub fn grow(
        &mut self,
        prefix: Prefix<A>,
        route: StoredRoute,
        is_part: impl Fn(&StoredRoute) -> bool,
    ) -> Vec<StoredRoute> {
        let mut parts = Vec::new();
        self.edit(prefix, |routes| {
            let Some(first) = routes.iter().position(&is_part) else { return };
            parts.push(std::mem::replace(&mut routes[first], route));
            parts.extend(routes.extract_if(first + 1.., |other| is_part(other)));
        });
        parts
    }

    /// Puts a route in the place of one that has lost the hops at these places. Returns that one; if it is not there, nothing
    /// changes.
    pub fn shrink(
        &mut self,
        prefix: Prefix<A>,
        (before, route): (&StoredRoute, StoredRoute),
        gone: &[usize],
    ) -> Option<StoredRoute> {
        let mut replaced = None;
        self.edit(prefix, |routes| {
            let Some(at) = routes.iter().position(|known| known == before) else { return };
            replaced = replace(routes, at, route);
            lose_hops(routes, &route, gone);
        });
        replaced
    }

    fn edit(&mut self, prefix: Prefix<A>, edit: impl FnOnce(&mut Vec<StoredRoute>)) {
        let Some(routes) = self.0.remove(&prefix) else { return };
        let mut routes = routes.into_vec();
        edit(&mut routes);
        if let Some(routes) = PrefixRoutes::new(routes) {
            self.0.insert(prefix, routes);
        }
    }

    /// The index that packets to exactly this prefix get; `None` if no route to it can be used. Where the kernel looks
    /// at more than the destination, the packets are left to it. So are those of IPv6 prefixes with several routes of one
    /// metric that are no hops of one route: the kernel moves on from one to the next when a neighbour does not answer, and
    /// dumps do not list all.
    pub fn best(&self, prefix: Prefix<A>, sets: &HopSets) -> Option<NextHop> {
        let routes = self.at(prefix);
        if routes.iter().any(|route| route.selective.is_some()) {
            return Some(KERNEL);
        }
        let mut usable = routes.iter().filter_map(|route| Some((route.metric, route.next_hop(sets)?)));
        let (metric, first) = usable.next()?;
        let is_hidden = |route: &StoredRoute| route.metric == metric && hidden_by(route, routes).is_some();
        let is_contested = A::BITS == 128
            && (usable.next().is_some_and(|(other, _)| other == metric) || routes.iter().any(is_hidden));
        Some(if is_contested { KERNEL } else { first })
    }

    /// Whether a route uses any of these sets.
    pub fn uses(&self, sets: &FxHashSet<SetId>) -> bool {
        self.0.values().any(|routes| routes.uses(sets))
    }

    /// The prefixes with a route by any of these sets.
    pub fn using(&self, sets: &FxHashSet<SetId>) -> Vec<Prefix<A>> {
        self.0.iter().filter(|(_, routes)| routes.uses(sets)).map(|(prefix, _)| *prefix).collect()
    }

    /// Notes which of the routes that would go with their link the kernel passes over, because a route hides them that stays.
    pub fn pass_over(&mut self, would_go: impl Fn(&StoredRoute) -> bool) {
        let several = self.0.values_mut().filter_map(|routes| match routes {
            PrefixRoutes::Many(routes) => Some(routes),
            PrefixRoutes::One(_) => None,
        });
        for routes in several.filter(|routes| routes.iter().any(&would_go)) {
            let all = routes.clone();
            for route in routes.iter_mut().filter(|route| would_go(route)) {
                route.passed_over = hidden_by(route, &all).is_some_and(|hides| !would_go(hides));
            }
        }
    }

    /// Every route may have others between its hops.
    pub fn doubt_hidden(&mut self) {
        for routes in self.0.values_mut() {
            let all = match routes {
                PrefixRoutes::One(route) => std::slice::from_mut(route),
                PrefixRoutes::Many(routes) => routes,
            };
            all.iter_mut().for_each(|route| route.may_hide = route.order.is_multipath());
        }
    }

    /// Removes and returns what the dump of this number listed again.
    pub fn remove_repeated(&mut self, dump: u8) -> Vec<(Prefix<A>, StoredRoute)> {
        let several = self.0.iter().filter(|(_, routes)| matches!(routes, PrefixRoutes::Many(_)));
        let prefixes: Vec<Prefix<A>> = several.map(|(prefix, _)| *prefix).collect();
        let mut removed = Vec::new();
        for prefix in prefixes {
            let take = |routes: &mut Vec<StoredRoute>| {
                removed.extend(take_repeated(routes, dump).into_iter().map(|route| (prefix, route)));
            };
            self.edit(prefix, take);
        }
        removed
    }

    /// Removes and returns every route that `is_gone` among those of its prefix.
    pub fn sweep(
        &mut self,
        is_gone: impl Fn(&StoredRoute, &[StoredRoute]) -> bool,
    ) -> Vec<(Prefix<A>, StoredRoute)> {
        let stale = |(prefix, routes): (&Prefix<A>, &PrefixRoutes)| {
            let all = routes.as_slice();
            all.iter().any(|route| is_gone(route, all)).then_some(*prefix)
        };
        let prefixes: Vec<Prefix<A>> = self.0.iter().filter_map(stale).collect();
        let mut removed = Vec::new();
        for prefix in prefixes {
            self.edit(prefix, |routes| {
                let all = routes.clone();
                let gone: Vec<_> = routes.extract_if(.., |route| is_gone(route, &all)).collect();
                gone.iter().for_each(|route| lose_route(routes, route.metric));
                removed.extend(gone.into_iter().map(|route| (prefix, route)));
            });
        }
        removed
    }
}

fn take_repeated(routes: &mut Vec<StoredRoute>, dump: u8) -> Vec<StoredRoute> {
    let mut listed: Vec<StoredRoute> = Vec::new();
    let is_repeated = |route: &mut StoredRoute| {
        let is_listed = route.dump == dump;
        let is_repeated = is_listed && listed.iter().any(|known| known.is(route));
        listed.extend(is_listed.then_some(*route));
        is_repeated
    };
    routes.extract_if(.., is_repeated).collect()
}

/// Places a route among those of the same metric as the kernel does. A route replaces the first one that is like it in whether
/// hops may join, or the first of all, even if it is there already; then it is there twice (`fib6_add_rt2node` in
/// net/ipv6/ip6_fib.c).
fn place(routes: &mut Vec<StoredRoute>, route: StoredRoute, placement: Placement) -> Placed {
    let same = routes.iter().position(|known| known.is_again(&route, placement));
    let alike =
        routes.iter().position(|known| known.is_beside(&route) && known.order.joins() == route.order.joins());
    let beside = alike.or_else(|| routes.iter().position(|known| known.is_beside(&route)));
    match (placement, same, beside) {
        (Placement::Replace, Some(same), Some(at)) if at != same => {
            Placed { at, replaced: replace(routes, at, route), has_effect: true }
        }
        (Placement::Listed, Some(known), _) => {
            let replaced = Some(routes.remove(known));
            let at = insert(routes, route, placement);
            Placed { at, replaced, has_effect: at != known }
        }
        (_, Some(at), _) => Placed { at, replaced: replace(routes, at, route), has_effect: false },
        (Placement::Replace | Placement::Updated, None, Some(at)) => {
            Placed { at, replaced: replace(routes, at, route), has_effect: true }
        }
        (_, None, _) => {
            let at = insert(routes, route, placement);
            Placed { at, replaced: None, has_effect: true }
        }
    }
}

fn replace(routes: &mut [StoredRoute], at: usize, route: StoredRoute) -> Option<StoredRoute> {
    routes.get_mut(at).map(|known| std::mem::replace(known, route))
}

/// Returns the position that the route gets.
fn insert(routes: &mut Vec<StoredRoute>, route: StoredRoute, placement: Placement) -> usize {
    let is_after = |known: &StoredRoute| match placement {
        Placement::Last => known.metric > route.metric,
        Placement::Listed => {
            known.metric > route.metric || known.metric == route.metric && known.dump != route.dump
        }
        Placement::First | Placement::Replace | Placement::Updated => known.metric >= route.metric,
    };
    let at = routes.iter().position(is_after).unwrap_or(routes.len());
    routes.insert(at, route);
    at
}
