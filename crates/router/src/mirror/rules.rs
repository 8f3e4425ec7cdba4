//! The rules of policy routing that the kernel has. `rule_list.rs` follows them for one interface.

use std::collections::BTreeSet;

use fullview_table::Family;

use super::rule_list::{Coverage, Ingress, RuleList};
use crate::netlink::event::{Rule, RuleTarget};
use crate::route::{LOCAL_TABLE, MAIN_TABLE};

/// All rules of the kernel, in the order of their priorities.
#[derive(Default)]
pub(super) struct RuleTable {
    known: Vec<KnownRule>,
    /// Whether a dump lists the rules now. Changes wait for its end, so a rule that it lists twice exists twice.
    is_listed: bool,
    /// The families that ever had a rule. A kernel may be built without rules for a family: it has only one table then.
    families: Vec<Family>,
    /// Whether the kernel gets the packets that rules may select by protocol or ports.
    pub leaves_transport: bool,
}

struct KnownRule {
    rule: Rule,
    /// Whether the last dump listed it.
    seen: bool,
}

impl RuleTable {
    /// Returns whether the rule is new, or has another place. Rules of one priority are evaluated in the order in which
    /// they were added, and changes and dumps report them in this order. A rule that is reported again may have been
    /// removed and added meanwhile, so its place is that of the last report. Of equal rules the first one counts.
    pub fn add(&mut self, rule: Rule) -> bool {
        if !self.families.contains(&rule.family) {
            self.families.push(rule.family);
        }
        let before = self.place(&rule);
        if self.is_listed && self.known.iter().any(|known| known.seen && known.rule == rule) {
            return false;
        }
        before.into_iter().for_each(|place| drop(self.known.remove(place)));
        // Before those that a dump has yet to list, so that they keep their order until it does.
        let place =
            self.known.partition_point(|known| (known.rule.priority, !known.seen) <= (rule.priority, false));
        self.known.insert(place, KnownRule { rule, seen: true });
        before != Some(place)
    }

    /// Whether a change adds a rule that is known: it is another one, or a dump listed it before.
    pub fn is_repeated(&self, rule: &Rule) -> bool {
        !self.is_listed && self.place(rule).is_some()
    }

    fn place(&self, rule: &Rule) -> Option<usize> {
        self.known.iter().position(|known| known.rule == *rule)
    }

    /// Returns whether the rule was known.
    pub fn remove(&mut self, rule: &Rule) -> bool {
        self.place(rule).map(|place| self.known.remove(place)).is_some()
    }

    /// Begins a dump.
    pub fn mark(&mut self) {
        self.is_listed = true;
        self.known.iter_mut().for_each(|known| known.seen = false);
    }

    /// Removes the rules that the dump did not list; returns how many.
    pub fn sweep(&mut self) -> usize {
        self.is_listed = false;
        let before = self.known.len();
        self.known.retain(|known| known.seen);
        before - self.known.len()
    }

    /// The rules that packets of a family meet that arrive there.
    pub fn list(
        &self,
        family: Family,
        ingress: &Ingress<'_>,
        coverage: &dyn Fn(u32) -> Coverage,
    ) -> RuleList {
        if !self.families.contains(&family) && ingress.vrf.is_none() {
            return RuleList::of_table(MAIN_TABLE);
        }
        RuleList::new(self.of(family), ingress, coverage)
    }

    fn of(&self, family: Family) -> impl Iterator<Item = &Rule> + Clone {
        self.known.iter().map(|known| &known.rule).filter(move |rule| rule.family == family)
    }

    /// The tables whose routes decide whether packets meet the next rule.
    pub fn tables(&self, family: Family) -> BTreeSet<u32> {
        let table = |rule: &Rule| match rule.target {
            RuleTarget::Table(table) | RuleTarget::SpecificRoutes(table)
                if ![LOCAL_TABLE, MAIN_TABLE].contains(&table) =>
            {
                Some(table)
            }
            _ => None,
        };
        self.of(family).filter_map(table).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::event::RuleSelector;

    fn rule(priority: u32, target: RuleTarget) -> Rule {
        let identity = format!("{priority} {target:?}").into_bytes();
        Rule { family: Family::Inet, priority, selector: RuleSelector::default(), target, identity }
    }

    /// The rules that every host with a VRF has.
    fn rules() -> RuleTable {
        let mut rules = RuleTable::default();
        let usual = [
            (32_767, RuleTarget::Table(253)),
            (0, RuleTarget::Table(LOCAL_TABLE)),
            (32_766, RuleTarget::Table(MAIN_TABLE)),
            (1_000, RuleTarget::VrfTable),
        ];
        usual.into_iter().for_each(|(priority, target)| assert!(rules.add(rule(priority, target))));
        rules
    }

    const PLAIN: Ingress<'_> = Ingress { link: "eth1", vrf: None, knows_transport: true };
    const IN_VRF: Ingress<'_> = Ingress { link: "eth2", vrf: Some(("red", 10)), knows_transport: true };

    /// The only table in which packets of an interface are looked up.
    fn table(rules: &RuleTable, ingress: &Ingress<'_>) -> Option<u32> {
        rules.list(Family::Inet, ingress, &|_| Coverage::All).only_table()
    }

    #[test]
    fn without_other_rules_packets_are_looked_up_in_the_own_table() {
        assert_eq!([PLAIN, IN_VRF].map(|ingress| table(&rules(), &ingress)), [Some(MAIN_TABLE), Some(10)]);
        let of_inet6 = rules().list(Family::Inet6, &PLAIN, &|_| Coverage::All);
        assert_eq!(of_inet6.only_table(), Some(MAIN_TABLE), "a kernel without rules");
        assert_eq!(rules().tables(Family::Inet), [253].into());
    }

    #[test]
    fn a_rule_that_is_removed_or_not_listed_is_forgotten() {
        let other = rule(100, RuleTarget::Table(100));
        let mut all = rules();
        assert!(all.add(other.clone()) && table(&all, &PLAIN) == Some(100));
        assert!(all.remove(&other) && !all.remove(&other));
        assert_eq!(table(&all, &PLAIN), Some(MAIN_TABLE));
        all.add(other.clone());
        all.mark();
        let main = rule(32_766, RuleTarget::Table(MAIN_TABLE));
        assert!(!all.add(main.clone()));
        assert_eq!(table(&all, &PLAIN), Some(100), "until the dump is complete");
        assert_eq!(all.sweep(), 4);
        let left = [PLAIN, IN_VRF].map(|ingress| table(&all, &ingress));
        assert_eq!(left, [Some(MAIN_TABLE); 2], "without the VRF's rule");
        assert!(all.remove(&main));
        assert!(all.list(Family::Inet, &PLAIN, &|_| Coverage::All).leaves_all(), "no rule, no table");
    }

    /// Which table comes first says which of two rules of one priority is the first.
    #[test]
    fn rules_of_one_priority_have_the_order_of_the_last_report() {
        let [main, other] = [MAIN_TABLE, 100].map(|table| rule(100, RuleTarget::Table(table)));
        let mut rules = rules();
        let is_main_first = |rules: &RuleTable| table(rules, &PLAIN) == Some(MAIN_TABLE);
        assert!(rules.add(main.clone()) && rules.add(other.clone()));
        assert!(is_main_first(&rules));
        rules.mark();
        assert!(!rules.add(main.clone()) && is_main_first(&rules), "before the dump is complete");
        assert!(!rules.add(other.clone()) && is_main_first(&rules));
        // While messages were lost, `main` was removed and added again.
        rules.mark();
        assert!(rules.add(other.clone()) && !rules.add(main.clone()));
        assert!(!is_main_first(&rules));
        assert!(!rules.add(other.clone()) && !is_main_first(&rules), "the dump lists a second one");
        assert_eq!(rules.sweep(), 4);
        assert!(rules.is_repeated(&other) && rules.add(other.clone()) && is_main_first(&rules));
    }
}
