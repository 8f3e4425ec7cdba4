//! Tags. A packet keeps each tag that rules have given it, so that every tag is a bit.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{IpfwOption, IpfwRule};

/// A packet has so many bits for tags.
pub(super) const MOST_TAGS: usize = u16::BITS as usize;

/// The tags that rules set, and the ranges of tags that rules ask about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedTags {
    set: BTreeSet<u16>,
    tested: BTreeSet<(u16, u16)>,
}

impl UsedTags {
    /// Adds those of a rule, and says whether some of them are new.
    pub(super) fn add(&mut self, rule: &IpfwRule) -> bool {
        let before = (self.set.len(), self.tested.len());
        self.set.extend(rule.tag);
        let options = rule.body.options.iter().flatten();
        self.tested.extend(options.flat_map(|term| match &term.value {
            IpfwOption::Tagged(tags) => tags.as_slice(),
            _ => &[],
        }));
        (self.set.len(), self.tested.len()) != before
    }

    /// How many need a bit: those that rules both set and ask about.
    pub(super) fn count(&self) -> usize {
        self.both().len()
    }

    /// The bit of each.
    pub(super) fn bits(&self) -> BTreeMap<u16, u16> {
        self.both().into_iter().zip((0..u16::BITS).map(|bit| 1 << bit)).collect()
    }

    fn both(&self) -> BTreeSet<u16> {
        self.tested.iter().flat_map(|(first, last)| self.set.range(first..=last)).copied().collect()
    }
}
