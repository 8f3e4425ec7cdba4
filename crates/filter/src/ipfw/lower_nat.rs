//! From an instance of address translation to compiled actions.

use std::net::IpAddr;

use super::config::{NatInstance, NatRedirect};
use crate::address::Address;
use crate::interfaces::Interfaces;
use crate::packet::Direction;
use crate::rule::{
    AddressMatch, AddressPool, Clause, PoolOrder, PortChoice, PortRange, RuleAction, Side, Test, Translation,
};

/// The ports that translated sources get (libalias(3)).
const PORTS: PortRange = PortRange { first: 0x8000, last: 0xffff };

/// A rule that a `nat` rule is compiled to.
pub(super) struct NatPart {
    /// What it does, which distinguishes it from the other parts across a reload. Empty for the part that translates
    /// sources.
    pub name: String,
    /// What it needs besides the rule's own clauses.
    pub clauses: Vec<Clause>,
    pub action: RuleAction,
}

impl NatPart {
    fn new(name: impl Into<String>, clauses: Vec<Clause>, action: RuleAction) -> NatPart {
        NatPart { name: name.into(), clauses, action }
    }
}

/// The parts of a `nat` rule in order. Without an instance, or an address of its interface, nothing can be translated, and
/// nothing may leave untranslated: the packets are dropped, as in FreeBSD without an instance.
pub(super) fn parts(nat: Option<&NatInstance>, interfaces: &Interfaces) -> Vec<NatPart> {
    let own = nat.and_then(|nat| Some((nat, own_address(nat, interfaces)?)));
    let Some((nat, own)) = own else {
        return vec![NatPart::new("no address", Vec::new(), RuleAction::Block)];
    };
    let ports = if nat.same_ports { PortChoice::KeepOrFree(PORTS) } else { PortChoice::Free(PORTS) };
    let mut parts: Vec<_> = nat.redirects.iter().map(|redirect| redirected(redirect, own)).collect();
    parts.extend(nat.redirects.iter().filter_map(|redirect| published(redirect, ports)));
    parts.push(NatPart::new("", Vec::new(), translate(Side::Source, own, ports)));
    if nat.deny_in {
        let inward = vec![Clause::of(Test::Direction(Direction::In))];
        parts.push(NatPart::new("deny_in", inward, RuleAction::Block));
    }
    parts.push(NatPart::new("not translated", Vec::new(), RuleAction::Pass));
    parts
}

/// The address that sources get.
pub(super) fn own_address(nat: &NatInstance, interfaces: &Interfaces) -> Option<IpAddr> {
    nat.address.or_else(|| first_address(nat.interface.as_deref()?, interfaces))
}

fn first_address(interface: &str, interfaces: &Interfaces) -> Option<IpAddr> {
    let addresses = &interfaces.named(interface)?.addresses;
    addresses.iter().map(|(address, _)| IpAddr::from(*address)).find(IpAddr::is_ipv4)
}

fn redirected(redirect: &NatRedirect, own: IpAddr) -> NatPart {
    let alias = Address::from(redirect.alias.unwrap_or(own));
    let mut clauses = vec![
        Clause::of(Test::Direction(Direction::In)),
        Clause::of(Test::Destination(AddressMatch::single(alias))),
    ];
    let mut ports = PortChoice::Keep;
    if let Some((protocol, (first, last), to)) = redirect.ports {
        clauses.push(Clause::of(Test::Protocol([protocol].into_iter().collect())));
        clauses.push(Clause::of(Test::DestinationPort(PortRange { first, last })));
        let last = to.saturating_add(last.saturating_sub(first));
        ports = PortChoice::Shift { from: first, to: PortRange { first: to, last } };
    }
    NatPart::new(redirect.to_string(), clauses, translate(Side::Destination, redirect.host, ports))
}

/// What a host behind an address of its own sends: it leaves with that address (libalias(3), `LibAliasRedirectAddr`).
fn published(redirect: &NatRedirect, ports: PortChoice) -> Option<NatPart> {
    let alias = redirect.alias.filter(|_| redirect.ports.is_none())?;
    let host = AddressMatch::single(redirect.host.into());
    let clauses = vec![Clause::of(Test::Direction(Direction::Out)), Clause::of(Test::Source(host))];
    Some(NatPart::new(format!("{redirect}, out"), clauses, translate(Side::Source, alias, ports)))
}

fn translate(side: Side, address: IpAddr, ports: PortChoice) -> RuleAction {
    let address = address.into();
    let pool = AddressPool { ranges: vec![(address, address)], order: PoolOrder::RoundRobin };
    RuleAction::Translate(Box::new(Translation { side, pool, ports, pass: true }))
}
