//! ipfw: the first rule that matches wins, except that some rules only count, jump, or look for a state (ipfw(8)).

use super::create::{StateRequest, create, may_create};
use super::evaluation::{Evaluation, Followed};
use super::translate;
use crate::rule::{CompiledRule, FlowName, RuleAction, StateOptions, Translation};
use crate::state::{FlowKey, GONE_WITH_STATES, Hit, PassBinding};
use crate::verdict::{DecidedBy, Decision, DropReason, Rewrite, Verdict};

/// What a rule leads to.
enum Step {
    /// The evaluation goes on at this rule.
    To(usize),
    Decided(Decision),
}

/// What is known about the packet's states.
#[derive(Default)]
struct Lookups {
    /// The name that was looked for last, or any.
    last: Option<FlowName>,
    /// Whether a state had it.
    found: bool,
    /// How often the rule of a state led back.
    returns: u8,
}

/// States whose rules lead back are followed so often: two of them may lead to each other without end.
const MOST_RETURNS: u8 = 16;

impl Lookups {
    /// Whether a state with this name is to be looked for. Only the last name counts, as in FreeBSD, and after a look for
    /// any name nothing is new.
    fn are_needed(&self, flow: FlowName) -> bool {
        self.returns < MOST_RETURNS && self.last.is_none_or(|last| last != FlowName::ANY && last != flow)
    }

    /// Whether it is known that no state has this name.
    fn missed(&self, flow: FlowName) -> bool {
        !self.found && self.last == Some(flow)
    }
}

/// Decides about the packet. Each rule that is reached lies behind the one before, except by way of a state.
pub(super) fn decide(mut evaluation: Evaluation<'_>) -> Decision {
    let set = evaluation.set;
    let (mut from, mut lookups) = (0, Lookups::default());
    // Often the first rule looks for the state, and nothing else has to be found out about the packet.
    if let Some(RuleAction::CheckState(flow)) = set.rules().first().map(|rule| &rule.action) {
        match check_state(&mut evaluation, *flow, 0, &mut lookups) {
            Some(Step::Decided(decision)) => return decision,
            Some(Step::To(next)) => from = next,
            None => from = 1,
        }
    }
    let around = evaluation.surroundings();
    let search = set.filter.search(evaluation.packet, around);
    while let Some(index) = search.next(from, evaluation.packet, |_| true) {
        if !set.filter.is_constant(index, evaluation.packet.protocol) {
            evaluation.worker.flows.trace.differs();
        }
        match step(&mut evaluation, index, &mut lookups) {
            Step::To(next) => from = next,
            Step::Decided(decision) => return decision,
        }
    }
    Decision { verdict: evaluation.verdict(None), rule: None, by: DecidedBy::Rule }
}

fn step(evaluation: &mut Evaluation<'_>, index: usize, lookups: &mut Lookups) -> Step {
    let set = evaluation.set;
    let rule = &set.rules()[index];
    if let RuleAction::CheckState(flow) = rule.action {
        return check_state(evaluation, flow, index, lookups).unwrap_or(Step::To(index + 1));
    }
    if let (RuleAction::Translate(to), Some(options)) = (&rule.action, &rule.state) {
        return translate(evaluation, to, options, index).map_or(Step::To(index + 1), Step::Decided);
    }
    evaluation.count(index as u32);
    match keep_state(evaluation, rule, index as u32, lookups) {
        Ok(by) => act(evaluation, rule, index, by),
        Err(reason) => {
            let verdict = Verdict::Drop(reason);
            Step::Decided(Decision { verdict, rule: Some(index as u32), by: DecidedBy::Rule })
        }
    }
}

/// Does what the rule says.
fn act(evaluation: &mut Evaluation<'_>, rule: &CompiledRule, index: usize, by: DecidedBy) -> Step {
    evaluation.packet.tag |= rule.tag;
    match rule.action {
        RuleAction::Count | RuleAction::CheckState(_) => Step::To(index + 1),
        RuleAction::SkipTo(target) => Step::To(target as usize),
        _ => {
            let verdict = evaluation.verdict(Some(rule));
            Step::Decided(Decision { verdict, rule: Some(index as u32), by })
        }
    }
}

/// Translates the packet by its state, or makes one if the packet goes the right way. A translated packet passes: the
/// search ends (`net.inet.ip.fw.one_pass`).
fn translate(
    evaluation: &mut Evaluation<'_>,
    to: &Translation,
    options: &StateOptions,
    index: usize,
) -> Option<Decision> {
    let decided = |verdict, by| Some(Decision { verdict, rule: Some(index as u32), by });
    let flow = Some(options.flow);
    for (followed, quoted) in [(evaluation.follow_quoted(flow), true), (evaluation.follow_state(flow), false)]
    {
        if let Followed::Valid(hit) = followed {
            evaluation.count(index as u32);
            return decided(evaluation.pass_by_state(hit, quoted), DecidedBy::State);
        }
    }
    if to.side != translate::side_of(evaluation.packet.pass.direction) {
        return None;
    }
    evaluation.count(index as u32);
    match new_translation(evaluation, to, options, index as u32) {
        Ok(rewrite) => decided(Verdict::Translate(rewrite), DecidedBy::NewState),
        Err(reason) => decided(Verdict::Drop(reason), DecidedBy::Rule),
    }
}

fn new_translation(
    evaluation: &mut Evaluation<'_>,
    to: &Translation,
    options: &StateOptions,
    rule: u32,
) -> Result<Rewrite, DropReason> {
    if !may_create(evaluation) {
        return Err(DropReason::State);
    }
    let original = *evaluation.packet;
    let rewrite = translate::choose(evaluation, to)?.rewrite;
    evaluation.restore(&original);
    let request = StateRequest {
        options,
        rule,
        binding: original.pass.direction.into(),
        key: FlowKey::of(&original),
        translation: Some(rewrite),
        mark: options.flow.0,
    };
    create(evaluation, &request)?;
    Ok(rewrite)
}

/// Looks for the packet's state at the rule `from`. If it has one, the packet meets the action of the rule that made it.
fn check_state(
    evaluation: &mut Evaluation<'_>,
    flow: FlowName,
    from: usize,
    lookups: &mut Lookups,
) -> Option<Step> {
    if !lookups.are_needed(flow) {
        return None;
    }
    lookups.last = Some(flow);
    let followed = evaluation.follow_state(Some(flow));
    lookups.found = matches!(followed, Followed::Valid(_));
    let Followed::Valid(hit) = followed else { return None };
    let index = evaluation.worker.states.get(hit.id).1.rule;
    let set = evaluation.set;
    let Some(rule) = set.rules().get(index as usize) else {
        return pass_without_rule(evaluation, hit).map(Step::Decided);
    };
    evaluation.count(index);
    let step = act(evaluation, rule, index as usize, DecidedBy::State);
    lookups.returns += u8::from(matches!(step, Step::To(next) if next <= from));
    Some(step)
}

/// Lets a packet pass by a state whose rule is gone, if the rule did the same. The state of another rule ends with it.
#[cold]
fn pass_without_rule(evaluation: &mut Evaluation<'_>, hit: Hit) -> Option<Decision> {
    if evaluation.worker.states.get(hit.id).1.rule == GONE_WITH_STATES {
        evaluation.worker.forget(hit.id, evaluation.now);
        return None;
    }
    let verdict = evaluation.pass_by_state(hit, false);
    Some(Decision { verdict, rule: None, by: DecidedBy::State })
}

/// Makes the state that the rule asks for, if the flow has none.
fn keep_state(
    evaluation: &mut Evaluation<'_>,
    rule: &CompiledRule,
    index: u32,
    lookups: &Lookups,
) -> Result<DecidedBy, DropReason> {
    let Some(options) = &rule.state else { return Ok(DecidedBy::Rule) };
    if !lookups.missed(options.flow)
        && let Followed::Valid(_) = evaluation.follow_state(Some(options.flow))
    {
        return Ok(DecidedBy::State);
    }
    if !may_create(evaluation) {
        return Ok(DecidedBy::Rule);
    }
    let request = StateRequest {
        options,
        rule: index,
        binding: PassBinding::Both,
        key: FlowKey::of(evaluation.packet),
        translation: None,
        mark: options.flow.0,
    };
    create(evaluation, &request)?;
    Ok(DecidedBy::NewState)
}
