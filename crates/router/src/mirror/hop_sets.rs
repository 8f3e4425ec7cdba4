//! Sets of next hops, shared by all routes that name the same ones: a million routes by one gateway are one set.
//!
//! A set of one hop has that hop's index. Other sets have a group of their own: its members change with links and
//! objects, while its index, and so every route that uses it, stays.

use std::collections::BTreeSet;
use std::mem::{Discriminant, discriminant};

use fullview_table::group::{GroupError, Groups, Member};
use fullview_table::{Family, NextHop};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::NextHopObject;
use crate::route::{HopSet, LinkIndex, NextHopVia, RouteAction, RouteHop};

use super::links::{LinkState, LinkTable};
use super::next_hops::{BLACKHOLE, KERNEL, NextHopAction, NextHopIndices, Released};

/// The number of a set.
pub(super) type SetId = u32;

#[derive(Default)]
pub(super) struct HopSets {
    pub next_hops: NextHopIndices,
    pub groups: Groups,
    objects: FxHashMap<u32, KnownObject>,
    sets: Vec<StoredSet>,
    ids: FxHashMap<SetKey, SetId>,
    free: Vec<SetId>,
    /// Groups released since the last [`HopSets::take_released_groups`].
    released: Vec<NextHop>,
    /// Readers do not see all changes of groups yet.
    groups_changed: bool,
    /// The families in which the packets of several next hops are left to the kernel.
    left: BTreeSet<Family>,
    /// Whether a group that readers see has several members.
    has_several: bool,
    /// Routes are left to the kernel for want of a group.
    lacks_group: bool,
    /// The least number of indices of next hops with which a route or neighbour need not be left to the kernel any more.
    lacking_next_hops: Option<usize>,
    /// What could not be done as the kernel does it, for the log: the kernel forwards these packets.
    pub warnings: Vec<String>,
    /// Of what there is a warning already: the same groups and next hops fail again whenever links or objects change.
    warned: FxHashSet<Discriminant<GroupError>>,
}

struct KnownObject {
    object: NextHopObject,
    /// Whether the last dump listed it.
    seen: bool,
}

impl KnownObject {
    /// Takes a member from a group; returns false if it was the last.
    fn loses(&mut self, id: u32) -> bool {
        let NextHopObject::Group(members) = &mut self.object else { return true };
        let before = members.len();
        members.retain(|(member, _)| *member != id);
        before == members.len() || !members.is_empty()
    }
}

/// What routes with the same set have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SetKey {
    pub hops: HopSet,
    /// The kernel may share the flows of one family in another way than those of the other one.
    pub family: Family,
    /// Default routes have sets and next hops of their own, because a rule of policy routing may not count them.
    pub is_default: bool,
}

struct StoredSet {
    key: SetKey,
    references: u32,
    /// The index that its routes have; `None` while no hop can be used.
    index: Option<NextHop>,
    group: Option<NextHop>,
    /// The set holds one reference to each.
    members: Vec<NextHop>,
}

impl HopSets {
    /// The number of a set; the caller gets a reference to it.
    pub fn acquire(&mut self, key: SetKey, links: &LinkTable) -> SetId {
        let known = self.ids.get(&key).copied();
        let id = known.unwrap_or_else(|| self.insert(key, links));
        if let Some(set) = self.set(id) {
            set.references += 1;
        }
        id
    }

    fn insert(&mut self, key: SetKey, links: &LinkTable) -> SetId {
        let (index, group, members) = (None, None, Vec::new());
        let set = StoredSet { key: key.clone(), references: 0, index, group, members };
        let id = self.free.pop().unwrap_or(self.sets.len() as SetId);
        match self.set(id) {
            Some(free) => *free = set,
            None => self.sets.push(set),
        }
        self.ids.insert(key, id);
        self.refresh(id, links);
        id
    }

    /// Gives a reference back.
    pub fn release(&mut self, id: SetId) {
        let Some(set) = self.set(id) else { return };
        set.references -= 1;
        if set.references > 0 {
            return;
        }
        let key = set.key.clone();
        let (group, members) = (set.group.take(), std::mem::take(&mut set.members));
        self.ids.remove(&key);
        self.free.push(id);
        self.released.extend(group);
        members.into_iter().for_each(|member| self.next_hops.release(member));
    }

    fn set(&mut self, id: SetId) -> Option<&mut StoredSet> {
        self.sets.get_mut(id as usize)
    }

    /// The index that routes with this set have; `None` if none of its hops can be used.
    pub fn index(&self, id: SetId) -> Option<NextHop> {
        self.sets.get(id as usize)?.index
    }

    /// The hops of a set; `None` for an object.
    pub fn hops(&self, id: SetId) -> Option<&[RouteHop]> {
        match &self.sets.get(id as usize)?.key.hops {
            HopSet::Hops(hops) => Some(hops),
            HopSet::Object(_) | HopSet::ObjectWithMtu(_) => None,
        }
    }

    /// The sets with a hop by this link. Those of objects go with the objects.
    pub fn by(&self, link: LinkIndex) -> FxHashSet<SetId> {
        let is_by = |set: &HopSet| set.hops().iter().any(|hop| hop.link == link);
        self.ids.iter().filter(|(key, _)| is_by(&key.hops)).map(|(_, id)| *id).collect()
    }

    /// Whether the kernel reported a hop by this link as dead.
    pub fn has_dead_by(&self, link: LinkIndex) -> bool {
        self.ids.keys().any(|key| key.hops.hops().iter().any(|hop| hop.link == link && hop.dead))
    }

    /// The object of a set.
    pub fn object(&self, id: SetId) -> Option<u32> {
        match self.sets.get(id as usize)?.key.hops {
            HopSet::Object(object) | HopSet::ObjectWithMtu(object) => Some(object),
            HopSet::Hops(_) => None,
        }
    }

    /// Whether a route of a family uses any of these objects.
    pub fn uses_any(&self, family: Family, objects: &FxHashSet<u32>) -> bool {
        let sets = objects.iter().flat_map(|id| [HopSet::Object(*id), HopSet::ObjectWithMtu(*id)]);
        let keys_of =
            |hops: HopSet| [false, true].map(|is_default| SetKey { hops: hops.clone(), family, is_default });
        sets.flat_map(keys_of).any(|key| self.ids.contains_key(&key))
    }

    /// Stores an object; returns whether anything changed.
    pub fn set_object(&mut self, id: u32, object: NextHopObject) -> bool {
        let before = self.objects.insert(id, KnownObject { object: object.clone(), seen: true });
        before.is_none_or(|before| before.object != object)
    }

    /// Removes an object, and the groups that it was the last member of. Returns their numbers; `None` if the object was
    /// not known.
    pub fn remove_object(&mut self, id: u32) -> Option<FxHashSet<u32>> {
        self.objects.remove(&id)?;
        let mut gone = FxHashSet::from_iter([id]);
        self.objects.retain(|group, known| {
            let is_left = known.loses(id);
            if !is_left {
                gone.insert(*group);
            }
            is_left
        });
        Some(gone)
    }

    /// The objects that are one next hop over this link.
    pub fn objects_by(&self, link: LinkIndex) -> Vec<u32> {
        let is_by = |known: &KnownObject| match &known.object {
            NextHopObject::Single(RouteAction::Forward(hop)) => hop.link == link,
            _ => false,
        };
        self.objects.iter().filter(|(_, known)| is_by(known)).map(|(id, _)| *id).collect()
    }

    /// Whether there is any object.
    pub fn has_objects(&self) -> bool {
        !self.objects.is_empty()
    }

    /// Begins a dump of objects.
    pub fn mark(&mut self) {
        self.objects.values_mut().for_each(|known| known.seen = false);
    }

    /// The objects that the dump did not list.
    pub fn unseen(&self) -> Vec<u32> {
        self.objects.iter().filter(|(_, known)| !known.seen).map(|(id, _)| *id).collect()
    }

    /// Determines the next hops of all sets again after links or objects have changed. Returns the sets whose index
    /// changed.
    pub fn refresh_all(&mut self, links: &LinkTable) -> FxHashSet<SetId> {
        let used = |(id, set): (SetId, &StoredSet)| (set.references > 0).then_some(id);
        let used: Vec<SetId> = (0..).zip(&self.sets).filter_map(used).collect();
        used.into_iter().filter(|id| self.refresh(*id, links)).collect()
    }

    /// Sets whether the packets of routes of a family with several next hops are left to the kernel, from the next
    /// [`Self::refresh_all`] on.
    pub fn leave_several(&mut self, family: Family, are_left: bool) {
        match are_left {
            true => self.left.insert(family),
            false => self.left.remove(&family),
        };
    }

    /// Notes that a route or neighbour is left to the kernel for want of so many indices of next hops.
    pub fn note_lack(&mut self, count: usize) {
        self.lacking_next_hops = Some(self.lacking_next_hops.map_or(count, |least| least.min(count)));
    }

    /// Whether routes or neighbours that are left to the kernel for want of an index get one now. That is returned once:
    /// those that still get none are noted again. The index of a group serves groups only, and that of a next hop next hops only.
    pub fn take_room(&mut self) -> bool {
        let has_group = self.lacks_group && self.groups.reclaim();
        let room = self.next_hops.room();
        let has_next_hop = self.lacking_next_hops.take_if(|least| *least <= room).is_some();
        self.lacks_group &= !has_group;
        has_group || has_next_hop
    }

    /// Returns whether the index of the set changed.
    fn refresh(&mut self, id: SetId, links: &LinkTable) -> bool {
        let Some(set) = self.sets.get(id as usize) else { return false };
        let usable = self.usable(&set.key, links);
        let is_single = match &set.key.hops {
            HopSet::Hops(hops) => hops.len() == 1,
            HopSet::Object(_) => false,
            HopSet::ObjectWithMtu(_) => true,
        };
        let is_default = set.key.is_default;
        let (before, group, old) = (set.index, set.group, set.members.clone());
        // The new references come first, so that a member that stays is never without one.
        let members = self.members(&usable, is_default && is_single);
        let (index, group) = match members.first() {
            None => (None, group),
            Some(only) if is_single => (Some(only.next_hop), None),
            Some(_) => self.grouped(group, &members),
        };
        let held = members.iter().map(|member| member.next_hop).collect();
        if let Some(set) = self.set(id) {
            (set.index, set.group, set.members) = (index, group, held);
        }
        old.into_iter().for_each(|member| self.next_hops.release(member));
        index != before
    }

    /// The index of a set with a group, and the group. Packets of a group that cannot be made are the kernel's to
    /// forward.
    fn grouped(&mut self, group: Option<NextHop>, members: &[Member]) -> (Option<NextHop>, Option<NextHop>) {
        match self.group(group, members) {
            Ok(index) => (Some(index), Some(index)),
            Err(error) => {
                self.lacks_group |= matches!(error, GroupError::TooMany(_));
                self.warn("a next-hop group", &error);
                (Some(KERNEL), group)
            }
        }
    }

    fn warn(&mut self, what: &str, error: &GroupError) {
        if self.warned.insert(discriminant(error)) {
            self.warnings.push(format!("{what} is left to the kernel, as are others like it: {error}"));
        }
    }

    fn group(&mut self, group: Option<NextHop>, members: &[Member]) -> Result<NextHop, GroupError> {
        let Some(index) = group else {
            let index = self.groups.create(&mut self.next_hops.interner, members)?;
            self.groups_changed = true;
            self.next_hops.want_view();
            return Ok(index);
        };
        let mut ordered = members.to_vec();
        ordered.sort_unstable();
        let before = self.groups.members(index);
        if before != Some(&ordered) {
            // The view says whether a group of default routes counts.
            if before.is_some_and(drops) != drops(&ordered) {
                self.next_hops.want_view();
            }
            self.groups.change(&self.next_hops.interner, index, members)?;
            self.groups_changed = true;
        }
        Ok(index)
    }

    /// The members of a group, with a reference to each. Hops that have the same index become one member. Only forwarding
    /// default routes need indices of their own: those that drop packets count always.
    fn members(&mut self, usable: &[(NextHopAction, u16)], is_default: bool) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for (action, weight) in usable {
            let acquired = match action {
                RouteAction::Forward(_) if is_default => self.next_hops.acquire_default(*action),
                _ => self.next_hops.acquire(*action),
            };
            let next_hop = acquired.unwrap_or_else(|error| {
                self.note_lack(1);
                self.warn("a next hop", &error.into());
                self.kernel()
            });
            match members.iter_mut().find(|member| member.next_hop == next_hop) {
                Some(member) => {
                    member.weight = member.weight.saturating_add(*weight);
                    self.next_hops.release(next_hop);
                }
                None => members.push(Member { next_hop, weight: *weight }),
            }
        }
        members
    }

    /// The index that always exists for the kernel, with a reference.
    fn kernel(&mut self) -> NextHop {
        self.next_hops.acquire(RouteAction::Local).unwrap_or(KERNEL)
    }

    /// The hops that can be used. If there is none and one only lacks a carrier, the packets are left to the kernel:
    /// its settings decide whether it keeps such routes. So are they if only the kernel can tell which one of several they take.
    fn usable(&self, set: &SetKey, links: &LinkTable) -> Vec<(NextHopAction, u16)> {
        let all = match &set.hops {
            HopSet::Hops(hops) => hops.iter().map(|hop| (usability(hop, links), hop.weight)).collect(),
            HopSet::Object(id) => self.object_hops(*id, 1, links, true),
            HopSet::ObjectWithMtu(_) => vec![(Usability::Usable(RouteAction::Local), 1)],
        };
        let used = |(usability, weight): &(Usability, u16)| match usability {
            Usability::Usable(action) => Some((*action, *weight)),
            Usability::NoCarrier | Usability::Dead => None,
        };
        let usable: Vec<(NextHopAction, u16)> = all.iter().filter_map(used).collect();
        let lacks_carrier = || all.iter().any(|(usability, _)| *usability == Usability::NoCarrier);
        match usable.len() {
            0 if lacks_carrier() => vec![(RouteAction::Local, 1)],
            2.. if self.left.contains(&set.family) => vec![(RouteAction::Local, 1)],
            _ => usable,
        }
    }

    /// The hops of an object. Groups do not nest. The kernel knows an object that is not known here yet.
    fn object_hops(
        &self,
        id: u32,
        weight: u16,
        links: &LinkTable,
        may_be_group: bool,
    ) -> Vec<(Usability, u16)> {
        match self.objects.get(&id).map(|known| &known.object) {
            Some(NextHopObject::Single(RouteAction::Forward(hop))) => vec![(usability(hop, links), weight)],
            Some(NextHopObject::Single(action)) => {
                vec![(Usability::Usable(action.map(|hop| via(&hop))), weight)]
            }
            Some(NextHopObject::Group(members)) if may_be_group => {
                let of = |(id, weight): &(u32, u16)| self.object_hops(*id, *weight, links, false);
                members.iter().flat_map(of).collect()
            }
            Some(NextHopObject::Group(_)) | None => vec![(Usability::Usable(RouteAction::Local), weight)],
        }
    }

    /// The next hops and groups that only default routes have, except for groups that drop packets: these routes count always.
    pub fn of_default_routes(&self) -> impl Iterator<Item = NextHop> + '_ {
        let is_default =
            |set: &&StoredSet| set.key.is_default && set.references > 0 && set.members != [BLACKHOLE];
        let used = self.sets.iter().filter(is_default);
        used.filter_map(|set| set.group).chain(self.next_hops.of_default_routes())
    }

    /// The groups released since the last call.
    pub fn take_released_groups(&mut self) -> Vec<NextHop> {
        std::mem::take(&mut self.released)
    }

    /// Frees next hops and groups that no FIB leads to any more.
    pub fn free(&mut self, next_hops: Vec<Released>, groups: Vec<NextHop>) {
        self.next_hops.retire(next_hops);
        for group in groups {
            // It was created here, and is released only once, so this cannot fail.
            let _ = self.groups.release(group);
            self.groups_changed = true;
        }
    }

    /// Shows readers the groups as they are now.
    pub fn publish_groups(&mut self) {
        if std::mem::take(&mut self.groups_changed) {
            self.groups.publish();
            let has_several =
                |set: &StoredSet| set.references > 0 && set.group.is_some() && set.members.len() > 1;
            self.has_several = self.sets.iter().any(has_several);
        }
    }

    /// The members of all sets with several, some more than once.
    pub fn members_of_several(&self) -> impl Iterator<Item = NextHop> + '_ {
        let several = self.sets.iter().filter(|set| set.references > 0 && set.members.len() > 1);
        several.flat_map(|set| set.members.iter().copied())
    }

    /// Whether packets of any route may take one of several next hops.
    pub fn has_several(&self) -> bool {
        self.has_several
    }
}

/// Whether a group drops packets: it is of an object that is a black hole, which has no other members.
fn drops(members: &[Member]) -> bool {
    matches!(members, [only] if only.next_hop == BLACKHOLE)
}

/// Whether a hop can be used, and for what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usability {
    Usable(NextHopAction),
    NoCarrier,
    Dead,
}

fn usability(hop: &RouteHop, links: &LinkTable) -> Usability {
    let mtu = links.get(hop.link).map_or(0, |link| link.mtu);
    let lesser_mtu = hop.mtu.is_some_and(|of_route| of_route < mtu);
    let is_dead = links.is_down(hop.link) || hop.dead && !links.is_revived(hop.link);
    match links.state(hop.link) {
        _ if is_dead => Usability::Dead,
        LinkState::Foreign => Usability::Usable(RouteAction::Local),
        LinkState::Down => Usability::Dead,
        LinkState::NoCarrier => Usability::NoCarrier,
        LinkState::Up if hop.dead || hop.encapsulated || lesser_mtu => Usability::Usable(RouteAction::Local),
        LinkState::Up => Usability::Usable(RouteAction::Forward(via(hop))),
    }
}

fn via(hop: &RouteHop) -> NextHopVia<LinkIndex> {
    NextHopVia { link: hop.link, neighbor: hop.gateway }
}
