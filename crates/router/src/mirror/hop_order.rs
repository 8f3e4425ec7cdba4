//! Where the kernel has the hops of a multipath route of IPv6, and the other routes of their metric.
//!
//! Each hop is a route of its own in the kernel's list: the first where the route was that it replaced, the others at the end
//! (`fib6_add_rt2node` in net/ipv6/ip6_fib.c). A walk through the list goes from the first hop to the last one and passes over
//! the routes between them. So no dump lists these (`rt6_dump_route` in net/ipv6/route.c), and they stay when their link goes
//! down (`fib6_ifdown`).
//!
//! Routes for some sources are in lists of their own.

use crate::netlink::event::Placement;

use super::stored_route::{HopOrder, StoredRoute};

/// The route of a metric that other hops may join.
fn multipath(routes: &[StoredRoute], metric: u32) -> Option<(u8, &StoredRoute)> {
    routes.iter().filter(|route| is_listed(route, metric)).find_map(|route| match route.order {
        HopOrder::Hops(count) => Some((count, route)),
        HopOrder::Behind(_) => None,
    })
}

fn is_listed(route: &StoredRoute, metric: u32) -> bool {
    route.metric == metric && route.selective.is_none()
}

/// The multipath route between whose hops a route is.
pub(super) fn hidden_by<'r>(route: &StoredRoute, among: &'r [StoredRoute]) -> Option<&'r StoredRoute> {
    let HopOrder::Behind(behind) = route.order else { return None };
    let (count, hides) = multipath(among, route.metric)?;
    (0 < behind && behind < count).then_some(hides)
}

/// Whether the loss of a multipath route, or of its hops, may show routes that the kernel passed over until now. What is known of their
/// places may be wrong: not all that moves them is reported.
pub(super) fn may_reveal(gone: &StoredRoute, left: &[StoredRoute]) -> bool {
    let mut beside = left.iter().filter(|route| route.metric == gone.metric);
    !beside.clone().any(|route| route.order.is_multipath())
        && (gone.may_hide || beside.any(|route| !route.order.joins()))
}

/// Gives the other routes of a metric another place. Returns whether any has one.
fn renumber(routes: &mut [StoredRoute], metric: u32, to: impl Fn(&StoredRoute, u8) -> u8) -> bool {
    let mut changed = false;
    for route in routes.iter_mut().filter(|route| is_listed(route, metric)) {
        if let HopOrder::Behind(behind) = route.order {
            route.order = HopOrder::Behind(to(route, behind));
            changed |= route.order != HopOrder::Behind(behind);
        }
    }
    changed
}

/// The hops of `shrunk` at these places of the list are gone.
pub(super) fn lose_hops(routes: &mut [StoredRoute], shrunk: &StoredRoute, gone: &[usize]) {
    let before = |behind: u8| gone.iter().filter(|place| **place < usize::from(behind)).count() as u8;
    if shrunk.selective.is_none() {
        renumber(routes, shrunk.metric, |_, behind| behind - before(behind));
    }
}

/// A route of this metric is gone.
pub(super) fn lose_route(routes: &mut [StoredRoute], metric: u32) {
    if multipath(routes, metric).is_none() {
        renumber(routes, metric, |_, _| 0);
    }
}

/// Follows the addition of the route at this place, which may have replaced another one. Returns whether other routes have other
/// places now.
pub(super) fn follow_added(
    routes: &mut [StoredRoute],
    at: usize,
    placement: Placement,
    replaced: Option<HopOrder>,
) -> bool {
    let StoredRoute { metric, dump, order, selective, .. } = routes[at];
    if selective.is_some() {
        return false;
    }
    match (order, placement, replaced) {
        // What the dump listed before has its place already. What it does not list either is between the hops.
        (HopOrder::Hops(count), Placement::Listed, _) => {
            renumber(routes, metric, |other, behind| match count {
                _ if other.dump == dump => behind,
                0 | 1 => 0,
                _ => behind.clamp(1, count - 1),
            })
        }
        (HopOrder::Hops(_), Placement::Replace, Some(HopOrder::Hops(_))) => {
            renumber(routes, metric, |_, behind| behind.min(1))
        }
        (HopOrder::Hops(_), Placement::Replace, Some(HopOrder::Behind(_))) => {
            renumber(routes, metric, |_, _| 1)
        }
        (HopOrder::Hops(_), ..) => false,
        (HopOrder::Behind(_), Placement::Listed, _) => {
            let listed = multipath(routes, metric).filter(|(_, route)| route.dump == dump);
            set_behind(routes, at, listed.map_or(0, |(count, _)| count))
        }
        (HopOrder::Behind(_), _, Some(HopOrder::Behind(behind))) => set_behind(routes, at, behind),
        (HopOrder::Behind(_), _, Some(HopOrder::Hops(_))) => false,
        (HopOrder::Behind(_), _, None) => {
            let count = multipath(routes, metric).map_or(0, |(count, _)| count);
            set_behind(routes, at, count)
        }
    }
}

fn set_behind(routes: &mut [StoredRoute], at: usize, behind: u8) -> bool {
    let before = std::mem::replace(&mut routes[at].order, HopOrder::Behind(behind));
    before != HopOrder::Behind(behind)
}
