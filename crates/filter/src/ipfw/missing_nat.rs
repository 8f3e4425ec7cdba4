//! Rules of `nat` that cannot translate.

use super::ast::{IpfwAction, IpfwRule};
use super::config::IpfwConfig;
use super::lower_nat::own_address;
use crate::interfaces::Interfaces;

/// A rule of `nat` that drops its packets, because its instance cannot translate them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingNat {
    #[error(
        "rule {rule}: drops its packets, as there is no nat instance {instance}; add `nat {instance} config`"
    )]
    NoInstance { rule: u16, instance: u16 },
    #[error(
        "rule {rule}: drops its packets until the interface of nat {instance}, {interface}, has an IPv4 address"
    )]
    NoAddress { rule: u16, instance: u16, interface: String },
}

/// The rules of `nat` that drop their packets, with the interfaces as they are now.
pub fn missing_nats(config: &IpfwConfig, interfaces: &Interfaces) -> Vec<MissingNat> {
    let missing = |rule: &IpfwRule| match rule.action {
        IpfwAction::Nat(instance) => missing_nat(config, rule.number, instance, interfaces),
        _ => None,
    };
    config.enabled_rules().filter_map(missing).collect()
}

fn missing_nat(config: &IpfwConfig, rule: u16, instance: u16, interfaces: &Interfaces) -> Option<MissingNat> {
    let Some(nat) = config.nats.get(&instance) else {
        return Some(MissingNat::NoInstance { rule, instance });
    };
    let interface = nat.interface.clone().filter(|_| own_address(nat, interfaces).is_none())?;
    Some(MissingNat::NoAddress { rule, instance, interface })
}
