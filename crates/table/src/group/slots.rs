//! The slots of a group: which member each part of the flows goes to, and how little that changes when members do.
//!
//! A flow's hash picks a slot, a slot names a member. Member `i` of weight `w` is due `slots × w / all weights` slots
//! and always has that number rounded down or up. When members change a slot keeps its member unless
//! - the member is gone, or has more slots than its new due rounded up: those in excess are given away; or
//! - another member would stay below its due rounded down: it takes single slots from those that have more than is due.
//!
//! So a member that leaves takes no flow of the others with it (RFC 2992 asks for little disruption; its hash-threshold
//! moves a quarter to a half of all flows), but for what rounding makes of unequal weights: at most one slot less than
//! there are members. Of equal weights it moves none.

use crate::nexthop::NextHop;

use super::Member;

/// Slots of the member with the smallest weight, so that rounding takes or gives it a sixteenth of its share at most,
/// as far as [`MOST`] allows.
const OF_THE_SMALLEST: u64 = 16;
/// Slots of a group, at most.
pub(super) const MOST: u64 = 4_096;

/// A power of two of slots.
#[derive(Clone, Debug)]
pub(super) struct Slots(Vec<NextHop>);

/// A member while slots are dealt out.
struct Share {
    next_hop: NextHop,
    /// Its due, times all weights together: a whole number.
    due: u64,
    count: u64,
}

impl Share {
    fn floor(&self, weights: u64) -> u64 {
        self.due / weights
    }

    fn ceil(&self, weights: u64) -> u64 {
        self.due.div_ceil(weights)
    }

    /// How far it is below its due, in parts of a slot.
    fn lacks(&self, weights: u64) -> i64 {
        self.due as i64 - (self.count * weights) as i64
    }
}

impl Slots {
    /// For members in order, each once, none of weight 0; [`fits`] has been asked.
    pub(super) fn new(members: &[Member]) -> Self {
        let mut slots = Slots(vec![NextHop::NONE; size(members)]);
        slots.deal(members);
        slots
    }

    /// Gives the slots to these members instead. There may be more slots afterwards, each split into equal ones; never
    /// fewer, since that would move flows for nothing.
    pub(super) fn change(&mut self, members: &[Member]) {
        self.0 = self.0.repeat((size(members) / self.0.len()).max(1));
        self.deal(members);
    }

    pub(super) fn as_slice(&self) -> &[NextHop] {
        &self.0
    }

    fn deal(&mut self, members: &[Member]) {
        let weights: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
        let all = self.0.len() as u64;
        let share = |member: &Member| Share {
            next_hop: member.next_hop,
            due: all * u64::from(member.weight),
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

    /// Each free slot to the member that lacks most.
    fn fill(&mut self, free: &[usize], shares: &mut [Share], weights: u64) {
        for slot in free {
            let poorest = shares.iter_mut().rev().max_by_key(|share| share.lacks(weights));
            let Some(poorest) = poorest else { return };
            poorest.count += 1;
            self.0[*slot] = poorest.next_hop;
        }
    }

    /// Nobody stays a whole slot short. Whoever is has others above their due, who can spare one.
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

/// Whether the smallest of these members is due a slot of as many as there may be.
pub(super) fn fits(members: &[Member]) -> bool {
    ratio(members) <= MOST
}

/// All weights by the smallest, rounded up.
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

    /// Every member has its due, rounded down or up.
    fn is_fair(slots: &Slots, members: &[Member]) -> bool {
        let weights: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
        members.iter().all(|member| {
            let due = slots.0.len() as u64 * u64::from(member.weight);
            (due / weights..=due.div_ceil(weights)).contains(&count(slots, member.next_hop))
        })
    }

    proptest! {
        #[test]
        fn a_member_that_leaves_takes_nobody_along(
            weights in prop::collection::vec(1u16..60, 2..=64),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..64),
        ) {
            let mut members = members(&weights);
            let mut slots = Slots::new(&members);
            for leaver in order {
                if members.len() == 1 { break; }
                let gone = members.remove(leaver.index(members.len())).next_hop;
                let before = slots.clone();
                slots.change(&members);
                prop_assert!(is_fair(&slots, &members));
                prop_assert!(moved(&before, &slots, gone) < members.len());
            }
        }

        #[test]
        fn equals_move_nothing_but_the_leavers_flows(
            others in 1u16..64,
            order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..40),
        ) {
            let all = members(&vec![3; usize::from(others) + 1]);
            let (mut present, mut absent) = (all.clone(), Vec::new());
            let mut slots = Slots::new(&all);
            for (which, comes) in order {
                let before = slots.clone();
                if comes && !absent.is_empty() {
                    let comer: Member = absent.swap_remove(which.index(absent.len()));
                    present.push(comer);
                    slots.change(&present);
                    let elsewhere = before.0.iter().zip(&slots.0).filter(|(b, a)| b != a && **a != comer.next_hop);
                    prop_assert_eq!(elsewhere.count(), 0, "a comer takes slots, and no other does");
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
