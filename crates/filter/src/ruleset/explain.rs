//! Which rules are tried for a packet, and why they match it or do not, for people.

use super::evaluation::Evaluation;
use super::matching::{Surroundings, mismatch};
use super::parts::{Language, RuleSet};
use super::translate::{self, side_of};
use crate::packet::Packet;
use crate::rule::{Clause, CompiledRule, LookupKey, RuleAction, Side, Test};
use crate::state::{FilterWorker, FlowKey};

/// A filter rule that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriedRule {
    /// Its index in the rule set.
    pub index: usize,
    /// What about the packet it does not match; `None` if it matches.
    pub mismatch: Option<&'static str>,
}

impl RuleSet {
    /// The filter rules that [`Self::check`] tries for a packet of no state, in order, up to the one that ends the
    /// evaluation. They see the packet as the rules before them leave it: with another address, or with a tag. `worker` is
    /// one in the state of that before the check, so that chance decides alike; it is of no use afterwards.
    pub fn tried(&self, worker: &mut FilterWorker, packet: &Packet) -> Vec<TriedRule> {
        let mut packet = *packet;
        let hash = worker.states().hash(&FlowKey::of(&packet));
        let mut evaluation = Evaluation { set: self, worker, now: 0, packet: &mut packet, hash };
        if self.language == Language::Pf {
            match translate::by_rules(&mut evaluation) {
                Ok(chosen) if chosen.as_ref().is_none_or(|chosen| !chosen.passes) => {}
                _ => return Vec::new(),
            }
        }
        let around = evaluation.surroundings();
        match self.language {
            Language::Pf => tried_by_pf(self.rules(), evaluation.packet, &around),
            Language::Ipfw => tried_by_ipfw(self.rules(), evaluation.packet, &around),
        }
    }
}

fn tried_by_pf(rules: &[CompiledRule], packet: &mut Packet, around: &Surroundings<'_>) -> Vec<TriedRule> {
    let (mut tried, mut winner) = (Vec::new(), None);
    for (index, rule) in rules.iter().enumerate() {
        let mismatch = mismatch(rule, index, packet, around).map(subject);
        tried.push(TriedRule { index, mismatch });
        if mismatch.is_some() {
            continue;
        }
        if rule.tag != 0 {
            packet.tag = rule.tag;
        }
        match rule.action {
            RuleAction::Count => {}
            RuleAction::StopIfDecided { since } if winner >= Some(since as usize) => break,
            RuleAction::StopIfDecided { .. } => {}
            _ => winner = Some(index),
        }
        if rule.quick {
            break;
        }
    }
    tried
}

fn tried_by_ipfw(rules: &[CompiledRule], packet: &mut Packet, around: &Surroundings<'_>) -> Vec<TriedRule> {
    let (mut tried, mut index) = (Vec::new(), 0);
    while let Some(rule) = rules.get(index) {
        let mismatch = mismatch(rule, index, packet, around).map(subject);
        tried.push(TriedRule { index, mismatch });
        if mismatch.is_none() {
            packet.tag |= rule.tag;
        }
        index = match &rule.action {
            _ if mismatch.is_some() => index + 1,
            RuleAction::SkipTo(target) => *target as usize,
            RuleAction::Count | RuleAction::CheckState(_) => index + 1,
            RuleAction::Translate(to) if to.side != side_of(packet.pass.direction) => index + 1,
            _ => break,
        };
    }
    tried
}

/// What a clause asks about. All its tests ask about one thing, or about two that one word of a language joins.
fn subject(clause: &Clause) -> &'static str {
    clause.0.first().map_or("nothing, which no packet is", |literal| word(&literal.test))
}

fn word(test: &Test) -> &'static str {
    match test {
        Test::Direction(_) => "the direction",
        Test::Interface(_) => "the interface",
        Test::ReceivedOn(_) => "the interface that it came by",
        Test::Family(_) => "the address family",
        Test::Protocol(_) => "the protocol",
        Test::Source(_) => "the source address",
        Test::Destination(_) => "the destination address",
        Test::SourcePort(_) => "the source port",
        Test::DestinationPort(_) => "the destination port",
        Test::Lookup(LookupKey::Address(Side::Source, ..), _) => "the source address",
        Test::Lookup(LookupKey::Address(..), _) => "the destination address",
        Test::Lookup(LookupKey::Port(Side::Source, _), _) => "the source port",
        Test::Lookup(LookupKey::Port(..), _) => "the destination port",
        Test::Lookup(LookupKey::Dscp(_), _) => "the type of service",
        Test::Lookup(LookupKey::Number(_), _) => "the number of the rule",
        Test::TcpFlags { .. } | Test::TcpAnyFlag(_) => "the TCP flags",
        Test::TcpWindow(..) => "the TCP window",
        Test::TcpSeq(_) | Test::TcpAck(_) => "the TCP sequence numbers",
        Test::IcmpType(_) | Test::IcmpCode(_) => "the ICMP type or code",
        Test::Tos { .. } => "the type of service",
        Test::Ttl(..) => "the TTL",
        Test::Length(..) => "the length",
        Test::Fragment(_) => "which fragment it is",
        Test::Options => "the options",
        Test::Tagged(_) | Test::TagBits(_) => "the tag",
        Test::Probability(_) => "the probability",
    }
}
