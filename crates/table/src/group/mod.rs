//! Next-hop groups: several next hops behind one index, among which flows are shared by weight (ECMP).
//!
//! A route's next-hop index stands for a plain next hop or for a group ([`Target::Group`]); lookups make no difference
//! between the two. After the lookup the worker picks a member of the group by the flow's hash: one load from a small
//! array, and one from the group's slots (`slots.rs`).
//!
//! # When an index is used again
//!
//! All routes with the same members share a group, and each counts as a reference. The index of an unused group is
//! given to another group only when no reader can meet it any more:
//! - the caller [releases](Groups::release) a group after it has published the FIB that no longer leads to the group;
//! - a worker fetches its [`GroupView`] *before* it looks up the addresses of a burst, so a worker whose view is newer
//!   than the release has a FIB that is newer, too;
//! - the index stays reserved until the last view older than the release is dropped. So a worker without packets has to
//!   fetch the view now and then as well.

use std::sync::Arc;

use arc_swap::ArcSwap;
use arc_swap::cache::Cache;
use rustc_hash::FxHashMap;

use crate::memory::{Reclaim, Token};
use crate::nexthop::{NextHop, NextHops, Target, TooManyNextHops};
// Under loom this is not the standard type.
use crate::sync::Arc as TokenArc;

mod hash;
mod member;
mod slots;

pub use hash::flow_hash;
pub use member::Member;
use slots::Slots;

/// Most members of a group.
pub const MOST_MEMBERS: usize = 64;

/// Why a group could not be made or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// It has no members, or too many.
    #[error("a next-hop group has 1 to {MOST_MEMBERS} members, not {0}")]
    Size(usize),
    /// One of the members cannot be one.
    #[error("next hop {} cannot be a member of a group: {reason}", next_hop.0)]
    Member {
        /// The member.
        next_hop: NextHop,
        /// Why it cannot be one.
        reason: &'static str,
    },
    /// The smallest member would get no flows.
    #[error("the weights are too uneven: the smallest must be at least 1/{} of their sum", slots::MOST)]
    Uneven,
    /// No group has this index, or all its references were released.
    #[error("next hop {} is no group in use", .0.0)]
    Unknown(NextHop),
    /// All indices are in use.
    #[error(transparent)]
    TooMany(#[from] TooManyNextHops),
}

/// The groups of one table of next hops: the writer's half.
pub struct Groups {
    groups: Vec<Group>,
    /// Numbers of the groups in use, by their ordered members.
    known: FxHashMap<Vec<Member>, u32>,
    /// The number of the group that an index stands for, as long as both exist.
    numbers: FxHashMap<NextHop, u32>,
    /// Numbers that no reader can meet any more.
    free: Vec<u32>,
    released: Reclaim<u32>,
    view: Arc<ArcSwap<GroupView>>,
}

struct Group {
    index: NextHop,
    members: Vec<Member>,
    slots: Slots,
    /// Whether [`Groups::acquire`] returns this group to further callers with the same members.
    is_shared: bool,
    references: u32,
}

impl Default for Groups {
    fn default() -> Self {
        let released = Reclaim::new();
        let view = GroupView { spans: Vec::new(), slots: Vec::new(), _token: released.token() };
        Groups {
            groups: Vec::new(),
            known: FxHashMap::default(),
            numbers: FxHashMap::default(),
            free: Vec::new(),
            released,
            view: Arc::new(ArcSwap::from_pointee(view)),
        }
    }
}

impl Groups {
    /// Returns the index of the group with these members, in any order: one that is in use, or a new one. The group
    /// counts one reference more. Readers know a new group after [`Self::publish`], so publish it before its first
    /// route.
    pub fn acquire(&mut self, next_hops: &mut NextHops, members: &[Member]) -> Result<NextHop, GroupError> {
        let members = self.checked(next_hops, members)?;
        if let Some(number) = self.known.get(&members) {
            let group = &mut self.groups[*number as usize];
            group.references += 1;
            return Ok(group.index);
        }
        let number = self.add(next_hops, &members, true)?;
        self.known.insert(members, number);
        Ok(self.groups[number as usize].index)
    }

    /// Returns the index of a new group with these members, which no other caller shares: for a group whose members
    /// [change](Self::change) independently of others.
    pub fn create(&mut self, next_hops: &mut NextHops, members: &[Member]) -> Result<NextHop, GroupError> {
        let members = self.checked(next_hops, members)?;
        let number = self.add(next_hops, &members, false)?;
        Ok(self.groups[number as usize].index)
    }

    fn add(
        &mut self,
        next_hops: &mut NextHops,
        members: &[Member],
        is_shared: bool,
    ) -> Result<u32, TooManyNextHops> {
        let number = self.free.last().copied().unwrap_or(self.groups.len() as u32);
        let index = next_hops.intern(Target::Group(number))?;
        self.free.pop();
        self.numbers.insert(index, number);
        let slots = Slots::new(members);
        let group = Group { index, slots, members: members.to_vec(), is_shared, references: 1 };
        match self.groups.get_mut(number as usize) {
            Some(free) => *free = group,
            None => self.groups.push(group),
        }
        Ok(number)
    }

    /// Checks the members and orders them.
    fn checked(&self, next_hops: &NextHops, members: &[Member]) -> Result<Vec<Member>, GroupError> {
        let mut members = members.to_vec();
        members.sort_unstable();
        if !(1..=MOST_MEMBERS).contains(&members.len()) {
            return Err(GroupError::Size(members.len()));
        }
        let twice = members.windows(2).find(|pair| pair[0].next_hop == pair[1].next_hop);
        let refused = |next_hop, reason| Err(GroupError::Member { next_hop, reason });
        if let Some(pair) = twice {
            return refused(pair[0].next_hop, "it is named twice; add up its weights");
        }
        for member in &members {
            match next_hops.target(member.next_hop) {
                None => return refused(member.next_hop, "there is no such next hop"),
                Some(Target::Group(_)) => return refused(member.next_hop, "it is a group; name its members"),
                Some(_) if member.weight == 0 => return refused(member.next_hop, "weight 0; leave it out"),
                Some(_) => {}
            }
        }
        if slots::fits(&members) { Ok(members) } else { Err(GroupError::Uneven) }
    }

    /// Counts one route more that uses the group.
    pub fn retain(&mut self, index: NextHop) -> Result<(), GroupError> {
        self.group(index)?.references += 1;
        Ok(())
    }

    /// Counts one route less that uses the group. Call it once the FIB of the readers contains the change: once its
    /// generation has reached that of the change.
    pub fn release(&mut self, index: NextHop) -> Result<(), GroupError> {
        let number = self.number(index)?;
        let group = self.group(index)?;
        group.references -= 1;
        if group.references == 0 {
            let members = std::mem::take(&mut group.members);
            self.forget(&members, number);
            self.released.retire(number);
        }
        Ok(())
    }

    /// Gives a group other members, for all routes that use it, for example because a link went down or came up. Flows
    /// of members that stay keep their member, and the index stays the same.
    pub fn change(
        &mut self,
        next_hops: &NextHops,
        index: NextHop,
        members: &[Member],
    ) -> Result<(), GroupError> {
        let members = self.checked(next_hops, members)?;
        let number = self.number(index)?;
        let group = self.group(index)?;
        group.slots.change(&members);
        let before = std::mem::replace(&mut group.members, members.clone());
        if group.is_shared {
            self.forget(&before, number);
            self.known.entry(members).or_insert(number);
        }
        Ok(())
    }

    /// Ends the sharing of this group by further callers with these members.
    fn forget(&mut self, members: &[Member], number: u32) {
        if self.known.get(members) == Some(&number) {
            self.known.remove(members);
        }
    }

    /// The members of a group in use, in the order of their indices.
    pub fn members(&self, index: NextHop) -> Option<&[Member]> {
        let group = &self.groups[*self.numbers.get(&index)? as usize];
        (group.references > 0).then_some(&group.members)
    }

    fn number(&self, index: NextHop) -> Result<u32, GroupError> {
        self.numbers.get(&index).copied().ok_or(GroupError::Unknown(index))
    }

    fn group(&mut self, index: NextHop) -> Result<&mut Group, GroupError> {
        let number = self.number(index)?;
        let group = &mut self.groups[number as usize];
        if group.references > 0 { Ok(group) } else { Err(GroupError::Unknown(index)) }
    }

    /// Publishes all groups as they are now. One call after many changes costs no more than after one change.
    pub fn publish(&mut self) {
        let released = self.released.retired() > 0;
        let token = if released { self.released.turn() } else { self.released.token() };
        self.view.store(Arc::new(GroupView::new(&self.groups, token)));
        self.reclaim();
    }

    /// Looks for groups that no reader can meet any more; returns whether the index of any can be used again now. After a
    /// [`GroupError::TooMany`] that may be so without another [`Self::publish`], as readers fetch the groups.
    pub fn reclaim(&mut self) -> bool {
        self.free.extend(self.released.reclaim());
        !self.free.is_empty()
    }

    /// Makes a reader for one worker.
    pub fn reader(&self) -> GroupReader {
        self.shared_reader().reader()
    }

    /// Makes a source of readers for workers that are started later.
    pub fn shared_reader(&self) -> SharedGroupReader {
        SharedGroupReader(Arc::clone(&self.view))
    }
}

/// A source of [`GroupReader`]s. It keeps no view of the groups, so it keeps no index reserved.
#[derive(Clone)]
pub struct SharedGroupReader(Arc<ArcSwap<GroupView>>);

impl SharedGroupReader {
    /// Makes a reader for one worker.
    pub fn reader(&self) -> GroupReader {
        GroupReader(Cache::new(Arc::clone(&self.0)))
    }

    /// The groups at this moment. While the caller keeps them, the indices that they contain are not used again.
    pub fn current(&self) -> Arc<GroupView> {
        self.0.load_full()
    }
}

/// The source of a router without groups.
impl Default for SharedGroupReader {
    fn default() -> Self {
        Groups::default().shared_reader()
    }
}

/// One worker's access to the groups.
#[derive(Clone)]
pub struct GroupReader(Cache<Arc<ArcSwap<GroupView>>, Arc<GroupView>>);

impl GroupReader {
    /// Fetches the groups for one burst. Call it before the lookups of the burst.
    #[inline]
    pub fn groups(&mut self) -> &GroupView {
        self.0.load()
    }
}

/// All groups at one moment: the readers' half.
pub struct GroupView {
    /// The slots of each next-hop index, up to the highest index of a group.
    spans: Vec<Span>,
    slots: Vec<NextHop>,
    /// While this view exists, the indices that it contains are not used again.
    _token: TokenArc<Token>,
}

/// The slots of a group. A plain next hop has one slot, which holds itself.
#[derive(Clone, Copy)]
struct Span {
    first: u32,
    mask: u32,
}

impl GroupView {
    fn new(groups: &[Group], token: TokenArc<Token>) -> Self {
        let spans = groups.iter().map(|group| group.index.0).max().map_or(0, |highest| highest + 1);
        let mut slots: Vec<NextHop> = (0..spans).map(NextHop).collect();
        let plain = |index: u16| Span { first: index.into(), mask: 0 };
        let mut spans: Vec<Span> = (0..spans).map(plain).collect();
        for group in groups {
            let of_group = group.slots.as_slice();
            spans[group.index.index()] = Span { first: slots.len() as u32, mask: of_group.len() as u32 - 1 };
            slots.extend_from_slice(of_group);
        }
        GroupView { spans, slots, _token: token }
    }

    /// Whether there are no groups, so that [`Self::select`] returns every next hop unchanged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether the index is that of a group, so that [`Self::select`] needs the hash.
    #[inline]
    pub fn is_group(&self, next_hop: NextHop) -> bool {
        self.spans.get(next_hop.index()).is_some_and(|span| span.mask != 0)
    }

    /// The members of a group, each at least once; empty for a plain next hop.
    pub fn members(&self, group: NextHop) -> &[NextHop] {
        let span = self.spans.get(group.index()).filter(|span| span.mask != 0);
        let slots =
            span.and_then(|span| self.slots.get(span.first as usize..=(span.first + span.mask) as usize));
        slots.unwrap_or(&[])
    }

    /// The member for a flow with this hash; a plain next hop is returned unchanged.
    #[inline]
    pub fn select(&self, next_hop: NextHop, flow_hash: u32) -> NextHop {
        self.spans
            .get(next_hop.index())
            .map_or(next_hop, |span| self.slots[(span.first + (flow_hash & span.mask)) as usize])
    }

    /// As [`Self::select`]; if that member does not work, one that works, among which such flows are shared as among all.
    /// Where none works it is that of [`Self::select`].
    pub fn select_working(&self, group: NextHop, flow_hash: u32, works: impl Fn(NextHop) -> bool) -> NextHop {
        let first = self.select(group, flow_hash);
        if works(first) {
            return first;
        }
        // Slots of a member follow each other, or come at equal distances. So the next one is any, by the rest of the hash. From
        // there on an odd step reaches each of them, as their number is a power of two.
        let (start, step) =
            (hash::remixed(flow_hash), flow_hash.rotate_right(slots::MOST.trailing_zeros()) | 1);
        let slots = self.members(group).len() as u32;
        let mut tried = (0..slots).map(|at| self.select(group, start.wrapping_add(step.wrapping_mul(at))));
        tried.find(|member| works(*member)).unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(count: u32) -> NextHops {
        let mut next_hops = NextHops::default();
        (0..count).for_each(|number| drop(next_hops.intern(Target::Number(number))));
        next_hops
    }

    fn members(weights: &[(u16, u16)]) -> Vec<Member> {
        weights.iter().map(|(hop, weight)| Member { next_hop: NextHop(*hop), weight: *weight }).collect()
    }

    #[test]
    fn a_created_group_is_not_shared() {
        let (mut next_hops, mut groups) = (plain(3), Groups::default());
        let (both, one) = (members(&[(1, 1), (2, 1)]), members(&[(1, 1)]));
        let own = groups.create(&mut next_hops, &both).unwrap();
        let shared = groups.acquire(&mut next_hops, &both).unwrap();
        assert_ne!(own, shared);
        assert_ne!(groups.create(&mut next_hops, &both).unwrap(), own);
        groups.change(&next_hops, own, &one).unwrap();
        assert_ne!(groups.acquire(&mut next_hops, &one).unwrap(), own);
        groups.change(&next_hops, own, &both).unwrap();
        assert_eq!(groups.acquire(&mut next_hops, &both).unwrap(), shared);
        groups.release(own).unwrap();
        assert_eq!(groups.release(own), Err(GroupError::Unknown(own)));
    }

    #[test]
    fn flows_are_shared_by_weight_and_plain_next_hops_pass() {
        let (mut next_hops, mut groups) = (plain(4), Groups::default());
        let mut reader = groups.reader();
        assert_eq!(reader.groups().select(NextHop(3), 99), NextHop(3));
        let group = groups.acquire(&mut next_hops, &members(&[(2, 3), (1, 1)])).unwrap();
        groups.publish();
        let view = reader.groups();
        let to_first = (0..64).filter(|hash| view.select(group, *hash) == NextHop(1)).count();
        let to_second = (0..64).filter(|hash| view.select(group, *hash) == NextHop(2)).count();
        assert_eq!((to_first, to_second), (16, 48));
        for hop in [NextHop::NONE, NextHop(1), NextHop(4), NextHop(60_000)] {
            assert_eq!(view.select(hop, 12_345), hop);
        }
    }

    #[test]
    fn a_link_that_goes_down_moves_its_own_flows_only() {
        let (mut next_hops, mut groups) = (plain(8), Groups::default());
        let all = members(&[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
        let group = groups.acquire(&mut next_hops, &all).unwrap();
        groups.publish();
        let mut reader = groups.reader();
        let hash = |flow: u16| flow_hash(1, 0xc612_0001, 0xc613_0001, 17, (flow, 53));
        let before: Vec<NextHop> = (0..5_000).map(|flow| reader.groups().select(group, hash(flow))).collect();
        groups.change(&next_hops, group, &all[..4]).unwrap();
        groups.publish();
        for (flow, before) in (0..).zip(before) {
            let after = reader.groups().select(group, hash(flow));
            assert!(after == before || before == NextHop(5) && after != NextHop(5), "{flow}");
        }
        assert_eq!(groups.members(group).unwrap(), &all[..4]);
    }

    #[test]
    fn flows_of_a_member_that_does_not_work_are_shared_by_the_others() {
        let (mut next_hops, mut groups) = (plain(5), Groups::default());
        let group = groups.acquire(&mut next_hops, &members(&[(1, 2), (2, 1), (3, 1), (4, 1)])).unwrap();
        groups.publish();
        let mut reader = groups.reader();
        let view = reader.groups();
        let mut moved = [0; 5];
        for flow in 0..5_000 {
            let hash = flow_hash(1, 0xc612_0001, 0xc613_0001, 17, (flow, 53));
            let (before, after) =
                (view.select(group, hash), view.select_working(group, hash, |hop| hop != NextHop(3)));
            if before == NextHop(3) {
                moved[after.index()] += 1
            } else {
                assert_eq!(after, before)
            }
            assert_eq!(view.select_working(group, hash, |_| false), before);
            assert_eq!(view.select_working(group, hash, |hop| hop == NextHop(4)), NextHop(4));
        }
        let of: u32 = moved.iter().sum();
        assert!((900..1_100).contains(&of) && moved[3] == 0, "{moved:?}");
        for (member, share) in [(1, 0.5), (2, 0.25), (4, 0.25)] {
            assert!((f64::from(moved[member]) / f64::from(of) - share).abs() < 0.1, "{moved:?}");
        }
        assert_eq!(view.select_working(NextHop(3), 7, |_| false), NextHop(3), "a plain next hop");
    }

    #[test]
    fn groups_are_shared_and_counted() {
        let (mut next_hops, mut groups) = (plain(3), Groups::default());
        let one = groups.acquire(&mut next_hops, &members(&[(1, 1), (2, 1)])).unwrap();
        let other = groups.acquire(&mut next_hops, &members(&[(2, 1), (1, 1)])).unwrap();
        assert_eq!((one, next_hops.len()), (other, 4));
        assert_eq!(next_hops.target(one), Some(Target::Group(0)));
        groups.retain(one).unwrap();
        for _ in 0..3 {
            assert!(groups.members(one).is_some());
            groups.release(one).unwrap();
        }
        assert_eq!(groups.members(one), None);
        assert_eq!(groups.release(one), Err(GroupError::Unknown(one)));
        assert_eq!(groups.retain(NextHop(1)), Err(GroupError::Unknown(NextHop(1))));
    }

    #[test]
    fn an_index_is_used_again_when_no_reader_can_meet_it() {
        let (mut next_hops, mut groups) = (plain(3), Groups::default());
        let first = groups.acquire(&mut next_hops, &members(&[(1, 1)])).unwrap();
        groups.publish();
        let mut reader = groups.reader();
        assert_eq!(reader.groups().select(first, 5), NextHop(1));
        groups.release(first).unwrap();
        groups.publish();
        groups.publish();
        let second = groups.acquire(&mut next_hops, &members(&[(2, 1)])).unwrap();
        assert_ne!(second, first, "a reader still has the view from before the release");
        groups.publish();
        assert_eq!(reader.groups().select(first, 5), NextHop(1), "its old slots exist until then");
        groups.publish();
        let third = groups.acquire(&mut next_hops, &members(&[(3, 1)])).unwrap();
        assert_eq!(third, first);
        groups.publish();
        let view = reader.groups();
        assert_eq!((view.select(third, 1), view.select(second, 1)), (NextHop(3), NextHop(2)));
    }

    #[test]
    fn an_index_is_free_when_the_last_reader_has_fetched_the_groups() {
        let (mut next_hops, mut groups) = (plain(3), Groups::default());
        let first = groups.acquire(&mut next_hops, &members(&[(1, 1)])).unwrap();
        groups.publish();
        let mut reader = groups.reader();
        groups.release(first).unwrap();
        groups.publish();
        assert!(!groups.reclaim());
        reader.groups();
        assert!(groups.reclaim());
        assert_eq!(groups.acquire(&mut next_hops, &members(&[(2, 1)])).unwrap(), first);
        assert!(!groups.reclaim());
    }

    #[test]
    fn impossible_groups_are_refused_with_a_fix() {
        let (mut next_hops, mut groups) = (plain(70), Groups::default());
        let group = groups.acquire(&mut next_hops, &members(&[(1, 1), (2, 2)])).unwrap();
        let many: Vec<(u16, u16)> = (1..=65).map(|hop| (hop, 1)).collect();
        let refused: [(&[(u16, u16)], &str); 7] = [
            (&[], "1 to 64 members, not 0"),
            (&many, "not 65"),
            (&[(1, 1), (1, 2)], "named twice"),
            (&[(1, 0), (2, 1)], "weight 0"),
            (&[(99, 1)], "no such next hop"),
            (&[(group.0, 1)], "it is a group"),
            (&[(1, 1), (2, 5_000)], "too uneven"),
        ];
        for (asked, words) in refused {
            let error = groups.acquire(&mut next_hops, &members(asked)).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(groups.change(&next_hops, group, &members(asked)).is_err());
        }
        assert_eq!(groups.acquire(&mut next_hops, &members(&many[..64])).unwrap(), NextHop(72));
    }
}
