//! The addresses of a translation, for the family of its rule.

use crate::address::Family;
use crate::pf::address::{NumberTest, PfAddress, PortTest};
use crate::pf::error::{PfError, PfResult};
use crate::pf::expand::resolve::{ResolvedHost, hosts};
use crate::pf::host::HostFacts;
use crate::pf::pool::{NAT_PORTS, PfPool, PoolChoice, PoolPorts};
use crate::pf::rule::TranslationKind;
use crate::pf::syntax::{PoolPortSyntax, PoolSyntax};

/// A pool whose addresses are known.
pub struct Pool<'a> {
    pub syntax: &'a PoolSyntax,
    hosts: Vec<ResolvedHost>,
}

impl<'a> Pool<'a> {
    pub fn resolve(syntax: &'a PoolSyntax, facts: &HostFacts) -> PfResult<Pool<'a>> {
        Ok(Pool { syntax, hosts: hosts(&syntax.hosts, facts)? })
    }

    /// The family of all its addresses, if they have one.
    pub fn family(&self) -> PfResult<Option<Family>> {
        let mut families = self.hosts.iter().filter_map(|host| host.family);
        let first = families.next();
        if families.all(|family| Some(family) == first) {
            return Ok(first);
        }
        let problem = "address family not given and translation address expands to multiple address families";
        Err(PfError::invalid(&self.syntax.position, problem, "write 'inet' or 'inet6' in the rule"))
    }

    fn addresses(&self, family: Option<Family>) -> PfResult<Vec<PfAddress>> {
        let fits = |host: &&ResolvedHost| host.family.is_none() || family.is_none() || host.family == family;
        let addresses: Vec<_> = self.hosts.iter().filter(fits).map(|host| host.address.clone()).collect();
        let all = addresses.contains(&PfAddress::Any);
        if addresses.is_empty() || all {
            let problem = "no translation address with matching address family found.";
            return Err(PfError::invalid(
                &self.syntax.position,
                problem,
                "name an address of the rule's family",
            ));
        }
        Ok(addresses)
    }

    /// The pool of a rule, whose destination port tells how many ports `first:*` are.
    pub fn of_rule(
        &self,
        kind: TranslationKind,
        family: Option<Family>,
        destination: Option<PortTest>,
    ) -> PfResult<PfPool> {
        check_options(kind, self.syntax)?;
        let addresses = self.addresses(family)?;
        let choice = choice(&addresses, self.syntax)?;
        let ports = ports(kind, self.syntax, destination)?;
        Ok(PfPool { addresses, ports, choice, sticky: self.syntax.sticky, map_e: self.syntax.map_e })
    }
}

/// Several addresses are used in turn.
fn choice(addresses: &[PfAddress], syntax: &PoolSyntax) -> PfResult<Option<PoolChoice>> {
    let many = addresses.len() > 1 || addresses.iter().any(is_several);
    let table =
        addresses.iter().any(|address| matches!(address, PfAddress::Table(_) | PfAddress::Dynamic(_)));
    match syntax.choice {
        None if many => Ok(Some(PoolChoice::RoundRobin)),
        Some(PoolChoice::Bitmask) if many || table => {
            let problem = "'bitmask' needs one prefix to take bits from";
            Err(PfError::invalid(&syntax.position, problem, "write one prefix, or 'round-robin'"))
        }
        Some(choice) if addresses.len() > 1 && choice != PoolChoice::RoundRobin => {
            let problem = "only round-robin valid for multiple redirection addresses";
            Err(PfError::invalid(&syntax.position, problem, "write 'round-robin', or one prefix or table"))
        }
        choice => Ok(choice),
    }
}

/// Whether an address may stand for more than one.
fn is_several(address: &PfAddress) -> bool {
    match address {
        PfAddress::Table(_) => true,
        PfAddress::Dynamic(dynamic) => {
            !dynamic.modifiers.first_only || !dynamic.interface.ends_with(|last: char| last.is_ascii_digit())
        }
        _ => false,
    }
}

fn check_options(kind: TranslationKind, syntax: &PoolSyntax) -> PfResult<()> {
    let of_nat = [("static-port", syntax.static_port), ("map-e-portset", syntax.map_e.is_some())];
    for (name, _) in of_nat.into_iter().filter(|(_, given)| *given) {
        let problem = match kind {
            TranslationKind::Nat if syntax.port.is_none() => continue,
            TranslationKind::Nat => format!("the '{name}' option can't be used when specifying a port range"),
            _ => format!("the '{name}' option is only valid with nat rules"),
        };
        return Err(PfError::invalid(&syntax.position, problem, "leave one of the two out"));
    }
    if syntax.static_port && syntax.map_e.is_some() {
        let problem = "the 'map-e-portset' option can't be used with 'static-port'";
        return Err(PfError::invalid(&syntax.position, problem, "leave one of the two out"));
    }
    Ok(())
}

fn ports(kind: TranslationKind, syntax: &PoolSyntax, destination: Option<PortTest>) -> PfResult<PoolPorts> {
    let range = match syntax.port {
        None | Some(PoolPortSyntax::One(0)) if syntax.static_port => return Ok(PoolPorts::Keep),
        None | Some(PoolPortSyntax::One(0)) => return Ok(PoolPorts::Default),
        Some(PoolPortSyntax::One(port)) => (port, port),
        Some(PoolPortSyntax::Range(first, last)) => (first, last),
        Some(PoolPortSyntax::From(first)) => (first, last_port(kind, syntax, first, destination)?),
    };
    if kind == TranslationKind::Binat {
        return Err(PfError::invalid(&syntax.position, "binat translates no ports", "leave the port out"));
    }
    let usual = kind == TranslationKind::Nat && range == NAT_PORTS;
    Ok(if usual { PoolPorts::Default } else { PoolPorts::Range(range.0, range.1) })
}

/// The last of as many ports as the destination has.
fn last_port(
    kind: TranslationKind,
    syntax: &PoolSyntax,
    first: u16,
    destination: Option<PortTest>,
) -> PfResult<u16> {
    let more = match destination {
        Some(NumberTest::Range(low, high)) if kind == TranslationKind::Rdr => Some(high - low),
        Some(NumberTest::Equal(_)) if kind == TranslationKind::Rdr => Some(0),
        _ => None,
    };
    let problem = "'port first:*' needs a destination port or range of the same number of ports below 65536";
    let unknown = || PfError::invalid(&syntax.position, problem, "write both ports");
    more.and_then(|more| first.checked_add(more)).ok_or_else(unknown)
}
