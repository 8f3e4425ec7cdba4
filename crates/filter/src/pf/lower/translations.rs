//! Rules of translation. A packet on its way in meets `rdr` and then `binat`, on its way out `binat` and then `nat`.

use ipnet::IpNet;

use crate::address::Address;
use crate::packet::Direction;
use crate::pf::address::{NumberTest, PfAddress, PfHost, PfPeer, PortTest};
use crate::pf::config::PfRules;
use crate::pf::error::{PfError, PfResult};
use crate::pf::lower::conditions::clauses;
use crate::pf::lower::names::PfNames;
use crate::pf::lower::peers::of_interface;
use crate::pf::lower::support;
use crate::pf::pool::{NAT_PORTS, PfPool, PoolChoice, PoolPorts};
use crate::pf::rule::{PfAction, PfRule, TranslationKind};
use crate::rule::{
    AddressMatch, AddressPool, Clause, CompiledRule, PoolOrder, PortChoice, PortRange, RuleAction, Side,
    Test, Translation,
};

pub fn translations(rules: &PfRules, names: &mut PfNames) -> PfResult<Vec<CompiledRule>> {
    let mut compiled = Vec::new();
    // A rule of `rdr` is one in its compiled form.
    let binat = rules.rdr.len() as u32;
    for rule in rules.rdr.iter().chain(&rules.binat).chain(&rules.nat) {
        support::rule(rule)?;
        let number = compiled.len() as u32;
        compiled.extend(one(rule, (number, binat), names)?);
    }
    Ok(compiled)
}

/// The compiled forms of a rule. `number` is that of the first, and `binat` that of the first rule of `binat`.
fn one(rule: &PfRule, (number, binat): (u32, u32), names: &mut PfNames) -> PfResult<Vec<CompiledRule>> {
    let (kind, pass) = match &rule.action {
        PfAction::NoTranslate(TranslationKind::Binat) => {
            return Err(PfError::refused(
                &rule.position,
                "no binat",
                "write binat rules for the other addresses only",
            ));
        }
        PfAction::NoTranslate(kind) => {
            let next = (*kind == TranslationKind::Rdr).then_some(binat);
            return Ok(vec![compiled(rule, side(*kind), RuleAction::NoTranslate { next }, number, names)?]);
        }
        PfAction::Translate { kind, pass } => (*kind, *pass),
        // The rules of `load anchor` for translation are not looked for in nat-anchor and the like.
        _ => {
            return Err(PfError::refused(
                &rule.position,
                "nat-anchor, rdr-anchor or binat-anchor",
                "write the rules here",
            ));
        }
    };
    let pool = rule.nat.as_ref().or(rule.rdr.as_ref());
    let pool =
        pool.ok_or_else(|| PfError::invalid(&rule.position, "a translation without address", "add one"))?;
    if kind == TranslationKind::Binat {
        return both_ways(rule, pool, pass, number, names);
    }
    let side = side(kind);
    let translation =
        Translation { side, pool: addresses(rule, pool, names)?, ports: ports(rule, pool, side), pass };
    Ok(vec![compiled(rule, side, RuleAction::Translate(Box::new(translation)), number, names)?])
}

fn side(kind: TranslationKind) -> Side {
    if kind == TranslationKind::Rdr { Side::Destination } else { Side::Source }
}

/// Destinations are translated on the way in, sources on the way out.
fn compiled(
    rule: &PfRule,
    side: Side,
    action: RuleAction,
    number: u32,
    names: &mut PfNames,
) -> PfResult<CompiledRule> {
    let direction = if side == Side::Destination { Direction::In } else { Direction::Out };
    let mut conditions = vec![Clause::of(Test::Direction(direction))];
    conditions.extend(clauses(rule, names)?);
    let tag = rule.options.tag.as_ref().map_or(0, |tag| names.tag(tag));
    let text = rule.to_string();
    Ok(CompiledRule { clauses: conditions, tag, number, text, ..CompiledRule::new(action) })
}

/// In: the outside address becomes the inside one. Out: the other way round.
fn both_ways(
    rule: &PfRule,
    pool: &PfPool,
    pass: bool,
    number: u32,
    names: &mut PfNames,
) -> PfResult<Vec<CompiledRule>> {
    let address = |address: &PfAddress| vec![address.clone()];
    let inside = PfPool { addresses: address(&rule.from.host.address), ..pool.clone() };
    let translation = |side, pool| {
        RuleAction::Translate(Box::new(Translation { side, pool, ports: PortChoice::Keep, pass }))
    };
    let outside_host = PfHost { not: false, address: pool.addresses[0].clone() };
    let mut incoming = rule.clone();
    incoming.from = PfPeer { host: rule.to.host.clone(), port: None };
    incoming.to = PfPeer { host: outside_host, port: None };
    let to_inside = bitmask(addresses(rule, &inside, names)?);
    let to_outside = bitmask(addresses(rule, pool, names)?);
    Ok(vec![
        compiled(&incoming, Side::Destination, translation(Side::Destination, to_inside), number, names)?,
        compiled(rule, Side::Source, translation(Side::Source, to_outside), number, names)?,
    ])
}

fn bitmask(pool: AddressPool) -> AddressPool {
    AddressPool { order: PoolOrder::Bitmask, ..pool }
}

/// The addresses of a pool. An interface may have none yet: then the packets of the rule are dropped.
fn addresses(rule: &PfRule, pool: &PfPool, names: &PfNames) -> PfResult<AddressPool> {
    let mut ranges = Vec::new();
    for address in &pool.addresses {
        ranges.extend(range(rule, address, names)?);
    }
    support::pool(rule, pool)?;
    Ok(AddressPool { ranges, order: order(pool) })
}

fn range(rule: &PfRule, address: &PfAddress, names: &PfNames) -> PfResult<Vec<(Address, Address)>> {
    match address {
        PfAddress::Prefix(prefix) => Ok(ends(prefix).into_iter().collect()),
        PfAddress::Range(first, last) => Ok(vec![((*first).into(), (*last).into())]),
        PfAddress::Dynamic(dynamic) => {
            Ok(of_interface(rule, dynamic, names)?.iter().filter_map(ends).collect())
        }
        other => Err(PfError::refused(&rule.position, &other.to_string(), "name the addresses of the pool")),
    }
}

fn ends(prefix: &IpNet) -> Option<(Address, Address)> {
    match AddressMatch::prefix(prefix.addr().into(), prefix.prefix_len()) {
        AddressMatch::Range(first, last) => Some((first, last)),
        _ => None,
    }
}

fn order(pool: &PfPool) -> PoolOrder {
    match pool.choice {
        // Only several addresses, or what may stand for several, are drawn from without being told (pfctl's parse.y).
        None if matches!(pool.addresses[..], [PfAddress::Prefix(_)]) => PoolOrder::First,
        Some(PoolChoice::Bitmask) => PoolOrder::Bitmask,
        Some(PoolChoice::Random) => PoolOrder::Random,
        // Without a key of its own the hash is as good with any.
        Some(PoolChoice::SourceHash(key)) => PoolOrder::SourceHash(key.map_or(0, |key| key as u64)),
        None | Some(PoolChoice::RoundRobin) => PoolOrder::RoundRobin,
    }
}

fn ports(rule: &PfRule, pool: &PfPool, side: Side) -> PortChoice {
    match (pool.ports, side) {
        (PoolPorts::Keep, _) | (PoolPorts::Default, Side::Destination) => PortChoice::Keep,
        (PoolPorts::Default, Side::Source) => free(NAT_PORTS.0, NAT_PORTS.1),
        (PoolPorts::Range(first, last), Side::Source) => free(first, last),
        (PoolPorts::Range(first, last), Side::Destination) if first == last => PortChoice::Fixed(first),
        (PoolPorts::Range(first, last), Side::Destination) => {
            PortChoice::Shift { from: first_port(rule.to.port), to: PortRange { first, last } }
        }
    }
}

fn free(first: u16, last: u16) -> PortChoice {
    PortChoice::Free(PortRange { first, last })
}

/// The first destination port of a `rdr` rule, which names one port, a range, or none.
fn first_port(test: Option<PortTest>) -> u16 {
    match test {
        Some(NumberTest::Equal(port) | NumberTest::Range(port, _)) => port,
        _ => 0,
    }
}
