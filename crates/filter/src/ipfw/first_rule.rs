//! The number of the first rule of a kind.

use super::ast::{IpfwAction, IpfwKeep, IpfwRule};
use super::config::IpfwConfig;

/// The first rule that translates addresses.
pub fn first_translation(config: &IpfwConfig) -> Option<u16> {
    first(config, |rule| matches!(rule.action, IpfwAction::Nat(_)))
}

/// The first rule that answers the packets that it drops.
pub fn first_answer(config: &IpfwConfig) -> Option<u16> {
    first(config, |rule| matches!(rule.action, IpfwAction::Reject(_)))
}

/// The first rule that limits states.
pub fn first_limit(config: &IpfwConfig) -> Option<u16> {
    first(config, |rule| matches!(rule.keep, Some(IpfwKeep::Limit { .. })))
}

fn first(config: &IpfwConfig, is_wanted: fn(&IpfwRule) -> bool) -> Option<u16> {
    config.rules.iter().find(|rule| is_wanted(rule)).map(|rule| rule.number)
}
