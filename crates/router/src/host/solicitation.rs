//! Requests for a neighbour's link address: ARP requests (RFC 826) and neighbour solicitations (RFC 4861, section 7.2.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::discovery;
use super::interfaces::Interfaces;
use super::neighbor::NeighborId;
use super::output::Output;
use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

pub(super) struct Solicitation {
    pub neighbor: NeighborId,
    /// The source address of the packet that has waited longest for the neighbour. The request is sent from it if it is
    /// the router's own.
    pub prompted_by: Option<IpAddr>,
    /// The last known link address. If there is one, only that station is asked, else the whole link.
    pub last_known: Option<Mac>,
}

impl Solicitation {
    pub fn send(&self, interfaces: &Interfaces, out: &mut Output) {
        match self.neighbor.ip {
            IpAddr::V4(target) => self.send_arp(target, interfaces, out),
            IpAddr::V6(target) => self.send_ndp(target, interfaces, out),
        }
    }

    fn send_arp(&self, target: Ipv4Addr, interfaces: &Interfaces, out: &mut Output) {
        let number = self.neighbor.interface;
        let Some(interface) = interfaces.get(number) else { return };
        let prompting = match self.prompted_by {
            Some(IpAddr::V4(source)) if interfaces.is_own_on(number, source.into()) => Some(source),
            _ => None,
        };
        let Some(sender) = prompting.or_else(|| interfaces.source_inet(number, target)) else { return };
        let request = ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: interface.mac,
            sender: sender.to_bits(),
            target_mac: Mac::default(),
            target: target.to_bits(),
        };
        out.send(interface, self.last_known.unwrap_or(Mac::BROADCAST), EtherType::ARP, &request.bytes());
    }

    fn send_ndp(&self, target: Ipv6Addr, interfaces: &Interfaces, out: &mut Output) {
        let number = self.neighbor.interface;
        let Some(interface) = interfaces.get(number) else { return };
        let prompting = match self.prompted_by {
            Some(IpAddr::V6(source)) if interfaces.is_own_on(number, source.into()) => Some(source),
            _ => None,
        };
        let other = || interfaces.link_local_of(number).or_else(|| interfaces.source_inet6(number, target));
        let Some(source) = prompting.or_else(other) else { return };
        let message = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, target.to_bits());
        let message = message.link_address(LinkAddress::Source, interface.mac).build();
        let solicited_node = || ndp::solicited_node(target.to_bits()).into();
        let destination = if self.last_known.is_some() { target } else { solicited_node() };
        discovery::send(interface, (source, destination), self.last_known, message, out);
    }
}
