//! Whether packets may have come from where they say (RFC 3704): their sources are looked up as destinations are, all
//! of a burst in one call, and only those of interfaces that ask for it.

use fullview_table::group::GroupView;
use fullview_table::{Address, NextHop};

use super::lookup::{FamilyKeys, TableKeys};
use crate::adjacency::{AdjacencyKind, CompiledAdjacency};
use crate::burst::{Packet, Slot};
use crate::interface::SourceCheck;
use crate::verdict::{Reason, Verdict};
use crate::view::View;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// The next hop of a packet that was rejected after its lookup: it leads nowhere, and its verdict stands.
pub(super) const REJECTED: NextHop = NextHop(u16::MAX);

const _: () = assert!(REJECTED.0 > NextHop::MAX);

/// Rejects the packets of a table whose sources do not pass.
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
    for (place, _) in keys.destinations.found() {
        if check_of(view, packets[place]) != SourceCheck::Off {
            keys.sources.push(source(packets[place]), place);
        }
    }
    keys.sources.lookup(keys.reader.fib());
    // Both are in the order of places, and every source has a destination.
    let mut destinations = keys.destinations.found_mut();
    for (place, way_back) in keys.sources.found() {
        let destination = destinations.find(|(of, _)| *of == place);
        if !passes(view, groups, packets[place], way_back) {
            packets[place].verdict = Verdict::Drop(Reason::SourceCheck);
            destination.into_iter().for_each(|(_, next_hop)| *next_hop = REJECTED);
        }
    }
}

fn check_of(view: &View, packet: &Slot) -> SourceCheck {
    view.interface(packet.interface).map_or(SourceCheck::Off, |interface| interface.source_check)
}

/// Whether the way back to its source says that a packet may have come in where it did.
fn passes(view: &View, groups: &GroupView, packet: &Slot, way_back: NextHop) -> bool {
    let entries = view.adjacencies();
    let mut ways = groups.members(way_back).iter().chain([&way_back]).map(|hop| entries.get(*hop));
    let came_in = packet.interface;
    match check_of(view, packet) {
        SourceCheck::Off => true,
        SourceCheck::Loose => way_back.is_some() && ways.any(leads_somewhere),
        SourceCheck::Strict => ways.any(|entry| entry.interface == came_in),
    }
}

/// Other than to be dropped, or to this router itself, which does not send to itself.
fn leads_somewhere(entry: &CompiledAdjacency) -> bool {
    matches!(entry.kind, AdjacencyKind::Neighbor | AdjacencyKind::Glean | AdjacencyKind::Down)
}
