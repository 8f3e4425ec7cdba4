//! Second stage: looks up the gathered destinations of each table, all of a burst in one call, and picks the members of
//! next-hop groups by the flows of the packets.
//!
//! The parser has prefetched the table's memory: see [`super::keys::TableKeys::prefetch_added`].

use super::stage_state::StageState;
use super::{failed_links, flow, source_check};
use crate::burst::{Packet, Slot};
use crate::flow_hash::FlowHash;
use crate::view::View;

#[inline]
pub(super) fn look_up(state: &mut StageState, view: &View, packets: &mut [Packet<'_>]) {
    // Before any FIB is read: see "When an index is used again" in the table's `group`.
    let groups = state.groups.groups();
    for table in &mut state.tables {
        table.inet.lookup();
        table.inet6.lookup();
        if !groups.is_empty() {
            let member = |hash: fn(&Slot, FlowHash) -> u32| {
                let (packets, of) = (&*packets, view.parts().policy.flow_hash);
                move |group, position: usize| view.member(groups, group, hash(packets[position], of))
            };
            table.inet.destinations.pick_members(groups, member(flow::inet));
            table.inet6.destinations.pick_members(groups, member(flow::inet6));
        }
        if view.checks_sources() {
            source_check::check(table, view, groups, packets);
        }
    }
    if state.links.have_failed() {
        failed_links::leave(state, view, packets);
    }
}
