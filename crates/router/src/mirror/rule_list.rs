//! The rules of policy routing that packets of one interface and family meet, as the forwarding path follows them.
//!
//! What a rule says about anything except addresses, protocol and ports is decided here. A rule that does not do anything to
//! these packets is left out, and so are rules that no packet reaches. Packets whose fate the router cannot tell are left to
//! the kernel, as packets without a route are in any case. So are those for prefixes of the table `local`, which each table
//! has: the rule for that table may stand anywhere.

use fullview_plane::policy::{MOST_RULES, RulePrefix, RuleTransport};

use crate::netlink::event::{Rule, RuleSelector, RuleTarget};
use crate::route::{LOCAL_TABLE, MAIN_TABLE};

/// The link on which packets arrive.
pub(super) struct Ingress<'l> {
    pub link: &'l str,
    /// The name and the table of the VRF that the link belongs to.
    pub vrf: Option<(&'l str, u32)>,
    /// Whether the data path knows protocols and ports.
    pub knows_transport: bool,
}

/// How much of the address space a table has routes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    Nothing,
    Some,
    /// No packet meets the next rule.
    All,
}

/// A rule that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedRule {
    pub priority: u32,
    pub source: Option<RulePrefix>,
    pub destination: Option<RulePrefix>,
    pub transport: RuleTransport,
    pub inverted: bool,
    pub action: ListedAction,
    /// Whether it may leave out some of these packets.
    is_uncertain: bool,
}

/// What a rule does with the packets that it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListedAction {
    /// They are looked up in this table of the kernel's.
    LookUp(u32),
    /// The same, except that default routes of the table do not count.
    LookUpSpecific(u32),
    /// They meet the first rule from this priority on next.
    Goto(u32),
    Kernel,
}

/// Which packets of an interface a rule selects.
enum Selection {
    None,
    /// Those with these addresses, protocols and ports.
    Some,
    /// Perhaps not all of those with these addresses.
    Uncertain,
    All,
    /// It is not known which.
    Unknown,
}

impl Ingress<'_> {
    /// The table in which packets are looked up without other rules than those that every kernel has.
    pub fn own_table(&self) -> u32 {
        self.vrf.map_or(MAIN_TABLE, |(_, table)| table)
    }

    /// Whether packets that arrive here are those of an `iif`; `None` if that is uncertain. Kernels differ in whether the
    /// links of a VRF have their own names for rules, or only the VRF's.
    fn is_on(&self, name: &str) -> Option<bool> {
        match self.vrf {
            None => Some(self.link == name),
            Some((vrf, _)) if self.link == name || vrf == name => None,
            Some(_) => Some(false),
        }
    }

    fn selection(&self, selector: &RuleSelector) -> Selection {
        let RuleSelector { ingress, source, destination, transport, is_marked, has_others, inverted } =
            selector;
        let is_here = ingress.as_ref().map_or(Some(true), |name| self.is_on(name));
        let selects_none = *is_marked || is_here == Some(false);
        let is_known = self.knows_transport || transport.is_any();
        let is_certain = is_here.is_some() && is_known && !has_others;
        let by_packet = source.is_some() || destination.is_some() || !transport.is_any();
        match (selects_none, inverted) {
            (true, false) => Selection::None,
            (true, true) => Selection::All,
            (false, true) if !is_certain => Selection::Unknown,
            (false, true) if !by_packet => Selection::None,
            (false, false) if !is_certain => Selection::Uncertain,
            (false, false) if !by_packet => Selection::All,
            (false, _) => Selection::Some,
        }
    }

    /// `None` for a rule that changes nothing.
    fn action(&self, target: RuleTarget, coverage: &dyn Fn(u32) -> Coverage) -> Option<ListedAction> {
        match (target, self.vrf) {
            (RuleTarget::Next | RuleTarget::Table(LOCAL_TABLE), _)
            | (RuleTarget::SpecificRoutes(LOCAL_TABLE), _)
            | (RuleTarget::VrfTable, None) => None,
            (RuleTarget::VrfTable, Some((_, table))) => Some(ListedAction::LookUp(table)),
            (RuleTarget::Table(table), _) if table == self.own_table() || table == MAIN_TABLE => {
                Some(ListedAction::LookUp(table))
            }
            (RuleTarget::Table(table), _) => {
                (coverage(table) != Coverage::Nothing).then_some(ListedAction::LookUp(table))
            }
            (RuleTarget::SpecificRoutes(table), _) => {
                let is_empty =
                    ![self.own_table(), MAIN_TABLE].contains(&table) && coverage(table) == Coverage::Nothing;
                (!is_empty).then_some(ListedAction::LookUpSpecific(table))
            }
            (RuleTarget::Goto(priority), _) => Some(ListedAction::Goto(priority)),
            (RuleTarget::Other, _) => Some(ListedAction::Kernel),
        }
    }

    /// A rule as packets that arrive here meet it; `None` if they do not.
    fn listed(&self, rule: &Rule, coverage: &dyn Fn(u32) -> Coverage) -> Option<ListedRule> {
        let action = self.action(rule.target, coverage)?;
        let RuleSelector { source, destination, transport, inverted, .. } = rule.selector;
        let all = ListedRule {
            priority: rule.priority,
            source: None,
            destination: None,
            transport: RuleTransport::default(),
            inverted: false,
            action,
            is_uncertain: false,
        };
        match self.selection(&rule.selector) {
            Selection::None => None,
            Selection::All => Some(all),
            Selection::Some => Some(ListedRule { source, destination, transport, inverted, ..all }),
            Selection::Uncertain => Some(ListedRule { source, destination, is_uncertain: true, ..all }),
            Selection::Unknown => Some(ListedRule { is_uncertain: true, ..all }),
        }
    }

    /// Whether no packet meets the rules after this one. The kernel gets what its own table does not answer: rules that
    /// follow that one are seldom used.
    fn is_last(&self, rule: &ListedRule, coverage: &dyn Fn(u32) -> Coverage) -> bool {
        rule.selects_all()
            && match rule.action {
                ListedAction::LookUp(table) => {
                    table == self.own_table() || table == MAIN_TABLE || coverage(table) == Coverage::All
                }
                ListedAction::LookUpSpecific(_) | ListedAction::Goto(_) => false,
                ListedAction::Kernel => true,
            }
    }
}

impl ListedRule {
    fn of_table(table: u32) -> ListedRule {
        let action = ListedAction::LookUp(table);
        ListedRule {
            priority: 0,
            source: None,
            destination: None,
            transport: RuleTransport::default(),
            inverted: false,
            action,
            is_uncertain: false,
        }
    }

    fn selects_all(&self) -> bool {
        let by_packet = self.source.is_some() || self.destination.is_some() || !self.transport.is_any();
        !(self.is_uncertain || self.inverted || by_packet)
    }

    /// What is done with its packets if not all of them may be among those that it selects.
    fn settled(self) -> ListedRule {
        let action = if self.is_uncertain { ListedAction::Kernel } else { self.action };
        ListedRule { action, is_uncertain: false, ..self }
    }
}

/// The rules that packets of an interface meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleList(Vec<ListedRule>);

impl RuleList {
    /// All packets are looked up in one table.
    pub fn of_table(table: u32) -> RuleList {
        RuleList(vec![ListedRule::of_table(table)])
    }

    /// Makes the list from all rules of the family, in their order.
    pub fn new<'r>(
        rules: impl Iterator<Item = &'r Rule> + Clone,
        ingress: &Ingress<'_>,
        coverage: &dyn Fn(u32) -> Coverage,
    ) -> RuleList {
        let exists = |priority| rules.clone().any(|rule| rule.priority == priority);
        // Rules below `lowest` are passed over by all packets, and some packets are led to the rules up to `furthest`.
        let (mut list, mut lowest, mut furthest) = (Vec::<ListedRule>::new(), 0, 0);
        for rule in rules.clone() {
            let Some(listed) = ingress.listed(rule, coverage).filter(|rule| rule.priority >= lowest) else {
                continue;
            };
            let is_last = ingress.is_last(&listed, coverage) && listed.priority >= furthest;
            match listed.action {
                ListedAction::Goto(priority) if !exists(priority) => continue,
                ListedAction::Goto(priority) if listed.selects_all() && furthest == 0 => {
                    lowest = priority;
                    continue;
                }
                ListedAction::Goto(priority) => furthest = furthest.max(priority),
                ListedAction::LookUp(_) | ListedAction::LookUpSpecific(_) | ListedAction::Kernel => {}
            }
            list.push(listed);
            if is_last {
                break;
            }
        }
        drop_redundant(&mut list);
        RuleList(list.into_iter().map(ListedRule::settled).collect())
    }

    pub fn rules(&self) -> &[ListedRule] {
        &self.0
    }

    /// The tables that packets are looked up in.
    pub fn tables(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(|rule| match rule.action {
            ListedAction::LookUp(table) | ListedAction::LookUpSpecific(table) => Some(table),
            ListedAction::Goto(_) | ListedAction::Kernel => None,
        })
    }

    /// The table that all packets are looked up in, if there is only one.
    pub fn only_table(&self) -> Option<u32> {
        match &self.0[..] {
            [only @ ListedRule { action: ListedAction::LookUp(table), .. }] => {
                only.selects_all().then_some(*table)
            }
            _ => None,
        }
    }

    /// The place of the first rule from a priority on.
    pub fn place(&self, priority: u32) -> u8 {
        let place = self.0.iter().position(|rule| rule.priority >= priority).unwrap_or(MOST_RULES);
        place.min(MOST_RULES) as u8
    }

    /// Whether all packets are left to the kernel.
    pub fn leaves_all(&self) -> bool {
        let first = self.0.first();
        let is_kernels = first.is_none_or(|rule| rule.selects_all() && rule.action == ListedAction::Kernel);
        is_kernels || self.0.len() > MOST_RULES
    }

    /// Whether some packets are left to the kernel because of a rule.
    pub fn leaves_some(&self) -> bool {
        self.leaves_all() || self.0.iter().any(|rule| rule.action == ListedAction::Kernel)
    }
}

/// A lookup of only some packets changes nothing if the next rule has all packets looked up in the same table.
fn drop_redundant(list: &mut Vec<ListedRule>) {
    let Some(last) = list.last().filter(|last| last.selects_all()).map(|last| last.action) else { return };
    let is_redundant = |rule: &ListedRule| match (rule.action, last) {
        (
            ListedAction::LookUp(table) | ListedAction::LookUpSpecific(table),
            ListedAction::LookUp(of_last),
        ) => table == of_last,
        _ => false,
    };
    let needed = list[..list.len() - 1].iter().rposition(|rule| !is_redundant(rule)).map_or(0, |at| at + 1);
    list.drain(needed..list.len() - 1);
}

#[cfg(test)]
mod tests {
    use fullview_table::Family;

    use super::*;

    const PLAIN: Ingress<'_> = Ingress { link: "eth1", vrf: None, knows_transport: true };
    const IN_VRF: Ingress<'_> = Ingress { link: "eth2", vrf: Some(("red", 10)), knows_transport: true };

    fn all() -> RuleSelector {
        RuleSelector::default()
    }

    fn from() -> RuleSelector {
        let source = Some(RulePrefix { address: [10, 0, 0, 0].into(), len: 8 });
        RuleSelector { source, ..all() }
    }

    fn on(link: &str) -> RuleSelector {
        RuleSelector { ingress: Some(link.into()), ..all() }
    }

    fn not(selector: RuleSelector) -> RuleSelector {
        RuleSelector { inverted: true, ..selector }
    }

    /// A list in short: what each rule selects, and what it does. The tables 100 and 200 have routes, 200 has a default
    /// route.
    fn list(ingress: &Ingress<'_>, more: &[(u32, RuleSelector, RuleTarget)]) -> String {
        let usual = [(1_000, all(), RuleTarget::VrfTable), (32_766, all(), RuleTarget::Table(MAIN_TABLE))];
        let mut rules: Vec<_> = more.iter().cloned().chain(usual).collect();
        rules.sort_by_key(|(priority, ..)| *priority);
        let rule = |(priority, selector, target)| Rule {
            family: Family::Inet,
            priority,
            selector,
            target,
            identity: Vec::new(),
        };
        let rules: Vec<Rule> = rules.into_iter().map(rule).collect();
        let coverage = |table| match table {
            100 => Coverage::Some,
            200 => Coverage::All,
            _ => Coverage::Nothing,
        };
        let list = RuleList::new(rules.iter(), ingress, &coverage);
        let shown: Vec<String> = list.rules().iter().map(|rule| shown(rule, &list)).collect();
        shown.join(", ")
    }

    fn shown(rule: &ListedRule, list: &RuleList) -> String {
        let by_packet = rule.source.or(rule.destination).is_some() || !rule.transport.is_any();
        let selector = match (by_packet, rule.inverted) {
            (false, false) => "all",
            (false, true) => "none",
            (true, false) => "some",
            (true, true) => "others",
        };
        match rule.action {
            ListedAction::LookUp(table) => format!("{selector} {table}"),
            ListedAction::LookUpSpecific(table) => format!("{selector} {table} specific"),
            ListedAction::Goto(priority) => format!("{selector} to {}", list.place(priority)),
            ListedAction::Kernel => format!("{selector} kernel"),
        }
    }

    fn both(rule: (u32, RuleSelector, RuleTarget)) -> [String; 2] {
        [PLAIN, IN_VRF].map(|ingress| list(&ingress, std::slice::from_ref(&rule)))
    }

    const TABLE: RuleTarget = RuleTarget::Table(100);

    #[test]
    fn what_rules_say_about_interfaces_and_marks_is_decided() {
        assert_eq!(both((100, all(), TABLE)), ["all 100, all 254", "all 100, all 10"]);
        assert_eq!(both((100, all(), RuleTarget::Table(200))), ["all 200", "all 200"], "a default route");
        assert_eq!(both((100, all(), RuleTarget::Table(300))), ["all 254", "all 10"], "no routes");
        assert_eq!(both((100, on("eth1"), TABLE)), ["all 100, all 254", "all 10"]);
        assert_eq!(both((100, on("lo"), TABLE)), ["all 254", "all 10"]);
        assert_eq!(both((100, on("red"), TABLE)), ["all 254", "all kernel, all 10"], "kernels differ");
        assert_eq!(both((100, not(on("eth1")), TABLE)), ["all 254", "all 100, all 10"]);
        assert_eq!(both((100, not(on("eth2")), TABLE)), ["all 100, all 254", "all kernel, all 10"]);
        let marked = RuleSelector { is_marked: true, ..all() };
        assert_eq!(both((100, marked.clone(), TABLE)), ["all 254", "all 10"]);
        assert_eq!(both((100, not(marked), TABLE)), ["all 100, all 254", "all 100, all 10"]);
        assert_eq!(both((100, not(all()), TABLE)), ["all 254", "all 10"], "it selects nothing");
        assert_eq!(both((32_766, all(), TABLE)), ["all 100, all 254", "all 10"], "the VRF's comes before");
        assert_eq!(both((32_767, all(), TABLE)), ["all 254", "all 10"], "main comes before");
        assert_eq!(both((100, all(), RuleTarget::Table(254))), ["all 254", "all 254"]);
    }

    #[test]
    fn default_routes_of_a_table_may_not_count() {
        let specific = RuleTarget::SpecificRoutes;
        assert_eq!(
            both((100, all(), specific(100))),
            ["all 100 specific, all 254", "all 100 specific, all 10"]
        );
        assert_eq!(
            both((100, all(), specific(200)))[0],
            "all 200 specific, all 254",
            "it is not the last one"
        );
        assert_eq!(both((100, all(), specific(300)))[0], "all 254", "no routes");
        assert_eq!(both((100, all(), specific(LOCAL_TABLE)))[0], "all 254");
        assert_eq!(both((100, all(), specific(254))), ["all 254", "all 254 specific, all 10"]);
        // As WireGuard sets them.
        let marked = RuleSelector { is_marked: true, ..all() };
        let tunnel = [(100, all(), specific(254)), (101, not(marked), RuleTarget::Table(200))];
        assert_eq!(list(&PLAIN, &tunnel), "all 254 specific, all 200");
        let only = RuleList(vec![ListedRule {
            action: ListedAction::LookUpSpecific(254),
            ..ListedRule::of_table(254)
        }]);
        assert_eq!(only.only_table(), None);
    }

    #[test]
    fn what_rules_say_about_addresses_is_left() {
        assert_eq!(both((100, from(), TABLE)), ["some 100, all 254", "some 100, all 10"]);
        assert_eq!(both((100, not(from()), TABLE)), ["others 100, all 254", "others 100, all 10"]);
        let here = RuleSelector { ingress: Some("eth1".into()), ..from() };
        assert_eq!(both((100, here.clone(), TABLE)), ["some 100, all 254", "all 10"]);
        assert_eq!(both((100, not(here), TABLE)), ["others 100, all 254", "all 100, all 10"]);
        assert_eq!(both((100, from(), RuleTarget::Other)), ["some kernel, all 254", "some kernel, all 10"]);
        let nothing = ["all 254", "all 10"];
        assert_eq!(both((100, from(), RuleTarget::Next)), nothing);
        assert_eq!(both((100, from(), RuleTarget::Table(LOCAL_TABLE))), nothing);
        assert_eq!(both((100, from(), RuleTarget::VrfTable)), nothing);
        assert_eq!(both((100, from(), RuleTarget::Table(254))), ["all 254", "some 254, all 10"]);
    }

    #[test]
    fn packets_that_the_router_cannot_tell_apart_are_left_to_the_kernel() {
        let others = |selector| RuleSelector { has_others: true, ..selector };
        assert_eq!(both((100, others(all()), TABLE)), ["all kernel, all 254", "all kernel, all 10"]);
        assert_eq!(both((100, others(from()), TABLE)), ["some kernel, all 254", "some kernel, all 10"]);
        assert_eq!(both((100, not(others(from())), TABLE)), ["all kernel, all 254", "all kernel, all 10"]);
        assert_eq!(both((100, others(on("lo")), TABLE)), ["all 254", "all 10"]);
        assert_eq!(both((100, others(from()), RuleTarget::Table(254))), ["all 254", "some kernel, all 10"]);
        assert_eq!(both((100, others(all()), RuleTarget::Next)), ["all 254", "all 10"]);
        let kernel = RuleList(vec![ListedRule { action: ListedAction::Kernel, ..ListedRule::of_table(0) }]);
        assert!(kernel.leaves_all() && kernel.leaves_some());
        let many = RuleList(vec![ListedRule::of_table(254); MOST_RULES + 1]);
        assert!(many.leaves_all() && RuleList(Vec::new()).leaves_all());
    }

    #[test]
    fn what_rules_say_about_ports_is_left_where_the_data_path_knows_them() {
        let udp = RuleTransport { protocol: Some(17), ..RuleTransport::default() };
        let udp = RuleSelector { transport: udp, ..all() };
        assert_eq!(both((100, udp.clone(), TABLE)), ["some 100, all 254", "some 100, all 10"]);
        assert_eq!(both((100, not(udp.clone()), TABLE))[0], "others 100, all 254");
        let ingress = Ingress { knows_transport: false, ..PLAIN };
        assert_eq!(list(&ingress, &[(100, udp.clone(), TABLE)]), "all kernel, all 254");
        assert_eq!(list(&ingress, &[(100, not(udp), TABLE)]), "all kernel, all 254");
    }

    #[test]
    fn a_goto_passes_the_rules_before_its_target() {
        let with_goto = |goto| list(&PLAIN, &[goto, (200, all(), TABLE), (300, from(), TABLE)]);
        let goto = RuleTarget::Goto;
        assert_eq!(with_goto((100, all(), goto(32_766))), "all 254");
        assert_eq!(with_goto((100, all(), goto(300))), "some 100, all 254");
        assert_eq!(with_goto((100, all(), goto(301))), "all 100, some 100, all 254", "no such rule");
        assert_eq!(with_goto((100, on("lo"), goto(300))), "all 100, some 100, all 254");
        assert_eq!(with_goto((100, from(), goto(300))), "some to 2, all 100, some 100, all 254");
        assert_eq!(with_goto((100, from(), goto(32_766))), "some to 3, all 100, some 100, all 254");
        let full = [(100, from(), goto(300)), (200, all(), RuleTarget::Table(200)), (300, from(), TABLE)];
        assert_eq!(list(&PLAIN, &full), "some to 2, all 200, some 100, all 254");
        let two = [(100, from(), goto(300)), (200, all(), goto(32_766)), (300, from(), TABLE)];
        assert_eq!(list(&PLAIN, &two), "some to 2, all to 3, some 100, all 254");
    }
}
