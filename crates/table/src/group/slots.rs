//! The slots of a group: the member that each part of the flows uses. A change of members moves as few flows as
//! possible.
//!
//! A flow's hash picks a slot, and a slot names a member. The quota of a member of weight `w` is `slots × w / sum of
//! weights`, and the member always has that number of slots, rounded down or up. When members change, a slot keeps its
//! member unless
//! - the member was removed, or has more slots than its new quota rounded up: the excess slots become free; or
//! - another member would stay below its quota rounded down: it takes single slots from members above their quota.
//!
//! So removing a member moves no flow of the others (RFC 2992 asks for little disruption; its hash-threshold moves a
//! quarter to a half of all flows), except for the rounding of unequal weights: at most one slot less than there are
//! members. With equal weights it moves none.

use crate::nexthop::NextHop;

use super::member::Member;

/// Slots of the member with the smallest weight: rounding then changes its share by a sixteenth at most, as far as
/// [`MOST`] allows.
const OF_THE_SMALLEST: u64 = 16;
/// Most slots of a group.
pub(super) const MOST: u64 = 4_096;

/// The member of each slot; the number of slots is a power of two.
#[derive(Clone, Debug)]
pub(super) struct Slots(Vec<NextHop>);

/// A member while slots are assigned.
struct Share {
    next_hop: NextHop,
    /// Its quota times the sum of the weights: a whole number.
    quota: u64,
    count: u64,
}

impl Share {
    fn floor(&self, weights: u64) -> u64 {
        self.quota / weights
    }

    fn ceil(&self, weights: u64) -> u64 {
        self.quota.div_ceil(weights)
    }

    /// How far it is below its quota, in parts of a slot.
    fn lacks(&self, weights: u64) -> i64 {
        self.quota as i64 - (self.count * weights) as i64
    }
}

impl Slots {
    /// Slots for ordered members, each once, none of weight 0, for which [`fits`] is true.
    pub(super) fn new(members: &[Member]) -> Self {
        let mut slots = Slots(vec![NextHop::NONE; size(members)]);
        slots.assign(members);
        slots
    }

    /// Assigns the slots to these members instead. The number of slots may grow, by splitting each into equal ones; it
    /// never shrinks, because that would move flows without need.
    pub(super) fn change(&mut self, members: &[Member]) {
        self.0 = self.0.repeat((size(members) / self.0.len()).max(1));
        self.assign(members);
    }

    pub(super) fn as_slice(&self) -> &[NextHop] {
        &self.0
    }

    fn assign(&mut self, members: &[Member]) {
        let weights: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
        let all = self.0.len() as u64;
        let share = |member: &Member| Share {
            next_hop: member.next_hop,
            quota: all * u64::from(member.weight),
            count: 0,
        };
        let mut shares: Vec<Share> = members.iter().map(share).collect();
        let free = self.keep(&mut shares, weights);
        self.fill(&free, &mut shares, weights);
        self.even_out(&mut shares, weights);
    }

    /// Counts the slots that stay; returns the others.
    fn keep(&self, shares: &mut [Share], weights: u64) -> Vec<usize> {
        let mut stays = |owner: &NextHop| {
            let share = shares.iter_mut().find(|share| share.next_hop == *owner);
            let share = share.filter(|share| share.count < share.ceil(weights));
            share.map(|share| share.count += 1).is_some()
        };
        self.0.iter().enumerate().filter(|(_, owner)| !stays(owner)).map(|(slot, _)| slot).collect()
    }

    /// Assigns each free slot to the member that is furthest below its quota.
    fn fill(&mut self, free: &[usize], shares: &mut [Share], weights: u64) {
        for slot in free {
            let neediest = shares.iter_mut().rev().max_by_key(|share| share.lacks(weights));
            let Some(neediest) = neediest else { return };
            neediest.count += 1;
            self.0[*slot] = neediest.next_hop;
        }
    }

    /// Moves single slots until no member is a whole slot below its quota: as long as one is, another is above its
    /// quota.
    fn even_out(&mut self, shares: &mut [Share], weights: u64) {
        while let Some(poor) = shares.iter().position(|share| share.count < share.floor(weights)) {
            let rich = (0..shares.len()).min_by_key(|at| shares[*at].lacks(weights)).unwrap_or(poor);
            let (from, to) = (shares[rich].next_hop, shares[poor].next_hop);
            let Some(slot) = self.0.iter().rposition(|owner| *owner == from) else { return };
            self.0[slot] = to;
            shares[rich].count -= 1;
            shares[poor].count += 1;
        }
    }
}

/// Whether the quota of the smallest of these members is at least one slot of [`MOST`].
pub(super) fn fits(members: &[Member]) -> bool {
    ratio(members) <= MOST
}

/// The sum of the weights divided by the smallest, rounded up.
fn ratio(members: &[Member]) -> u64 {
    let weights = members.iter().map(|member| u64::from(member.weight));
    weights.clone().sum::<u64>().div_ceil(weights.min().unwrap_or(1).max(1))
}

fn size(members: &[Member]) -> usize {
    (ratio(members) * OF_THE_SMALLEST).next_power_of_two().min(MOST) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(weights: &[u16]) -> Vec<Member> {
        let members = (1..).zip(weights);
        members.map(|(hop, weight)| Member { next_hop: NextHop(hop), weight: *weight }).collect()
    }

    fn count(slots: &Slots, of: NextHop) -> u64 {
        slots.0.iter().filter(|owner| **owner == of).count() as u64
    }

    fn moved(before: &Slots, after: &Slots, not_counting: NextHop) -> usize {
        let owners = before.0.iter().cycle().zip(&after.0);
        owners.filter(|(before, after)| before != after && **before != not_counting).count()
    }

    /// Every member has its quota, rounded down or up.
    fn is_fair(slots: &Slots, members: &[Member]) -> bool {
        let weights: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
        members.iter().all(|member| {
            let quota = slots.0.len() as u64 * u64::from(member.weight);
            (quota / weights..=quota.div_ceil(weights)).contains(&count(slots, member.next_hop))
        })
    }

    proptest! {
        #[test]
        fn removing_a_member_moves_few_other_flows(
            weights in prop::collection::vec(1u16..60, 2..=64),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..64),
        ) {
            let mut members = members(&weights);
            let mut slots = Slots::new(&members);
            for removed in order {
                if members.len() == 1 { break; }
                let gone = members.remove(removed.index(members.len())).next_hop;
                let before = slots.clone();
                slots.change(&members);
                prop_assert!(is_fair(&slots, &members));
                prop_assert!(moved(&before, &slots, gone) < members.len());
            }
        }

        #[test]
        fn with_equal_weights_only_flows_of_the_removed_member_move(
            others in 1u16..64,
            order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..40),
        ) {
            let all = members(&vec![3; usize::from(others) + 1]);
            let (mut present, mut absent) = (all.clone(), Vec::new());
            let mut slots = Slots::new(&all);
            for (which, adds) in order {
                let before = slots.clone();
                if adds && !absent.is_empty() {
                    let added: Member = absent.swap_remove(which.index(absent.len()));
                    present.push(added);
                    slots.change(&present);
                    let elsewhere = before.0.iter().zip(&slots.0).filter(|(b, a)| b != a && **a != added.next_hop);
                    prop_assert_eq!(elsewhere.count(), 0, "only the added member takes slots");
                } else if present.len() > 1 {
                    let gone = present.swap_remove(which.index(present.len()));
                    absent.push(gone);
                    slots.change(&present);
                    prop_assert_eq!(moved(&before, &slots, gone.next_hop), 0);
                }
                prop_assert!(is_fair(&slots, &present));
            }
        }
    }

    #[test]
    fn slots_grow_with_the_members_and_split_without_moving_a_flow() {
        let mut slots = Slots::new(&members(&[1, 1]));
        assert_eq!(slots.0.len(), 32);
        let before = slots.clone();
        slots.change(&members(&[1, 1, 1]));
        assert_eq!(slots.0.len(), 64);
        assert_eq!(moved(&before, &slots, NextHop::NONE) as u64, count(&slots, NextHop(3)));
        slots.change(&members(&[1]));
        assert_eq!((slots.0.len(), count(&slots, NextHop(1))), (64, 64));
        assert_eq!(Slots::new(&members(&[1; 64])).0.len(), 1_024);
        assert!(fits(&members(&[1, 4_095])) && !fits(&members(&[1, 4_096])));
    }
}
