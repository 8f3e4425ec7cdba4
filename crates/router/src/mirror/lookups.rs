//! In which tables the packets of an interface are looked up: one for both families, or by rules.

use std::sync::Arc;

use fullview_plane::policy::{PolicyAction, PolicyRule};
use fullview_table::Family;

use super::rule_list::{ListedAction, ListedRule, RuleList};
use super::table_places::TablePlaces;

/// The lists of both families of an interface.
pub(super) struct InterfaceLookups {
    own_table: u32,
    inet: RuleList,
    inet6: RuleList,
    /// Whether the router does not do everything that rules say.
    pub is_ruled: bool,
}

impl InterfaceLookups {
    /// Without a kernel that forwards the rest, rules that leave packets to it are not followed.
    pub fn new(own_table: u32, [inet, inet6]: [RuleList; 2], follows_kernel: bool) -> InterfaceLookups {
        let is_ruled = inet.leaves_some() || inet6.leaves_some();
        let [inet, inet6] = match is_ruled && !follows_kernel {
            true => [RuleList::of_table(own_table), RuleList::of_table(own_table)],
            false => [inet, inet6],
        };
        InterfaceLookups { own_table, inet, inet6, is_ruled }
    }

    fn of(&self, family: Family) -> &RuleList {
        if family == Family::Inet { &self.inet } else { &self.inet6 }
    }

    /// The table that packets are looked up in without asking rules.
    pub fn table(&self) -> u32 {
        self.inet.only_table().or(self.inet6.only_table()).unwrap_or(self.own_table)
    }

    /// All tables that packets are looked up in, by their numbers in the kernel.
    pub fn tables(&self) -> impl Iterator<Item = u32> {
        self.inet.tables().chain(self.inet6.tables()).chain([self.table()])
    }

    /// The rules of a family by positions of tables; `None` if the kernel forwards its packets, also because a table has no
    /// position.
    pub fn rules(&self, family: Family, places: &TablePlaces) -> Option<Vec<PolicyRule>> {
        let list = self.of(family);
        if list.leaves_all() {
            return None;
        }
        let rules = if list.only_table() == Some(self.table()) { &[] } else { list.rules() };
        rules.iter().map(|rule| placed(rule, list, places)).collect()
    }
}

fn placed(rule: &ListedRule, list: &RuleList, places: &TablePlaces) -> Option<PolicyRule> {
    let action = match rule.action {
        ListedAction::LookUp(table) => PolicyAction::LookUp(places.of(table)?),
        ListedAction::LookUpSpecific(table) => PolicyAction::LookUpSpecific(places.of(table)?),
        ListedAction::Goto(priority) => PolicyAction::SkipTo(list.place(priority)),
        ListedAction::Kernel => PolicyAction::Punt,
    };
    let ListedRule { priority, source, destination, transport, inverted, .. } = *rule;
    Some(PolicyRule { priority, source, destination, transport, inverted, action })
}

/// Room for the rules of all interfaces. Equal lists share it.
pub(super) struct RuleRoom {
    left: usize,
    known: Vec<Arc<[PolicyRule]>>,
}

impl RuleRoom {
    pub fn new(rules: usize) -> RuleRoom {
        RuleRoom { left: rules, known: Vec::new() }
    }

    /// A list; `None` if there is no room for it.
    pub fn place(&mut self, rules: Vec<PolicyRule>) -> Option<Arc<[PolicyRule]>> {
        if let Some(known) = self.known.iter().find(|known| known[..] == rules[..]) {
            return Some(Arc::clone(known));
        }
        self.left = self.left.checked_sub(rules.len())?;
        let rules: Arc<[PolicyRule]> = rules.into();
        self.known.push(Arc::clone(&rules));
        Some(rules)
    }
}
