//! The first rule of a kind, wherever it stands.

use crate::pf::config::PfConfig;
use crate::pf::rule::{BlockReply, PfAction, PfRule};
use crate::pf::state_options::StateKeeping;

/// The first rule that translates addresses.
pub fn first_translation(config: &PfConfig) -> Option<&PfRule> {
    first(config, |rule| {
        matches!(rule.action, PfAction::Translate { .. }) || rule.nat.is_some() || rule.rdr.is_some()
    })
}

/// The first rule that answers the packets that it blocks.
pub fn first_answer(config: &PfConfig) -> Option<&PfRule> {
    first(config, |rule| matches!(rule.action, PfAction::Block(reply) if reply != BlockReply::Drop))
}

/// The first rule that limits its states, or sources.
pub fn first_limit(config: &PfConfig) -> Option<&PfRule> {
    first(config, |rule| match &rule.state {
        StateKeeping::Keep(options) => options.max.is_some() || options.source_track.is_some(),
        StateKeeping::None => false,
    })
}

fn first(config: &PfConfig, is_wanted: fn(&PfRule) -> bool) -> Option<&PfRule> {
    let rules = &config.rules;
    let kinds = [&rules.scrub, &rules.nat, &rules.rdr, &rules.binat, &rules.filter];
    let own = kinds.into_iter().find_map(|rules| first_of(rules, is_wanted));
    own.or_else(|| config.loaded.iter().find_map(|anchor| first(&anchor.config, is_wanted)))
}

fn first_of(rules: &[PfRule], is_wanted: fn(&PfRule) -> bool) -> Option<&PfRule> {
    rules.iter().find_map(|rule| match &rule.action {
        PfAction::Anchor(call) => first_of(&call.body, is_wanted),
        _ => Some(rule).filter(|rule| is_wanted(rule)),
    })
}
