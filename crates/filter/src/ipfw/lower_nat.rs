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

/// The actions of a `nat` rule in order, each with the clauses that it needs besides the rule's own. `None` if the
/// interface of the instance has no address.
pub(super) fn actions(nat: &NatInstance, interfaces: &Interfaces) -> Option<Vec<(Vec<Clause>, RuleAction)>> {
    let own = own_address(nat, interfaces)?;
    let inwards = nat.redirects.iter().map(|redirect| redirected(redirect, own));
    let ports = if nat.same_ports { PortChoice::KeepOrFree(PORTS) } else { PortChoice::Free(PORTS) };
    let outwards = nat.redirects.iter().filter_map(|redirect| published(redirect, ports));
    let source = (Vec::new(), translate(Side::Source, own, ports));
    let inward = vec![Clause::of(Test::Direction(Direction::In))];
    let denied = nat.deny_in.then_some((inward, RuleAction::Block));
    Some(
        inwards
            .chain(outwards)
            .chain([source])
            .chain(denied)
            .chain([(Vec::new(), RuleAction::Pass)])
            .collect(),
    )
}

/// The address that sources get.
pub(super) fn own_address(nat: &NatInstance, interfaces: &Interfaces) -> Option<IpAddr> {
    nat.address.or_else(|| first_address(nat.interface.as_deref()?, interfaces))
}

fn first_address(interface: &str, interfaces: &Interfaces) -> Option<IpAddr> {
    let addresses = &interfaces.named(interface)?.addresses;
    addresses.iter().map(|(address, _)| IpAddr::from(*address)).find(IpAddr::is_ipv4)
}

fn redirected(redirect: &NatRedirect, own: IpAddr) -> (Vec<Clause>, RuleAction) {
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
    (clauses, translate(Side::Destination, redirect.host, ports))
}

/// What a host behind an address of its own sends: it leaves with that address (libalias(3), `LibAliasRedirectAddr`).
fn published(redirect: &NatRedirect, ports: PortChoice) -> Option<(Vec<Clause>, RuleAction)> {
    let alias = redirect.alias.filter(|_| redirect.ports.is_none())?;
    let host = AddressMatch::single(redirect.host.into());
    let clauses = vec![Clause::of(Test::Direction(Direction::Out)), Clause::of(Test::Source(host))];
    Some((clauses, translate(Side::Source, alias, ports)))
}

fn translate(side: Side, address: IpAddr, ports: PortChoice) -> RuleAction {
    let address = address.into();
    let pool = AddressPool { ranges: vec![(address, address)], order: PoolOrder::RoundRobin };
    RuleAction::Translate(Box::new(Translation { side, pool, ports, pass: true }))
}
