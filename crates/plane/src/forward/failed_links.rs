//! Leaves links that have failed before the view does: packets that would leave by them get another member of their group, or the
//! slow path.

use fullview_table::group::GroupView;
use fullview_table::{Address, NextHop};

use super::keys::FamilyKeys;
use super::port_links::PortLinks;
use super::rewrite::write_ethernet;
use super::source_check::REJECTED;
use super::stage_state::StageState;
use super::{flow, vlan};
use crate::adjacency::{AdjacencyKind, CompiledAdjacency};
use crate::burst::{Packet, Slot};
use crate::flow_hash::FlowHash;
use crate::verdict::{Punt, Verdict};
use crate::view::View;
use crate::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// Gives the packets that would leave by a failed link another next hop, after the lookup.
#[cold]
pub(super) fn leave(state: &mut StageState, view: &View, packets: &mut [Packet<'_>]) {
    let StageState { tables, groups, links, .. } = state;
    // Before any FIB is read again, as in the lookup.
    let detour = Detour { view, links, groups: groups.groups() };
    for table in tables {
        detour.take(&mut table.inet, packets, flow::inet);
        detour.take(&mut table.inet6, packets, flow::inet6);
    }
}

/// Gives a packet that could not be sent another header, for another member of its group, if its link has failed. Says whether it
/// could: otherwise the packet stays as it is.
#[cold]
pub(super) fn leave_rewritten(state: &mut StageState, view: &View, packet: &mut Slot) -> bool {
    if !state.links.has_failed(packet.port) {
        return false;
    }
    let tag = vlan::pop(packet);
    let other = other_member(state, view, packet);
    match other {
        Some(entry) => write_ethernet(packet, &entry),
        None => tag.into_iter().for_each(|tag| vlan::push(packet, tag)),
    }
    other.is_some()
}

/// Only with one table and no rules: the packet does not say which rule or leak chose its table, and in another table it
/// may have a route that it must not take.
fn other_member(state: &mut StageState, view: &View, packet: &Slot) -> Option<CompiledAdjacency> {
    let StageState { tables, groups, links, .. } = state;
    let table = tables.first_mut().filter(|_| view.has_one_table())?;
    let detour = Detour { view, links, groups: groups.groups() };
    let (head, of) = (&packet.head()[ETHERNET..], view.parts().policy.flow_hash);
    if Frame::new_unchecked(packet.frame()).ethertype() == EtherType::IPV6 {
        let ip = Ipv6Packet::new_unchecked(head);
        let route = table.inet6.find(ip.destination());
        let entry = detour.other_member(route, flow::inet6(packet, of), packet)?;
        return Some(entry).filter(|entry| ip.total_len() <= usize::from(entry.mtu6));
    }
    let ip = Ipv4Packet::new_unchecked(head);
    let route = table.inet.find(ip.destination());
    let entry = detour.other_member(route, flow::inet(packet, of), packet)?;
    Some(entry).filter(|entry| ip.total_len() <= entry.mtu)
}

struct Detour<'s> {
    view: &'s View,
    links: &'s PortLinks,
    groups: &'s GroupView,
}

impl Detour<'_> {
    fn take<A: Address>(
        &self,
        keys: &mut FamilyKeys<A>,
        packets: &mut [Packet<'_>],
        hash: fn(&Slot, FlowHash) -> u32,
    ) {
        for at in 0..keys.destinations.len() {
            if self.has_failed(keys.destinations.next_hop(at)) {
                let route = keys.find(keys.destinations.addr(at));
                let packet = &mut *packets[keys.destinations.position(at)];
                let hash = hash(packet, self.view.parts().policy.flow_hash);
                keys.destinations.set_next_hop(at, self.next_hop(route, hash, packet));
            }
        }
    }

    /// The next hop of a packet with this route. Where no member of it works, the packet is the slow path's.
    fn next_hop(&self, route: NextHop, hash: u32, packet: &mut Slot) -> NextHop {
        let hop = self.groups.select_working(route, hash, |hop| self.works(hop));
        if !self.has_failed(hop) {
            return hop;
        }
        packet.verdict = Verdict::Punt(Punt::Local);
        REJECTED
    }

    fn is_neighbor(&self, hop: NextHop) -> bool {
        self.view.adjacencies().get(hop).kind == AdjacencyKind::Neighbor
    }

    fn works(&self, hop: NextHop) -> bool {
        self.is_neighbor(hop) && !self.has_failed(hop)
    }

    /// The member of a route that works, if the packet was to leave by another one of them.
    fn other_member(&self, route: NextHop, hash: u32, packet: &Slot) -> Option<CompiledAdjacency> {
        let entry = |hop| self.view.adjacencies().get(hop);
        let is_its = |hop: &NextHop| {
            entry(*hop).interface == packet.interface && packet.frame().starts_with(&entry(*hop).macs)
        };
        let hop = self.groups.select_working(route, hash, |hop| self.works(hop));
        (self.groups.members(route).iter().any(is_its) && self.works(hop)).then(|| *entry(hop))
    }

    fn has_failed(&self, hop: NextHop) -> bool {
        self.is_neighbor(hop) && self.links.has_failed(self.view.adjacencies().get(hop).port)
    }
}
