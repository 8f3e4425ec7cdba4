//! Queries of MLD, and the reports that answer them.

use std::time::Duration;

use fullview_plane::wire::checksum::pseudo_ipv6;
use fullview_plane::wire::ethernet::Frame;
use fullview_plane::wire::icmpv6::Icmpv6Message;
use fullview_plane::wire::ipv4::protocol::ICMPV6;
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::wire::ndp;

use crate::support::{TestRouter, config, inet6_with, v6};

const HOP_BY_HOP: u8 = 0;
const ALL_NODES: &str = "ff02::1";
const QUERIER: &str = "fe80::9";
/// The groups of interface 0 in numerical order: all routers, and those of ::1 and of the anycast addresses.
const GROUPS: [&str; 3] = ["ff02::2", "ff02::1:ff00:0", "ff02::1:ff00:1"];

/// A query about a group, or all, that is to be answered within a second.
fn query(source: &str, group: &str, version: u8) -> Vec<u8> {
    let asked = if group == ALL_NODES { "::" } else { group };
    let mut message = [&[130, 0, 0, 0, 3, 0xe8, 0, 0][..], &v6(asked).octets()].concat();
    message.resize(if version == 1 { 24 } else { 28 }, 0);
    let len = message.len() as u32;
    let pseudo = pseudo_ipv6(v6(source).to_bits(), v6(group).to_bits(), ICMPV6, len);
    Icmpv6Message::new_unchecked(&mut message[..]).fill_checksum(pseudo);
    inet6_with(source, group, 1, HOP_BY_HOP, &[&[ICMPV6, 0, 5, 2, 0, 0, 1, 0][..], &message].concat())
}

/// The destination of a report, and its message.
fn report(frame: &[u8]) -> (String, Vec<u8>) {
    let frame = Frame::new_checked(frame).unwrap();
    let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
    assert_eq!((packet.source(), packet.hop_limit()), (v6("fe80::1").to_bits(), 1));
    let (options, message) = packet.payload().split_at(8);
    assert_eq!(options[..6], [ICMPV6, 0, 5, 2, 0, 0], "a router alert");
    let pseudo = pseudo_ipv6(packet.source(), packet.destination(), ICMPV6, message.len() as u32);
    assert!(Icmpv6Message::new_checked(message).unwrap().verify_checksum(pseudo));
    assert_eq!(frame.destination(), ndp::group_mac(packet.destination()));
    (std::net::Ipv6Addr::from(packet.destination()).to_string(), message.to_vec())
}

/// The reports that answer a query, within its time.
fn answers(query: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    let mut router = TestRouter::new(&config());
    let at_once = router.send(0, &[query]);
    let later = router.pass(Duration::from_secs(1));
    assert!(router.pass(Duration::from_secs(9)).is_empty());
    at_once.iter().chain(&later).map(|(_, frame)| report(frame)).collect()
}

fn all_groups() -> Vec<u8> {
    let records = GROUPS.map(|group| [&[2, 0, 0, 0][..], &v6(group).octets()].concat());
    [&[0, 0, 0, 3][..], &records.concat()].concat()
}

#[test]
fn a_query_is_answered_by_all_groups() {
    for group in [ALL_NODES, "ff02::1:ff00:1"] {
        let [(to, message)] = &answers(query(QUERIER, group, 2))[..] else { panic!("{group}: one report") };
        assert_eq!((to.as_str(), message[0], &message[4..]), ("ff02::16", 143, &all_groups()[..]));
    }
}

#[test]
fn a_query_of_version_1_is_answered_to_each_group() {
    let answers = answers(query(QUERIER, ALL_NODES, 1));
    let groups: Vec<&str> = answers.iter().map(|(to, _)| to.as_str()).collect();
    let mut wanted = GROUPS;
    wanted.sort_by_key(|group| v6(group));
    assert_eq!(groups, wanted);
    for (to, message) in &answers {
        assert_eq!((message[0], &message[8..]), (131, &v6(to).octets()[..]));
    }
}

#[test]
fn queries_from_elsewhere_or_about_other_groups_are_not_answered() {
    let mut far = query(QUERIER, ALL_NODES, 2);
    far[14 + 7] = 64;
    let queries = [query("2001:db8:0::9", ALL_NODES, 2), query(QUERIER, "ff02::1:ff00:9", 2), far];
    assert!(queries.into_iter().all(|query| answers(query).is_empty()));
}
