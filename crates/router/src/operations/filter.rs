//! Describes the filter of a running router. These functions run in the threads of clients, which ask the filter's workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use fullview_filter::rule::{CompiledRule, NamedTable};
use fullview_filter::ruleset::{Language, RuleSet};
use fullview_filter::state::RuleCounters;
use fullview_plane::forward::{FilterPiece, PieceOf};
use fullview_plane::kernel_flows::SharedTotals;
use fullview_plane::verdict::Reason;

use crate::control::filter::{
    FilterQuery, FilterStatus, KernelFlows, MAX_LIMIT, RuleStatus, RuleTotals, TableSummary, UsedRoom,
};
use crate::daemon::{FilterHandle, FilterInForce, QueryHandle, RouterState, total};

/// So many rules have metrics of their own at most.
pub const MOST_METRICS: usize = MAX_LIMIT;

/// How often workers are asked until all of them have the same rules. A change reaches them within a round of each.
const MOST_TRIES: usize = 100;

/// Refuses questions about the filter of a router that has none.
const NO_FILTER: &str = "this router has no filter; it has one if it is started with --filter or a section [filter] of its configuration";

/// Refuses an answer without rules, which a worker does not give.
pub const UNFILLED: &str = "a worker of the filter has left a question open; ask again";

/// The filter of the router.
pub fn in_force(queries: &QueryHandle) -> Result<FilterInForce, String> {
    let filter = queries.ask(|state| state.filter()).map_err(|error| error.to_string())?;
    filter.ok_or_else(|| NO_FILTER.to_owned())
}

/// The filter with a page of rules.
pub fn status(queries: &QueryHandle, query: &FilterQuery) -> Result<FilterStatus, String> {
    let filter = in_force(queries)?;
    let drops = queries.ask(drops).map_err(|error| error.to_string())??;
    page(&filter, drops, query)
}

/// A page of rules. The pieces of the workers that it begins with say which rules are in force.
pub fn page(
    filter: &FilterInForce,
    drops: BTreeMap<String, u64>,
    query: &FilterQuery,
) -> Result<FilterStatus, String> {
    let pieces = pieces(&filter.handle, query.from)?;
    let rules = pieces.first().and_then(|piece| piece.rules.as_ref()).ok_or(UNFILLED)?.0.clone();
    let counters: Vec<_> =
        pieces.iter().flat_map(|piece| &piece.rules).map(|(_, counters)| &**counters).collect();
    let states = sum_of_states(&pieces);
    let counted = RuleCounts { rules: &rules, counters: &counters, states: &states };
    let totals = pieces.iter().map(|piece| piece.totals);
    let (used, sources) = totals.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let (listed, next) = counted.page(query.from, query.limit.clamp(1, MAX_LIMIT));
    Ok(FilterStatus {
        language: language(rules.language()).into(),
        file: filter.path.clone(),
        states: UsedRoom { used, most: filter.limits.states },
        states_by_worker: pieces.iter().map(|piece| piece.totals.0).collect(),
        sources: UsedRoom { used: sources, most: filter.limits.sources },
        replaced_states: pieces.iter().map(|piece| piece.replaced).sum(),
        kernel_flows: pieces
            .iter()
            .flat_map(|piece| piece.shared)
            .map(kernel_flows)
            .reduce(KernelFlows::plus),
        drops,
        totals: counted.totals(),
        tables: rules.named_tables().iter().map(|table| summary(&rules, table)).collect(),
        rules: listed,
        next,
    })
}

/// The pieces of all workers about the rules from this one on, which are those of one rule set.
fn pieces(handle: &FilterHandle, from: u32) -> Result<Vec<FilterPiece>, String> {
    for _ in 0..MOST_TRIES {
        let pieces =
            handle.workers().map(|worker| handle.piece(worker, PieceOf::Rules(from)).map(|piece| *piece));
        let pieces: Vec<_> = pieces.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let mut rules = pieces.iter().map(|piece| piece.rules.as_ref().map(|(rules, _)| Arc::as_ptr(rules)));
        let first = rules.next();
        if rules.all(|other| Some(other) == first) {
            return Ok(pieces);
        }
    }
    Err("the rules of the filter change all the time; ask again".to_owned())
}

/// How many states all workers have of each rule.
fn sum_of_states(pieces: &[FilterPiece]) -> Vec<u32> {
    let rules = pieces.iter().map(|piece| piece.rule_states.len()).min().unwrap_or(0);
    (0..rules).map(|rule| pieces.iter().map(|piece| piece.rule_states[rule]).sum()).collect()
}

fn kernel_flows(SharedTotals { flows, most, packets }: SharedTotals) -> KernelFlows {
    KernelFlows { used: flows, most, packets }
}

impl KernelFlows {
    /// Those of two workers.
    fn plus(self, other: KernelFlows) -> KernelFlows {
        KernelFlows {
            used: self.used + other.used,
            most: self.most + other.most,
            packets: self.packets + other.packets,
        }
    }
}

fn language(language: Language) -> &'static str {
    match language {
        Language::Pf => "pf",
        Language::Ipfw => "ipfw",
    }
}

/// A table, without its addresses.
pub fn summary(rules: &RuleSet, table: &NamedTable) -> TableSummary {
    let entries = rules.tables().get(usize::from(table.id.0)).map_or(0, |table| table.entries().len());
    TableSummary { name: table.name.clone(), addresses: entries, constant: table.is_constant }
}

/// What the filter dropped, by reason.
pub fn drops(state: &mut RouterState<'_>) -> Result<BTreeMap<String, u64>, String> {
    let counters = total(&state.snapshots().map_err(|error| error.to_string())?);
    let of_filter = counters.drop_reasons().filter(|(reason, _)| reason.is_of_filter());
    Ok(of_filter.map(|(reason, count): (Reason, u64)| (reason.name().to_owned(), count)).collect())
}

/// The rule with an index: filter rules, then those of translation.
pub fn rule(rules: &RuleSet, index: u32) -> Option<&CompiledRule> {
    let (index, filter) = (index as usize, rules.rules());
    filter.get(index).or_else(|| rules.translations().get(index - filter.len().min(index)))
}

/// Rules with their counts.
struct RuleCounts<'a> {
    rules: &'a RuleSet,
    /// Those of each worker.
    counters: &'a [&'a RuleCounters],
    /// Of the rules from the first one of the page on.
    states: &'a [u32],
}

impl RuleCounts<'_> {
    /// A page, and where the next one begins. What is one rule in its language may be several here, with the same number and
    /// text: they are listed as one.
    fn page(&self, from: u32, limit: usize) -> (Vec<RuleStatus>, Option<u32>) {
        let mut listed: Vec<RuleStatus> = Vec::new();
        // The states end the loop, so that no index is computed behind the last rule: a client may ask from any number on.
        for (states, index) in self.states.iter().zip(from..) {
            let Some(rule) = rule(self.rules, index) else { break };
            let (packets, bytes) = self.count(index as usize);
            let is_full = listed.len() == limit;
            match listed.last_mut() {
                Some(last) if is_same(last, rule) => {
                    (last.packets, last.bytes) = (last.packets + packets, last.bytes + bytes);
                    last.states += states;
                }
                _ if is_full => return (listed, Some(index)),
                _ => listed.push(status_of(index, rule, (packets, bytes), *states)),
            }
        }
        let end = from + self.states.len() as u32;
        let next = rule(self.rules, end);
        let is_cut = |last: &&RuleStatus| next.is_some_and(|next| is_same(last, next)) && last.index > from;
        match listed.last().filter(is_cut).map(|last| last.index) {
            Some(cut) => {
                listed.pop();
                (listed, Some(cut))
            }
            None => (listed, next.map(|_| end)),
        }
    }

    /// The packets and bytes of a rule.
    fn count(&self, index: usize) -> (u64, u64) {
        RuleCounters::sum(self.counters.iter().copied(), index)
    }

    fn totals(&self) -> RuleTotals {
        let rules = self.rules.counted_rules();
        let counts = (0..rules).map(|index| self.count(index));
        let (packets, bytes) = counts.fold((0, 0), |sum: (u64, u64), one| (sum.0 + one.0, sum.1 + one.1));
        RuleTotals { rules, packets, bytes }
    }
}

/// Whether both are parts of one rule.
fn is_same(listed: &RuleStatus, rule: &CompiledRule) -> bool {
    listed.number == rule.number && listed.text == rule.text
}

fn status_of(index: u32, rule: &CompiledRule, (packets, bytes): (u64, u64), states: u32) -> RuleStatus {
    let (labels, text) = (rule.labels.clone(), rule.text.clone());
    RuleStatus { index, number: rule.number, packets, bytes, states, labels, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullview_filter::rule::RuleAction;
    use fullview_filter::ruleset::RuleSetParts;

    /// Rules with these numbers; those of equal number are parts of one rule.
    fn listed(numbers: &[u32], from: u32, piece: usize, limit: usize) -> (Vec<(u32, u32)>, Option<u32>) {
        let mut parts = RuleSetParts::new(Language::Pf);
        let rule = |number: &u32| CompiledRule { number: *number, ..CompiledRule::new(RuleAction::Pass) };
        parts.rules = numbers.iter().map(rule).collect();
        let rules = RuleSet::new(parts).unwrap();
        let states: Vec<u32> = numbers.iter().map(|_| 1).skip(from as usize).take(piece).collect();
        let counters = RuleCounters::new(numbers.len());
        let (page, next) =
            RuleCounts { rules: &rules, counters: &[&counters], states: &states }.page(from, limit);
        (page.iter().map(|rule| (rule.number, rule.states)).collect(), next)
    }

    #[test]
    fn parts_of_a_rule_are_one_and_stay_on_one_page() {
        let numbers = [1, 1, 2, 3, 3];
        assert_eq!(listed(&numbers, 0, 5, 9), (vec![(1, 2), (2, 1), (3, 2)], None));
        assert_eq!(listed(&numbers, 0, 5, 2), (vec![(1, 2), (2, 1)], Some(3)));
        assert_eq!(listed(&numbers, 0, 4, 9), (vec![(1, 2), (2, 1)], Some(3)));
        assert_eq!(listed(&numbers, 3, 2, 9), (vec![(3, 2)], None));
        assert_eq!(listed(&numbers, 5, 9, 9), (vec![], None));
        assert_eq!(listed(&numbers, u32::MAX, 9, 9), (vec![], None));
    }
}
