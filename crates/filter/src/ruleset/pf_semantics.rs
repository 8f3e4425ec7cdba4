//! pf: states come before rules; then translations, of which the first that matches wins; then filter rules, of which the
//! last that matches wins, unless one is quick (pf.conf(5)).

use super::create::{StateRequest, create, may_create};
use super::evaluation::{Evaluation, Followed};
use super::translate;
use crate::packet::Packet;
use crate::rule::{CompiledRule, RuleAction, StateOptions};
use crate::state::{FlowKey, Hit, NO_RULE, known_rule};
use crate::verdict::{DecidedBy, Decision, DropReason, Reject, Rewrite, Verdict};

/// A connection too many of its source.
const REFUSED: Decision =
    Decision { verdict: Verdict::Drop(DropReason::SourceLimit), rule: None, by: DecidedBy::State };

/// In the mark of a state, beside the tag: packets with IP options pass.
const ALLOWS_OPTIONS: u16 = CompiledRule::HIGHEST_TAG + 1;

/// Decides about the packet.
#[inline(always)]
pub(super) fn decide(mut evaluation: Evaluation<'_>) -> Decision {
    // Errors between two hosts look like one flow, whatever they are about: they have no state of their own.
    if evaluation.packet.is_icmp_error() {
        return by_quoted(&mut evaluation).unwrap_or_else(|| by_rules(evaluation));
    }
    match evaluation.follow_state(None) {
        Followed::Valid(hit) => {
            by_state(&mut evaluation, hit.id, |evaluation| pass_by_state(evaluation, hit, false))
        }
        Followed::Invalid(hit) => by_state(&mut evaluation, hit.id, |_| Verdict::Drop(DropReason::State)),
        // So that the sender forgets the older connection, and the new one succeeds with the next SYN.
        Followed::OtherHandshake(hit) => {
            by_state(&mut evaluation, hit.id, |_| Verdict::Reject(Reject::TcpReset))
        }
        Followed::Refused => REFUSED,
        Followed::None => by_rules(evaluation),
    }
}

#[inline(always)]
fn by_state(
    evaluation: &mut Evaluation<'_>,
    id: u32,
    verdict: impl FnOnce(&Evaluation<'_>) -> Verdict,
) -> Decision {
    let (_, cold) = evaluation.worker.states.get(id);
    let (rule, tag) = (cold.rule, cold.mark & !ALLOWS_OPTIONS);
    if tag != 0 {
        evaluation.packet.tag = tag;
    }
    evaluation.count(rule);
    Decision { verdict: verdict(evaluation), rule: known_rule(rule), by: DecidedBy::State }
}

/// The verdict for a packet of a state. The rule that made the state decides about IP options.
#[inline(always)]
fn pass_by_state(evaluation: &Evaluation<'_>, hit: Hit, quoted: bool) -> Verdict {
    let allows = || evaluation.worker.states.get(hit.id).1.mark & ALLOWS_OPTIONS != 0;
    if evaluation.packet.has_options && !allows() {
        return Verdict::Drop(DropReason::Rule);
    }
    evaluation.pass_by_state(hit, quoted)
}

#[cold]
fn by_quoted(evaluation: &mut Evaluation<'_>) -> Option<Decision> {
    let (hit, verdict) = match evaluation.follow_quoted(None) {
        Followed::Valid(hit) => (hit, pass_by_state(evaluation, hit, true)),
        Followed::Invalid(hit) | Followed::OtherHandshake(hit) => (hit, Verdict::Drop(DropReason::State)),
        Followed::Refused | Followed::None => return None,
    };
    Some(Decision { by: DecidedBy::QuotedState, ..by_state(evaluation, hit.id, |_| verdict) })
}

fn by_rules(mut evaluation: Evaluation<'_>) -> Decision {
    // A copy costs as much as a few rules.
    let original = match evaluation.set.translations().is_empty() {
        true => None,
        false => Some(*evaluation.packet),
    };
    let translation = match translate::by_rules(&mut evaluation) {
        Ok(translation) => translation,
        Err(reason) => return Decision { verdict: Verdict::Drop(reason), rule: None, by: DecidedBy::Rule },
    };
    let passes = translation.as_ref().is_some_and(|found| found.passes);
    let rule = if passes { None } else { last_match(&mut evaluation) };
    let rewrite = translation.map(|found| found.rewrite);
    let decision = by_rule(&mut evaluation, rule, original.as_ref(), rewrite, passes);
    original.iter().for_each(|original| evaluation.restore(original));
    decision
}

/// `original` is the packet as it was before the rules of translation, if there are any.
fn by_rule(
    evaluation: &mut Evaluation<'_>,
    rule: Option<usize>,
    original: Option<&Packet>,
    rewrite: Option<Rewrite>,
    passes: bool,
) -> Decision {
    let set = evaluation.set;
    let compiled = rule.and_then(|index| set.rules().get(index));
    let index = rule.map(|index| index as u32);
    let verdict = match passes {
        true if evaluation.packet.has_options => Verdict::Drop(DropReason::Rule),
        true => Verdict::Pass,
        false => evaluation.verdict(compiled),
    };
    index.into_iter().for_each(|index| evaluation.count(index));
    if verdict != Verdict::Pass {
        return Decision { verdict, rule: index, by: DecidedBy::Rule };
    }
    let Some(options) = options(compiled, rewrite.is_some()) else {
        return Decision { verdict, rule: index, by: DecidedBy::Rule };
    };
    if evaluation.packet.is_icmp_error() || !may_create(evaluation) {
        return Decision { verdict: without_state(rewrite), rule: index, by: DecidedBy::Rule };
    }
    let request = StateRequest {
        options: &options,
        rule: index.unwrap_or(NO_RULE),
        binding: evaluation.packet.pass.direction.into(),
        key: FlowKey::of(original.unwrap_or(evaluation.packet)),
        translation: rewrite,
        mark: mark(evaluation.packet.tag, compiled),
    };
    match create(evaluation, &request) {
        Ok(()) => {
            let verdict = rewrite.map_or(Verdict::Pass, Verdict::Translate);
            Decision { verdict, rule: index, by: DecidedBy::NewState }
        }
        Err(reason) => Decision { verdict: Verdict::Drop(reason), rule: index, by: DecidedBy::Rule },
    }
}

/// The mark of a state that a rule makes.
fn mark(tag: u16, rule: Option<&CompiledRule>) -> u16 {
    let allows_options = rule.is_some_and(|rule| rule.allows_options);
    tag & !ALLOWS_OPTIONS | if allows_options { ALLOWS_OPTIONS } else { 0 }
}

/// What becomes of a packet that passes and may not make a state. It cannot be translated without one.
fn without_state(rewrite: Option<Rewrite>) -> Verdict {
    rewrite.map_or(Verdict::Pass, |_| Verdict::Drop(DropReason::State))
}

/// How the state is kept. A translation needs a state, whatever the rule says.
fn options(rule: Option<&CompiledRule>, translated: bool) -> Option<StateOptions> {
    let own = rule.and_then(|rule| rule.state.clone());
    own.or_else(|| translated.then(StateOptions::default))
}

/// The rule that decides.
fn last_match(evaluation: &mut Evaluation<'_>) -> Option<usize> {
    let (set, around) = (evaluation.set, evaluation.surroundings());
    let search = set.filter.search(evaluation.packet, around);
    if set.filter.decides_only() {
        let quick =
            if set.filter.has_quick() { search.next(0, evaluation.packet, |rule| rule.quick) } else { None };
        return quick.or_else(|| search.last(evaluation.packet));
    }
    let (mut winner, mut from) = (None, 0);
    while let Some(index) = search.next(from, evaluation.packet, |_| true) {
        let rule = &set.rules()[index];
        if rule.tag != 0 {
            evaluation.packet.tag = rule.tag;
        }
        match rule.action {
            RuleAction::Count => evaluation.count(index as u32),
            RuleAction::StopIfDecided { since } if winner >= Some(since as usize) => break,
            RuleAction::StopIfDecided { .. } => {}
            _ => winner = Some(index),
        }
        if rule.quick {
            break;
        }
        from = index + 1;
    }
    winner
}
