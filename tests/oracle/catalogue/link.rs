//! Frames that are malformed, or not for the router, by their Ethernet header alone.

use fullview_plane::wire::ethernet::{EtherType, Mac};

use super::Cases;
use crate::frames::{ethernet, from_station, tagged};
use crate::topology::{LEFT, router_mac, station_mac};

pub fn add(cases: &mut Cases) {
    for (name, ethertype) in [
        ("LLDP", 0x88cc),
        ("loopback test", 0x9000),
        ("802.3 length", 46),
        ("MPLS", 0x8847),
        ("reserved type", 0xffff),
    ] {
        cases.frame(format!("link: {name}"), from_station(LEFT, EtherType(ethertype), &[0; 46]));
    }
    let (inet, inet6) = (cases.udp("198.19.0.1"), cases.udp6("2001:2:0:9::1"));
    let (inet, inet6) = (inet.bytes(), inet6.bytes());
    cases.frame("link: IPv6 in an IPv4 frame", from_station(LEFT, EtherType::IPV4, &inet6));
    cases.frame("link: IPv4 in an IPv6 frame", from_station(LEFT, EtherType::IPV6, &inet));
    for (name, mac) in [
        ("another station", Mac([2, 0, 0, 0, 9, 9])),
        ("a broadcast", Mac::BROADCAST),
        ("a group", Mac([1, 0, 0x5e, 0, 0, 1])),
        ("an IPv6 group", Mac([0x33, 0x33, 0, 0, 0, 1])),
    ] {
        let frame = |ethertype, bytes: &[u8]| ethernet(mac, station_mac(LEFT), ethertype, bytes);
        cases.frame(format!("link: IPv4 to {name}"), frame(EtherType::IPV4, &inet));
        cases.frame(format!("link: IPv6 to {name}"), frame(EtherType::IPV6, &inet6));
        let (expired, expired6) = (cases.udp("198.19.0.1").ttl(1), cases.udp6("2001:2:0:9::1").hop_limit(1));
        cases.frame(format!("link: IPv4 to {name}, TTL 1"), frame(EtherType::IPV4, &expired.bytes()));
        cases.frame(format!("link: IPv6 to {name}, hop limit 1"), frame(EtherType::IPV6, &expired6.bytes()));
    }
    for (name, control) in [("of an unknown VLAN", 200), ("with a priority only", 0xe000)] {
        let frame = from_station(LEFT, EtherType::IPV4, &inet);
        cases.frame(format!("link: IPv4 {name}"), tagged(frame, control));
    }
    let from = |mac| ethernet(router_mac(LEFT), mac, EtherType::IPV4, &inet);
    cases.frame("link: from the router's own address", from(router_mac(LEFT)));
    cases.frame("link: from a group", from(Mac([3, 0, 0, 0, 0, 1])));
}
