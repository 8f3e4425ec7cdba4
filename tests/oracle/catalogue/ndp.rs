//! Neighbour discovery: solicitations of every kind, and the advertisements that answer them.

use std::net::Ipv6Addr;

use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

use super::{Cases, IntoInet6};
use crate::frames::{Inet6, ethernet};
use crate::topology::{self, LEFT, LINK_LOCAL, RIGHT, ROUTER, STATION, router_mac, station_mac};

pub fn add(cases: &mut Cases) {
    solicitations(cases);
    damage(cases);
    others(cases);
}

fn solicitation(target: Ipv6Addr) -> Vec<u8> {
    let builder = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, target.to_bits());
    builder.link_address(LinkAddress::Source, station_mac(LEFT)).build()
}

fn bare(target: Ipv6Addr) -> Vec<u8> {
    Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, target.to_bits()).build()
}

fn group(target: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(ndp::solicited_node(target.to_bits()))
}

fn packet(source: Ipv6Addr, destination: Ipv6Addr, message: Vec<u8>) -> Inet6 {
    Inet6::summed(source, destination, message).hop_limit(255)
}

fn frame(packet: &Inet6) -> Vec<u8> {
    let to = packet.destination;
    let mac = if to.is_multicast() { ndp::group_mac(to.to_bits()) } else { router_mac(LEFT) };
    ethernet(mac, station_mac(LEFT), EtherType::IPV6, &packet.bytes())
}

fn solicitations(cases: &mut Cases) {
    let (own, station) = (topology::inet6(LEFT, ROUTER.into()), topology::inet6(LEFT, STATION.into()));
    let unspecified = Ipv6Addr::UNSPECIFIED;
    let near: Ipv6Addr = "fe80::2".inet6();
    let foreign = topology::inet6(LEFT, 0x77);
    for (name, source, destination, message) in [
        ("own address", station, group(own), solicitation(own)),
        ("own address, to it alone", station, own, solicitation(own)),
        ("own address, to it alone and without a link address", station, own, bare(own)),
        ("own address, without a link address", station, group(own), bare(own)),
        ("link-local address", near, group(LINK_LOCAL), solicitation(LINK_LOCAL)),
        ("own address from link-local", near, group(own), solicitation(own)),
        ("address of another link", station, group(own), solicitation(topology::inet6(RIGHT, ROUTER.into()))),
        ("foreign address", station, group(foreign), solicitation(foreign)),
        ("foreign address, to the router alone", station, own, solicitation(foreign)),
        (
            "subnet-router anycast",
            station,
            group(topology::inet6(LEFT, 0)),
            solicitation(topology::inet6(LEFT, 0)),
        ),
        ("group", station, group(own), solicitation("ff02::1".inet6())),
        ("detection of a duplicate", unspecified, group(own), bare(own)),
        ("detection of a duplicate link-local", unspecified, group(LINK_LOCAL), bare(LINK_LOCAL)),
        ("detection of a foreign duplicate", unspecified, group(foreign), bare(foreign)),
        ("detection with a link address", unspecified, group(own), solicitation(own)),
        ("detection, to the router alone", unspecified, own, bare(own)),
        ("from off the link", "2001:2:0:ff::7".inet6(), group(own), solicitation(own)),
        ("from own address", own, group(own), solicitation(own)),
        ("to all nodes", station, "ff02::1".inet6(), solicitation(own)),
        ("to all routers", station, "ff02::2".inet6(), solicitation(own)),
    ] {
        cases.frame(format!("ndp: {name}"), frame(&packet(source, destination, message)));
    }
}

fn damage(cases: &mut Cases) {
    let (own, station) = (topology::inet6(LEFT, ROUTER.into()), topology::inet6(LEFT, STATION.into()));
    let good = packet(station, group(own), solicitation(own));
    let changed = |at: usize, value: u8| {
        let mut message = solicitation(own);
        message[at] = value;
        packet(station, group(own), message)
    };
    let mut damaged = good.clone();
    damaged.payload[2] ^= 1;
    for (name, packet) in [
        ("hop limit 254", good.clone().hop_limit(254)),
        ("checksum", damaged),
        ("code 1", changed(1, 1)),
        ("reserved bytes", changed(4, 9)),
        ("option of length 0", changed(25, 0)),
        ("option beyond the message", changed(25, 2)),
        ("cut in the target", packet(station, group(own), solicitation(own)[..20].to_vec())),
        ("cut in an option", packet(station, group(own), solicitation(own)[..30].to_vec())),
        (
            "unknown option before",
            packet(station, group(own), {
                let builder = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, own.to_bits()).mtu(1500);
                builder.link_address(LinkAddress::Source, station_mac(LEFT)).build()
            }),
        ),
        ("behind an extension header", good.clone().extension(60, &[0, 0, 1, 4, 0, 0, 0, 0])),
    ] {
        cases.frame(format!("ndp: {name}"), frame(&packet));
    }
    let elsewhere = ethernet(Mac([2, 0, 0, 0, 9, 9]), station_mac(LEFT), EtherType::IPV6, &good.bytes());
    cases.frame("ndp: in a frame to another station", elsewhere);
    let odd = ethernet(router_mac(LEFT), station_mac(LEFT), EtherType::IPV6, &good.bytes());
    cases.frame("ndp: to a group in a frame to the router", odd);
}

fn others(cases: &mut Cases) {
    let own = topology::inet6(LEFT, ROUTER.into());
    let near: Ipv6Addr = "fe80::2".inet6();
    let routers: Ipv6Addr = "ff02::2".inet6();
    let advert = |target: Ipv6Addr, flags| {
        let builder = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, flags, target.to_bits());
        builder.link_address(LinkAddress::Target, station_mac(LEFT)).build()
    };
    let asks = [&[133, 0, 0, 0, 0, 0, 0, 0, 1, 1][..], &station_mac(LEFT).0].concat();
    let offers = Builder::router(64, 0, 1800).link_address(LinkAddress::Source, station_mac(LEFT)).build();
    let target = topology::inet6(LEFT, 0x80);
    let redirect = Builder::redirect(near.to_bits(), topology::inet6(LEFT, 0x81).to_bits()).build();
    for (name, destination, message) in [
        ("unasked advertisement", own, advert(target, ndp::SOLICITED)),
        ("advertisement to all", "ff02::1".inet6(), advert(target, ndp::OVERRIDE)),
        ("another station claims own address", "ff02::1".inet6(), advert(own, ndp::OVERRIDE)),
        ("router solicitation", routers, asks),
        ("router advertisement", "ff02::1".inet6(), offers),
        ("redirect", own, redirect),
    ] {
        cases.frame(format!("ndp: {name}"), frame(&packet(near, destination, message)));
    }
}
