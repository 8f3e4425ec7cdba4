//! Changes in messages of the kernel, and which part of its state they belong to.

use fullview_table::Family;
use netlink_packet_core::NetlinkBuffer;

use super::statistics::Statistics;
use crate::netlink::decode::{self, Messages};
use crate::netlink::event::{ControlEvent, DumpPart, Placement, RouteEntry};
use crate::route::{AnyPrefix, HopSet, RouteAction};

/// The request that a change follows from: the sender's port, which is not 0, and its number.
pub(super) type RequestId = (u32, u32);

/// The part that an event changes.
pub(super) fn part(event: &ControlEvent) -> DumpPart {
    use ControlEvent::{
        Address, AddressRemoved, Forwarding, Link, LinkRemoved, Neighbor, NeighborRemoved, NextHop,
        NextHopRemoved, Route, RouteRemoved, Rule, RuleRemoved,
    };
    match event {
        Link(_) | LinkRemoved(_) => DumpPart::Links,
        Address(..) | AddressRemoved(..) => DumpPart::Addresses,
        Neighbor(_) | NeighborRemoved(..) => DumpPart::Neighbors,
        NextHop(..) | NextHopRemoved(_) => DumpPart::Objects,
        Route(route, _) | RouteRemoved(route) => match route.prefix {
            AnyPrefix::Inet(_) => DumpPart::Inet,
            AnyPrefix::Inet6(_) => DumpPart::Inet6,
        },
        Forwarding(_, Family::Inet, _) => DumpPart::Forwarding,
        Forwarding(_, Family::Inet6, _) => DumpPart::Forwarding6,
        Rule(_) | RuleRemoved(_) => DumpPart::Rules,
    }
}

/// The changes that the kernel reports. It reports the routes of a next-hop object that changed as if they replaced others, after
/// the object and as answers to the same request (`nexthop_replace_notify` in net/ipv4/nexthop.c).
pub(super) fn events(
    bytes: &[u8],
    statistics: &mut Statistics,
    object_request: &mut Option<RequestId>,
) -> Vec<ControlEvent> {
    let event = |message: NetlinkBuffer<&[u8]>| {
        let request = (message.port_number(), message.sequence_number());
        Some(match decoded(&message, statistics)? {
            ControlEvent::Route(route, Placement::Replace)
                if Some(request) == *object_request && is_by_object(&route) =>
            {
                ControlEvent::Route(route, Placement::Updated)
            }
            object @ ControlEvent::NextHop(..) => {
                *object_request = Some(request).filter(|(port, _)| *port != 0);
                object
            }
            other => other,
        })
    };
    Messages(bytes).filter_map(event).collect()
}

fn is_by_object(route: &RouteEntry) -> bool {
    matches!(route.action, RouteAction::Forward(HopSet::Object(_)))
}

pub(super) fn decoded(message: &NetlinkBuffer<&[u8]>, statistics: &mut Statistics) -> Option<ControlEvent> {
    let event = decode::event(message);
    statistics.events += u64::from(matches!(event, Ok(Some(_))));
    statistics.malformed += u64::from(event.is_err());
    event.ok().flatten()
}
