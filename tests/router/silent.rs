//! What the kernel removes without a message when a link goes down or loses its carrier. The router's routes are compared
//! with the kernel's when the link is back: what the kernel removed then does not come back.

use std::net::IpAddr;

use fullview_testnet::{eventually, may_run};

use crate::lab::Lab;
use crate::trouble::{batch, network};
use crate::watch::Watch;

const PROGRAMS: [&str; 2] = ["ip", "setpriv"];

fn gateways(watch: &Watch, address: &str) -> Vec<String> {
    let address: IpAddr = address.parse().unwrap();
    let mut gateways: Vec<String> =
        watch.stations(address).into_iter().map(|(_, station)| station.to_string()).collect();
    gateways.sort_unstable();
    gateways
}

/// Adds objects over both links, a group of both, and routes by them.
fn add_objects(lab: &Lab) {
    for object in [
        "id 7 via 10.0.1.2 dev eth1",
        "id 8 via 10.0.2.2 dev eth2",
        "id 9 group 7/8",
        "id 17 via 2001:db8:1::2 dev eth1",
        "id 18 via 2001:db8:2::2 dev eth2",
        "id 19 group 17/18",
    ] {
        lab.router.ip(&format!("nexthop replace {object}"));
    }
    for id in [8, 9] {
        lab.router.ip(&format!("route replace 172.16.{id}.0/24 nhid {id}"));
        lab.router.ip(&format!("-6 route replace 2001:db8:1{id}::/48 nhid 1{id}"));
    }
}

/// Takes a link away, and gives it back.
fn flap(lab: &Lab, by_carrier: bool) {
    let (node, link) = if by_carrier { (&lab.right, "eth0") } else { (&lab.router, "eth2") };
    node.ip(&format!("link set dev {link} down"));
    let lost = || !lab.router.ip("nexthop show").contains("id 8 ");
    assert!(eventually(lost), "the kernel removes the object");
    node.ip(&format!("link set dev {link} up"));
    lab.router.ip("-6 addr replace 2001:db8:2::1/64 dev eth2 nodad");
    let is_up = || !lab.router.ip("link show dev eth2").contains("NO-CARRIER");
    assert!(eventually(is_up));
}

#[test]
fn next_hop_objects_go_with_the_carrier_and_do_not_come_back() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    // The kernel reports no IPv6 route that goes with its object either.
    lab.router.sysctl("ipv4/nexthop_compat_mode", "0");
    let mut watch = Watch::new(&lab.router, &["eth1", "eth2"], 1 << 20);
    for (by_carrier, ignores) in [(true, "0"), (true, "1"), (false, "0")] {
        lab.router.sysctl("ipv4/conf/all/ignore_routes_with_linkdown", ignores);
        add_objects(&lab);
        watch.settle();
        assert_eq!(gateways(&watch, "172.16.9.1"), ["10.0.1.2", "10.0.2.2"]);
        assert_eq!(gateways(&watch, "2001:db8:19::1"), ["2001:db8:1::2", "2001:db8:2::2"]);
        assert_eq!(gateways(&watch, "172.16.8.1"), ["10.0.2.2"]);
        flap(&lab, by_carrier);
        watch.settle();
        let found =
            ["172.16.9.1", "172.16.8.1", "2001:db8:19::1", "2001:db8:18::1"].map(|to| gateways(&watch, to));
        let meant: [&[&str]; 4] = [&["10.0.1.2"], &[], &["2001:db8:1::2"], &[]];
        assert_eq!(found, meant, "carrier: {by_carrier}, ignored without one: {ignores}");
    }
}

#[test]
fn ipv6_routes_that_the_kernel_drops_silently_do_not_come_back_with_the_link() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    lab.router.sysctl("ipv6/route/skip_notify_on_dev_down", "1");
    lab.router.ip("-6 route add 2001:db8:8::/48 via 2001:db8:2::2");
    lab.router.ip("-6 route add 2001:db8:9::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2");
    let mut watch = Watch::new(&lab.router, &["eth1", "eth2"], 1 << 20);
    assert_eq!(gateways(&watch, "2001:db8:8::1"), ["2001:db8:2::2"]);
    lab.router.ip("link set dev eth2 down");
    lab.router.ip("link set dev eth2 up");
    lab.router.ip("-6 addr replace 2001:db8:2::1/64 dev eth2 nodad");
    watch.settle();
    assert_eq!(lab.router.ip("-6 route show 2001:db8:8::/48"), "", "the kernel dropped it");
    assert_eq!(gateways(&watch, "2001:db8:8::1"), [""; 0]);
    watch.compare(&lab.router, &["2001:db8:8::1", "2001:db8:9::1"].map(|to| to.parse().unwrap()));
}

#[test]
fn a_failed_link_is_left_before_the_changes_that_came_earlier_are_applied() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let mut watch = Watch::new(&lab.router, &["eth1", "eth2"], 32 << 20);
    lab.router.ip("route add 172.31.9.0/24 nexthop via 10.0.1.2 nexthop via 10.0.2.2");
    watch.settle();
    assert_eq!(gateways(&watch, "172.31.9.1"), ["10.0.1.2", "10.0.2.2"]);
    let before = watch.statistics().events;
    batch(&lab.router, |n| format!("route add {} via 10.0.2.2", network(n)));
    lab.right.ip("link set dev eth0 down");
    let is_lost = || lab.router.ip("link show dev eth2").contains("NO-CARRIER");
    assert!(eventually(is_lost));
    watch.turn();
    assert!(watch.statistics().events - before < 1000, "most changes still wait");
    assert_eq!(gateways(&watch, "172.31.9.1"), ["10.0.1.2"]);
    watch.settle();
    lab.right.ip("link set dev eth0 up");
    assert!(watch.settle_until(|mirror| mirror.stations(254, "172.31.9.1".parse().unwrap()).len() == 2));
}
