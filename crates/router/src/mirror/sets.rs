//! Sets of next hops, shared by all routes that name the same ones: a million routes by one gateway are one set.
//!
//! A set of one hop has that hop's index; others have a group of their own, whose members change with links and
//! objects while its index, and so every route that uses it, stays.

use fullview_table::NextHop;
use fullview_table::group::{GroupError, Groups, Member};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::NextHopObject;
use crate::route::{HopSet, LinkIndex, NextHopVia, RouteAction, RouteHop};

use super::indices::{Indices, KERNEL, NextHopAction};
use super::links::{Links, State};

/// The number of a set.
pub(super) type SetId = u32;

#[derive(Default)]
pub(super) struct Sets {
    pub indices: Indices,
    pub groups: Groups,
    objects: FxHashMap<u32, Known>,
    sets: Vec<Set>,
    ids: FxHashMap<HopSet, SetId>,
    free: Vec<SetId>,
    /// Groups given up since the last [`Sets::released_groups`].
    released: Vec<NextHop>,
    /// Groups are otherwise than readers see them.
    pub groups_changed: bool,
    /// Sets that could not be had as they are, and why: their packets are the kernel's.
    pub notes: Vec<String>,
}

/// A next-hop object.
struct Known {
    object: NextHopObject,
    /// Whether the last dump had it.
    seen: bool,
}

struct Set {
    key: HopSet,
    references: u32,
    /// What routes lead to; `None` as long as no hop can be used.
    index: Option<NextHop>,
    group: Option<NextHop>,
    /// One reference each.
    members: Vec<NextHop>,
}

impl Sets {
    /// The set with this key, with one reference more.
    pub fn acquire(&mut self, key: HopSet, links: &Links) -> SetId {
        let known = self.ids.get(&key).copied();
        let id = known.unwrap_or_else(|| self.begin(key, links));
        if let Some(set) = self.set(id) {
            set.references += 1;
        }
        id
    }

    fn begin(&mut self, key: HopSet, links: &Links) -> SetId {
        let set = Set { key: key.clone(), references: 0, index: None, group: None, members: Vec::new() };
        let id = self.free.pop().unwrap_or(self.sets.len() as SetId);
        match self.set(id) {
            Some(free) => *free = set,
            None => self.sets.push(set),
        }
        self.ids.insert(key, id);
        self.refresh(id, links);
        id
    }

    /// One reference less.
    pub fn release(&mut self, id: SetId) {
        let Some(set) = self.set(id) else { return };
        set.references -= 1;
        if set.references > 0 {
            return;
        }
        let (key, group, members) = (set.key.clone(), set.group.take(), std::mem::take(&mut set.members));
        self.ids.remove(&key);
        self.free.push(id);
        self.released.extend(group);
        members.into_iter().for_each(|member| self.indices.release(member));
    }

    fn set(&mut self, id: SetId) -> Option<&mut Set> {
        self.sets.get_mut(id as usize)
    }

    /// Where routes with this set lead; `None` if none of its hops can be used.
    pub fn index(&self, id: SetId) -> Option<NextHop> {
        self.sets.get(id as usize)?.index
    }

    /// The hops that a set was made of; `None` for an object.
    pub fn hops(&self, id: SetId) -> Option<&[RouteHop]> {
        match &self.sets.get(id as usize)?.key {
            HopSet::Hops(hops) => Some(hops),
            HopSet::Object(_) | HopSet::ObjectWithMtu(_) => None,
        }
    }

    /// Whether the kernel said of any hop by this link that it does not use it.
    pub fn has_dead_by(&self, link: LinkIndex) -> bool {
        let is_dead = |hop: &RouteHop| hop.link == link && hop.dead;
        self.ids.keys().any(|key| matches!(key, HopSet::Hops(hops) if hops.iter().any(is_dead)))
    }

    /// The object that a set is.
    pub fn object(&self, id: SetId) -> Option<u32> {
        match self.sets.get(id as usize)?.key {
            HopSet::Object(object) | HopSet::ObjectWithMtu(object) => Some(object),
            HopSet::Hops(_) => None,
        }
    }

    /// Takes what is known about an object; returns whether anything changed.
    pub fn set_object(&mut self, id: u32, object: NextHopObject) -> bool {
        let before = self.objects.insert(id, Known { object: object.clone(), seen: true });
        before.is_none_or(|before| before.object != object)
    }

    /// Returns whether it was known.
    pub fn remove_object(&mut self, id: u32) -> bool {
        self.objects.remove(&id).is_some()
    }

    /// Before a dump of objects.
    pub fn mark(&mut self) {
        self.objects.values_mut().for_each(|known| known.seen = false);
    }

    /// After a dump: the objects it did not mention.
    pub fn unseen(&self) -> Vec<u32> {
        self.objects.iter().filter(|(_, known)| !known.seen).map(|(id, _)| *id).collect()
    }

    /// Looks at all sets again after links or objects have changed. Returns those whose routes lead elsewhere now.
    pub fn refresh_all(&mut self, links: &Links) -> FxHashSet<SetId> {
        let used = |(id, set): (SetId, &Set)| (set.references > 0).then_some(id);
        let used: Vec<SetId> = (0..).zip(&self.sets).filter_map(used).collect();
        used.into_iter().filter(|id| self.refresh(*id, links)).collect()
    }

    /// Returns whether its routes lead elsewhere now.
    fn refresh(&mut self, id: SetId, links: &Links) -> bool {
        let Some(set) = self.sets.get(id as usize) else { return false };
        let ways = self.ways(&set.key, links);
        let alone = match &set.key {
            HopSet::Hops(hops) => hops.len() == 1,
            HopSet::Object(_) => false,
            HopSet::ObjectWithMtu(_) => true,
        };
        let (before, group, old) = (set.index, set.group, set.members.clone());
        // New references first, so that what stays is never without one.
        let members = self.members(&ways);
        let (index, group) = match members.first() {
            None => (None, group),
            Some(only) if alone => (Some(only.next_hop), None),
            Some(_) => self.grouped(group, &members),
        };
        let held = members.iter().map(|member| member.next_hop).collect();
        if let Some(set) = self.set(id) {
            (set.index, set.group, set.members) = (index, group, held);
        }
        old.into_iter().for_each(|member| self.indices.release(member));
        index != before
    }

    /// A group that cannot be had is the kernel's to serve.
    fn grouped(&mut self, group: Option<NextHop>, members: &[Member]) -> (Option<NextHop>, Option<NextHop>) {
        match self.group(group, members) {
            Ok(index) => (Some(index), Some(index)),
            Err(error) => {
                self.notes.push(format!("a next-hop group is left to the kernel: {error}"));
                (Some(KERNEL), group)
            }
        }
    }

    fn group(&mut self, group: Option<NextHop>, members: &[Member]) -> Result<NextHop, GroupError> {
        let Some(index) = group else {
            self.groups_changed = true;
            return self.groups.create(&mut self.indices.next_hops, members);
        };
        let mut ordered = members.to_vec();
        ordered.sort_unstable();
        if self.groups.members(index) != Some(&ordered) {
            self.groups.change(&self.indices.next_hops, index, members)?;
            self.groups_changed = true;
        }
        Ok(index)
    }

    /// Each with a reference; those that are the same next hop together.
    fn members(&mut self, ways: &[(NextHopAction, u16)]) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for (via, weight) in ways {
            let next_hop = self.indices.acquire(*via).unwrap_or_else(|error| {
                self.notes.push(format!("a next hop is left to the kernel: {error}"));
                self.kernel()
            });
            match members.iter_mut().find(|member| member.next_hop == next_hop) {
                Some(member) => {
                    member.weight = member.weight.saturating_add(*weight);
                    self.indices.release(next_hop);
                }
                None => members.push(Member { next_hop, weight: *weight }),
            }
        }
        members
    }

    /// One of the five that are always there, with a reference.
    fn kernel(&mut self) -> NextHop {
        self.indices.acquire(RouteAction::Local).unwrap_or(KERNEL)
    }

    /// The hops that can be used. Without any a carrier that is missing leaves the packets to the kernel, which keeps
    /// such routes or not as it was told to.
    fn ways(&self, key: &HopSet, links: &Links) -> Vec<(NextHopAction, u16)> {
        let all = match key {
            HopSet::Hops(hops) => hops.iter().map(|hop| (way(hop, links), hop.weight)).collect(),
            HopSet::Object(id) => self.object_ways(*id, 1, links, true),
            HopSet::ObjectWithMtu(_) => vec![(Way::Usable(RouteAction::Local), 1)],
        };
        let used = |(way, weight): &(Way, u16)| match way {
            Way::Usable(via) => Some((*via, *weight)),
            Way::NoCarrier | Way::Dead => None,
        };
        let usable: Vec<(NextHopAction, u16)> = all.iter().filter_map(used).collect();
        if usable.is_empty() && all.iter().any(|(way, _)| *way == Way::NoCarrier) {
            return vec![(RouteAction::Local, 1)];
        }
        usable
    }

    /// Groups of objects do not nest. One that is not known yet is known to the kernel.
    fn object_ways(&self, id: u32, weight: u16, links: &Links, may_be_group: bool) -> Vec<(Way, u16)> {
        match self.objects.get(&id).map(|known| &known.object) {
            Some(NextHopObject::Single(action)) => {
                let way = match action {
                    RouteAction::Forward(hop) => way(hop, links),
                    other => Way::Usable(other.map(|_| NextHopVia { link: 0, neighbor: None })),
                };
                vec![(way, weight)]
            }
            Some(NextHopObject::Group(members)) if may_be_group => {
                let of = |(id, weight): &(u32, u16)| self.object_ways(*id, *weight, links, false);
                members.iter().flat_map(of).collect()
            }
            Some(NextHopObject::Group(_)) | None => vec![(Way::Usable(RouteAction::Local), weight)],
        }
    }

    /// Groups given up since this was last asked.
    pub fn released_groups(&mut self) -> Vec<NextHop> {
        std::mem::take(&mut self.released)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Usable(NextHopAction),
    NoCarrier,
    Dead,
}

fn way(hop: &RouteHop, links: &Links) -> Way {
    let mtu = links.get(hop.link).map_or(0, |link| link.mtu);
    let lesser_mtu = hop.mtu.is_some_and(|of_route| of_route < mtu);
    match links.state(hop.link) {
        State::Foreign => Way::Usable(RouteAction::Local),
        State::Down => Way::Dead,
        _ if hop.dead => Way::Dead,
        State::NoCarrier => Way::NoCarrier,
        State::Up if hop.encapsulated || lesser_mtu => Way::Usable(RouteAction::Local),
        State::Up => Way::Usable(RouteAction::Forward(NextHopVia { link: hop.link, neighbor: hop.gateway })),
    }
}
