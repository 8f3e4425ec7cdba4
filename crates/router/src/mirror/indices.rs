//! Next-hop indices: one for each station, network and way to end, shared by all tables, used again when nobody can
//! meet the old meaning any more.
//!
//! An index given up passes three gates before it means something else: its routes are out of the RIB, every FIB has
//! followed (both for the mirror to say), and the last view from before is gone. A worker fetches its view before it
//! looks anything up, so one with a later view has a later FIB.

use std::sync::{Arc, Weak};

use fullview_table::nexthop::TooManyNextHops;
use fullview_table::{NextHop, NextHops, Target};
use rustc_hash::FxHashMap;

use crate::route::{LinkIndex, NextHopVia, RouteAction};
use fullview_plane::view::View;

/// What the router does with the packets of one next-hop index.
pub(super) type NextHopAction = RouteAction<NextHopVia<LinkIndex>>;

/// Those that are always there.
pub(super) const KERNEL: NextHop = NextHop(1);
pub(super) const BROADCAST: NextHop = NextHop(2);
pub(super) const BLACKHOLE: NextHop = NextHop(3);
pub(super) const UNREACHABLE: NextHop = NextHop(4);
pub(super) const PROHIBIT: NextHop = NextHop(5);
const FIXED: [NextHopAction; 5] = [
    RouteAction::Local,
    RouteAction::Broadcast,
    RouteAction::Blackhole,
    RouteAction::Unreachable,
    RouteAction::Prohibit,
];

pub(super) struct Indices {
    pub next_hops: NextHops,
    /// Views do not know all of them yet.
    pub is_new: bool,
    known: FxHashMap<NextHopAction, NextHop>,
    /// By index; `None` for groups and what is free.
    slots: Vec<Option<Slot>>,
    numbers: u32,
    free: Vec<NextHop>,
    /// Given up since the last [`Indices::released`].
    released: Vec<Released>,
    /// Views that somebody may still read, by number.
    views: Vec<(u64, Weak<View>)>,
    published: u64,
    /// Waiting for the last view that knows them.
    waiting: Vec<(u64, Vec<Released>)>,
}

struct Slot {
    action: NextHopAction,
    references: u32,
    /// Tells this release from later ones.
    releases: u32,
}

/// An index that was given up.
#[derive(Clone, Copy)]
pub(super) struct Released {
    index: NextHop,
    release: u32,
}

impl Default for Indices {
    fn default() -> Self {
        let mut indices = Indices {
            next_hops: NextHops::default(),
            is_new: false,
            known: FxHashMap::default(),
            slots: Vec::new(),
            numbers: 0,
            free: Vec::new(),
            released: Vec::new(),
            views: Vec::new(),
            published: 0,
            waiting: Vec::new(),
        };
        for action in FIXED {
            // The first five of 65,534 indices.
            let _ = indices.acquire(action);
        }
        indices
    }
}

impl Indices {
    /// The index of `action`, with one reference more.
    pub fn acquire(&mut self, action: NextHopAction) -> Result<NextHop, TooManyNextHops> {
        let index = match self.known.get(&action) {
            Some(index) => *index,
            None => self.begin(action)?,
        };
        if let Some(slot) = self.slot(index) {
            slot.references += 1;
        }
        Ok(index)
    }

    fn begin(&mut self, action: NextHopAction) -> Result<NextHop, TooManyNextHops> {
        let index = match self.free.pop() {
            Some(free) => free,
            None => {
                self.numbers += 1;
                self.next_hops.intern(Target::Number(self.numbers))?
            }
        };
        self.is_new = true;
        self.known.insert(action, index);
        if self.slots.len() <= index.index() {
            self.slots.resize_with(index.index() + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(index.index()) {
            *slot = Some(Slot { action, references: 0, releases: 0 });
        }
        Ok(index)
    }

    /// One reference less.
    pub fn release(&mut self, index: NextHop) {
        let Some(slot) = self.slot(index) else { return };
        slot.references -= 1;
        if slot.references == 0 {
            slot.releases += 1;
            let release = slot.releases;
            self.released.push(Released { index, release });
        }
    }

    fn slot(&mut self, index: NextHop) -> Option<&mut Slot> {
        self.slots.get_mut(index.index())?.as_mut()
    }

    /// The index of `action`, if it has one.
    pub fn get(&self, action: NextHopAction) -> Option<NextHop> {
        self.known.get(&action).copied()
    }

    /// What an index means.
    pub fn action(&self, index: NextHop) -> Option<NextHopAction> {
        self.slots.get(index.index())?.as_ref().map(|slot| slot.action)
    }

    /// Every index that means something, even to nobody but a worker that lags behind.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, NextHopAction)> + '_ {
        self.known.iter().map(|(action, index)| (*index, *action))
    }

    /// Those given up since this was last asked, for whom to wait until all FIBs have followed.
    pub fn released(&mut self) -> Vec<Released> {
        std::mem::take(&mut self.released)
    }

    /// A view that readers have from now on.
    pub fn published(&mut self, view: &Arc<View>) {
        self.views.retain(|(_, view)| view.strong_count() > 0);
        self.published += 1;
        self.views.push((self.published, Arc::downgrade(view)));
    }

    /// All FIBs have followed. Every view published so far may still know them.
    pub fn retire(&mut self, released: Vec<Released>) {
        self.waiting.push((self.published, released));
    }

    /// Whether something waits for views that are not all replaced.
    pub fn wants_view(&self) -> bool {
        self.waiting.iter().any(|(last, _)| *last == self.published)
    }

    /// Frees what no view knows any more.
    pub fn reclaim(&mut self) {
        self.views.retain(|(_, view)| view.strong_count() > 0);
        let oldest = self.views.first().map_or(u64::MAX, |(number, _)| *number);
        let waiting = std::mem::take(&mut self.waiting);
        let (gone, waiting) = waiting.into_iter().partition(|(last, _)| *last < oldest);
        self.waiting = waiting;
        let gone: Vec<(u64, Vec<Released>)> = gone;
        gone.iter().flat_map(|(_, released)| released).for_each(|released| self.end(*released));
    }

    /// Unless it was taken up again meanwhile.
    fn end(&mut self, Released { index, release }: Released) {
        let Some(slot) = self.slots.get_mut(index.index()) else { return };
        if let Some(slot) = slot.take_if(|slot| slot.references == 0 && slot.releases == release) {
            self.known.remove(&slot.action);
            self.free.push(index);
        }
    }
}
