//! The interfaces, routes and neighbours of a router without a kernel, all of them checked.

use std::net::IpAddr;
use std::sync::Arc;

use crate::route::{AnyPrefix, HopSet, LinkIndex, RouteAction, RouteHop};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::Table;

/// Everything that the configuration takes the kernel's place with.
#[derive(Clone, Default)]
pub struct Plan {
    pub interfaces: Vec<PlannedInterface>,
    pub routes: Vec<PlannedRoute>,
    pub neighbors: Vec<(LinkIndex, IpAddr, Mac)>,
    pub feed: Option<RouteFeed>,
}

/// An interface: a port, or a VLAN of one.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedInterface {
    pub name: String,
    pub link: LinkIndex,
    /// The number of its port.
    pub port: u16,
    pub vlan: Option<u16>,
    pub mtu: u32,
    /// The table in which packets that come in are looked up.
    pub table: u32,
    pub addresses: Vec<InterfaceAddress>,
}

/// A route that the configuration lists.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRoute {
    pub table: u32,
    pub prefix: AnyPrefix,
    pub action: RouteAction<HopSet>,
}

/// The routes of a file. Each leads to one of the gateways of its family: the file's next hops are dealt to them in turn.
#[derive(Clone)]
pub struct RouteFeed {
    pub routes: Arc<Table>,
    pub table: u32,
    pub gateways: Vec<RouteHop>,
}

/// The number of the link that a port is.
pub fn port_link(port: u16) -> LinkIndex {
    (LinkIndex::from(port) + 1) << 16
}

/// The number of the link that a VLAN of a port is.
pub fn vlan_link(port: u16, vlan: u16) -> LinkIndex {
    port_link(port) | LinkIndex::from(vlan)
}
