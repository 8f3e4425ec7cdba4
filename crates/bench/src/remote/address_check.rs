//! Whether packets can go between the addresses of an inventory.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::inventory::InterfaceNet;
use super::wiring::{PortPlace, Wiring};
use crate::rates::network;

impl Wiring {
    /// A wrong address would show as a device that forwards nothing.
    pub(super) fn check_addresses(&self) -> Result<(), String> {
        let mut seen = BTreeMap::new();
        for port in (0..self.inventory.nodes.len()).flat_map(|node| self.ports_of(node)) {
            let (label, net) = (self.label(port), self.interface(port).address);
            check_host(net).map_err(|what| format!("{label}: {net} is {what}"))?;
            if let Some(other) = seen.insert(net.address, label.clone()) {
                return Err(format!("{other} and {label} both have the address {}", net.address));
            }
        }
        Ok(())
    }

    /// A host has an address in the network of the interface at its wire. Lines may set something else up.
    pub(super) fn check_networks(&self) -> Result<(), String> {
        self.wires.iter().try_for_each(|ends| self.check_wire(*ends))
    }

    fn check_wire(&self, ends: [PortPlace; 2]) -> Result<(), String> {
        let [hosts, routers]: [Vec<PortPlace>; 2] = [true, false].map(|is_host| {
            ends.into_iter().filter(|port| self.node(*port).role.is_host() == is_host).collect()
        });
        let ([host], [router]) = (&hosts[..], &routers[..]) else { return Ok(()) };
        let [host_net, router_net] = [*host, *router].map(|port| self.interface(port).address);
        if !self.node(*router).agent || is_within(host_net, router_net) {
            return Ok(());
        }
        let [host, router] = [*host, *router].map(|port| self.label(port));
        Err(format!(
            "{host} has the address {}, which is not in the network {router_net} of {router}",
            host_net.address
        ))
    }
}

fn check_host(net: InterfaceNet) -> Result<(), &'static str> {
    let address = net.address;
    let is_local = match address {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some(),
    };
    match () {
        () if address.is_unspecified() => Err("no address of a host"),
        () if address.is_loopback() => Err("an address of the host itself (loopback)"),
        () if address.is_multicast() => Err("a multicast address"),
        () if is_local => Err("an address that routers do not forward"),
        () => Ok(()),
    }
}

fn is_within(host: InterfaceNet, net: InterfaceNet) -> bool {
    let in_network = || network(host.address, net.length) == network(net.address, net.length);
    host.family() == net.family() && in_network()
}
