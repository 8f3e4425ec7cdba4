//! The interfaces of this host, for rules that name them.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Context;
use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::pf::host::{HostAddress, HostFacts, HostInterface};
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

/// Interfaces in the order in which the kernel lists them.
pub fn read() -> anyhow::Result<HostFacts> {
    let mut facts = HostFacts::default();
    for entry in getifaddrs().context("cannot list the interfaces of this host")? {
        let address = host_address(&entry);
        interface(&mut facts, &entry).addresses.extend(address);
    }
    Ok(facts)
}

/// The same interfaces for rules that are only checked: the numbers are those of the list.
pub fn numbered(facts: &HostFacts) -> Interfaces {
    let filter_interface = |(number, interface): (u16, &HostInterface)| FilterInterface {
        name: interface.name.clone(),
        number,
        groups: interface.groups.clone(),
        addresses: interface.addresses.iter().map(|one| (one.address.into(), one.length)).collect(),
    };
    Interfaces((0..).zip(&facts.interfaces).map(filter_interface).collect())
}

fn interface<'a>(facts: &'a mut HostFacts, entry: &InterfaceAddress) -> &'a mut HostInterface {
    let name = &entry.interface_name;
    let index = facts.interfaces.iter().position(|interface| interface.name == *name).unwrap_or_else(|| {
        let loopback = entry.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        facts.interfaces.push(HostInterface { name: name.clone(), loopback, ..HostInterface::default() });
        facts.interfaces.len() - 1
    });
    &mut facts.interfaces[index]
}

fn host_address(entry: &InterfaceAddress) -> Option<HostAddress> {
    let address = ip(entry.address.as_ref()?)?;
    let length = entry.netmask.as_ref().and_then(ip).map_or(if address.is_ipv4() { 32 } else { 128 }, ones);
    let broadcast = entry.broadcast.as_ref().and_then(inet);
    let peer = entry.destination.as_ref().and_then(ip);
    Some(HostAddress { address, length, broadcast, peer })
}

fn inet(address: &SockaddrStorage) -> Option<Ipv4Addr> {
    address.as_sockaddr_in().map(|address| address.ip())
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let inet6 = || address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
    inet(address).map(IpAddr::V4).or_else(inet6)
}

/// The number of bits that a netmask sets.
fn ones(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    ones as u8
}
