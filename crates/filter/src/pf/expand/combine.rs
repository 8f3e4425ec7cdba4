//! All combinations of the members of a rule's lists, in pfctl's order: the last list changes fastest.

use crate::address::Family;
use crate::pf::address::{OwnerTest, PortTest};
use crate::pf::error::{PfError, PfResult};
use crate::pf::expand::resolve::ResolvedHost;
use crate::pf::rule::{IcmpTest, InterfaceTest};
use crate::pf::syntax::RuleSyntax;

/// More rules than this come from a mistake, and would fill the memory.
const MOST: usize = 100_000;

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

pub fn combinations<'a>(
    rule: &'a RuleSyntax,
    from: &'a [ResolvedHost],
    to: &'a [ResolvedHost],
) -> PfResult<impl Iterator<Item = Combination<'a>>> {
    let count = count(rule, from.len(), to.len()).filter(|count| *count <= MOST);
    let too_many = || {
        let problem = format!("the lists of this rule expand to more than {MOST} rules");
        PfError::invalid(&rule.position, problem, "put addresses into a table")
    };
    Ok((0..count.ok_or_else(too_many)?).map(move |index| combination(rule, from, to, index)))
}

fn count(rule: &RuleSyntax, from: usize, to: usize) -> Option<usize> {
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
