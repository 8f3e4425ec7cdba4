//! What a next hop means: a station on a link and the Ethernet header to write, or something else than a way out.

use fullview_table::{Family, NextHop};

use crate::burst::FRAME_CAPACITY;
use crate::interface::Interface;
use crate::wire::ethernet::{HEADER, Mac, TAG};

/// The longest packet a slot can hold behind a tagged Ethernet header, in bytes.
pub const MAX_MTU: u16 = (FRAME_CAPACITY - HEADER - TAG) as u16;

/// What a next hop leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjacency {
    /// A station whose link address is known.
    Neighbor {
        /// The interface to leave by.
        interface: u16,
        /// The station's MAC address.
        mac: Mac,
    },
    /// A station whose link address is not known yet: a connected network as a whole, or a gateway. Punted.
    Glean {
        /// The interface of its link.
        interface: u16,
    },
    /// This router. Punted.
    Local,
    /// The broadcast address of a connected network. Punted if the frame was a broadcast too, else dropped.
    Broadcast,
    /// Dropped, and nobody is told.
    Blackhole,
    /// Dropped: cannot be reached.
    Unreachable,
    /// Dropped: not allowed.
    Prohibit,
}

/// The adjacencies of all next hops, by index, of all tables and both families.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjacencies(Vec<Option<Adjacency>>);

impl Adjacencies {
    /// None yet.
    pub fn new() -> Adjacencies {
        Adjacencies::default()
    }

    /// Sets what a next hop leads to.
    pub fn set(&mut self, hop: NextHop, adjacency: Adjacency) {
        if self.0.len() <= hop.index() {
            self.0.resize(hop.index() + 1, None);
        }
        self.0[hop.index()] = Some(adjacency);
    }

    /// Forgets what a next hop leads to.
    pub fn remove(&mut self, hop: NextHop) {
        if let Some(adjacency) = self.0.get_mut(hop.index()) {
            *adjacency = None;
        }
    }

    /// What a next hop leads to, if that is known.
    pub fn get(&self, hop: NextHop) -> Option<Adjacency> {
        *self.0.get(hop.index())?
    }

    /// The next hops that lead somewhere, and where.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, Adjacency)> + '_ {
        let numbered = (0..=NextHop::MAX).map(NextHop).zip(&self.0);
        numbered.filter_map(|(hop, adjacency)| adjacency.map(|adjacency| (hop, adjacency)))
    }
}

/// What a next hop index leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdjacencyKind {
    /// Nothing is known.
    Missing,
    Neighbor,
    /// A neighbour or its network, by way of an interface that is down.
    Down,
    Glean,
    Local,
    Broadcast,
    Blackhole,
    Unreachable,
    Prohibit,
}

/// An adjacency as the rewrite needs it: half a cache line, so that hundreds of neighbours stay in the first-level cache
/// and none lies in two lines. Port and interface stand together here as they do in a slot, to be copied at once.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct CompiledAdjacency {
    /// Destination and source, as they stand at the head of the frame.
    pub macs: [u8; 12],
    pub port: u16,
    /// The interface of a neighbour or a network; [`NO_INTERFACE`] otherwise.
    pub interface: u16,
    /// 0 unless this is a neighbour: the length check alone then sends every exception to the slow path.
    pub mtu: u16,
    /// The same for IPv6.
    pub mtu6: u16,
    /// 0 sends without a tag.
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

    /// Compiles an adjacency; the error is the interface that it names and that does not exist.
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
    /// Compiles all of them; the error names a next hop and the interface it asks for in vain.
    pub fn new(
        adjacencies: &Adjacencies,
        interfaces: &[Interface],
    ) -> Result<CompiledAdjacencies, (NextHop, u16)> {
        let mut entries = vec![CompiledAdjacency::MISSING; adjacencies.0.len()];
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
    fn entries_hold_what_the_frame_needs() {
        let down = Interface { up: false, ..Interface::new(2, Mac([6; 6])) };
        let interfaces = [
            Interface { vlan: Some(7), mtu: 65_536, mtu6: Some(1400), ..Interface::new(3, Mac([2; 6])) },
            down,
        ];
        let mut table = Adjacencies::new();
        table.set(NextHop(2), Adjacency::Neighbor { interface: 0, mac: Mac([4; 6]) });
        table.set(NextHop(4), Adjacency::Neighbor { interface: 1, mac: Mac([4; 6]) });
        table.set(NextHop(5), Adjacency::Prohibit);
        let entries = CompiledAdjacencies::new(&table, &interfaces).unwrap();
        let entry = entries.get(NextHop(2));
        assert_eq!((entry.macs, entry.port, entry.vlan), ([4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2], 3, 7));
        assert_eq!((entry.mtu, entry.mtu6, entry.interface), (MAX_MTU, 1400, 0));
        let kinds = [0, 1, 4, 5, 60_000].map(|hop| entries.get(NextHop(hop)).kind);
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
