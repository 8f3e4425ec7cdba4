//! Rules that only one worker enforces.

use fullview_filter::rule::{CompiledRule, RuleAction};
use fullview_filter::ruleset::RuleSet;

/// A rule that several workers cannot enforce together.
#[derive(Debug, thiserror::Error)]
#[error("{path}: rule {number}, `{text}`: {why}; choose one worker (router.workers, --workers)")]
pub struct SeveralWorkersError {
    path: String,
    number: u32,
    text: String,
    why: &'static str,
}

/// Refuses rules that need one worker, if there are several.
pub fn check(workers: usize, path: &str, set: &RuleSet) -> Result<(), SeveralWorkersError> {
    let rules = set.rules().iter().chain(set.translations());
    let first = rules.filter(|_| workers > 1).find_map(|rule| Some((rule, reason(rule)?)));
    first.map_or(Ok(()), |(rule, why)| {
        let (path, text) = (path.to_owned(), rule.text.clone());
        Err(SeveralWorkersError { path, number: rule.number, text, why })
    })
}

fn reason(rule: &CompiledRule) -> Option<&'static str> {
    let state = rule.state.as_ref();
    if matches!(rule.action, RuleAction::Translate(_)) {
        Some("the answers to a translated packet may come to another worker than the one that has its state")
    } else if state.is_some_and(|state| state.max_states.is_some()) {
        Some("it limits its states, which several workers do not count together")
    } else if state.is_some_and(|state| state.source.is_some()) {
        Some("it limits sources, whose states several workers do not count together")
    } else {
        None
    }
}
