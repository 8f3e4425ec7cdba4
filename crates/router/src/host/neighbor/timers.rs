//! The timers of the neighbours.

use std::collections::BTreeSet;
use std::time::Duration;

use super::id::NeighborId;

/// When neighbours need attention, in the order of time: of all interfaces, and of each of them.
pub(super) struct NeighborTimers {
    all: BTreeSet<(Duration, NeighborId)>,
    links: Vec<BTreeSet<(Duration, NeighborId)>>,
}

impl NeighborTimers {
    pub fn new(interfaces: usize) -> NeighborTimers {
        NeighborTimers { all: BTreeSet::new(), links: vec![BTreeSet::new(); interfaces] }
    }

    /// Makes room for at least this many interfaces.
    pub fn grow(&mut self, interfaces: usize) {
        self.links.resize(interfaces.max(self.links.len()), BTreeSet::new());
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn first(&self) -> Option<(Duration, NeighborId)> {
        self.all.first().copied()
    }

    /// The neighbours, those with the earliest timers first.
    pub fn neighbors(&self) -> impl Iterator<Item = NeighborId> + '_ {
        self.all.iter().map(|(_, id)| *id)
    }

    /// The neighbours of the interface that has most, those with the earliest timers first.
    pub fn of_fullest(&self) -> impl Iterator<Item = NeighborId> + '_ {
        let fullest = self.links.iter().max_by_key(|link| link.len());
        fullest.into_iter().flatten().map(|(_, id)| *id)
    }

    pub fn insert(&mut self, at: Duration, id: NeighborId) {
        self.all.insert((at, id));
        let link = self.links.get_mut(usize::from(id.interface));
        link.into_iter().for_each(|link| _ = link.insert((at, id)));
    }

    pub fn remove(&mut self, at: Duration, id: NeighborId) {
        self.all.remove(&(at, id));
        let link = self.links.get_mut(usize::from(id.interface));
        link.into_iter().for_each(|link| _ = link.remove(&(at, id)));
    }
}
