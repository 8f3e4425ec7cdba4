use super::matching::{Surroundings, matches};
use crate::packet::Packet;
use crate::rule::CompiledRule;

/// Rules in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct RuleList {
    rules: Vec<CompiledRule>,
}

impl RuleList {
    /// The list of these rules.
    pub fn new(rules: Vec<CompiledRule>) -> Self {
        RuleList { rules }
    }

    /// The rules in order.
    pub fn rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// The first rule from `from` on that matches.
    pub(super) fn next_match(&self, from: usize, packet: &Packet, around: Surroundings<'_>) -> Option<usize> {
        let rest = self.rules.get(from..)?;
        let found = |(index, rule): &(usize, &CompiledRule)| matches(rule, from + index, packet, around);
        rest.iter().enumerate().find(found).map(|(index, _)| from + index)
    }
}
