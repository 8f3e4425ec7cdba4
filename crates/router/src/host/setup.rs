//! From the configuration to a host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::Host;
use super::advertise::Advertisers;
use super::config::{Config, ConfigError, StaticRoute, Target};
use super::limit::Limiter;
use super::neighbor::Neighbors;
use super::routes::{Routes, host as host_prefix};
use super::ways::Hop;
use fullview_plane::interface::{Interface, InterfaceAddress};

/// The longest prefix with a broadcast address, and the longest whose first address means any of its routers.
const LONGEST_WITH_BROADCAST: u8 = 30;
const LONGEST_WITH_ANYCAST: u8 = 126;

pub(super) fn host(now: Duration, config: &Config) -> Result<Host, ConfigError> {
    let interfaces = &config.interfaces;
    check(config)?;
    let mut routes = Routes::new(now, interfaces)?;
    for (number, interface) in (0..).zip(interfaces) {
        interface.addresses.iter().try_for_each(|own| connect(&mut routes, number, *own))?;
    }
    for route in &config.routes {
        routes.add(route.network, hop(interfaces, route)?)?;
    }
    let settings = &config.settings;
    let mut neighbors = Neighbors::new(interfaces.len(), settings.neighbors.clone());
    for neighbor in &config.neighbors {
        neighbors.set_static((neighbor.interface, neighbor.ip), neighbor.mac);
    }
    routes.compile(now)?;
    routes.know(now, &config.neighbors)?;
    let limiter = Limiter::new(interfaces.len(), settings.errors_per_interface, settings.errors);
    let advertisers = Advertisers::new(&settings.advertisements);
    let interfaces = interfaces.clone();
    let (identification, counters) = (0, Default::default());
    Ok(Host { interfaces, routes, neighbors, limiter, advertisers, identification, counters })
}

fn check(config: &Config) -> Result<(), ConfigError> {
    let addresses = config.interfaces.iter().flat_map(|interface| interface.addresses.iter());
    let networks = config.routes.iter().map(|route| &route.network);
    addresses.chain(networks).try_for_each(length)?;
    config.interfaces.iter().try_for_each(stations)?;
    for neighbor in &config.neighbors {
        number(&config.interfaces, neighbor.interface, || format!("neighbour {}", neighbor.ip))?;
    }
    for (interface, _) in &config.settings.advertisements {
        number(&config.interfaces, *interface, || "an advertisement".to_owned())?;
    }
    Ok(())
}

fn length(network: &InterfaceAddress) -> Result<(), ConfigError> {
    let InterfaceAddress { ip, len } = *network;
    let longest = host_prefix(ip).len;
    if len > longest { Err(ConfigError::Length { ip, len }) } else { Ok(()) }
}

/// Addresses of an interface have to be those of a station.
fn stations(interface: &Interface) -> Result<(), ConfigError> {
    let is_station = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
    };
    let stray = interface.addresses.iter().map(|own| own.ip).find(|ip| !is_station(ip));
    stray.map_or(Ok(()), |ip| Err(ConfigError::Address { name: interface.name.clone(), ip }))
}

fn number(
    interfaces: &[Interface],
    interface: u16,
    what: impl FnOnce() -> String,
) -> Result<(), ConfigError> {
    let interfaces = interfaces.len();
    if usize::from(interface) < interfaces {
        return Ok(());
    }
    Err(ConfigError::Interface { what: what(), interface, interfaces })
}

/// The routes that an address brings: its network, itself, and the addresses of the network that mean several stations.
/// Link-local networks are on every link; the loop hands their packets over without a route.
fn connect(routes: &mut Routes, number: u16, own: InterfaceAddress) -> Result<(), ConfigError> {
    routes.add(host_prefix(own.ip), Hop::Own)?;
    let special = match own.ip {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => return Ok(()),
        IpAddr::V4(ip) => broadcast(ip, own.len).map(|ip| (ip.into(), Hop::Broadcast)),
        IpAddr::V6(ip) => anycast(ip, own.len).map(|ip| (ip.into(), Hop::Own)),
    };
    if let Some((ip, hop)) = special {
        routes.add(host_prefix(ip), hop)?;
    }
    if own.len < host_prefix(own.ip).len {
        routes.add(own, Hop::Link(number))?;
    }
    Ok(())
}

fn broadcast(ip: Ipv4Addr, len: u8) -> Option<Ipv4Addr> {
    (len <= LONGEST_WITH_BROADCAST).then(|| (ip.to_bits() | u32::MAX >> len).into())
}

/// The subnet-router anycast address (RFC 4291, section 2.6.1).
fn anycast(ip: Ipv6Addr, len: u8) -> Option<Ipv6Addr> {
    let network = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
    (len <= LONGEST_WITH_ANYCAST).then(|| (ip.to_bits() & network).into())
}

fn hop(interfaces: &[Interface], route: &StaticRoute) -> Result<Hop, ConfigError> {
    let InterfaceAddress { ip: network, len } = route.network;
    let what = || format!("the route to {network}/{len}");
    match route.target {
        Target::Gateway(gateway) => {
            same_family(route, gateway)?;
            let on = (0..).zip(interfaces).find(|(_, interface)| interface.is_on_link(gateway));
            on.map(|(number, _)| Hop::Station(number, gateway)).ok_or(ConfigError::Gateway(gateway))
        }
        Target::GatewayOn(interface, gateway) => {
            same_family(route, gateway)?;
            number(interfaces, interface, what).map(|()| Hop::Station(interface, gateway))
        }
        Target::Link(interface) => number(interfaces, interface, what).map(|()| Hop::Link(interface)),
        Target::Blackhole => Ok(Hop::Blackhole),
        Target::Unreachable => Ok(Hop::Unreachable),
        Target::Prohibit => Ok(Hop::Prohibit),
    }
}

fn same_family(route: &StaticRoute, gateway: IpAddr) -> Result<(), ConfigError> {
    let InterfaceAddress { ip: network, len } = route.network;
    if network.is_ipv4() == gateway.is_ipv4() {
        return Ok(());
    }
    Err(ConfigError::Family { network, len, gateway })
}
