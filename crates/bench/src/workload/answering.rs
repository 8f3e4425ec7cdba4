//! A router with addresses of its own: the ports and next hops of [`super::router`], and a host that answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fullview_plane::adjacency::MAX_MTU;
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::wire::ethernet::Mac;
use fullview_router::host::RateLimit;
use fullview_router::host::config::{HostConfig, HostSettings, StaticNeighbor, StaticNextHop, StaticRoute};
use fullview_router::host::router::StandaloneRouter;
use fullview_router::route::RouteAction;
use fullview_table::{Address, NextHop, Rib, Table};

use super::packets::{self, EGRESS, EGRESS_MAC, INGRESS};
use crate::error::BenchError;

/// A router with these addresses where packets arrive. A capture file has no time, so no answer is withheld by a rate limit
/// and no request is repeated.
pub fn router(
    table: &Table,
    mac: Mac,
    addresses: Vec<InterfaceAddress>,
) -> Result<StandaloneRouter, BenchError> {
    let ingress = Interface { addresses, mtu: MAX_MTU.into(), ..Interface::new(INGRESS, mac) };
    let egress = Interface { mtu: MAX_MTU.into(), ..Interface::new(EGRESS, EGRESS_MAC) };
    let routes = routes(&table.inet, gateway).chain(routes(&table.inet6, gateway6)).collect();
    let (errors, errors_per_interface) = (RateLimit::NONE, RateLimit::NONE);
    let settings = HostSettings { errors, errors_per_interface, ..HostSettings::default() };
    let neighbors = neighbors(table);
    let config = HostConfig { interfaces: vec![ingress, egress], routes, neighbors, settings };
    Ok(StandaloneRouter::new(Duration::ZERO, &config)?)
}

fn routes<A: Address>(rib: &Rib<A>, gateway: fn(NextHop) -> IpAddr) -> impl Iterator<Item = StaticRoute> {
    rib.iter().map(move |route| {
        let network = InterfaceAddress { ip: route.prefix.first().to_ip().into(), len: route.prefix.len() };
        let action = if route.next_hop.is_some() {
            RouteAction::Forward(StaticNextHop::Gateway {
                ip: gateway(route.next_hop),
                interface: Some(EGRESS),
            })
        } else {
            RouteAction::Unreachable
        };
        StaticRoute { network, action }
    })
}

/// Every next hop is a station behind the port that faces the receiver, with a made-up address of each family.
fn neighbors(table: &Table) -> Vec<StaticNeighbor> {
    let departures = (0..=NextHop::MAX).zip(packets::departures(&table.next_hops, 1)).skip(1);
    let stations = departures.flat_map(|(number, departure)| {
        let hop = NextHop(number);
        [gateway(hop), gateway6(hop)].map(|ip| (ip, departure.destination))
    });
    stations.map(|(ip, mac)| StaticNeighbor { interface: EGRESS, ip, mac }).collect()
}

/// A gateway from the address space that providers share (RFC 6598), to which no full view has routes.
fn gateway(hop: NextHop) -> IpAddr {
    Ipv4Addr::from_bits(Ipv4Addr::new(100, 64, 0, 0).to_bits() | u32::from(hop.0)).into()
}

fn gateway6(hop: NextHop) -> IpAddr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, hop.0).into()
}
