//! The configuration of a router without a kernel: interfaces with their addresses, static routes and neighbours, and
//! limits on what it does for other stations.

use std::net::IpAddr;

use fullview_table::fib::CompileError;
use fullview_table::nexthop::TooManyNextHops;

use super::advertisers::Advertisement;
use super::limit::RateLimit;
use super::neighbor::NeighborId;
pub use super::neighbor::NeighborSettings;
use crate::route::RouteAction;
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::view::ViewError;
use fullview_plane::wire::ethernet::Mac;

#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// An interface's number is its place here. All interfaces look up in table 0.
    pub interfaces: Vec<Interface>,
    /// Routes besides those to the networks of the interfaces, which need none.
    pub routes: Vec<StaticRoute>,
    pub neighbors: Vec<StaticNeighbor>,
    pub settings: HostSettings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// An address of the destination network, and its prefix length.
    pub network: InterfaceAddress,
    pub action: RouteAction<StaticNextHop>,
}

/// Where a static route forwards to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticNextHop {
    Gateway {
        ip: IpAddr,
        /// The interface of its link; `None` if the network of an interface holds the address.
        interface: Option<u16>,
    },
    /// The destinations themselves, on the link of this interface.
    Link(u16),
}

/// A neighbour whose link address is configured, so that it is never solicited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticNeighbor {
    /// The interface of its link.
    pub interface: u16,
    pub ip: IpAddr,
    pub mac: Mac,
}

impl StaticNeighbor {
    pub fn id(&self) -> NeighborId {
        NeighborId { interface: self.interface, ip: self.ip }
    }
}

/// Limits on what the router does for other stations.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// ICMP errors about packets of one interface (RFC 1812, section 4.3.2.8; RFC 4443, section 2.4 f).
    pub errors_per_interface: RateLimit,
    /// ICMP errors about packets of all interfaces.
    pub errors: RateLimit,
    pub neighbors: NeighborSettings,
    /// The interfaces that send router advertisements; none by default.
    pub advertisements: Vec<(u16, Advertisement)>,
}

impl Default for HostSettings {
    fn default() -> HostSettings {
        HostSettings {
            errors_per_interface: RateLimit { rate: 250, burst: 50 },
            errors: RateLimit { rate: 1000, burst: 100 },
            neighbors: NeighborSettings::default(),
            advertisements: Vec::new(),
        }
    }
}

/// A configuration whose parts contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostConfigError {
    /// No interface has this number.
    #[error("{what} names interface {interface}, but there are only {interfaces}, numbered from 0")]
    Interface { what: String, interface: u16, interfaces: usize },
    /// The prefix is longer than an address.
    #[error("{ip}/{len}: prefix lengths of this family are at most {}", if ip.is_ipv4() { 32 } else { 128 })]
    Length { ip: IpAddr, len: u8 },
    /// The address cannot belong to a single station.
    #[error("interface {name}: {ip} is not a unicast address; give the interface another address")]
    Address { name: String, ip: IpAddr },
    /// The gateway is on none of the links.
    #[error(
        "the gateway {0} is in no network of any interface; name the interface through which it is reached"
    )]
    Gateway(IpAddr),
    /// The gateway's address belongs to the other family.
    #[error("the route to {network}/{len} leads to {gateway}, an address of the other family")]
    Family { network: IpAddr, len: u8, gateway: IpAddr },
    /// There are more gateways and neighbours than next-hop indices.
    #[error(transparent)]
    NextHops(#[from] TooManyNextHops),
    /// The interfaces contradict each other.
    #[error(transparent)]
    View(#[from] ViewError),
    /// No lookup structure can hold the routes.
    #[error("the routes cannot be compiled: {0}")]
    Compile(#[from] CompileError),
}
