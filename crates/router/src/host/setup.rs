//! From the configuration to a host stack with route tables of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::config::{HostConfig, HostConfigError, StaticNextHop, StaticRoute};
use super::interfaces::subnet_router_anycast;
use super::neighbor::NeighborCache;
use super::next_hop::{HostAction, on_link};
use super::route_tables::{RouteTables, host_prefix};
use super::stack::HostStack;
use crate::route::{NextHopVia, RouteAction};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::view::ViewReader;

/// The longest prefix with a broadcast address, and the longest with a subnet-router anycast address.
const LONGEST_WITH_BROADCAST: u8 = 30;
const LONGEST_WITH_ANYCAST: u8 = 126;

impl HostStack {
    /// A host stack with route tables of its own. [`HostStack::announce`] makes its first frames.
    ///
    /// # Errors
    /// A [`HostConfigError`] that says which parts of the configuration contradict each other.
    pub fn new(now: Duration, config: &HostConfig) -> Result<HostStack, HostConfigError> {
        check(config)?;
        let HostConfig { interfaces, neighbors, settings, .. } = config;
        let mut cache = NeighborCache::new(interfaces.len(), settings.neighbors.clone());
        neighbors.iter().for_each(|neighbor| cache.set_static(neighbor.id(), neighbor.mac));
        Ok(HostStack::from_parts(interfaces.clone(), tables(now, config)?, cache, settings))
    }

    /// The views that this router's forwarders use.
    pub fn reader(&self) -> ViewReader {
        self.ip.resolver.reader()
    }
}

fn tables(now: Duration, config: &HostConfig) -> Result<RouteTables, HostConfigError> {
    let interfaces = &config.interfaces;
    let mut tables = RouteTables::new(now, interfaces)?;
    for (number, interface) in (0..).zip(interfaces) {
        interface.addresses.iter().try_for_each(|own| connect(&mut tables, number, *own))?;
    }
    for route in &config.routes {
        tables.add(route.network, action(interfaces, route)?)?;
    }
    tables.compile(now)?;
    tables.set_static_neighbors(now, &config.neighbors)?;
    Ok(tables)
}

fn check(config: &HostConfig) -> Result<(), HostConfigError> {
    let addresses = config.interfaces.iter().flat_map(|interface| interface.addresses.iter());
    let networks = config.routes.iter().map(|route| &route.network);
    addresses.chain(networks).try_for_each(check_length)?;
    config.interfaces.iter().try_for_each(check_addresses)?;
    for neighbor in &config.neighbors {
        check_number(&config.interfaces, neighbor.interface, || format!("neighbour {}", neighbor.ip))?;
    }
    for (interface, _) in &config.settings.advertisements {
        check_number(&config.interfaces, *interface, || "an advertisement".to_owned())?;
    }
    Ok(())
}

fn check_length(network: &InterfaceAddress) -> Result<(), HostConfigError> {
    let InterfaceAddress { ip, len } = *network;
    let longest = host_prefix(ip).len;
    if len > longest { Err(HostConfigError::Length { ip, len }) } else { Ok(()) }
}

fn check_addresses(interface: &Interface) -> Result<(), HostConfigError> {
    let is_unicast = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
    };
    let invalid = interface.addresses.iter().map(|own| own.ip).find(|ip| !is_unicast(ip));
    invalid.map_or(Ok(()), |ip| Err(HostConfigError::Address { name: interface.name.clone(), ip }))
}

fn check_number(
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

/// Adds the routes that follow from an interface's address: to its network, to the address itself, and to the broadcast
/// or anycast address of the network. Link-local networks are on every link; the loop punts their packets without a
/// route.
fn connect(tables: &mut RouteTables, number: u16, own: InterfaceAddress) -> Result<(), HostConfigError> {
    tables.add(host_prefix(own.ip), RouteAction::Local)?;
    let special = match own.ip {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => return Ok(()),
        IpAddr::V4(ip) => broadcast(ip, own.len).map(|ip| (ip.into(), RouteAction::Broadcast)),
        IpAddr::V6(ip) => anycast(ip, own.len).map(|ip| (ip.into(), RouteAction::Local)),
    };
    if let Some((ip, action)) = special {
        tables.add(host_prefix(ip), action)?;
    }
    if own.len < host_prefix(own.ip).len {
        tables.add(own, on_link(number))?;
    }
    Ok(())
}

fn broadcast(ip: Ipv4Addr, len: u8) -> Option<Ipv4Addr> {
    (len <= LONGEST_WITH_BROADCAST).then(|| (ip.to_bits() | u32::MAX >> len).into())
}

fn anycast(ip: Ipv6Addr, len: u8) -> Option<Ipv6Addr> {
    (len <= LONGEST_WITH_ANYCAST).then(|| subnet_router_anycast(ip, len))
}

/// What a static route does, with its next hop named by interface and address.
fn action(interfaces: &[Interface], route: &StaticRoute) -> Result<HostAction, HostConfigError> {
    let InterfaceAddress { ip: network, len } = route.network;
    let check = |interface| {
        check_number(interfaces, interface, || format!("the route to {network}/{len}")).map(|()| interface)
    };
    route.action.try_map(|next_hop| match next_hop {
        StaticNextHop::Link(interface) => Ok(NextHopVia { link: check(interface)?, neighbor: None }),
        StaticNextHop::Gateway { ip, interface } => {
            check_family(route, ip)?;
            let link = interface.map_or_else(|| link_of(interfaces, ip), check)?;
            Ok(NextHopVia { link, neighbor: Some(ip) })
        }
    })
}

/// The interface whose network holds a gateway's address.
fn link_of(interfaces: &[Interface], gateway: IpAddr) -> Result<u16, HostConfigError> {
    let on = (0..).zip(interfaces).find(|(_, interface)| interface.is_on_link(gateway));
    on.map(|(number, _)| number).ok_or(HostConfigError::Gateway(gateway))
}

fn check_family(route: &StaticRoute, gateway: IpAddr) -> Result<(), HostConfigError> {
    let InterfaceAddress { ip: network, len } = route.network;
    if network.is_ipv4() == gateway.is_ipv4() {
        return Ok(());
    }
    Err(HostConfigError::Family { network, len, gateway })
}
