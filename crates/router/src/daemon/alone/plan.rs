//! What a router without a kernel is to be, all of it checked: interfaces, routes, neighbours.

use std::net::IpAddr;
use std::sync::Arc;

use crate::route::{AnyPrefix, HopSet, LinkIndex, RouteAction, RouteHop};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::Table;

/// All of it.
#[derive(Clone, Default)]
pub struct Plan {
    pub interfaces: Vec<Planned>,
    pub routes: Vec<PlannedRoute>,
    pub neighbors: Vec<(LinkIndex, IpAddr, Mac)>,
    pub feed: Option<Feed>,
}

/// An interface: a port, or a VLAN of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    pub name: String,
    pub link: LinkIndex,
    /// The port's place among the names.
    pub port: u16,
    pub vlan: Option<u16>,
    pub mtu: u32,
    /// Packets are looked up in.
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

/// Routes of a file, each by one of the gateways of its family: next hops are dealt to them in turn.
#[derive(Clone)]
pub struct Feed {
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
