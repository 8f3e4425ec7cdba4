//! The router's interfaces by number, and the addresses that are its own.

use std::net::{IpAddr, Ipv6Addr};

use fullview_plane::interface::Interface;
use rustc_hash::FxHashSet;

#[derive(Default)]
pub(super) struct Interfaces(Vec<Interface>);

impl Interfaces {
    pub fn new(interfaces: Vec<Interface>) -> Interfaces {
        Interfaces(interfaces)
    }

    pub fn get(&self, number: u16) -> Option<&Interface> {
        self.0.get(usize::from(number))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u16, &Interface)> {
        (0..=u16::MAX).zip(&self.0)
    }

    pub fn is_up(&self, number: u16) -> bool {
        self.get(number).is_some_and(|interface| interface.up)
    }

    /// The numbers of interfaces that are up here and were not up in `others`.
    pub fn up_unlike_in(&self, others: &Interfaces) -> FxHashSet<u16> {
        let up = self.iter().filter(|(_, interface)| interface.up).map(|(number, _)| number);
        up.filter(|number| !others.is_up(*number)).collect()
    }

    /// Whether an address lies in a network of the interface.
    pub fn is_on_link(&self, number: u16, ip: IpAddr) -> bool {
        self.get(number).is_some_and(|interface| interface.is_on_link(ip))
    }

    /// Whether this interface has the address.
    pub fn is_own_on(&self, number: u16, ip: IpAddr) -> bool {
        self.get(number).is_some_and(|interface| has(interface, ip))
    }

    /// Whether this interface has the address, or another one that looks up in the same table.
    pub fn is_own(&self, number: u16, ip: IpAddr) -> bool {
        self.of_same_table(number).any(|interface| has(interface, ip))
    }

    /// The interfaces that look up in the same table as this one, which is among them.
    pub fn of_same_table(&self, number: u16) -> impl Iterator<Item = &Interface> {
        let table = self.get(number).map(|interface| interface.table);
        self.0.iter().filter(move |other| Some(other.table) == table)
    }
}

fn has(interface: &Interface, ip: IpAddr) -> bool {
    interface.addresses.iter().any(|own| own.ip == ip)
}

/// The first address of a network, which any of its routers answers for (RFC 4291, section 2.6.1).
pub(super) fn subnet_router_anycast(ip: Ipv6Addr, len: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0);
    (ip.to_bits() & mask).into()
}
