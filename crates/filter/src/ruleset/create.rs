//! How a rule makes a state.

use super::evaluation::Evaluation;
use crate::packet::Fragment;
use crate::packet::protocol::tcp::SYN;
use crate::rule::{Side, SourceLimits, StateOptions};
use crate::state::{
    ColdState, FilterWorker, FlowKey, NO_RULE, NewSourceState, NewState, PassBinding, SourceKey, StateFlags,
    StateTable, decrement, increment,
};
use crate::verdict::{DropReason, Rewrite};

/// What a new state is made from, besides the packet.
pub(super) struct StateRequest<'a> {
    pub options: &'a StateOptions,
    /// The rule that makes it.
    pub rule: u32,
    pub binding: PassBinding,
    /// The flow as its packets come in, before a translation.
    pub key: FlowKey,
    pub translation: Option<Rewrite>,
    /// See [`ColdState::mark`].
    pub mark: u16,
}

/// Whether the packet may make a state, by which all packets of its flow pass. A later fragment does not show its flow, and
/// rules that distinguish fragments may decide otherwise about whole packets.
pub(super) fn may_create(evaluation: &Evaluation<'_>) -> bool {
    match evaluation.packet.fragment {
        Fragment::Whole => true,
        Fragment::First { .. } => !evaluation.set.tests_fragments,
        Fragment::Later { .. } => false,
    }
}

/// Makes a state and counts it.
pub(super) fn create(evaluation: &mut Evaluation<'_>, request: &StateRequest<'_>) -> Result<(), DropReason> {
    let count = evaluation.worker.rule_states.get(request.rule as usize).copied().unwrap_or(0);
    if request.options.max_states.is_some_and(|most| count >= most) {
        return Err(DropReason::RuleLimit);
    }
    let replaced = place_in_full_table(&evaluation.worker.states, request.key)?;
    let source = match &request.options.source {
        None => 0,
        Some(limits) => count_source(evaluation, request, limits)? + 1,
    };
    // The limits allow the new one, and its source stays if it is a state of the same one that ends.
    replaced.into_iter().for_each(|id| evaluation.worker.replace(id, evaluation.now));
    insert(evaluation, request, source)
}

fn insert(
    evaluation: &mut Evaluation<'_>,
    request: &StateRequest<'_>,
    source: u32,
) -> Result<(), DropReason> {
    let new =
        NewState { key: request.key, flags: flags(evaluation, request), cold: cold(evaluation, request) };
    let hash = evaluation.hash;
    let states = &mut evaluation.worker.states;
    let Ok(id) = states.insert(new, hash, evaluation.now) else {
        source
            .checked_sub(1)
            .into_iter()
            .for_each(|number| evaluation.worker.release_source(number, evaluation.now));
        return Err(DropReason::TableFull);
    };
    states.start(id, evaluation.packet);
    states.set_source(id, source);
    evaluation.worker.change_flows(id, hash);
    if let Some(count) = evaluation.worker.rule_states.get_mut(request.rule as usize) {
        *count += 1;
    }
    Ok(())
}

/// The state that has to end for a new one, if the table is full. New connections do not fail because hosts, or forged
/// packets, have opened more than the table has room for and completed none. The state that the packet itself made as it came in is
/// not ended for that of its way out: one alone would not let the answers pass.
fn place_in_full_table(states: &StateTable, flow: FlowKey) -> Result<Option<u32>, DropReason> {
    if !states.is_full() {
        return Ok(None);
    }
    let is_other = |id: &u32| !states.flows(*id).iter().any(|other| [flow, flow.reversed()].contains(other));
    states.replaceable().find(is_other).map(Some).ok_or(DropReason::TableFull)
}

/// Counts the state for its source, and returns the number of the source.
fn count_source(
    evaluation: &mut Evaluation<'_>,
    request: &StateRequest<'_>,
    limits: &SourceLimits,
) -> Result<u32, DropReason> {
    let now = evaluation.now;
    let stay = evaluation.set.source_timeout(request.options.timeouts);
    let FilterWorker { sources, rule_sources, .. } = &mut *evaluation.worker;
    let rule = if limits.per_rule { request.rule } else { NO_RULE };
    let count = rule_sources.get(request.rule as usize).copied().unwrap_or(0);
    let may_grow = limits.max_nodes.is_none_or(|most| count < most);
    let key = SourceKey::new(request.key, limits.mask, rule);
    let new = NewSourceState { key, limits, may_grow, stay };
    let added = sources.add(&new, now, |removed| decrement(rule_sources, removed));
    let (number, is_new) = added.ok_or(DropReason::SourceLimit)?;
    if is_new {
        increment(rule_sources, rule);
    }
    Ok(number)
}

fn flags(evaluation: &Evaluation<'_>, request: &StateRequest<'_>) -> StateFlags {
    StateFlags {
        binding: request.binding,
        translation: request.translation.map(|rewrite| rewrite.side).into(),
        if_bound: request.options.if_bound,
        tracking: request.options.tracking,
        midstream: evaluation.packet.tcp().is_some_and(|segment| segment.flags & SYN == 0),
    }
}

fn cold(evaluation: &Evaluation<'_>, request: &StateRequest<'_>) -> ColdState {
    let (key, packet) = (&request.key, &*evaluation.packet);
    let untranslated = Rewrite { side: Side::Source, address: key.source, port: 0, quoted: false };
    let to = request.translation.unwrap_or(untranslated);
    ColdState {
        translated: to.address,
        bytes: u64::from(packet.length),
        packets: 1,
        created: evaluation.now,
        rule: request.rule,
        source: 0,
        translated_port: to.port,
        interface: packet.pass.interface,
        mark: request.mark,
        // A rule set has at most 256 of them.
        timeouts: request.options.timeouts as u8,
        generation: evaluation.worker.generation(),
    }
}
