//! What a router without a kernel is told: interfaces with their addresses, static routes and neighbours, and how much
//! it may do for strangers.

use std::net::IpAddr;
use std::time::Duration;

use fullview_table::fib::CompileError;
use fullview_table::nexthop::TooManyNextHops;

use super::advertisers::Advertisement;
use super::limit::RateLimit;
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::view::ViewError;
use fullview_plane::wire::ethernet::Mac;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// Numbered as they stand here. All of them look up in table 0.
    pub interfaces: Vec<Interface>,
    /// Beside the networks of the interfaces, which need no route.
    pub routes: Vec<StaticRoute>,
    /// Stations that are never asked for.
    pub neighbors: Vec<StaticNeighbor>,
    /// How much it does.
    pub settings: HostSettings,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// Where to: an address of the network and its prefix length.
    pub network: InterfaceAddress,
    /// By what.
    pub target: Target,
}

/// What a route leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Another router on a network of one of the interfaces.
    Gateway(IpAddr),
    /// Another router with a link-local address, or one of no network of the interface.
    GatewayOn(u16, IpAddr),
    /// The stations themselves, on the link of this interface.
    Link(u16),
    /// Dropped, and nobody is told.
    Blackhole,
    /// Dropped: cannot be reached.
    Unreachable,
    /// Dropped: not allowed.
    Prohibit,
}

/// A station whose link address is known for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticNeighbor {
    /// On whose link.
    pub interface: u16,
    /// Its address.
    pub ip: IpAddr,
    /// Its link address.
    pub mac: Mac,
}

/// How much the router does for strangers.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// ICMP errors about packets of one interface (RFC 1812, section 4.3.2.8; RFC 4443, section 2.4 f).
    pub errors_per_interface: RateLimit,
    /// ICMP errors about packets of all interfaces.
    pub errors: RateLimit,
    /// How neighbours are found and kept.
    pub neighbors: NeighborSettings,
    /// On which interfaces the router tells hosts that it is one, and how; nowhere, unless somebody says so.
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

/// How neighbours are found and kept. The times are those of RFC 4861, section 10.
#[derive(Clone, Debug)]
pub struct NeighborSettings {
    /// Neighbours at most, static ones not counted.
    pub capacity: usize,
    /// Neighbours asked for at the same time, at most: who scans a network does not push known ones out (RFC 6583).
    pub incomplete: usize,
    /// Packets that wait for one neighbour, at most: a newer one takes the place of the oldest.
    pub queue: usize,
    /// Packets that wait for all neighbours, at most.
    pub queued: usize,
    /// Neighbours asked for anew on one interface.
    pub resolutions: RateLimit,
    /// Time between two questions.
    pub retransmit: Duration,
    /// Questions before a neighbour counts as gone.
    pub probes: u32,
    /// How long an answer is good for.
    pub reachable: Duration,
    /// How long a neighbour that was not asked, but spoke for itself, is believed without asking.
    pub stale: Duration,
    /// How long a neighbour's link address stays, whoever else claims its IPv4 address meanwhile.
    pub lock: Duration,
}

impl Default for NeighborSettings {
    fn default() -> NeighborSettings {
        NeighborSettings {
            capacity: 4096,
            incomplete: 512,
            queue: 8,
            queued: 1024,
            resolutions: RateLimit { rate: 500, burst: 256 },
            retransmit: Duration::from_secs(1),
            probes: 3,
            reachable: Duration::from_secs(30),
            stale: Duration::from_secs(5),
            lock: Duration::from_secs(1),
        }
    }
}

/// A configuration that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostConfigError {
    /// A number that no interface has.
    #[error("{what} names interface {interface}, but there are only {interfaces}, numbered from 0")]
    Interface {
        /// What names it.
        what: String,
        /// The number.
        interface: u16,
        /// How many there are.
        interfaces: usize,
    },
    /// A prefix longer than an address.
    #[error("{ip}/{len}: prefix lengths of this family go to {}", if ip.is_ipv4() { 32 } else { 128 })]
    Length {
        /// The address.
        ip: IpAddr,
        /// The prefix length.
        len: u8,
    },
    /// An address that no single station can have.
    #[error("interface {name}: {ip} is no station's address; give the interface another")]
    Address {
        /// Of which interface.
        name: String,
        /// The address.
        ip: IpAddr,
    },
    /// A gateway that is on none of the links.
    #[error("the gateway {0} is in no network of any interface; give the interface by which it is reached")]
    Gateway(IpAddr),
    /// A gateway of the other family.
    #[error("the route to {network}/{len} leads to {gateway}, an address of the other family")]
    Family {
        /// The network.
        network: IpAddr,
        /// Its prefix length.
        len: u8,
        /// The gateway.
        gateway: IpAddr,
    },
    /// More gateways and neighbours than next hops can be numbered.
    #[error(transparent)]
    NextHops(#[from] TooManyNextHops),
    /// Interfaces that do not fit together.
    #[error(transparent)]
    View(#[from] ViewError),
    /// RouteTables that no lookup structure can be made of.
    #[error("the routes cannot be compiled: {0}")]
    Compile(#[from] CompileError),
}
