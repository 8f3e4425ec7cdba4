//! From the configuration to a host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::HostStack;
use super::advertisers::RouterAdvertisers;
use super::config::{HostConfig, HostConfigError, StaticRoute, Target};
use super::limit::InterfaceLimiter;
use super::neighbor::NeighborCache;
use super::next_hop::Hop;
use super::route_tables::{RouteTables, host as host_prefix};
use fullview_plane::interface::{Interface, InterfaceAddress};

/// The longest prefix with a broadcast address, and the longest whose first address means any of its routers.
const LONGEST_WITH_BROADCAST: u8 = 30;
const LONGEST_WITH_ANYCAST: u8 = 126;

pub(super) fn host(now: Duration, config: &HostConfig) -> Result<HostStack, HostConfigError> {
    let interfaces = &config.interfaces;
    check(config)?;
    let mut routes = RouteTables::new(now, interfaces)?;
    for (number, interface) in (0..).zip(interfaces) {
        interface.addresses.iter().try_for_each(|own| connect(&mut routes, number, *own))?;
    }
    for route in &config.routes {
        routes.add(route.network, hop(interfaces, route)?)?;
    }
    let settings = &config.settings;
    let mut neighbors = NeighborCache::new(interfaces.len(), settings.neighbors.clone());
    for neighbor in &config.neighbors {
        neighbors.set_static((neighbor.interface, neighbor.ip), neighbor.mac);
    }
    routes.compile(now)?;
    routes.know(now, &config.neighbors)?;
    let limiter = InterfaceLimiter::new(interfaces.len(), settings.errors_per_interface, settings.errors);
    let advertisers = RouterAdvertisers::new(&settings.advertisements);
    let interfaces = interfaces.clone();
    let (identification, counters) = (0, Default::default());
    Ok(HostStack { interfaces, routes, neighbors, limiter, advertisers, identification, counters })
}

fn check(config: &HostConfig) -> Result<(), HostConfigError> {
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

fn length(network: &InterfaceAddress) -> Result<(), HostConfigError> {
    let InterfaceAddress { ip, len } = *network;
    let longest = host_prefix(ip).len;
    if len > longest { Err(HostConfigError::Length { ip, len }) } else { Ok(()) }
}

/// Addresses of an interface have to be those of a station.
fn stations(interface: &Interface) -> Result<(), HostConfigError> {
    let is_station = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
    };
    let stray = interface.addresses.iter().map(|own| own.ip).find(|ip| !is_station(ip));
    stray.map_or(Ok(()), |ip| Err(HostConfigError::Address { name: interface.name.clone(), ip }))
}

fn number(
    interfaces: &[Interface],
    interface: u16,
    what: impl FnOnce() -> String,
) -> Result<(), HostConfigError> {
    let interfaces = interfaces.len();
    if usize::from(interface) < interfaces {
        return Ok(());
    }
    Err(HostConfigError::Interface { what: what(), interface, interfaces })
}

/// The routes that an address brings: its network, itself, and the addresses of the network that mean several stations.
/// Link-local networks are on every link; the loop hands their packets over without a route.
fn connect(routes: &mut RouteTables, number: u16, own: InterfaceAddress) -> Result<(), HostConfigError> {
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

fn hop(interfaces: &[Interface], route: &StaticRoute) -> Result<Hop, HostConfigError> {
    let InterfaceAddress { ip: network, len } = route.network;
    let what = || format!("the route to {network}/{len}");
    match route.target {
        Target::Gateway(gateway) => {
            same_family(route, gateway)?;
            let on = (0..).zip(interfaces).find(|(_, interface)| interface.is_on_link(gateway));
            on.map(|(number, _)| Hop::Station(number, gateway)).ok_or(HostConfigError::Gateway(gateway))
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

fn same_family(route: &StaticRoute, gateway: IpAddr) -> Result<(), HostConfigError> {
    let InterfaceAddress { ip: network, len } = route.network;
    if network.is_ipv4() == gateway.is_ipv4() {
        return Ok(());
    }
    Err(HostConfigError::Family { network, len, gateway })
}
