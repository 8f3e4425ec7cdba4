//! The routes of one kernel table and family, several to a prefix, in the order in which the kernel tries them.

use std::collections::hash_map::Entry as Slot;

use fullview_table::{Address, NextHop, Prefix};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::{Placement, Selector};
use crate::route::RouteAction;

use super::indices::{BLACKHOLE, BROADCAST, KERNEL, PROHIBIT, UNREACHABLE};
use super::sets::{SetId, Sets};

/// The index that packets of a route get; `None` if the route cannot be used now.
fn next_hop(action: RouteAction<SetId>, sets: &Sets) -> Option<NextHop> {
    match action {
        RouteAction::Forward(id) => sets.index(id),
        RouteAction::Local => Some(KERNEL),
        RouteAction::Broadcast => Some(BROADCAST),
        RouteAction::Blackhole => Some(BLACKHOLE),
        RouteAction::Unreachable => Some(UNREACHABLE),
        RouteAction::Prohibit => Some(PROHIBIT),
        RouteAction::Throw => Some(NextHop::NONE),
    }
}

/// One route to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub metric: u32,
    pub action: RouteAction<SetId>,
    pub selective: Option<Selector>,
    /// The dump that mentioned it last.
    pub dump: u8,
}

impl Entry {
    /// The set of a route that forwards.
    pub fn set(&self) -> Option<SetId> {
        match self.action {
            RouteAction::Forward(id) => Some(id),
            _ => None,
        }
    }

    /// Whether the kernel holds them apart by more than where they lead.
    fn is_beside(&self, other: &Entry) -> bool {
        (self.metric, self.selective) == (other.metric, other.selective)
    }

    /// Whether it is the same route.
    pub fn is(&self, other: &Entry) -> bool {
        self.is_beside(other) && self.action == other.action
    }
}

/// Nearly every prefix has one route.
#[derive(Clone, Debug)]
enum Entries {
    One(Entry),
    Many(Vec<Entry>),
}

impl Entries {
    fn as_slice(&self) -> &[Entry] {
        match self {
            Entries::One(entry) => std::slice::from_ref(entry),
            Entries::Many(entries) => entries,
        }
    }

    fn take(self) -> Vec<Entry> {
        match self {
            Entries::One(entry) => vec![entry],
            Entries::Many(entries) => entries,
        }
    }

    fn place(&mut self, entry: Entry, placement: Placement) -> Option<Entry> {
        let mut entries = self.as_slice().to_vec();
        let gone = place(&mut entries, entry, placement);
        *self = Entries::new(entries)?;
        gone
    }

    /// `None` of none.
    fn new(mut entries: Vec<Entry>) -> Option<Entries> {
        match entries.len() {
            0 | 1 => entries.pop().map(Entries::One),
            _ => Some(Entries::Many(entries)),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Routes<A: Address>(FxHashMap<Prefix<A>, Entries>);

impl<A: Address> Default for Routes<A> {
    fn default() -> Self {
        Routes(FxHashMap::default())
    }
}

impl<A: Address> Routes<A> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn at(&self, prefix: Prefix<A>) -> &[Entry] {
        self.0.get(&prefix).map_or(&[], Entries::as_slice)
    }

    /// Adds a route. What it replaces is returned, for its set to be released: maybe the route itself, told again.
    pub fn add(&mut self, prefix: Prefix<A>, entry: Entry, placement: Placement) -> Option<Entry> {
        match self.0.entry(prefix) {
            Slot::Occupied(mut known) => known.get_mut().place(entry, placement),
            Slot::Vacant(free) => {
                free.insert(Entries::One(entry));
                None
            }
        }
    }

    /// Takes away the first that `is_it`.
    pub fn remove(&mut self, prefix: Prefix<A>, is_it: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut gone = None;
        self.edit(prefix, |entries| {
            gone = entries.iter().position(&is_it).map(|at| entries.remove(at));
        });
        gone
    }

    fn edit(&mut self, prefix: Prefix<A>, edit: impl FnOnce(&mut Vec<Entry>)) {
        let Some(entries) = self.0.remove(&prefix) else { return };
        let mut entries = entries.take();
        edit(&mut entries);
        if let Some(entries) = Entries::new(entries) {
            self.0.insert(prefix, entries);
        }
    }

    /// Where packets to exactly this prefix go; `None` if no route to it can be used. Where the kernel looks at more
    /// than the destination it has to be asked.
    pub fn best(&self, prefix: Prefix<A>, sets: &Sets) -> Option<NextHop> {
        let entries = self.at(prefix);
        if entries.iter().any(|entry| entry.selective.is_some()) {
            return Some(KERNEL);
        }
        entries.iter().find_map(|entry| next_hop(entry.action, sets))
    }

    /// The prefixes that any of these sets serves.
    pub fn using(&self, sets: &FxHashSet<SetId>) -> Vec<Prefix<A>> {
        let uses = |entries: &Entries| {
            entries.as_slice().iter().any(|entry| entry.set().is_some_and(|id| sets.contains(&id)))
        };
        self.0.iter().filter(|(_, entries)| uses(entries)).map(|(prefix, _)| *prefix).collect()
    }

    /// Takes away what `is_gone`, and says from where.
    pub fn sweep(&mut self, is_gone: impl Fn(&Entry) -> bool) -> Vec<(Prefix<A>, Entry)> {
        let stale = |(prefix, entries): (&Prefix<A>, &Entries)| {
            entries.as_slice().iter().any(&is_gone).then_some(*prefix)
        };
        let prefixes: Vec<Prefix<A>> = self.0.iter().filter_map(stale).collect();
        let mut gone = Vec::new();
        for prefix in prefixes {
            self.edit(prefix, |entries| {
                gone.extend(entries.extract_if(.., |entry| is_gone(entry)).map(|entry| (prefix, entry)));
            });
        }
        gone
    }
}

/// Among those of the same metric, as the kernel does it.
fn place(entries: &mut Vec<Entry>, entry: Entry, placement: Placement) -> Option<Entry> {
    if let Some(same) = entries.iter_mut().find(|known| known.is(&entry)) {
        return Some(std::mem::replace(same, entry));
    }
    let beside = entries.iter_mut().find(|known| known.is_beside(&entry));
    if let (Placement::Replace, Some(first)) = (placement, beside) {
        return Some(std::mem::replace(first, entry));
    }
    let at = match placement {
        Placement::Last => entries.iter().position(|known| known.metric > entry.metric),
        _ => entries.iter().position(|known| known.metric >= entry.metric),
    };
    entries.insert(at.unwrap_or(entries.len()), entry);
    None
}
