//! What the kernel says about routes.

use fullview_table::{Address, Prefix};

use crate::netlink::event::{Action, AnyPrefix, Placement, Route};
use crate::netlink::uapi;

use super::Mirror;
use super::family::{self, Family, Kept};
use super::routes::{Entry, Way};
use super::sets::{Key, Sets};

impl Mirror {
    pub(super) fn add_route(&mut self, route: Route, placement: Placement) {
        if route.table != uapi::RT_TABLE_LOCAL {
            self.create(route.table);
        }
        let way = match &route.action {
            Action::Forward(hops) => {
                Way::Set(self.sets.acquire(Key::Hops(hops.as_slice().into()), &self.links))
            }
            Action::Object(id) => Way::Set(self.sets.acquire(Key::Object(*id), &self.links)),
            Action::ObjectWithMtu(id) => Way::Set(self.sets.acquire(Key::ObjectWithMtu(*id), &self.links)),
            other => fixed(other),
        };
        match route.prefix {
            AnyPrefix::Inet(prefix) => self.inet.add(kept(&route, prefix, way), placement, &mut self.sets),
            AnyPrefix::Inet6(prefix) => self.inet6.add(kept(&route, prefix, way), placement, &mut self.sets),
        }
    }

    /// A route that we do not know as it was: what the kernel has now has to be looked at.
    pub(super) fn remove_route(&mut self, route: Route) {
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
        route: &Route,
        prefix: Prefix<A>,
        family: impl Fn(&mut Mirror) -> (&mut Family<A>, &mut Sets),
    ) -> bool {
        let (way, hops) = match &route.action {
            Action::Forward(hops) => (Way::Throw, Some(hops.as_slice())),
            Action::Object(id) => (Way::Set(self.sets.acquire(Key::Object(*id), &self.links)), None),
            Action::ObjectWithMtu(id) => {
                (Way::Set(self.sets.acquire(Key::ObjectWithMtu(*id), &self.links)), None)
            }
            other => (fixed(other), None),
        };
        let (family, sets) = family(self);
        let was_there = family.remove(&kept(route, prefix, way), hops, sets);
        way.set().into_iter().for_each(|id| sets.release(id));
        was_there
    }

    /// One hop of several went: the others stay.
    fn remove_hops(&mut self, route: &Route, prefix: Prefix<u128>) {
        let Action::Forward(gone) = &route.action else { return };
        let entries = self.inet6.at(route.table, prefix).to_vec();
        for entry in entries.iter().filter(|entry| entry.metric == route.metric) {
            let Some(hops) = entry.way.set().and_then(|id| self.sets.hops(id)) else { continue };
            let left: Vec<_> = hops.iter().filter(|hop| !family::holds(gone, hop)).copied().collect();
            if left.len() == hops.len() || left.is_empty() {
                continue;
            }
            let before = Route { action: Action::Forward(hops.to_vec()), ..route.clone() };
            self.remove_route(before);
            self.add_route(Route { action: Action::Forward(left), ..route.clone() }, Placement::First);
        }
    }
}

/// What a route does that needs no next hop. Those that do are not asked for.
fn fixed(action: &Action) -> Way {
    match action {
        Action::Broadcast => Way::Broadcast,
        Action::Blackhole => Way::Blackhole,
        Action::Unreachable => Way::Unreachable,
        Action::Prohibit => Way::Prohibit,
        Action::Throw => Way::Throw,
        Action::Local | Action::Forward(_) | Action::Object(_) | Action::ObjectWithMtu(_) => Way::Kernel,
    }
}

/// Routes of interfaces, and those somebody typed, do not wait.
fn kept<A: Address>(route: &Route, prefix: Prefix<A>, way: Way) -> Kept<A> {
    let at_once = matches!(route.protocol, uapi::RTPROT_KERNEL | uapi::RTPROT_BOOT | uapi::RTPROT_STATIC);
    let entry = Entry { metric: route.metric, way, selective: route.selective, dump: 0 };
    Kept { table: route.table, prefix, entry, at_once }
}
