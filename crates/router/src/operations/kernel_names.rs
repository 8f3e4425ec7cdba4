//! Names of tables, routes, next hops and interfaces, for explanations.

use std::net::IpAddr;

use fullview_plane::explain::RouteNames;
use fullview_plane::view::View;
use fullview_plane::wire::ethernet::Frame;
use fullview_table::{Address, NextHop};

use crate::mirror::Mirror;

/// Names routes and next hops as the kernel does.
pub struct KernelNames<'a>(pub &'a Mirror);

impl RouteNames for KernelNames<'_> {
    fn table(&self, place: u16) -> u32 {
        self.0.table_number(place).unwrap_or_else(|| place.into())
    }

    fn route(&self, table: u16, addr: IpAddr) -> Option<(String, NextHop)> {
        let (tables, table) = (self.0.tables(), self.0.table_number(table)?);
        match addr {
            IpAddr::V4(ip) => {
                let route = tables.inet.rib(table)?.longest_match(u32::from_ip(ip))?;
                Some((route.prefix.to_string(), route.next_hop))
            }
            IpAddr::V6(ip) => {
                let route = tables.inet6.rib(table)?.longest_match(u128::from_ip(ip))?;
                Some((route.prefix.to_string(), route.next_hop))
            }
        }
    }

    fn next_hop(&self, hop: NextHop) -> Option<String> {
        self.0.next_hop(hop)
    }
}

/// The interface that the packet came in by. For a frame that no interface takes, it is the first interface of the port.
pub fn interface_name(view: &View, port: u16, frame: &[u8]) -> String {
    let vlan = Frame::new_checked(frame);
    let vlan = vlan.ok().and_then(|frame| frame.vlan()).unwrap_or(0);
    let number = view.port(port).and_then(|port| port.interface(vlan).or_else(|| port.interface(0)));
    let interface = number.and_then(|number| view.interface(number));
    interface.map_or_else(|| format!("port {port}"), |interface| interface.name.clone())
}
