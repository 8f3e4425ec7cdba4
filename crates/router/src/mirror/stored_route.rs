//! One route of the kernel, as the mirror keeps it.

use fullview_table::NextHop;

use crate::netlink::event::{Placement, RouteOrigin, Selector};
use crate::route::RouteAction;

use super::hop_sets::{HopSets, SetId};
use super::next_hops::{BLACKHOLE, BROADCAST, KERNEL, PROHIBIT, UNREACHABLE};

/// One route to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredRoute {
    pub metric: u32,
    pub action: RouteAction<SetId>,
    pub selective: Option<Selector>,
    pub origin: RouteOrigin,
    pub order: HopOrder,
    /// Whether the kernel may have routes between its hops that no report named: it was listed with several hops, and no list has
    /// these routes.
    pub may_hide: bool,
    /// Whether the kernel passed over it when its link went down, and so uses it all the same.
    pub passed_over: bool,
    /// The number of the last dump that listed it.
    pub dump: u8,
}

impl StoredRoute {
    /// The set of a route that forwards.
    pub fn set(&self) -> Option<SetId> {
        match self.action {
            RouteAction::Forward(id) => Some(id),
            _ => None,
        }
    }

    /// The index that packets of the route get; `None` if the route cannot be used now.
    pub fn next_hop(&self, sets: &HopSets) -> Option<NextHop> {
        match self.action {
            RouteAction::Forward(id) => sets.index(id).or(self.passed_over.then_some(KERNEL)),
            RouteAction::Local => Some(KERNEL),
            RouteAction::Broadcast => Some(BROADCAST),
            RouteAction::Blackhole => Some(BLACKHOLE),
            RouteAction::Unreachable => Some(UNREACHABLE),
            RouteAction::Prohibit => Some(PROHIBIT),
            RouteAction::Throw => Some(NextHop::NONE),
        }
    }

    /// Whether the two differ at most in what they do.
    pub fn is_beside(&self, other: &StoredRoute) -> bool {
        (self.metric, self.selective) == (other.metric, other.selective)
    }

    /// Whether it is the same route, listed or reported again.
    pub fn is(&self, other: &StoredRoute) -> bool {
        self.is_beside(other) && (self.action, self.origin) == (other.action, other.origin)
    }

    /// Whether it is known as this one. A route that one dump lists twice is there twice.
    pub fn is_again(&self, other: &StoredRoute, placement: Placement) -> bool {
        self.is(other) && !(placement == Placement::Listed && self.dump == other.dump)
    }
}

/// Where a route is among the hops of its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopOrder {
    /// It is a route of IPv6 with so many hops, which others may join: they have gateways, belong to no next-hop object, and no
    /// router advertised it (`rt6_qualify_for_ecmp` in include/net/ip6_route.h). Programs give routes the protocol of
    /// advertisements too; where several hops have it, they have joined.
    Hops(u8),
    /// It is another route, behind so many of the hops.
    Behind(u8),
}

impl HopOrder {
    /// The order of a route by so many hops that others may join.
    pub fn hops(count: usize) -> HopOrder {
        HopOrder::Hops(u8::try_from(count).unwrap_or(u8::MAX))
    }

    /// Whether other hops may join the route.
    pub fn joins(self) -> bool {
        matches!(self, HopOrder::Hops(_))
    }

    /// Whether the route has several hops, between which others may be.
    pub fn is_multipath(self) -> bool {
        matches!(self, HopOrder::Hops(2..))
    }
}
