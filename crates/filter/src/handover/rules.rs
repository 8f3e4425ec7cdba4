//! The rules of another process, as those of this one.

use std::collections::HashSet;

use crate::fields::Fields;
use crate::rule::CompiledRule;
use crate::ruleset::{FormerRule, RuleSet, successors};
use crate::state::{GONE, GONE_WITH_STATES, NO_RULE, RuleCounters, known_rule};

/// More rules than a router could compile are the input of a broken process.
const MOST_RULES: usize = 1 << 22;

/// The rules that came from another process. Which rules of this process they are follows from all of them together.
pub(super) struct ImportedRules<'a> {
    set: &'a RuleSet,
    /// What the rules of this process are recognized by.
    own: HashSet<&'a str>,
    former: Vec<FormerRule<'a>>,
    /// The packets and bytes of each.
    counts: Vec<(u64, u64)>,
    /// The rules of this process, when all have come.
    successors: Option<Box<[(u32, u8)]>>,
}

impl<'a> ImportedRules<'a> {
    pub fn new(set: &'a RuleSet) -> ImportedRules<'a> {
        let own = set.counted().map(CompiledRule::identity).collect();
        ImportedRules { set, own, former: Vec::new(), counts: Vec::new(), successors: None }
    }

    /// Takes a rule. `None`: no process of this version sends that.
    pub fn take(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let counts = (fields.u64()?, fields.u64()?);
        let (number, gone) = (fields.u32()?, (fields.u32()?, fields.u8()?));
        // Only texts that this process has too need be remembered.
        let identity = self.own.get(fields.text()?).copied();
        let may_come = self.successors.is_none()
            && self.former.len() < MOST_RULES
            && matches!(gone.0, GONE | GONE_WITH_STATES);
        may_come.then(|| {
            self.former.push(FormerRule { identity, number, gone });
            self.counts.push(counts);
        })
    }

    /// Recognizes the rules, and counts for those of this process what they have counted. No further ones may come.
    pub fn recognize(&mut self, counters: &RuleCounters) -> &Self {
        if self.successors.is_none() {
            let successors = successors(self.set.counted(), &self.former);
            for ((rule, _), counts) in successors.iter().zip(&self.counts) {
                counters.carry(*rule as usize, *counts);
            }
            self.successors = Some(successors);
        }
        self
    }

    /// The rule of this process, and its timeouts, for what has this rule and these timeouts in the other one. What lost its rule
    /// there keeps the timeouts that it got then.
    pub fn rule(&self, number: u32, timeouts: u8) -> (u32, u8) {
        let successor = self.successors.as_ref().and_then(|all| all.get(number as usize)).copied();
        let without = if known_rule(number).is_some() { (NO_RULE, 0) } else { (number, timeouts) };
        successor.unwrap_or(without)
    }
}
