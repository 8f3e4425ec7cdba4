//! All combinations of the members of a rule's lists, in pfctl's order: the last list changes fastest.

use crate::address::Family;
use crate::pf::address::{OwnerTest, PortTest};
use crate::pf::expand::resolve::ResolvedHost;
use crate::pf::rule::{IcmpTest, InterfaceTest};
use crate::pf::syntax::RuleSyntax;

/// One member of each list; `None` of an empty one.
#[derive(Debug, Clone, Copy)]
pub struct Combination<'a> {
    pub interface: Option<&'a InterfaceTest>,
    pub protocol: Option<u8>,
    pub icmp: Option<&'a (Family, IcmpTest)>,
    pub from: Option<&'a ResolvedHost>,
    pub to: Option<&'a ResolvedHost>,
    pub from_port: Option<PortTest>,
    pub to_port: Option<PortTest>,
    pub os: Option<&'a String>,
    pub user: Option<OwnerTest>,
    pub group: Option<OwnerTest>,
}

/// The combinations, of which there are `count`.
pub fn combinations<'a>(
    rule: &'a RuleSyntax,
    from: &'a [ResolvedHost],
    to: &'a [ResolvedHost],
    count: usize,
) -> impl Iterator<Item = Combination<'a>> {
    (0..count).map(move |index| combination(rule, from, to, index))
}

/// How many combinations there are; `None` of more than there are numbers.
pub fn count(rule: &RuleSyntax, from: usize, to: usize) -> Option<usize> {
    let options = &rule.options;
    let lengths = [
        rule.interfaces.len(),
        rule.protocols.len(),
        options.icmp.len(),
        from,
        to,
        rule.from.ports.len(),
        rule.to.ports.len(),
        rule.oses.len(),
        options.users.len(),
        options.groups.len(),
    ];
    lengths.iter().try_fold(1_usize, |product, length| product.checked_mul((*length).max(1)))
}

fn combination<'a>(
    rule: &'a RuleSyntax,
    from: &'a [ResolvedHost],
    to: &'a [ResolvedHost],
    mut index: usize,
) -> Combination<'a> {
    let index = &mut index;
    Combination {
        group: pick(index, &rule.options.groups).copied(),
        user: pick(index, &rule.options.users).copied(),
        os: pick(index, &rule.oses),
        to_port: pick(index, &rule.to.ports).copied(),
        from_port: pick(index, &rule.from.ports).copied(),
        to: pick(index, to),
        from: pick(index, from),
        icmp: pick(index, &rule.options.icmp),
        protocol: pick(index, &rule.protocols).copied(),
        interface: pick(index, &rule.interfaces),
    }
}

/// Takes the digit of one list off the index.
fn pick<'a, T>(index: &mut usize, items: &'a [T]) -> Option<&'a T> {
    let length = items.len().max(1);
    let item = items.get(*index % length);
    *index /= length;
    item
}
