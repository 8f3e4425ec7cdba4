//! What a next hop means on its link: the port, and the Ethernet header to write.

use fullview_table::NextHop;

use crate::burst::FRAME_CAPACITY;
use crate::wire::ethernet::{HEADER, Mac, TAG};

/// The longest packet a slot can hold behind a tagged Ethernet header, in bytes.
pub const MAX_MTU: u16 = (FRAME_CAPACITY - HEADER - TAG) as u16;

/// How to reach one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjacency {
    /// The port to leave by.
    pub port: u16,
    /// That port's MAC address.
    pub source: Mac,
    /// The neighbour's MAC address.
    pub destination: Mac,
    /// The longest IP packet the link takes, in bytes; [`MAX_MTU`] at most.
    pub mtu: u16,
    /// The VLAN the link is, 1 to 4094; `None` sends without a tag.
    pub vlan: Option<u16>,
}

/// An adjacency that no frame could be written for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdjacencyError {
    /// Packet memory cannot hold such packets.
    #[error("next hop {hop}: an MTU of {mtu} bytes is not possible; choose 1 to {}", MAX_MTU)]
    Mtu {
        /// Of which next hop.
        hop: u16,
        /// What was asked for.
        mtu: u16,
    },
    /// VLAN numbers go from 1 to 4094.
    #[error("next hop {hop}: VLAN {vlan} does not exist; choose 1 to 4094")]
    Vlan {
        /// Of which next hop.
        hop: u16,
        /// What was asked for.
        vlan: u16,
    },
    /// There is no such port.
    #[error("next hop {hop} leaves by port {port}, but there are only {ports} ports, numbered from 0")]
    Port {
        /// Of which next hop.
        hop: usize,
        /// What was asked for.
        port: u16,
        /// How many there are.
        ports: usize,
    },
}

/// What a next hop index leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing is known.
    Missing,
    /// This router.
    Local,
    /// Another station.
    Neighbor,
}

/// An adjacency as the rewrite needs it: 20 bytes, so that dozens of neighbours stay in the first-level cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Destination and source, as they stand at the head of the frame.
    pub macs: [u8; 12],
    pub port: u16,
    /// 0 unless this is a neighbour: the length check alone then sends every exception to the slow path.
    pub mtu: u16,
    /// 0 sends without a tag.
    pub vlan: u16,
    pub kind: Kind,
}

impl Entry {
    const MISSING: Entry = Entry { macs: [0; 12], port: 0, mtu: 0, vlan: 0, kind: Kind::Missing };
    const LOCAL: Entry = Entry { kind: Kind::Local, ..Entry::MISSING };

    fn new(adjacency: &Adjacency) -> Entry {
        let mut macs = [0; 12];
        macs[..6].copy_from_slice(&adjacency.destination.0);
        macs[6..].copy_from_slice(&adjacency.source.0);
        let vlan = adjacency.vlan.unwrap_or(0);
        Entry { macs, port: adjacency.port, mtu: adjacency.mtu, vlan, kind: Kind::Neighbor }
    }
}

/// The adjacencies of all next hops, by index.
#[derive(Clone, Debug, Default)]
pub struct Adjacencies {
    entries: Vec<Entry>,
}

impl Adjacencies {
    /// None yet.
    pub fn new() -> Adjacencies {
        Adjacencies::default()
    }

    /// Sets how a next hop is reached.
    pub fn set(&mut self, hop: NextHop, adjacency: &Adjacency) -> Result<(), AdjacencyError> {
        let (mtu, vlan) = (adjacency.mtu, adjacency.vlan.unwrap_or(1));
        if !(1..=MAX_MTU).contains(&mtu) {
            return Err(AdjacencyError::Mtu { hop: hop.0, mtu });
        }
        if !(1..=4094).contains(&vlan) {
            return Err(AdjacencyError::Vlan { hop: hop.0, vlan });
        }
        *self.entry(hop) = Entry::new(adjacency);
        Ok(())
    }

    /// Makes a next hop stand for this router: its packets are punted.
    pub fn set_local(&mut self, hop: NextHop) {
        *self.entry(hop) = Entry::LOCAL;
    }

    /// Forgets how a next hop is reached.
    pub fn remove(&mut self, hop: NextHop) {
        *self.entry(hop) = Entry::MISSING;
    }

    /// `Ok` if every adjacency leaves by one of the first `ports` ports.
    pub fn check_ports(&self, ports: usize) -> Result<(), AdjacencyError> {
        let stray = self.entries.iter().position(|entry| usize::from(entry.port) >= ports.max(1));
        stray.map_or(Ok(()), |hop| Err(AdjacencyError::Port { hop, port: self.entries[hop].port, ports }))
    }

    #[inline(always)]
    pub(crate) fn get(&self, hop: NextHop) -> &Entry {
        self.entries.get(hop.index()).unwrap_or(&Entry::MISSING)
    }

    fn entry(&mut self, hop: NextHop) -> &mut Entry {
        if self.entries.len() <= hop.index() {
            self.entries.resize(hop.index() + 1, Entry::MISSING);
        }
        &mut self.entries[hop.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Adjacency =
        Adjacency { port: 3, source: Mac([2; 6]), destination: Mac([4; 6]), mtu: 1500, vlan: None };

    #[test]
    fn entries_hold_what_the_frame_needs() {
        let mut table = Adjacencies::new();
        table.set(NextHop(2), &LINK).unwrap();
        let entry = table.get(NextHop(2));
        assert_eq!((entry.macs, entry.port, entry.mtu), ([4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2], 3, 1500));
        for hop in [0, 1, 3, 60_000] {
            assert_eq!(table.get(NextHop(hop)).kind, Kind::Missing);
        }
        table.remove(NextHop(2));
        assert_eq!(table.get(NextHop(2)).kind, Kind::Missing);
    }

    #[test]
    fn impossible_links_are_refused() {
        let mut table = Adjacencies::new();
        let refused = |table: &mut Adjacencies, link| table.set(NextHop(1), &link).unwrap_err();
        assert_eq!(refused(&mut table, Adjacency { mtu: 0, ..LINK }), AdjacencyError::Mtu { hop: 1, mtu: 0 });
        let long = Adjacency { mtu: MAX_MTU + 1, ..LINK };
        assert!(matches!(refused(&mut table, long), AdjacencyError::Mtu { .. }));
        for vlan in [0, 4095] {
            let error = refused(&mut table, Adjacency { vlan: Some(vlan), ..LINK });
            assert_eq!(error, AdjacencyError::Vlan { hop: 1, vlan });
        }
        table.set(NextHop(1), &LINK).unwrap();
        assert_eq!(table.check_ports(3), Err(AdjacencyError::Port { hop: 1, port: 3, ports: 3 }));
        assert_eq!(table.check_ports(4), Ok(()));
    }
}
