//! `binat` and `binat-to`: one address for another, in both directions.

use crate::packet::Direction;
use crate::pf::address::{PfAddress, PfHost, PfPeer};
use crate::pf::error::{PfError, PfResult};
use crate::pf::expand::pools::Pool;
use crate::pf::expand::resolve::ResolvedHost;
use crate::pf::pool::{PfPool, PoolPorts};
use crate::pf::rule::{PfAction, PfRule, TranslationKind};
use crate::pf::syntax::{ActionSyntax, RuleSyntax};

/// Lists would make it ambiguous which address stands for which.
pub fn check(rule: &RuleSyntax, from: &[ResolvedHost], to: &[ResolvedHost]) -> PfResult<()> {
    let is_rule = matches!(
        rule.action,
        ActionSyntax::Translate { kind: TranslationKind::Binat, .. }
            | ActionSyntax::NoTranslate(TranslationKind::Binat)
    );
    if rule.options.binat.is_none() && !is_rule {
        return Ok(());
    }
    let lists = [from.len(), to.len(), rule.interfaces.len(), rule.protocols.len()];
    let ports = rule.from.ports.len() + rule.to.ports.len();
    let problem = if lists.iter().any(|length| *length > 1) {
        "binat takes one address, interface and protocol"
    } else if ports > 0 {
        "binat translates no ports"
    } else if rule.options.binat.is_some() && !is_rule && rule.direction.is_some() {
        "binat-to can not specify a direction"
    } else {
        return Ok(());
    };
    Err(PfError::invalid(
        &rule.position,
        problem,
        "write a rule for each pair of addresses, without 'in', 'out' or 'port'",
    ))
}

/// The rules for both directions: out with the source translated, in with the destination translated back.
pub fn two_rules(rule: PfRule, pool: &Pool) -> PfResult<Vec<PfRule>> {
    let inside = rule.from.host.clone();
    let outside = pool.of_rule(TranslationKind::Binat, rule.family, None)?;
    let same_size = single(&inside, &outside);
    if !same_size || rule.nat.is_some() || rule.rdr.is_some() {
        let problem = "'binat-to' needs a source address and one address or prefix of the same length to translate it to";
        return Err(PfError::invalid(&rule.position, problem, "write from ADDRESS to any binat-to ADDRESS"));
    }
    let translated = outside.addresses[0].clone();
    let back = PfPool { addresses: vec![inside.address], ports: PoolPorts::Default, ..outside.clone() };
    let mut incoming = PfRule { direction: Some(Direction::In), rdr: Some(back), ..rule.clone() };
    incoming.from = PfPeer { host: rule.to.host.clone(), port: None };
    incoming.to = PfPeer { host: PfHost { not: false, address: translated }, port: None };
    let there = PfPool { ports: PoolPorts::Keep, ..outside };
    Ok(vec![PfRule { direction: Some(Direction::Out), nat: Some(there), ..rule }, incoming])
}

fn single(inside: &PfHost, outside: &PfPool) -> bool {
    match (&inside.address, outside.addresses.as_slice()) {
        (PfAddress::Prefix(inner), [PfAddress::Prefix(outer)]) => inner.prefix_len() == outer.prefix_len(),
        _ => false,
    }
}

/// The same for a `binat` rule, which translates both ways by itself.
pub fn check_sizes(rule: &PfRule) -> PfResult<()> {
    let binat = matches!(rule.action, PfAction::Translate { kind: TranslationKind::Binat, .. });
    if !binat || rule.rdr.as_ref().is_some_and(|pool| single(&rule.from.host, pool)) {
        return Ok(());
    }
    let problem = "'binat' source mask and redirect mask must be the same";
    Err(PfError::invalid(&rule.position, problem, "write from ADDRESS to any -> ADDRESS"))
}
