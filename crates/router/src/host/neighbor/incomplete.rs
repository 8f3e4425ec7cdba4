//! The unresolved neighbours, by interface and age.

use std::collections::BTreeMap;

use super::id::NeighborId;

/// The unresolved neighbours of each interface, in the order in which their resolutions began.
pub(super) struct IncompleteNeighbors {
    links: Vec<BTreeMap<u64, NeighborId>>,
    count: usize,
    next_serial: u64,
}

impl IncompleteNeighbors {
    pub fn new(interfaces: usize) -> IncompleteNeighbors {
        IncompleteNeighbors { links: vec![BTreeMap::new(); interfaces], count: 0, next_serial: 0 }
    }

    /// Makes room for at least this many interfaces.
    pub fn grow(&mut self, interfaces: usize) {
        self.links.resize(interfaces.max(self.links.len()), BTreeMap::new());
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a neighbour. Returns the serial number by which it is removed.
    pub fn add(&mut self, id: NeighborId) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        if let Some(link) = self.links.get_mut(usize::from(id.interface)) {
            link.insert(serial, id);
            self.count += 1;
        }
        serial
    }

    pub fn remove(&mut self, interface: u16, serial: u64) {
        let link = self.links.get_mut(usize::from(interface));
        self.count -= usize::from(link.is_some_and(|link| link.remove(&serial).is_some()));
    }

    /// The oldest neighbour of the interface that has most. An interface whose stations ask for many neighbours so makes
    /// room for the others, and not the reverse.
    pub fn oldest_of_fullest(&self) -> Option<NeighborId> {
        let fullest = self.links.iter().max_by_key(|link| link.len())?;
        fullest.first_key_value().map(|(_, id)| *id)
    }
}
