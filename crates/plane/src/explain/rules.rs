//! Explains which table the rules of policy routing choose for a packet.

use std::net::IpAddr;

use super::Path;
use super::headers::Headers;
use super::step::{RuleDecision, Step};
use crate::interface::{Interface, InterfaceAddress, SourceCheck};
use crate::policy::{PolicyAction, PolicyRule, RulePorts, RulePrefix, RuleTransport};
use crate::verdict::{Punt, Reason, Verdict};

impl Path<'_> {
    /// The table that the packet is looked up in.
    pub(super) fn choose_table(&mut self, interface: &Interface, headers: &Headers) -> Result<u16, Verdict> {
        let rules = interface.rules.of(headers.family());
        match (rules, interface.source_check) {
            ([], _) => Ok(interface.table),
            (_, SourceCheck::Off) => self.follow_rules(rules, headers),
            (_, SourceCheck::Loose | SourceCheck::Strict) => Err(Verdict::Punt(Punt::WayBack)),
        }
    }

    fn follow_rules(&mut self, rules: &[PolicyRule], headers: &Headers) -> Result<u16, Verdict> {
        let mut first = 0;
        for (place, rule) in (0..).zip(rules) {
            let selected = selects(rule, headers);
            if place < first || selected == Some(false) {
                continue;
            }
            let action = if selected.is_some() { rule.action } else { PolicyAction::Punt };
            let decision = self.decide(action, headers);
            self.steps.push(Step::Rule { priority: rule.priority, decision });
            match (decision, action) {
                (RuleDecision::Punts, _) => return Err(Verdict::Punt(Punt::PolicyRule)),
                (
                    RuleDecision::Table(_),
                    PolicyAction::LookUp(table) | PolicyAction::LookUpSpecific(table),
                ) => return Ok(table),
                (_, PolicyAction::SkipTo(to)) => first = to,
                _ => {}
            }
        }
        Err(Verdict::Drop(Reason::NoRoute))
    }

    fn decide(&self, action: PolicyAction, headers: &Headers) -> RuleDecision {
        match action {
            PolicyAction::Punt => RuleDecision::Punts,
            PolicyAction::SkipTo(_) => RuleDecision::Skips,
            PolicyAction::LookUp(table) => match self.next_hop(table, headers.destination).is_some() {
                true => RuleDecision::Table(self.names.table(table)),
                false => RuleDecision::NoRoute(self.names.table(table)),
            },
            PolicyAction::LookUpSpecific(table) => {
                let hop = self.next_hop(table, headers.destination);
                let is_default = self.view.parts().adjacencies.of_default_routes().any(|of| of == hop);
                match (hop.is_some(), is_default) {
                    (false, _) => RuleDecision::NoRoute(self.names.table(table)),
                    (true, true) => RuleDecision::OnlyDefault(self.names.table(table)),
                    (true, false) => RuleDecision::Table(self.names.table(table)),
                }
            }
        }
    }
}

/// `None` if only the kernel can tell.
fn selects(rule: &PolicyRule, headers: &Headers) -> Option<bool> {
    let holds = |prefix: Option<RulePrefix>, addr: IpAddr| {
        prefix.is_none_or(|RulePrefix { address, len }| {
            InterfaceAddress { ip: address, len }.network_holds(addr)
        })
    };
    let both = holds(rule.source, headers.source) && holds(rule.destination, headers.destination);
    let all = if both { has_transport(&rule.transport, headers)? } else { false };
    Some(all != rule.inverted)
}

fn has_transport(wanted: &RuleTransport, headers: &Headers) -> Option<bool> {
    let asks_for_ports = wanted.source.is_some() || wanted.destination.is_some();
    match (wanted.protocol, headers.protocol) {
        (None, _) if !asks_for_ports => return Some(true),
        (_, None) => return None,
        (Some(wanted), Some((protocol, _))) if wanted != protocol => return Some(false),
        (_, Some(_)) if !asks_for_ports => return Some(true),
        (_, Some((_, is_fragment))) if is_fragment => return Some(false),
        _ => {}
    }
    let (source, destination) = headers.ports?;
    let is_in = |range: Option<RulePorts>, port| range.is_none_or(|of| of.first <= port && port <= of.last);
    Some(is_in(wanted.source, source) && is_in(wanted.destination, destination))
}
