//! The rules of policy routing in the program's memory layout.

use std::collections::BTreeMap;

use super::error::EngineError;
use super::layout::{COUNTED, RULE, RULE_LIST, RULES};
use super::words::{half_words, halves};
use crate::policy::{CompiledRule, MaskedAddress, PolicyAction, RuleTransport};

/// The rules that packets of an interface meet.
#[derive(Clone, Debug, Default)]
pub struct XdpRules {
    /// The number of the interface.
    pub interface: u16,
    pub(super) inet: Box<[CompiledRule]>,
    pub(super) inet6: Box<[CompiledRule]>,
}

impl XdpRules {
    /// Of an interface with this number, by its compiled lists.
    pub(super) fn new(interface: u16, inet: &[CompiledRule], inet6: &[CompiledRule]) -> XdpRules {
        XdpRules { interface, inet: inet.into(), inet6: inet6.into() }
    }
}

/// The lists of all interfaces. Interfaces with equal lists share them.
#[derive(Default)]
pub(super) struct RuleMemory {
    /// By the interface's number in the program: where its lists are.
    pub lists: Vec<u32>,
    pub rules: Vec<u32>,
    /// The first rules of lists.
    known: BTreeMap<Vec<[u32; RULE]>, u16>,
}

impl RuleMemory {
    pub fn new(all: &[XdpRules]) -> Result<RuleMemory, EngineError> {
        let mut memory = RuleMemory { lists: vec![0; COUNTED * RULE_LIST], ..RuleMemory::default() };
        for XdpRules { interface, inet, inet6 } in all {
            let first = memory.place(inet)?;
            let first6 = memory.place(inet6)?;
            let place = (usize::from(*interface) + 1) % COUNTED * RULE_LIST;
            let counts = [inet, inet6].map(|list| list.len() as u16);
            let words = [[first, first6], counts].map(|[inet, inet6]| half_words(inet, inet6));
            memory.lists[place..][..RULE_LIST].copy_from_slice(&words);
        }
        Ok(memory)
    }

    /// Returns the number of the first rule of a list.
    fn place(&mut self, list: &[CompiledRule]) -> Result<u16, EngineError> {
        let words: Vec<_> = list.iter().map(words).collect();
        if let Some(first) = self.known.get(&words) {
            return Ok(*first);
        }
        let first = self.rules.len() / RULE;
        let needed = first + list.len();
        if needed > RULES {
            return Err(EngineError::TooLarge { what: "rules of policy routing", needed, limit: RULES });
        }
        self.rules.extend(words.as_flattened());
        self.known.insert(words, first as u16);
        Ok(first as u16)
    }
}

/// The program leaves all packets to the kernel that meet a rule with a protocol or ports.
fn words(rule: &CompiledRule) -> [u32; RULE] {
    words_of(if rule.transport.is_any() { rule } else { &LEAVES_ALL })
}

const LEAVES_ALL: CompiledRule = CompiledRule {
    source: MaskedAddress { bits: 0, mask: 0 },
    destination: MaskedAddress { bits: 0, mask: 0 },
    transport: RuleTransport { protocol: None, source: None, destination: None },
    inverted: false,
    action: PolicyAction::Punt,
};

/// `struct rule`.
fn words_of(rule: &CompiledRule) -> [u32; RULE] {
    let (action, to) = match rule.action {
        PolicyAction::LookUp(table) => (0, table.into()),
        PolicyAction::SkipTo(place) => (1, place.into()),
        PolicyAction::Punt => (2, 0),
        PolicyAction::LookUpSpecific(table) => (3, table.into()),
    };
    let mut words = [0; RULE];
    let addresses = [rule.source, rule.destination].map(|MaskedAddress { bits, mask }| [bits, mask]);
    for (to, part) in words.chunks_mut(4).zip(addresses.as_flattened()) {
        let [low, high] = [*part as u64, (*part >> 64) as u64].map(halves);
        to.copy_from_slice(&[low, high].concat());
    }
    words[16..19].copy_from_slice(&[action, to, rule.inverted.into()]);
    words
}
