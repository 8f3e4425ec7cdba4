//! By which interfaces a slow path may forward packets that the loop rejected, so that none leaves past the filter's rules.

use super::stage_state::StageState;
use crate::adjacency::AdjacencyKind;
use crate::burst::{BURST, Packet, Slot};
use crate::verdict::Verdict;
use crate::view::View;

/// By which interfaces a slow path may forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayOut {
    /// There is no filter.
    Any,
    /// The filter judged it for this one.
    By(u16),
    /// The filter did not judge it for any.
    None,
}

impl WayOut {
    /// Whether the packet may leave by this interface.
    pub fn includes(self, interface: u16) -> bool {
        match self {
            WayOut::Any => true,
            WayOut::By(judged) => judged == interface,
            WayOut::None => false,
        }
    }
}

/// The ways of a burst's packets that the loop looked up and does not forward.
pub(super) struct WaysOut(Vec<(usize, u16)>);

impl WaysOut {
    pub fn new() -> WaysOut {
        WaysOut(Vec::with_capacity(BURST))
    }

    /// Notes the ways after all verdicts are known, if the rewrite rejected any packet. Most bursts have none.
    #[inline(always)]
    pub fn note(&mut self, state: &StageState, view: &View, packets: &[Packet<'_>], has_rejected: bool) {
        self.0.clear();
        if has_rejected {
            self.note_rejected(state, view, packets);
        }
    }

    #[cold]
    fn note_rejected(&mut self, state: &StageState, view: &View, packets: &[Packet<'_>]) {
        for table in &state.tables {
            for (position, hop) in table.inet.destinations.found().chain(table.inet6.destinations.found()) {
                let (packet, entry) = (&*packets[position], view.adjacencies().get(hop));
                let leads_on = matches!(entry.kind, AdjacencyKind::Neighbor | AdjacencyKind::Glean);
                if packet.verdict != Verdict::Forward && hop.is_some() && leads_on {
                    self.0.push((address(packet), entry.interface));
                }
            }
        }
    }

    /// The way of a packet of the last burst.
    pub fn of(&self, packet: &Slot) -> WayOut {
        let noted = self.0.iter().find(|(noted, _)| *noted == address(packet));
        noted.map_or(WayOut::None, |(_, interface)| WayOut::By(*interface))
    }
}

fn address(packet: &Slot) -> usize {
    std::ptr::from_ref(packet).addr()
}
