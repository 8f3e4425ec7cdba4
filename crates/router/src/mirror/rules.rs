//! Rules of policy routing: whether packets of an interface are looked up in the table that this router uses for them.
//!
//! The rules are followed as far as they have the same effect on all packets of an interface. Packets that arrive on an
//! interface for which rules may choose another table for some of them are left to the kernel.

use fullview_table::Family;

use crate::netlink::event::{Rule, RuleIngress, RuleTarget};
use crate::route::{LOCAL_TABLE, MAIN_TABLE};

/// All rules of the kernel, in the order of their priorities.
#[derive(Default)]
pub(super) struct RuleTable {
    known: Vec<KnownRule>,
    /// Whether a dump lists the rules now. Changes wait for its end, so a rule that it lists twice exists twice.
    is_listed: bool,
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

/// What a rule does with the packets of an interface.
enum Effect {
    /// The next rule comes next, or all packets without a route are the kernel's in any case.
    Next,
    /// The first rule of this priority comes next, if there is one.
    Goto(u32),
    /// Whether all packets are looked up in the interface's own table.
    Decided(bool),
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

    /// Whether packets of this family that arrive there are looked up in the main table, or in the VRF's, before any
    /// rule may choose another table for some of them. The table `local` may come before or after: packets for its
    /// prefixes are the kernel's in any case, and so are packets that this router's table has no route for.
    pub fn choose_own_table(&self, family: Family, ingress: &Ingress<'_>) -> bool {
        if !self.families.contains(&family) {
            return ingress.vrf.is_none();
        }
        let rules = || self.known.iter().map(|known| &known.rule).filter(|rule| rule.family == family);
        let mut lowest = 0;
        for rule in rules().filter(|rule| ingress.may_be_of(&rule.ingress)) {
            if rule.priority < lowest {
                continue;
            }
            match ingress.effect(rule) {
                Effect::Next => {}
                Effect::Goto(priority) if rules().any(|rule| rule.priority == priority) => lowest = priority,
                Effect::Goto(_) => {}
                Effect::Decided(is_own) => return is_own,
            }
        }
        false
    }
}

impl Ingress<'_> {
    /// Whether such a rule may select packets that arrive here. Kernels differ in whether the links of a VRF have their
    /// own names for rules, or only the VRF's.
    fn may_be_of(&self, selector: &RuleIngress) -> bool {
        match selector {
            RuleIngress::Any => true,
            RuleIngress::On(name) => self.link == name || self.vrf == Some(name),
            RuleIngress::NotOn(name) => self.link != name || self.vrf.is_some(),
        }
    }

    /// A lookup of only some packets in the interface's own table changes nothing: the rules that follow have the others
    /// looked up there too, or decide that some packets are not.
    fn effect(&self, rule: &Rule) -> Effect {
        let own = if rule.selects_all { Effect::Decided(true) } else { Effect::Next };
        let selects_surely = rule.selects_all && (self.vrf.is_none() || rule.ingress == RuleIngress::Any);
        match (rule.target, self.vrf) {
            (RuleTarget::Next | RuleTarget::Table(LOCAL_TABLE), _) | (RuleTarget::VrfTable, None) => {
                Effect::Next
            }
            (RuleTarget::Table(MAIN_TABLE), None) | (RuleTarget::VrfTable, Some(_)) => own,
            (RuleTarget::Goto(priority), _) if selects_surely => Effect::Goto(priority),
            _ => Effect::Decided(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(priority: u32, interface: Option<&str>, target: RuleTarget) -> Rule {
        let identity = format!("{priority} {interface:?} {target:?}").into_bytes();
        let ingress = interface.map_or(RuleIngress::Any, |name| RuleIngress::On(name.to_owned()));
        Rule { family: Family::Inet, priority, ingress, selects_all: true, target, identity }
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

    #[test]
    fn rules_that_change_nothing_are_passed() {
        let nop = rule(100, None, RuleTarget::Next);
        assert_eq!(own_table(Some(Rule { selects_all: false, ..nop.clone() })), [true, true]);
        assert_eq!(own_table(Some(nop)), [true, true]);
        let some = |target| Some(Rule { selects_all: false, ..rule(100, None, target) });
        assert_eq!(own_table(some(RuleTarget::Table(MAIN_TABLE))), [true, false], "main is not the VRF's");
        assert_eq!(own_table(some(RuleTarget::Table(LOCAL_TABLE))), [true, true]);
        assert_eq!(own_table(some(RuleTarget::VrfTable)), [true, true]);
        assert_eq!(own_table(some(RuleTarget::Table(100))), [false, false]);
        assert_eq!(own_table(some(RuleTarget::Goto(32_766))), [false, false]);
    }

    #[test]
    fn some_packets_in_the_own_table_do_not_decide_for_the_others() {
        let mut rules = rules(Some(rule(200, None, RuleTarget::Table(100))));
        let some = Rule { selects_all: false, ..rule(100, None, RuleTarget::Table(MAIN_TABLE)) };
        assert!(rules.add(some));
        assert!(!rules.choose_own_table(Family::Inet, &PLAIN));
    }

    #[test]
    fn an_inverted_interface_concerns_the_others() {
        let not_on = |name: &str| {
            let ingress = RuleIngress::NotOn(name.into());
            own_table(Some(Rule { ingress, ..rule(100, None, RuleTarget::Table(100)) }))
        };
        assert_eq!(not_on("eth1"), [true, false]);
        assert_eq!(not_on("eth2"), [false, false], "kernels may compare the VRF");
        assert_eq!(not_on("lo"), [false, false]);
    }

    #[test]
    fn a_goto_passes_the_rules_before_its_target() {
        let with_goto = |goto: Rule| {
            let mut rules = rules(Some(rule(200, None, RuleTarget::Table(100))));
            rules.add(goto);
            [PLAIN, IN_VRF].map(|ingress| rules.choose_own_table(Family::Inet, &ingress))
        };
        assert_eq!(with_goto(rule(100, None, RuleTarget::Goto(1_000))), [true, true]);
        assert_eq!(with_goto(rule(100, None, RuleTarget::Goto(32_766))), [true, false], "past the VRF's");
        assert_eq!(with_goto(rule(100, None, RuleTarget::Goto(200))), [false, false]);
        assert_eq!(with_goto(rule(100, None, RuleTarget::Goto(1_001))), [false, false], "no such rule");
        assert_eq!(with_goto(rule(100, Some("eth1"), RuleTarget::Goto(1_000))), [true, false]);
        assert_eq!(with_goto(rule(100, Some("eth2"), RuleTarget::Goto(1_000))), [false, false]);
    }

    /// Whether packets are looked up in main first says which of two rules of one priority is the first.
    #[test]
    fn rules_of_one_priority_have_the_order_of_the_last_report() {
        let main = rule(100, None, RuleTarget::Table(MAIN_TABLE));
        let other = rule(100, None, RuleTarget::Table(100));
        let mut rules = rules(None);
        let is_main_first = |rules: &RuleTable| rules.choose_own_table(Family::Inet, &PLAIN);
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
