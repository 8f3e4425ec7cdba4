//! Addresses by their text or by the interface that has them.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use crate::address::Family;
use crate::pf::address::{InterfaceModifiers, InterfacePart, PfAddress, family_of};
use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::host::{HostAddress, HostFacts, HostInterface};
use crate::pf::parse::addresses::split_modifiers;
use crate::pf::syntax::{HostKind, HostSyntax};

/// An address of a rule, ready to be compared.
#[derive(Debug, Clone)]
pub struct ResolvedHost {
    pub not: bool,
    pub address: PfAddress,
    /// Of a prefix, also of one that holds all addresses of its family.
    pub family: Option<Family>,
    /// The interface that a link-local address belongs to.
    pub scope: Option<String>,
}

/// An address with the interface it belongs to, if it is link-local.
struct FoundAddress {
    prefix: IpNet,
    scope: Option<String>,
}

pub fn hosts(syntax: &[HostSyntax], facts: &HostFacts) -> PfResult<Vec<ResolvedHost>> {
    let mut resolved = Vec::new();
    for host in syntax {
        resolved.extend(one(host, facts)?);
    }
    Ok(resolved)
}

fn one(host: &HostSyntax, facts: &HostFacts) -> PfResult<Vec<ResolvedHost>> {
    let not = host.not;
    let alone =
        |address: PfAddress| vec![ResolvedHost { not, family: address.family(), address, scope: None }];
    Ok(match &host.kind {
        HostKind::Any if not => alone(PfAddress::Any),
        HostKind::Any => Vec::new(),
        HostKind::NoRoute => alone(PfAddress::NoRoute),
        HostKind::UrpfFailed => alone(PfAddress::UrpfFailed),
        HostKind::Table(name) => alone(PfAddress::Table(name.clone())),
        HostKind::Dynamic(dynamic) => alone(PfAddress::Dynamic(dynamic.clone())),
        HostKind::Range { first, last } => alone(range(first, last, &host.position)?),
        HostKind::Name { text, length } => {
            let literals = named(text, *length, &host.position, facts)?.into_iter();
            literals.map(|literal| prefixed(not, literal)).collect()
        }
    })
}

fn prefixed(not: bool, literal: FoundAddress) -> ResolvedHost {
    let family = Some(family_of(literal.prefix.addr()));
    ResolvedHost { not, address: PfAddress::prefix(literal.prefix), family, scope: literal.scope }
}

/// The prefixes that a text stands for: one if it is an address, else those of an interface.
pub fn prefixes(
    text: &str,
    length: Option<u8>,
    position: &Position,
    facts: &HostFacts,
) -> PfResult<Vec<IpNet>> {
    Ok(named(text, length, position, facts)?.into_iter().map(|literal| literal.prefix.trunc()).collect())
}

fn named(
    text: &str,
    length: Option<u8>,
    position: &Position,
    facts: &HostFacts,
) -> PfResult<Vec<FoundAddress>> {
    let (address, scope) =
        text.split_once('%').map_or((text, None), |(address, scope)| (address, Some(scope)));
    if let Some(address) = literal(address, length) {
        let prefix = with_length(address, length, position)?;
        return Ok(vec![FoundAddress { prefix, scope: scope.map(str::to_owned) }]);
    }
    let found = of_interfaces(text, length, position, facts)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let problem =
        format!("could not parse host specification '{text}', which is no address and no interface with one");
    Err(PfError::invalid(position, problem, "write an address, or (interface) for one that comes and goes"))
}

/// An address; with a length the rest of an IPv4 address may be missing, as in `10/8`.
fn literal(text: &str, length: Option<u8>) -> Option<IpAddr> {
    let full = text.parse().ok();
    full.or_else(|| length.and_then(|_| shortened(text)).map(IpAddr::V4))
}

fn shortened(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    for (index, part) in text.split('.').enumerate() {
        *octets.get_mut(index)? = part.parse().ok()?;
    }
    Some(Ipv4Addr::from(octets))
}

fn with_length(address: IpAddr, length: Option<u8>, position: &Position) -> PfResult<IpNet> {
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let prefix = IpNet::new(address, length.unwrap_or(longest));
    let too_long = |_| {
        PfError::invalid(position, "netmask is invalid for this address", format!("write /0 to /{longest}"))
    };
    prefix.map_err(too_long)
}

fn range(first: &str, last: &str, position: &Position) -> PfResult<PfAddress> {
    let ends: (Option<IpAddr>, Option<IpAddr>) = (first.parse().ok(), last.parse().ok());
    match ends {
        (Some(first), Some(last)) if family_of(first) == family_of(last) && first <= last => {
            Ok(PfAddress::Range(first, last))
        }
        _ => Err(PfError::invalid(
            position,
            "invalid address range",
            "write two addresses of one family, the lower first",
        )),
    }
}

fn of_interfaces(
    text: &str,
    length: Option<u8>,
    position: &Position,
    facts: &HostFacts,
) -> PfResult<Vec<FoundAddress>> {
    let (name, modifiers) = split_modifiers(text);
    let mut found = Vec::new();
    for interface in facts.named(name) {
        for address in chosen(interface, modifiers) {
            let Some(plain) = part(address, modifiers.part) else { continue };
            let length = length.or_else(|| network_length(address, modifiers.part));
            let scope = Some(interface.name.clone()).filter(|_| address.is_link_local());
            found.push(FoundAddress { prefix: with_length(plain, length, position)?, scope });
        }
    }
    Ok(found)
}

/// The addresses that modifiers leave over: `:0` the first of each family that is not link-local, `:network` those that are
/// not link-local.
fn chosen(interface: &HostInterface, modifiers: InterfaceModifiers) -> Vec<&HostAddress> {
    let mut families = Vec::new();
    let network = modifiers.part == Some(InterfacePart::Network);
    let mut wanted = |address: &&HostAddress| {
        let family = family_of(address.address);
        let hidden = address.is_link_local() && (network || modifiers.first_only);
        let repeated = modifiers.first_only && families.contains(&family);
        if !hidden {
            families.push(family);
        }
        !hidden && !repeated
    };
    interface.addresses.iter().filter(|address| wanted(address)).collect()
}

/// The address itself, or what a modifier asks for.
fn part(address: &HostAddress, part: Option<InterfacePart>) -> Option<IpAddr> {
    match part {
        None | Some(InterfacePart::Network) => Some(address.address),
        Some(InterfacePart::Broadcast) => address.broadcast.map(IpAddr::V4),
        Some(InterfacePart::Peer) => address.peer,
    }
}

fn network_length(address: &HostAddress, part: Option<InterfacePart>) -> Option<u8> {
    (part == Some(InterfacePart::Network)).then_some(address.length)
}
