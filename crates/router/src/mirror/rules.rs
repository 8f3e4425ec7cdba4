//! Rules of policy routing: whether packets of an interface are looked up in the table that this router uses for them.
//!
//! The rules themselves are not applied. Packets that arrive on an interface for which rules may choose another table
//! are left to the kernel.

use fullview_table::Family;

use crate::netlink::event::{Rule, RuleTarget};
use crate::route::{LOCAL_TABLE, MAIN_TABLE};

/// All rules of the kernel, in the order of their priorities.
#[derive(Default)]
pub(super) struct RuleTable {
    known: Vec<KnownRule>,
    /// The families that ever had a rule. A kernel may be built without rules for a family: it has only one table then.
    families: Vec<Family>,
}

struct KnownRule {
    rule: Rule,
    /// Whether the last dump listed it.
    seen: bool,
}

/// The link on which packets arrive.
pub(super) struct Ingress<'l> {
    pub link: &'l str,
    /// The VRF that the link belongs to.
    pub vrf: Option<&'l str>,
}

impl RuleTable {
    /// Returns whether the rule is new. Rules of one priority are evaluated in the order in which they were added. A
    /// new rule may be reported twice: as a change, and by a dump.
    pub fn add(&mut self, rule: Rule) -> bool {
        if !self.families.contains(&rule.family) {
            self.families.push(rule.family);
        }
        if let Some(known) = self.known.iter_mut().find(|known| known.rule == rule) {
            known.seen = true;
            return false;
        }
        let place = self.known.partition_point(|known| known.rule.priority <= rule.priority);
        self.known.insert(place, KnownRule { rule, seen: true });
        true
    }

    /// Returns whether the rule was known.
    pub fn remove(&mut self, rule: &Rule) -> bool {
        let place = self.known.iter().position(|known| known.rule == *rule);
        place.map(|place| self.known.remove(place)).is_some()
    }

    /// Begins a dump.
    pub fn mark(&mut self) {
        self.known.iter_mut().for_each(|known| known.seen = false);
    }

    /// Removes the rules that the dump did not list; returns how many.
    pub fn sweep(&mut self) -> usize {
        let before = self.known.len();
        self.known.retain(|known| known.seen);
        before - self.known.len()
    }

    /// Whether packets of this family that arrive there are looked up in the main table, or in the VRF's, before any
    /// rule may choose another table for some of them. The table `local` may come before or after: packets for its
    /// prefixes are the kernel's in any case, and so are packets that this router's table has no route for.
    pub fn choose_own_table(&self, family: Family, ingress: &Ingress<'_>) -> bool {
        if !self.families.contains(&family) {
            return ingress.vrf.is_none();
        }
        let rules = self.known.iter().map(|known| &known.rule).filter(|rule| rule.family == family);
        let concern = |rule: &&Rule| rule.interface.as_ref().is_none_or(|name| ingress.has(name));
        let decides = |rule: &Rule| match rule.target {
            RuleTarget::Table(LOCAL_TABLE) => None,
            RuleTarget::Table(MAIN_TABLE) => Some(ingress.vrf.is_none()),
            RuleTarget::VrfTable => ingress.vrf.map(|_| true),
            RuleTarget::Table(_) | RuleTarget::Other => Some(false),
        };
        rules.filter(concern).find_map(decides).unwrap_or(false)
    }
}

impl Ingress<'_> {
    fn has(&self, name: &str) -> bool {
        self.link == name || self.vrf == Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(priority: u32, interface: Option<&str>, target: RuleTarget) -> Rule {
        let identity = format!("{priority} {interface:?} {target:?}").into_bytes();
        Rule { family: Family::Inet, priority, interface: interface.map(str::to_owned), target, identity }
    }

    /// The rules that every host with a VRF has, and one more.
    fn rules(more: Option<Rule>) -> RuleTable {
        let mut rules = RuleTable::default();
        let usual = [
            (32_767, RuleTarget::Table(253)),
            (0, RuleTarget::Table(255)),
            (32_766, RuleTarget::Table(254)),
            (1_000, RuleTarget::VrfTable),
        ];
        let usual = usual.into_iter().map(|(priority, target)| rule(priority, None, target));
        usual.chain(more).for_each(|rule| assert!(rules.add(rule)));
        rules
    }

    const PLAIN: Ingress<'_> = Ingress { link: "eth1", vrf: None };
    const IN_VRF: Ingress<'_> = Ingress { link: "eth2", vrf: Some("red") };

    /// Whether packets of a plain interface and of a VRF's interface are looked up in their own tables.
    fn own_table(more: Option<Rule>) -> [bool; 2] {
        [PLAIN, IN_VRF].map(|ingress| rules(more.clone()).choose_own_table(Family::Inet, &ingress))
    }

    #[test]
    fn packets_that_a_rule_may_select_are_left_to_the_kernel() {
        assert_eq!(own_table(None), [true, true]);
        assert_eq!(own_table(Some(rule(100, None, RuleTarget::Other))), [false, false]);
        assert_eq!(own_table(Some(rule(100, None, RuleTarget::Table(100)))), [false, false]);
        assert_eq!(
            own_table(Some(rule(32_765, None, RuleTarget::Other))),
            [false, true],
            "the VRF's comes before"
        );
        assert_eq!(own_table(Some(rule(32_766, None, RuleTarget::Other))), [true, true], "main comes before");
        assert_eq!(own_table(Some(rule(100, Some("eth1"), RuleTarget::Table(100)))), [false, true]);
        assert_eq!(own_table(Some(rule(100, Some("red"), RuleTarget::Table(100)))), [true, false]);
        assert_eq!(own_table(Some(rule(100, Some("lo"), RuleTarget::Table(100)))), [true, true]);
        assert_eq!(
            own_table(Some(rule(100, None, RuleTarget::Table(254)))),
            [true, false],
            "main before the VRF's"
        );
        assert!(rules(None).choose_own_table(Family::Inet6, &PLAIN), "a kernel without rules");
    }

    #[test]
    fn a_rule_that_is_removed_or_not_listed_is_forgotten() {
        let other = rule(100, None, RuleTarget::Other);
        let mut all = rules(Some(other.clone()));
        assert!(all.remove(&other) && !all.remove(&other));
        assert!(all.choose_own_table(Family::Inet, &PLAIN));
        let mut all = rules(Some(other.clone()));
        all.mark();
        let main = rule(32_766, None, RuleTarget::Table(254));
        assert!(!all.add(main));
        assert!(!all.choose_own_table(Family::Inet, &PLAIN), "until the dump is complete");
        assert_eq!(all.sweep(), 4);
        assert!(all.choose_own_table(Family::Inet, &PLAIN) && !all.choose_own_table(Family::Inet, &IN_VRF));
        assert!(all.remove(&rule(32_766, None, RuleTarget::Table(254))));
        assert!(!all.choose_own_table(Family::Inet, &PLAIN), "no rule, no table");
    }
}
