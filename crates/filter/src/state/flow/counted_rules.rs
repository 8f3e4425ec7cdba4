//! The rules that count the packets of flows. Most flows share a few lists of rules, so a packet adds to the count of its
//! list, and each list adds to its rules once a burst.

use super::trace::PassTrace;
use crate::state::counters::RuleCounters;

/// Lists that are remembered at most, a power of two.
const LISTS: usize = 1024;
/// Places that are tried for a list.
const TRIES: usize = 8;
/// The rules of both passes.
const MOST_RULES: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RuleNumbers {
    len: u8,
    rules: [u32; MOST_RULES],
}

/// The rules of both passes of a flow's packets, and what they have not counted yet.
#[derive(Debug)]
pub(super) struct CountedRules {
    lists: Box<[Option<RuleNumbers>]>,
    pending: Box<[(u64, u64)]>,
    /// The lists with something to count; one may stand there twice.
    touched: Vec<u16>,
}

impl CountedRules {
    pub fn new() -> Self {
        CountedRules {
            lists: vec![None; LISTS].into(),
            pending: vec![(0, 0); LISTS].into(),
            touched: Vec::with_capacity(2 * LISTS),
        }
    }

    /// The number of the list with the rules of both passes, unless there are too many lists.
    pub fn number(&mut self, entering: &PassTrace, leaving: &PassTrace) -> Option<u16> {
        let mut list = RuleNumbers { len: 0, rules: [0; MOST_RULES] };
        for rule in entering.rules().iter().chain(leaving.rules()) {
            *list.rules.get_mut(usize::from(list.len))? = *rule;
            list.len += 1;
        }
        let mixed = list.rules.iter().fold(u64::from(list.len), |hash, rule| {
            (hash ^ u64::from(*rule)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        (0..TRIES).map(|step| (mixed as usize).wrapping_add(step) % LISTS).find_map(|place| {
            let found = self.lists[place].get_or_insert(list);
            (*found == list).then_some(place as u16)
        })
    }

    /// Counts packets and their bytes for a list.
    #[inline(always)]
    pub fn add(&mut self, list: u16, packets: u64, bytes: u64) {
        let place = usize::from(list) % LISTS;
        if self.pending[place].0 == 0 {
            self.touched.push(place as u16);
        }
        self.pending[place].0 += packets;
        self.pending[place].1 += bytes;
    }

    /// Takes a packet back that was counted since the last [`Self::settle`].
    pub fn subtract(&mut self, list: u16, bytes: u64) {
        let (packets, total) = &mut self.pending[usize::from(list) % LISTS];
        (*packets, *total) = (packets.saturating_sub(1), total.saturating_sub(bytes));
    }

    /// Adds what was counted to the rules.
    #[inline]
    pub fn settle(&mut self, counters: &RuleCounters) {
        for list in self.touched.drain(..) {
            let (packets, bytes) = std::mem::take(&mut self.pending[usize::from(list)]);
            let Some(found) = &self.lists[usize::from(list)] else { continue };
            for rule in &found.rules[..usize::from(found.len).min(MOST_RULES)] {
                counters.add_all(*rule, packets, bytes);
            }
        }
    }

    /// Forgets the lists, whose numbers mean nothing to other rules.
    pub fn clear(&mut self) {
        self.lists.fill(None);
    }
}
