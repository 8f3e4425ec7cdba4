//! Addresses and ports as clauses.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::address::{Address, Family};
use crate::interfaces::FilterInterface;
use crate::pf::address::{
    InterfaceAddresses, InterfacePart, NumberTest, PfAddress, PfHost, PfPeer, PortTest,
};
use crate::pf::error::{PfError, PfResult};
use crate::pf::lower::names::PfNames;
use crate::pf::lower::support::needs_routes;
use crate::pf::rule::PfRule;
use crate::rule::{AddressMatch, Clause, Literal, PortRange, Side, Test};

/// The clauses for one end of a packet.
pub fn peer(rule: &PfRule, peer: &PfPeer, side: Side, names: &mut PfNames) -> PfResult<Vec<Clause>> {
    let mut clauses = host(rule, &peer.host, side, names)?;
    clauses.extend(peer.port.map(|test| ports(test, side)));
    Ok(clauses)
}

pub fn host(rule: &PfRule, host: &PfHost, side: Side, names: &mut PfNames) -> PfResult<Vec<Clause>> {
    let Some(matches) = addresses(rule, &host.address, names)? else {
        return Ok(if host.not { vec![Clause::default()] } else { Vec::new() });
    };
    let test = |one: AddressMatch| match side {
        Side::Source => Test::Source(one),
        Side::Destination => Test::Destination(one),
    };
    let tests = matches.into_iter().map(test);
    Ok(if host.not { tests.map(Clause::not).collect() } else { vec![Clause::any(tests)] })
}

/// The addresses that match; `None`: all.
fn addresses(rule: &PfRule, address: &PfAddress, names: &mut PfNames) -> PfResult<Option<Vec<AddressMatch>>> {
    Ok(Some(match address {
        PfAddress::Any => return Ok(None),
        PfAddress::NoRoute => return Err(needs_routes(rule, "no-route")),
        PfAddress::UrpfFailed => return Err(needs_routes(rule, "urpf-failed")),
        PfAddress::Prefix(prefix) => vec![prefix_match(prefix)],
        PfAddress::Range(first, last) => vec![AddressMatch::Range((*first).into(), (*last).into())],
        PfAddress::Table(name) => vec![AddressMatch::Table(names.table(name))],
        PfAddress::Dynamic(dynamic) => of_interface(rule, dynamic, names)?.iter().map(prefix_match).collect(),
    }))
}

fn prefix_match(prefix: &IpNet) -> AddressMatch {
    AddressMatch::prefix(prefix.addr().into(), prefix.prefix_len())
}

/// The addresses that an interface or the members of a group have now.
pub fn of_interface(rule: &PfRule, dynamic: &InterfaceAddresses, names: &PfNames) -> PfResult<Vec<IpNet>> {
    let part = dynamic.modifiers.part;
    if let Some(InterfacePart::Broadcast | InterfacePart::Peer) = part {
        let instead = "name the address, or the interface without parentheses";
        return Err(PfError::refused(&rule.position, &dynamic.to_string(), instead));
    }
    let interfaces = names.interfaces.matching(&dynamic.interface);
    let chosen = interfaces.flat_map(|interface| chosen(interface, dynamic));
    Ok(chosen.filter_map(|(address, length)| prefix(address, length, dynamic)).collect())
}

/// The addresses of an interface, with `:0` the first of each family that is not link-local.
fn chosen(interface: &FilterInterface, dynamic: &InterfaceAddresses) -> Vec<(Address, u8)> {
    let mut seen: Vec<Family> = Vec::new();
    let narrow = dynamic.modifiers.first_only || dynamic.modifiers.part.is_some();
    let mut wanted = |address: Address| {
        let usable = !(narrow && is_link_local(address));
        let repeated = dynamic.modifiers.first_only && seen.contains(&address.family());
        if usable {
            seen.push(address.family());
        }
        usable && !repeated
    };
    interface.addresses.iter().copied().filter(|(address, _)| wanted(*address)).collect()
}

fn is_link_local(address: Address) -> bool {
    matches!(IpAddr::from(address), IpAddr::V6(address) if address.is_unicast_link_local())
}

fn prefix(address: Address, length: u8, dynamic: &InterfaceAddresses) -> Option<IpNet> {
    let longest = if address.family() == Family::Inet { 32 } else { 128 };
    let network = (dynamic.modifiers.part == Some(InterfacePart::Network)).then_some(length);
    let length = dynamic.length.or(network).unwrap_or(longest).min(longest);
    IpNet::new(address.into(), length).ok()
}

fn ports(test: PortTest, side: Side) -> Clause {
    let (ranges, negated) = ranges(test);
    let test = |range| match side {
        Side::Source => Test::SourcePort(range),
        Side::Destination => Test::DestinationPort(range),
    };
    if !negated {
        return Clause::any(ranges.into_iter().map(test));
    }
    // A packet without ports fails a test for unequal ports too.
    let others = ranges.into_iter().flat_map(|one| around(one.first, one.last));
    Clause(others.map(|range| Literal { negated: false, test: test(range) }).collect())
}

fn ranges(test: PortTest) -> (Vec<PortRange>, bool) {
    let (first, last, negated) = match test {
        NumberTest::Equal(port) => (port, port, false),
        NumberTest::NotEqual(port) => (port, port, true),
        NumberTest::LessOrEqual(port) => (0, port, false),
        NumberTest::Greater(port) => (0, port, true),
        NumberTest::GreaterOrEqual(port) => (port, u16::MAX, false),
        NumberTest::Less(port) => (port, u16::MAX, true),
        NumberTest::Range(first, last) => (first, last, false),
        NumberTest::Outside(low, high) => (low, high, true),
        NumberTest::Inside(low, high) => return (between(low, high), false),
    };
    (vec![PortRange { first, last }], negated)
}

/// The ports between two, without both.
fn between(low: u16, high: u16) -> Vec<PortRange> {
    let inside = low.checked_add(1).zip(high.checked_sub(1)).filter(|(first, last)| first <= last);
    inside.map(|(first, last)| PortRange { first, last }).into_iter().collect()
}

/// The ports before and after a range.
fn around(first: u16, last: u16) -> Vec<PortRange> {
    let before = first.checked_sub(1).map(|end| PortRange { first: 0, last: end });
    let after = last.checked_add(1).map(|start| PortRange { first: start, last: u16::MAX });
    before.into_iter().chain(after).collect()
}
