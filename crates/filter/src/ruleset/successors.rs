//! What the rules of one rule set are in the next one.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::rule::{CompiledRule, RuleAction};
use crate::state::{GONE, GONE_WITH_STATES};

/// A rule of an older rule set, or of another process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormerRule<'a> {
    /// What it is recognized by; `None` if no rule of the next set has the same.
    pub identity: Option<&'a str>,
    /// Distinguishes ipfw's rules of equal texts. Zero with pf, whose rules have no numbers of their own.
    pub number: u32,
    /// The rule and the timeouts that its states get if no rule of the next set is the same.
    pub gone: (u32, u8),
}

impl<'a> FormerRule<'a> {
    pub fn new(rule: &'a CompiledRule) -> Self {
        let passes = matches!(rule.action, RuleAction::Pass | RuleAction::Translate(_));
        FormerRule {
            identity: Some(rule.identity()),
            number: if rule.has_own_number() { rule.number } else { 0 },
            // All rule sets of ipfw have the same timeouts.
            gone: (
                if passes { GONE } else { GONE_WITH_STATES },
                if rule.has_own_number() { timeouts(rule) } else { 0 },
            ),
        }
    }
}

fn timeouts(rule: &CompiledRule) -> u8 {
    // A rule set has at most 256 of them.
    rule.state.as_ref().map_or(0, |state| state.timeouts as u8)
}

/// For each of the former rules, the index of the rule that it is among these, and that of its timeouts. Rules of equal text
/// are the same rule: first those that have equal numbers too, then the others in their order.
pub(crate) fn successors<'a>(
    rules: impl Iterator<Item = &'a CompiledRule>,
    former: &[FormerRule<'a>],
) -> Box<[(u32, u8)]> {
    let own: Vec<_> = rules.map(|rule| (FormerRule::new(rule), timeouts(rule))).collect();
    let of = |place: u32| own[place as usize].0;
    let mut numbered = queues(0..own.len() as u32, |place| (of(place).identity, of(place).number));
    let exact: Vec<_> =
        former.iter().map(|rule| next(&mut numbered, &(rule.identity, rule.number))).collect();
    let mut left: Vec<_> = numbered.into_values().flatten().collect();
    left.sort_unstable();
    let mut left = queues(left, |place| of(place).identity);
    let place = |(exact, rule): (Option<u32>, &FormerRule<'a>)| {
        let place = exact.or_else(|| next(&mut left, &rule.identity));
        place.map_or(rule.gone, |place| (place, own[place as usize].1))
    };
    exact.into_iter().zip(former).map(place).collect()
}

/// Places that have the same key, in their order.
fn queues<K: Hash + Eq>(
    places: impl IntoIterator<Item = u32>,
    key: impl Fn(u32) -> K,
) -> HashMap<K, VecDeque<u32>> {
    let mut queues = HashMap::<K, VecDeque<u32>>::new();
    places.into_iter().for_each(|place| queues.entry(key(place)).or_default().push_back(place));
    queues
}

fn next<K: Hash + Eq>(queues: &mut HashMap<K, VecDeque<u32>>, key: &K) -> Option<u32> {
    queues.get_mut(key)?.pop_front()
}
