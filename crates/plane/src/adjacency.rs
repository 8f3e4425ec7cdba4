//! What a next hop leads to: a neighbour on a link, this router, or a route that drops packets.
//!
//! [`Adjacency`] is the concept, for the control plane, the explanation and the XDP engine. `CompiledAdjacency` is its
//! form for the loop: it has the Ethernet header ready to copy, and its size and alignment keep it in one cache line.

use std::collections::BTreeSet;

use fullview_table::{Family, NextHop};

use crate::burst::FRAME_CAPACITY;
use crate::interface::Interface;
use crate::wire::ethernet::{HEADER, Mac, TAG};

/// The longest packet that fits into a slot behind a tagged Ethernet header, in bytes.
pub const MAX_MTU: u16 = (FRAME_CAPACITY - HEADER - TAG) as u16;

/// What a next hop leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjacency {
    /// A neighbour whose MAC address is known.
    Neighbor {
        /// The egress interface.
        interface: u16,
        /// The MAC address of the neighbour.
        mac: Mac,
    },
    /// A connected network as a whole, or a gateway whose MAC address is not known yet. Packets are punted.
    Glean {
        /// The interface of its link.
        interface: u16,
    },
    /// This router. Packets are punted.
    Local,
    /// The broadcast address of a connected network. Packets are punted if the frame is a broadcast too, else dropped.
    Broadcast,
    /// Packets are dropped silently.
    Blackhole,
    /// Packets are dropped: the destination is unreachable.
    Unreachable,
    /// Packets are dropped: communication is prohibited.
    Prohibit,
}

/// The adjacencies of the next hops of all tables and both families, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjacencies {
    known: Vec<Option<Adjacency>>,
    of_default_routes: BTreeSet<NextHop>,
}

impl Adjacencies {
    /// No adjacencies.
    pub fn new() -> Adjacencies {
        Adjacencies::default()
    }

    /// Sets the adjacency of a next hop.
    pub fn set(&mut self, hop: NextHop, adjacency: Adjacency) {
        if self.known.len() <= hop.index() {
            self.known.resize(hop.index() + 1, None);
        }
        self.known[hop.index()] = Some(adjacency);
    }

    /// Says that only default routes have this next hop, or group of next hops.
    pub fn mark_default(&mut self, hop: NextHop) {
        self.of_default_routes.insert(hop);
    }

    /// Whether only default routes have this next hop.
    pub fn is_default(&self, hop: NextHop) -> bool {
        self.of_default_routes.contains(&hop)
    }

    /// The next hops that only default routes have.
    pub fn of_default_routes(&self) -> impl Iterator<Item = NextHop> + '_ {
        self.of_default_routes.iter().copied()
    }

    /// Removes the adjacency of a next hop.
    pub fn remove(&mut self, hop: NextHop) {
        if let Some(adjacency) = self.known.get_mut(hop.index()) {
            *adjacency = None;
        }
    }

    /// The adjacency of a next hop.
    pub fn get(&self, hop: NextHop) -> Option<Adjacency> {
        *self.known.get(hop.index())?
    }

    /// All next hops that have an adjacency.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, Adjacency)> + '_ {
        let numbered = (0..=NextHop::MAX).map(NextHop).zip(&self.known);
        numbered.filter_map(|(hop, adjacency)| adjacency.map(|adjacency| (hop, adjacency)))
    }
}

/// The variants of [`Adjacency`], and two more that the loop tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdjacencyKind {
    /// The next hop has no adjacency.
    Missing,
    Neighbor,
    /// A neighbour or network behind an interface that is down.
    Down,
    Glean,
    Local,
    Broadcast,
    Blackhole,
    Unreachable,
    Prohibit,
}

/// An adjacency as the rewrite stage needs it: half a cache line, so that hundreds of neighbours stay in the first-level
/// cache and none crosses a line. Port and interface are adjacent as in a slot, so that one copy moves both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct CompiledAdjacency {
    /// Destination and source MAC addresses in the order of the frame.
    pub macs: [u8; 12],
    pub port: u16,
    /// The interface of a neighbour or network, else [`NO_INTERFACE`].
    pub interface: u16,
    /// 0 unless this is a neighbour, so that the length check alone finds every exception.
    pub mtu: u16,
    /// The same for IPv6.
    pub mtu6: u16,
    /// 0 for untagged frames.
    pub vlan: u16,
    pub kind: AdjacencyKind,
}

const _: () = assert!(size_of::<CompiledAdjacency>() == 32);

/// No interface has this number.
pub(crate) const NO_INTERFACE: u16 = u16::MAX;

impl CompiledAdjacency {
    pub const MISSING: CompiledAdjacency = CompiledAdjacency {
        macs: [0; 12],
        port: 0,
        interface: NO_INTERFACE,
        mtu: 0,
        mtu6: 0,
        vlan: 0,
        kind: AdjacencyKind::Missing,
    };

    /// Compiles an adjacency; the error is an interface number that does not exist.
    fn new(adjacency: Adjacency, interfaces: &[Interface]) -> Result<CompiledAdjacency, u16> {
        let of = |number: u16| interfaces.get(usize::from(number)).ok_or(number);
        let plain = |kind| Ok(CompiledAdjacency { kind, ..CompiledAdjacency::MISSING });
        match adjacency {
            Adjacency::Neighbor { interface, mac } => {
                Ok(CompiledAdjacency::neighbor(interface, of(interface)?, mac))
            }
            Adjacency::Glean { interface } => Ok(CompiledAdjacency::glean(interface, of(interface)?)),
            Adjacency::Local => plain(AdjacencyKind::Local),
            Adjacency::Broadcast => plain(AdjacencyKind::Broadcast),
            Adjacency::Blackhole => plain(AdjacencyKind::Blackhole),
            Adjacency::Unreachable => plain(AdjacencyKind::Unreachable),
            Adjacency::Prohibit => plain(AdjacencyKind::Prohibit),
        }
    }

    fn neighbor(number: u16, interface: &Interface, mac: Mac) -> CompiledAdjacency {
        if !interface.up {
            return CompiledAdjacency {
                interface: number,
                kind: AdjacencyKind::Down,
                ..CompiledAdjacency::MISSING
            };
        }
        let mut macs = [0; 12];
        macs[..6].copy_from_slice(&mac.0);
        macs[6..].copy_from_slice(&interface.mac.0);
        let [mtu, mtu6] =
            [Family::Inet, Family::Inet6].map(|family| interface.mtu_of(family).min(MAX_MTU.into()) as u16);
        let vlan = interface.vlan.unwrap_or(0);
        CompiledAdjacency {
            macs,
            port: interface.port,
            interface: number,
            mtu,
            mtu6,
            vlan,
            kind: AdjacencyKind::Neighbor,
        }
    }

    fn glean(number: u16, interface: &Interface) -> CompiledAdjacency {
        let kind = if interface.up { AdjacencyKind::Glean } else { AdjacencyKind::Down };
        CompiledAdjacency { interface: number, kind, ..CompiledAdjacency::MISSING }
    }
}

/// The compiled adjacencies of a view.
#[derive(Debug)]
pub(crate) struct CompiledAdjacencies(Vec<CompiledAdjacency>);

impl CompiledAdjacencies {
    /// Compiles all adjacencies; the error is a next hop and its interface number, which does not exist.
    pub fn new(
        adjacencies: &Adjacencies,
        interfaces: &[Interface],
    ) -> Result<CompiledAdjacencies, (NextHop, u16)> {
        let mut entries = vec![CompiledAdjacency::MISSING; adjacencies.known.len()];
        for (hop, adjacency) in adjacencies.iter() {
            entries[hop.index()] =
                CompiledAdjacency::new(adjacency, interfaces).map_err(|interface| (hop, interface))?;
        }
        Ok(CompiledAdjacencies(entries))
    }

    #[inline(always)]
    pub fn get(&self, hop: NextHop) -> &CompiledAdjacency {
        self.0.get(hop.index()).unwrap_or(&CompiledAdjacency::MISSING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_adjacencies_hold_the_ethernet_header() {
        let down = Interface { up: false, ..Interface::new(2, Mac([6; 6])) };
        let interfaces = [
            Interface { vlan: Some(7), mtu: 65_536, mtu6: Some(1400), ..Interface::new(3, Mac([2; 6])) },
            down,
        ];
        let mut table = Adjacencies::new();
        table.set(NextHop(2), Adjacency::Neighbor { interface: 0, mac: Mac([4; 6]) });
        table.set(NextHop(4), Adjacency::Neighbor { interface: 1, mac: Mac([4; 6]) });
        table.set(NextHop(5), Adjacency::Prohibit);
        let compiled = CompiledAdjacencies::new(&table, &interfaces).unwrap();
        let entry = compiled.get(NextHop(2));
        assert_eq!((entry.macs, entry.port, entry.vlan), ([4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2], 3, 7));
        assert_eq!((entry.mtu, entry.mtu6, entry.interface), (MAX_MTU, 1400, 0));
        let kinds = [0, 1, 4, 5, 60_000].map(|hop| compiled.get(NextHop(hop)).kind);
        assert_eq!(
            kinds,
            [
                AdjacencyKind::Missing,
                AdjacencyKind::Missing,
                AdjacencyKind::Down,
                AdjacencyKind::Prohibit,
                AdjacencyKind::Missing
            ]
        );
        table.remove(NextHop(2));
        assert_eq!(table.iter().map(|(hop, _)| hop.0).collect::<Vec<_>>(), [4, 5]);
        table.set(NextHop(9), Adjacency::Glean { interface: 2 });
        assert_eq!(CompiledAdjacencies::new(&table, &interfaces).unwrap_err(), (NextHop(9), 2));
    }
}
