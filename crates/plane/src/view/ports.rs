//! The ingress interface of a frame, by port and VLAN.

use super::error::ViewError;
use crate::adjacency::NO_INTERFACE;
use crate::interface::Interface;
use crate::wire::ethernet::Mac;

/// The ingress of untagged frames of a port: 12 bytes with all that the fast parser needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortIngress {
    pub mac: Mac,
    /// [`NO_INTERFACE`] if no interface takes untagged frames.
    pub interface: u16,
    pub table: u16,
    /// Whether the fast parser may accept IPv4 packets; if not, the slow parser finds the reason.
    pub inet: bool,
    /// The same for IPv6.
    pub inet6: bool,
}

impl PortIngress {
    const CLOSED: PortIngress =
        PortIngress { mac: Mac([0; 6]), interface: NO_INTERFACE, table: 0, inet: false, inet6: false };

    fn new(number: u16, interface: &Interface) -> PortIngress {
        PortIngress {
            mac: interface.mac,
            interface: number,
            table: interface.table,
            inet: interface.up && interface.forwards_inet && interface.rules.inet.is_empty(),
            inet6: interface.up && interface.forwards_inet6 && interface.rules.inet6.is_empty(),
        }
    }
}

/// The interfaces of one port.
#[derive(Clone, Debug, Default)]
pub struct PortInterfaces {
    untagged: Option<u16>,
    /// Interface numbers by VLAN; empty if the port has no VLAN interfaces.
    vlans: Box<[u16]>,
}

/// A VLAN number has twelve bits.
const VLANS: usize = 4096;

impl PortInterfaces {
    /// The interface for frames of a VLAN; 0 stands for untagged and priority-tagged frames.
    pub fn interface(&self, vlan: u16) -> Option<u16> {
        if vlan == 0 {
            return self.untagged;
        }
        self.vlans.get(usize::from(vlan)).copied().filter(|number| *number != NO_INTERFACE)
    }

    fn add(&mut self, number: u16, vlan: Option<u16>) {
        let Some(vlan) = vlan else {
            self.untagged = Some(number);
            return;
        };
        if self.vlans.is_empty() {
            self.vlans = vec![NO_INTERFACE; VLANS].into();
        }
        self.vlans[usize::from(vlan) % VLANS] = number;
    }
}

/// All ports by number. Not every number has an interface.
pub(super) struct PortTable {
    ingress: Vec<PortIngress>,
    views: Vec<Option<PortInterfaces>>,
}

impl PortTable {
    /// The caller has checked the VLAN numbers.
    pub fn new(interfaces: &[Interface]) -> Result<PortTable, ViewError> {
        let count = interfaces.iter().map(|interface| usize::from(interface.port) + 1).max().unwrap_or(0);
        let mut ports = PortTable { ingress: vec![PortIngress::CLOSED; count], views: vec![None; count] };
        for (number, interface) in (0..).zip(interfaces) {
            let view = ports.views[usize::from(interface.port)].get_or_insert_default();
            if let Some(first) = view.interface(interface.vlan.unwrap_or(0)) {
                return Err(twice(&interfaces[usize::from(first)], interface));
            }
            view.add(number, interface.vlan);
            if interface.vlan.is_none() {
                ports.ingress[usize::from(interface.port)] = PortIngress::new(number, interface);
            }
        }
        Ok(ports)
    }

    pub fn get(&self, number: u16) -> Option<&PortInterfaces> {
        self.views.get(usize::from(number))?.as_ref()
    }

    #[inline(always)]
    pub fn ingress(&self, port: u16) -> &PortIngress {
        self.ingress.get(usize::from(port)).unwrap_or(&PortIngress::CLOSED)
    }
}

fn twice(first: &Interface, second: &Interface) -> ViewError {
    ViewError::Twice { first: first.name.clone(), second: second.name.clone(), port: second.port }
}
