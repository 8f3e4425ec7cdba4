//! Announcements of the router's own addresses: they correct the caches of stations that knew another link address
//! (RFC 5227, section 3; RFC 4861, section 7.2.6).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::discovery;
use super::output::Output;
use fullview_plane::interface::Interface;
use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

pub(super) fn announce(interface: &Interface, own: IpAddr, out: &mut Output) {
    match own {
        IpAddr::V4(ip) => announce_arp(interface, ip, out),
        IpAddr::V6(ip) => announce_ndp(interface, ip, out),
    }
}

fn announce_arp(interface: &Interface, own: Ipv4Addr, out: &mut Output) {
    let announcement = ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: interface.mac,
        sender: own.to_bits(),
        target_mac: Mac::default(),
        target: own.to_bits(),
    };
    out.send(interface, Mac::BROADCAST, EtherType::ARP, &announcement.bytes());
}

fn announce_ndp(interface: &Interface, own: Ipv6Addr, out: &mut Output) {
    let flags = ndp::ROUTER | ndp::OVERRIDE;
    let message = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, flags, own.to_bits());
    let message = message.link_address(LinkAddress::Target, interface.mac).build();
    discovery::send(interface, (own, ndp::ALL_NODES.into()), None, message, out);
}
