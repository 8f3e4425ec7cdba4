//! What the kernel says about routes.

use fullview_table::{Address, Prefix};

use crate::netlink::event::{Placement, RouteEntry};
use crate::netlink::uapi;
use crate::route::{AnyPrefix, HopSet, LOCAL_TABLE, RouteAction};

use super::Mirror;
use super::family::{self, Family, Kept};
use super::routes::Entry;
use super::sets::{SetId, Sets};

impl Mirror {
    pub(super) fn add_route(&mut self, route: RouteEntry, placement: Placement) {
        if route.table != LOCAL_TABLE {
            self.create(route.table);
        }
        let action = route.action.clone().map(|set| self.sets.acquire(set, &self.links));
        match route.prefix {
            AnyPrefix::Inet(prefix) => self.inet.add(kept(&route, prefix, action), placement, &mut self.sets),
            AnyPrefix::Inet6(prefix) => {
                self.inet6.add(kept(&route, prefix, action), placement, &mut self.sets)
            }
        }
    }

    /// A route that we do not know as it was: what the kernel has now has to be looked at.
    pub(super) fn remove_route(&mut self, route: RouteEntry) {
        let is_known = match route.prefix {
            AnyPrefix::Inet(prefix) => {
                self.removed(&route, prefix, |mirror| (&mut mirror.inet, &mut mirror.sets))
            }
            AnyPrefix::Inet6(prefix) => {
                self.removed(&route, prefix, |mirror| (&mut mirror.inet6, &mut mirror.sets))
            }
        };
        if !is_known && let AnyPrefix::Inet6(prefix) = route.prefix {
            self.remove_hops(&route, prefix);
        }
        self.suspects_inet |= !is_known && matches!(route.prefix, AnyPrefix::Inet(_));
    }

    fn removed<A: Address>(
        &mut self,
        route: &RouteEntry,
        prefix: Prefix<A>,
        family: impl Fn(&mut Mirror) -> (&mut Family<A>, &mut Sets),
    ) -> bool {
        let hops = match &route.action {
            RouteAction::Forward(HopSet::Hops(hops)) => Some(&**hops),
            _ => None,
        };
        // Hops are compared one by one below; a set for them is not needed.
        let action = match hops {
            Some(_) => RouteAction::Throw,
            None => route.action.clone().map(|set| self.sets.acquire(set, &self.links)),
        };
        let (family, sets) = family(self);
        let was_there = family.remove(&kept(route, prefix, action), hops, sets);
        if let RouteAction::Forward(id) = action {
            sets.release(id);
        }
        was_there
    }

    /// One hop of several went: the others stay.
    fn remove_hops(&mut self, route: &RouteEntry, prefix: Prefix<u128>) {
        let RouteAction::Forward(HopSet::Hops(gone)) = &route.action else { return };
        let entries = self.inet6.at(route.table, prefix).to_vec();
        for entry in entries.iter().filter(|entry| entry.metric == route.metric) {
            let Some(hops) = entry.set().and_then(|id| self.sets.hops(id)) else { continue };
            let left: Vec<_> = hops.iter().filter(|hop| !family::holds(gone, hop)).copied().collect();
            if left.len() == hops.len() || left.is_empty() {
                continue;
            }
            let before = RouteEntry { action: RouteAction::via(hops), ..route.clone() };
            self.remove_route(before);
            self.add_route(RouteEntry { action: RouteAction::via(left), ..route.clone() }, Placement::First);
        }
    }
}

/// Routes of interfaces, and those somebody typed, do not wait.
fn kept<A: Address>(route: &RouteEntry, prefix: Prefix<A>, action: RouteAction<SetId>) -> Kept<A> {
    let at_once = matches!(route.protocol, uapi::RTPROT_KERNEL | uapi::RTPROT_BOOT | uapi::RTPROT_STATIC);
    let entry = Entry { metric: route.metric, action, selective: route.selective, dump: 0 };
    Kept { table: route.table, prefix, entry, at_once }
}
