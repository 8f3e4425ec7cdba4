//! From rules as written to compiled ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ast::{IpfwAction, IpfwKeep, IpfwReject, IpfwRule};
use super::codes;
use super::config::{IpfwConfig, IpfwTable};
use super::lower_nat::{self, NatPart};
use super::lower_options::{RuleNames, any_of, or_blocks};
use crate::address_table::{AddressTable, TableEntry};
use crate::interfaces::Interfaces;
use crate::name_number::name_number;
use crate::rule::{
    Clause, CompiledRule, FlowMask, FlowName, NamedTable, RejectWith, RuleAction, SourceLimits, StateOptions,
    TableId, Test, Tracking,
};
use crate::ruleset::{Language, RuleSetParts};
use crate::state::Timeouts;

/// The place of the timeouts of translations, behind those of dynamic rules.
const NAT_TIMEOUTS: u16 = 1;

impl IpfwConfig {
    /// The compiled rules, with the interfaces as they are now. A rule that names an interface that does not exist yet
    /// matches nothing, as in FreeBSD.
    pub fn lower(&self, interfaces: &Interfaces) -> RuleSetParts {
        let mut parts = RuleSetParts::new(Language::Ipfw);
        parts.timeouts.push(Timeouts::libalias());
        let names = RuleNames { interfaces, tables: self.table_ids(), tags: self.tags.bits() };
        let host = |inet6: bool| {
            let own =
                interfaces.addresses().map(std::net::IpAddr::from).filter(|own| own.is_ipv6() || !inet6);
            AddressTable::new(own.map(|own| TableEntry::new(own.into(), 128)))
        };
        parts.tables = vec![Arc::new(host(false)), Arc::new(host(true))];
        parts.tables.extend(self.tables.values().map(|entries| Arc::new(table(entries))));
        // Tables that only rules name are empty.
        parts.tables.resize_with(2 + names.tables.len(), || Arc::new(AddressTable::new([])));
        let named = |(name, id): (&&str, &TableId)| NamedTable {
            name: (*name).to_owned(),
            id: *id,
            kind: self.table_kinds.get(*name).copied().unwrap_or_default(),
            is_constant: false,
            is_given: self.tables.contains_key(*name),
        };
        parts.named_tables = names.tables.iter().map(named).collect();
        let lowering = Lowering { config: self, names, flows: self.flow_names() };
        parts.rules = lowering.rules();
        parts
    }

    /// The rules of the enabled sets.
    pub(super) fn enabled_rules(&self) -> impl Iterator<Item = &IpfwRule> {
        self.rules.iter().filter(|rule| self.disabled_sets >> rule.set & 1 == 0)
    }

    /// The interfaces that rules name, each with the number of the rule. A name that ends in `*` stands for all that begin
    /// so.
    pub fn named_interfaces(&self) -> impl Iterator<Item = (u16, &str)> {
        self.rules.iter().flat_map(|rule| rule.interfaces().map(|name| (rule.number, name)))
    }

    /// The numbers of the tables: first those that exist, then those that only rules name.
    fn table_ids(&self) -> BTreeMap<&str, TableId> {
        let own = self.tables.keys().map(String::as_str);
        let mut named: Vec<_> = own.collect();
        for (name, _) in self.rules.iter().flat_map(IpfwRule::tables) {
            if !named.contains(&name) {
                named.push(name);
            }
        }
        named.into_iter().zip((2..).map(TableId)).collect()
    }

    /// A number for each name of a flow. It follows from the name, so that states keep theirs across a reload, unless two
    /// names collide.
    fn flow_names(&self) -> BTreeMap<&str, FlowName> {
        let names: BTreeSet<&str> = self.rules.iter().filter_map(IpfwRule::flow).collect();
        let (mut taken, mut numbers) = (BTreeSet::from([0]), BTreeMap::new());
        for name in names {
            let mut number =
                if name == "default" { 0 } else { name_number(name, FlowName::TRANSLATIONS - 1) };
            while name != "default" && !taken.insert(number) {
                number = number % (FlowName::TRANSLATIONS - 1) + 1;
            }
            numbers.insert(name, FlowName(number));
        }
        numbers
    }
}

fn table(table: &IpfwTable) -> AddressTable {
    AddressTable::new(table.entries.iter().map(|((address, length), value)| TableEntry {
        value: *value,
        ..TableEntry::new((*address).into(), *length)
    }))
}

struct Lowering<'a> {
    config: &'a IpfwConfig,
    names: RuleNames<'a>,
    flows: BTreeMap<&'a str, FlowName>,
}

impl Lowering<'_> {
    /// The compiled rules of the enabled sets. Jumps are resolved when the places of all rules are known.
    fn rules(&self) -> Vec<CompiledRule> {
        let mut compiled = Vec::new();
        let mut starts = Vec::new();
        for rule in self.config.enabled_rules() {
            starts.push((rule.number, compiled.len() as u32));
            self.rule(rule, &mut compiled);
        }
        let end = compiled.len() as u32;
        for (after, rule) in (1..).zip(&mut compiled) {
            if let RuleAction::SkipTo(target) = &mut rule.action {
                let next = starts.partition_point(|(number, _)| u32::from(*number) < *target);
                // A jump back skips nothing (ipfw(8): "skip all subsequent rules numbered less than number").
                *target = starts.get(next).map_or(end, |(_, index)| *index).max(after);
            }
        }
        compiled
    }

    /// A rule that keeps states looks for one first, whether or not it matches (ipfw(8), STATEFUL FIREWALL).
    fn rule(&self, rule: &IpfwRule, compiled: &mut Vec<CompiledRule>) {
        let state = rule.keep.as_ref().map(|keep| self.state(keep));
        let base = CompiledRule {
            clauses: self.clauses(rule),
            tag: rule.tag.and_then(|tag| self.names.tags.get(&tag).copied()).unwrap_or(0),
            number: rule.number.into(),
            text: rule.to_string(),
            number_length: IpfwRule::NUMBER_LENGTH,
            state,
            ..CompiledRule::new(RuleAction::Count)
        };
        if let (Some(IpfwKeep::KeepState(_) | IpfwKeep::Limit { .. }), Some(state)) =
            (&rule.keep, &base.state)
        {
            let probe = CompiledRule::new(RuleAction::CheckState(state.flow));
            compiled.push(CompiledRule {
                number: base.number,
                text: base.text.clone(),
                number_length: base.number_length,
                ..probe
            });
        }
        match &rule.action {
            IpfwAction::Nat(number) => compiled.extend(self.nat(*number, &base)),
            action => compiled.push(CompiledRule { action: self.action(action), ..base }),
        }
    }

    fn nat(&self, number: u16, base: &CompiledRule) -> Vec<CompiledRule> {
        let flow = FlowName(FlowName::TRANSLATIONS + number.min(FlowName::TRANSLATIONS - 2));
        let (tracking, timeouts) = (Tracking::BothEnds, NAT_TIMEOUTS);
        let state = Some(StateOptions { flow, tracking, timeouts, ..StateOptions::default() });
        let one = |NatPart { name, clauses, action }: NatPart| CompiledRule {
            clauses: [base.clauses.clone(), clauses].concat(),
            state: matches!(action, RuleAction::Translate(_)).then(|| state.clone()).flatten(),
            action,
            text: if name.is_empty() { base.text.clone() } else { format!("{} ({name})", base.text) },
            ..base.clone()
        };
        let parts = lower_nat::parts(self.config.nats.get(&number), self.names.interfaces);
        parts.into_iter().map(one).collect()
    }

    fn clauses(&self, rule: &IpfwRule) -> Vec<Clause> {
        let blocks = or_blocks(rule, &self.names);
        let mut clauses: Vec<_> = blocks.iter().flat_map(|block| any_of(block)).collect();
        let share = rule.probability.map(|share| (share * 4_294_967_295.0) as u32);
        clauses.extend(
            share.filter(|share| *share < u32::MAX).map(|share| Clause::of(Test::Probability(share))),
        );
        clauses
    }

    fn action(&self, action: &IpfwAction) -> RuleAction {
        match action {
            IpfwAction::Allow | IpfwAction::Nat(_) => RuleAction::Pass,
            IpfwAction::Deny => RuleAction::Block,
            IpfwAction::Count => RuleAction::Count,
            IpfwAction::Reject(reject) => RuleAction::Reject(reject_with(*reject)),
            IpfwAction::SkipTo(target) => RuleAction::SkipTo((*target).into()),
            IpfwAction::CheckState(flow) if flow == "any" => RuleAction::CheckState(FlowName::ANY),
            IpfwAction::CheckState(flow) => RuleAction::CheckState(self.flow(flow)),
        }
    }

    fn flow(&self, name: &str) -> FlowName {
        self.flows.get(name).copied().unwrap_or_default()
    }

    /// ipfw follows only the flags of TCP, and a connection is established when both ends have sent theirs.
    fn state(&self, keep: &IpfwKeep) -> StateOptions {
        let tracking = Tracking::BothEnds;
        match keep {
            IpfwKeep::KeepState(flow) | IpfwKeep::RecordState(flow) => {
                StateOptions { flow: self.flow(flow), tracking, ..StateOptions::default() }
            }
            IpfwKeep::Limit { source, source_port, destination, destination_port, most, flow } => {
                let (source_port, destination_port) = (*source_port, *destination_port);
                let mask = FlowMask {
                    source: *source,
                    destination: *destination,
                    source_port,
                    destination_port,
                    protocol: true,
                };
                let limits = SourceLimits { max_states: Some(*most), ..SourceLimits::by(mask) };
                StateOptions {
                    flow: self.flow(flow),
                    tracking,
                    source: Some(limits),
                    ..StateOptions::default()
                }
            }
        }
    }
}

/// `reset` and `unreach` answer IPv6 too, the second with the code that RFC 7915 (section 4.2) translates it to; `reset6` and
/// `unreach6` answer nothing else.
fn reject_with(reject: IpfwReject) -> RejectWith {
    let none = RejectWith::default();
    match reject {
        IpfwReject::Reset => RejectWith { reset: true, reset6: true, ..none },
        IpfwReject::Reset6 => RejectWith { reset6: true, ..none },
        IpfwReject::Unreach(code) => {
            RejectWith { icmp: Some(code), icmp6: Some(codes::unreach6_of(code)), ..none }
        }
        IpfwReject::Unreach6(code) => RejectWith { icmp6: Some(code), ..none },
    }
}
