//! The number of the first rule of a kind.

use super::ast::IpfwAction;
use super::config::IpfwConfig;

/// The first rule that translates addresses.
pub fn first_translation(config: &IpfwConfig) -> Option<u16> {
    first(config, |action| matches!(action, IpfwAction::Nat(_)))
}

/// The first rule that answers the packets that it drops.
pub fn first_answer(config: &IpfwConfig) -> Option<u16> {
    first(config, |action| matches!(action, IpfwAction::Reject(_)))
}

fn first(config: &IpfwConfig, is_wanted: fn(&IpfwAction) -> bool) -> Option<u16> {
    config.rules.iter().find(|rule| is_wanted(&rule.action)).map(|rule| rule.number)
}
