//! Rules of policy routing: whether packets of an interface go by the table that we look them up in.
//!
//! They are not followed. What comes in by an interface that they may lead elsewhere is left to the kernel.

use fullview_table::Family;

use crate::netlink::event::{Rule, RuleTarget};
use crate::route::{LOCAL_TABLE, MAIN_TABLE};

/// All rules of the kernel, by priority.
#[derive(Default)]
pub(super) struct Rules {
    known: Vec<Known>,
    /// Of which there ever was a rule. A kernel may be built without any for a family: it has but one table then.
    families: Vec<Family>,
}

struct Known {
    rule: Rule,
    /// Whether the last dump had it.
    seen: bool,
}

/// Who packets come in by.
pub(super) struct Ingress<'l> {
    pub link: &'l str,
    /// The VRF that it belongs to.
    pub vrf: Option<&'l str>,
}

impl Rules {
    /// Returns whether that changes anything. Those of one priority are asked in the order in which they came. One that
    /// is known is told of twice: by a dump and because it is new.
    pub fn add(&mut self, rule: Rule) -> bool {
        if !self.families.contains(&rule.family) {
            self.families.push(rule.family);
        }
        if let Some(known) = self.known.iter_mut().find(|known| known.rule == rule) {
            known.seen = true;
            return false;
        }
        let place = self.known.partition_point(|known| known.rule.priority <= rule.priority);
        self.known.insert(place, Known { rule, seen: true });
        true
    }

    /// One that is not known stays where it is: to be too careful is right.
    pub fn remove(&mut self, rule: &Rule) -> bool {
        let place = self.known.iter().position(|known| known.rule == *rule);
        place.map(|place| self.known.remove(place)).is_some()
    }

    /// Before a dump: what it does not mention is gone.
    pub fn mark(&mut self) {
        self.known.iter_mut().for_each(|known| known.seen = false);
    }

    /// After a dump: returns how many it did not mention.
    pub fn sweep(&mut self) -> usize {
        let before = self.known.len();
        self.known.retain(|known| known.seen);
        before - self.known.len()
    }

    /// Whether packets of this family that came in there are looked up in the main table, or in the VRF's, before any
    /// rule may send some of them elsewhere. The table `local` may come before or after: what it has is the kernel's
    /// in any case, as is what our table has no route for.
    pub fn lead_home(&self, family: Family, ingress: &Ingress<'_>) -> bool {
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

    /// As every host has them, and one more.
    fn rules(more: Option<Rule>) -> Rules {
        let mut rules = Rules::default();
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

    /// Whether packets of a plain interface and of a VRF's one go home.
    fn home(more: Option<Rule>) -> [bool; 2] {
        [PLAIN, IN_VRF].map(|ingress| rules(more.clone()).lead_home(Family::Inet, &ingress))
    }

    #[test]
    fn packets_that_a_rule_may_concern_do_not_go_home() {
        assert_eq!(home(None), [true, true]);
        assert_eq!(home(Some(rule(100, None, RuleTarget::Other))), [false, false]);
        assert_eq!(home(Some(rule(100, None, RuleTarget::Table(100)))), [false, false]);
        assert_eq!(
            home(Some(rule(32_765, None, RuleTarget::Other))),
            [false, true],
            "the VRF's comes before"
        );
        assert_eq!(home(Some(rule(32_766, None, RuleTarget::Other))), [true, true], "main comes before");
        assert_eq!(home(Some(rule(100, Some("eth1"), RuleTarget::Table(100)))), [false, true]);
        assert_eq!(home(Some(rule(100, Some("red"), RuleTarget::Table(100)))), [true, false]);
        assert_eq!(home(Some(rule(100, Some("lo"), RuleTarget::Table(100)))), [true, true]);
        assert_eq!(
            home(Some(rule(100, None, RuleTarget::Table(254)))),
            [true, false],
            "main before the VRF's"
        );
        assert!(rules(None).lead_home(Family::Inet6, &PLAIN), "a kernel without rules");
    }

    #[test]
    fn a_rule_that_is_gone_or_not_mentioned_is_forgotten() {
        let other = rule(100, None, RuleTarget::Other);
        let mut all = rules(Some(other.clone()));
        assert!(all.remove(&other) && !all.remove(&other));
        assert!(all.lead_home(Family::Inet, &PLAIN));
        let mut all = rules(Some(other.clone()));
        all.mark();
        let main = rule(32_766, None, RuleTarget::Table(254));
        assert!(!all.add(main));
        assert!(!all.lead_home(Family::Inet, &PLAIN), "until the dump is whole");
        assert_eq!(all.sweep(), 4);
        assert!(all.lead_home(Family::Inet, &PLAIN) && !all.lead_home(Family::Inet, &IN_VRF));
        assert!(all.remove(&rule(32_766, None, RuleTarget::Table(254))));
        assert!(!all.lead_home(Family::Inet, &PLAIN), "no rule, no table");
    }
}
