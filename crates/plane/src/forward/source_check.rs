//! Reverse path forwarding (RFC 3704): looks up source addresses as destinations are looked up, all of a burst in one call,
//! and only those of packets from interfaces with a source check.

use fullview_table::group::GroupView;
use fullview_table::{Address, NextHop};

use super::keys::{FamilyKeys, TableKeys};
use crate::adjacency::{AdjacencyKind, CompiledAdjacency};
use crate::burst::{Packet, Slot};
use crate::interface::SourceCheck;
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::View;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// The next hop of a packet that was rejected after its lookup: it has no adjacency, and the verdict is already set.
pub(super) const REJECTED: NextHop = NextHop(u16::MAX);

const _: () = assert!(REJECTED.0 > NextHop::MAX);

/// Rejects the packets of a table whose sources fail the check.
#[cold]
pub(super) fn check(table: &mut TableKeys, view: &View, groups: &GroupView, packets: &mut [Packet<'_>]) {
    let source = |slot: &Slot| Ipv4Packet::new_unchecked(&slot.head()[ETHERNET..]).source();
    check_family(&mut table.inet, view, groups, packets, source);
    let source = |slot: &Slot| Ipv6Packet::new_unchecked(&slot.head()[ETHERNET..]).source();
    check_family(&mut table.inet6, view, groups, packets, source);
}

fn check_family<A: Address>(
    keys: &mut FamilyKeys<A>,
    view: &View,
    groups: &GroupView,
    packets: &mut [Packet<'_>],
    source: fn(&Slot) -> A,
) {
    keys.sources.clear();
    for (position, _) in keys.destinations.found() {
        if check_of(view, packets[position]) != SourceCheck::Off {
            keys.sources.push(source(packets[position]), position);
        }
    }
    keys.sources.lookup(keys.reader.fib());
    // Both lists are in the order of positions, and every source has a destination.
    let mut destinations = keys.destinations.found_mut();
    for (position, back) in keys.sources.found() {
        let destination = destinations.find(|(of, _)| *of == position);
        if let Some(verdict) = objection(view, groups, packets[position], back) {
            packets[position].verdict = verdict;
            destination.into_iter().for_each(|(_, next_hop)| *next_hop = REJECTED);
        }
    }
}

pub(super) fn check_of(view: &View, packet: &Slot) -> SourceCheck {
    view.interface(packet.interface).map_or(SourceCheck::Off, |interface| interface.source_check)
}

/// What becomes of the packet unless the route back to its source lets it come in by its interface. The kernel judges where
/// the way back is one that only it knows.
pub(super) fn objection(view: &View, groups: &GroupView, packet: &Slot, back: NextHop) -> Option<Verdict> {
    let adjacencies = view.adjacencies();
    let mut hops = groups.members(back).iter().chain([&back]).map(|hop| adjacencies.get(*hop));
    let came_in = packet.interface;
    let passes = match check_of(view, packet) {
        SourceCheck::Off => true,
        SourceCheck::Loose => back.is_some() && hops.clone().any(reaches_a_link),
        SourceCheck::Strict => hops.clone().any(|entry| entry.interface == came_in),
    };
    let is_kernels = |entry: &CompiledAdjacency| entry.kind == AdjacencyKind::Local;
    match passes {
        true => None,
        false if hops.any(is_kernels) => Some(Verdict::Punt(Punt::WayBack)),
        false => Some(Verdict::Drop(Reason::SourceCheck)),
    }
}

/// Whether the adjacency is on a link. One that drops packets is not.
fn reaches_a_link(entry: &CompiledAdjacency) -> bool {
    matches!(entry.kind, AdjacencyKind::Neighbor | AdjacencyKind::Glean | AdjacencyKind::Down)
}
