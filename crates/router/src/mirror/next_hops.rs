//! Next-hop indices, shared by all tables: one for each neighbour, each connected network, and each action that needs
//! no next hop.
//!
//! An index that is released passes three gates before it is used again: its routes are out of the RIB, every FIB has
//! followed (the mirror reports both), and the last view that knew the old meaning is gone. A worker fetches its view
//! before it looks anything up, so a worker with a newer view has a newer FIB.

use std::sync::{Arc, Weak};

use fullview_table::nexthop::TooManyNextHops;
use fullview_table::{NextHop, NextHops, Target};
use rustc_hash::FxHashMap;

use crate::route::{LinkIndex, NextHopVia, RouteAction};
use fullview_plane::view::View;

/// What is done with the packets of one next-hop index.
pub(super) type NextHopAction = RouteAction<NextHopVia<LinkIndex>>;

/// The index of [`RouteAction::Local`]. It exists always, as do those of the other actions without a next hop.
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

pub(super) struct NextHopIndices {
    pub interner: NextHops,
    /// The current view does not know all of them.
    is_new: bool,
    /// By action, and whether only default routes have the index.
    known: FxHashMap<(NextHopAction, bool), NextHop>,
    /// By index; `None` for groups and free indices.
    slots: Vec<Option<Slot>>,
    numbers: u32,
    free: Vec<NextHop>,
    /// Released since the last [`NextHopIndices::take_released`].
    released: Vec<Released>,
    /// Views that workers may still read, by number.
    views: Vec<(u64, Weak<View>)>,
    published: u64,
    /// Released indices, each with the number of the last view that knows them.
    waiting: Vec<(u64, Vec<Released>)>,
}

struct Slot {
    action: NextHopAction,
    is_default: bool,
    references: u32,
    /// Counts releases, to tell one from later ones.
    releases: u32,
}

/// An index that no route uses any more.
#[derive(Clone, Copy)]
pub(super) struct Released {
    index: NextHop,
    release: u32,
}

impl Default for NextHopIndices {
    fn default() -> Self {
        let mut indices = NextHopIndices {
            interner: NextHops::default(),
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

impl NextHopIndices {
    /// The index of an action; the caller gets a reference to it.
    pub fn acquire(&mut self, action: NextHopAction) -> Result<NextHop, TooManyNextHops> {
        self.acquire_as(action, false)
    }

    /// The index that only default routes with this action have.
    pub fn acquire_default(&mut self, action: NextHopAction) -> Result<NextHop, TooManyNextHops> {
        self.acquire_as(action, true)
    }

    fn acquire_as(&mut self, action: NextHopAction, is_default: bool) -> Result<NextHop, TooManyNextHops> {
        let index = match self.known.get(&(action, is_default)) {
            Some(index) => *index,
            None => self.allocate(action, is_default)?,
        };
        if let Some(slot) = self.slot(index) {
            slot.references += 1;
        }
        Ok(index)
    }

    fn allocate(&mut self, action: NextHopAction, is_default: bool) -> Result<NextHop, TooManyNextHops> {
        let index = match self.free.pop() {
            Some(free) => free,
            None => {
                self.numbers += 1;
                self.interner.intern(Target::Number(self.numbers))?
            }
        };
        self.is_new = true;
        self.known.insert((action, is_default), index);
        if self.slots.len() <= index.index() {
            self.slots.resize_with(index.index() + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(index.index()) {
            *slot = Some(Slot { action, is_default, references: 0, releases: 0 });
        }
        Ok(index)
    }

    /// Gives a reference back.
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

    /// The index of an action, if it has one.
    pub fn get(&self, action: NextHopAction) -> Option<NextHop> {
        self.known.get(&(action, false)).copied()
    }

    /// The index that only default routes with this action have, if there is one.
    pub fn get_default(&self, action: NextHopAction) -> Option<NextHop> {
        self.known.get(&(action, true)).copied()
    }

    /// What is done with packets of an index.
    pub fn action(&self, index: NextHop) -> Option<NextHopAction> {
        self.slots.get(index.index())?.as_ref().map(|slot| slot.action)
    }

    /// Every index in use, even if only a worker with an old view uses it.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, NextHopAction)> + '_ {
        self.known.iter().map(|((action, _), index)| (*index, *action))
    }

    /// The indices that only default routes have.
    pub fn of_default_routes(&self) -> impl Iterator<Item = NextHop> + '_ {
        self.known.iter().filter(|((_, is_default), _)| *is_default).map(|(_, index)| *index)
    }

    /// Has the next view made, though no index is new: a group of default routes is, or no longer exists.
    pub fn want_view(&mut self) {
        self.is_new = true;
    }

    /// The indices released since the last call. The caller retires them when all FIBs have followed.
    pub fn take_released(&mut self) -> Vec<Released> {
        std::mem::take(&mut self.released)
    }

    /// Workers read this view from now on.
    pub fn published(&mut self, view: &Arc<View>) {
        self.views.retain(|(_, view)| view.strong_count() > 0);
        self.published += 1;
        self.views.push((self.published, Arc::downgrade(view)));
    }

    /// The number of the view that workers read from now on.
    pub fn current_view(&self) -> u64 {
        self.published
    }

    /// Whether a worker may read the view with this number, or one before it.
    pub fn is_read(&self, number: u64) -> bool {
        self.views.iter().any(|(view, readers)| *view <= number && readers.strong_count() > 0)
    }

    /// All FIBs have followed; every view published so far may still know these indices.
    pub fn retire(&mut self, released: Vec<Released>) {
        self.waiting.push((self.published, released));
    }

    /// Whether an index was allocated since the last call.
    pub fn take_is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Whether an index waits for the current view to be replaced.
    pub fn wants_view(&self) -> bool {
        self.waiting.iter().any(|(last, _)| *last == self.published)
    }

    /// How many indices can be given out.
    pub fn room(&self) -> usize {
        self.free.len() + usize::from(NextHop::MAX).saturating_sub(self.interner.len())
    }

    /// Frees the indices that no view knows any more.
    pub fn reclaim(&mut self) {
        self.views.retain(|(_, view)| view.strong_count() > 0);
        let oldest = self.views.first().map_or(u64::MAX, |(number, _)| *number);
        let waiting = std::mem::take(&mut self.waiting);
        let (gone, waiting) = waiting.into_iter().partition(|(last, _)| *last < oldest);
        self.waiting = waiting;
        let gone: Vec<(u64, Vec<Released>)> = gone;
        gone.iter().flat_map(|(_, released)| released).for_each(|released| self.free(*released));
    }

    /// Frees an index, unless it was acquired again meanwhile.
    fn free(&mut self, Released { index, release }: Released) {
        let Some(slot) = self.slots.get_mut(index.index()) else { return };
        if let Some(slot) = slot.take_if(|slot| slot.references == 0 && slot.releases == release) {
            self.known.remove(&(slot.action, slot.is_default));
            self.free.push(index);
        }
    }
}
