//! Tags that a driver has removed from frames.

use std::time::Instant;

use fullview_plane::engine::{Engine, XdpConfig, XdpInterface, XdpNextHop, XdpPlace, XdpReason};
use fullview_plane::port::link::Link;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::{NextHop, Prefix, Rib};
use fullview_testnet::current::{accept_redirected_frames, cable, ip};
use fullview_testnet::{ANSWER, PacketSocket, eventually, in_namespace, may_load_programs, may_run};

use super::dut::{count, neighbor, plan, tables};
use super::frames::{OWN, frame, tagged};

/// A trunk whose bridge hands frames to `in` with their tags beside them, and a cable from `out`.
fn bridge() {
    for (one, other) in [("trunk", "port"), ("switch", "in"), ("out", "sink")] {
        cable(one, other, 1514);
    }
    ip("link add bridge type bridge");
    ip("link set bridge up");
    ["port", "switch"].iter().for_each(|port| drop(ip(&format!("link set {port} master bridge"))));
    accept_redirected_frames("sink");
}

/// Forwards what comes in by VLAN 7 of `in` to a neighbour at `out`.
fn of_vlan_7() -> XdpConfig {
    let [ingress, egress] = ["in", "out"].map(|name| Link::named(name).unwrap().index());
    let mut plan = plan(0);
    plan.interfaces[0] = XdpInterface { ifindex: ingress, vlan: 7, ..plan.interfaces[0] };
    let XdpNextHop::Neighbor { interface, vlan, source, destination, mtu, mtu6, .. } = neighbor(NextHop(1))
    else {
        panic!("a neighbour")
    };
    let next_hop = XdpNextHop::Neighbor { interface, ifindex: egress, vlan, source, destination, mtu, mtu6 };
    plan.next_hops.push((NextHop(1), next_hop));
    plan
}

/// Forwards what comes in by `in` to a neighbour in VLAN 300 at `out`; and what `sink` receives in that VLAN is counted.
fn to_vlan_300() -> [XdpConfig; 2] {
    let mut sending = of_vlan_7();
    sending.interfaces[0].vlan = 0;
    if let (_, XdpNextHop::Neighbor { vlan, .. }) = &mut sending.next_hops[0] {
        *vlan = 300;
    }
    let mut receiving = plan(0);
    let ifindex = Link::named("sink").unwrap().index();
    receiving.interfaces[0] = XdpInterface { ifindex, vlan: 300, ..receiving.interfaces[0] };
    [sending, receiving]
}

#[test]
fn a_program_at_tcx_sends_frames_with_the_tag_of_the_next_link() {
    if !(may_load_programs() && may_run(&["ip"])) {
        return;
    }
    in_namespace(|| {
        for (one, other) in [("source", "in"), ("out", "sink")] {
            cable(one, other, 1514);
        }
        let (mut inet, mut inet6) = (Rib::default(), Rib::default());
        inet.announce(Prefix::default_route(), NextHop(1));
        inet6.announce(Prefix::default_route(), NextHop(1));
        let at = |place: &str, config: &XdpConfig| {
            let mut engine = Engine::load().unwrap();
            engine.attach_at_tcx(Link::named(place).unwrap().index()).unwrap();
            engine.publish(config, vec![tables(&inet, &inet6)]).unwrap();
            engine
        };
        let [sending, receiving] = to_vlan_300();
        let (_sender, receiver) = (at("in", &sending), at("sink", &receiving));
        let mut source = PacketSocket::open("source");
        let arrived = || count(&receiver).interfaces[0].received.packets;
        for sent in [frame(0xc000_0201u32, 0xc612_0001), frame(1u128 << 125, 3 << 124)] {
            let before = arrived();
            assert!(eventually(|| {
                source.send(&sent).unwrap();
                arrived() > before
            }));
        }
    });
}

/// Whether the program, attached by this function, forwards tagged frames of VLAN 7; and so does the one that observes packets,
/// which takes its place if it is asked for.
fn forwards_vlan_7(is_observed: bool, attach: fn(&mut Engine, u32)) -> bool {
    let mut rib = Rib::default();
    rib.announce(Prefix::default_route(), NextHop(1));
    let mut engine = Engine::load().unwrap();
    attach(&mut engine, Link::named("in").unwrap().index());
    engine.publish(&of_vlan_7(), vec![tables(&rib, &Rib::default())]).unwrap();
    engine.observe(is_observed).unwrap();
    let (mut trunk, mut sink) = (PacketSocket::open("trunk"), PacketSocket::open("sink"));
    let of_vlan = |vlan, to: u32| tagged(&frame(0xc000_0201, to), vlan);
    let kept = || count(&engine).of(XdpReason::NoInterface);
    // The bridge may not forward yet.
    assert!(eventually(|| {
        trunk.send(&of_vlan(9, 0xc612_0009)).unwrap();
        kept() >= 20
    }));
    assert_eq!(count(&engine).forwarded(), 0);
    let enough = kept() + 50;
    assert!(eventually(|| {
        trunk.send(&of_vlan(7, 0xc612_0007)).unwrap();
        count(&engine).forwarded() > 0 || kept() >= enough
    }));
    if count(&engine).forwarded() == 0 {
        return false;
    }
    let deadline = Instant::now() + ANSWER;
    let mut arrived = std::iter::from_fn(|| sink.receive(deadline));
    let is_ours = |frame: &Vec<u8>| frame[6..12] == Mac(OWN).0 && frame[12..14] == [8, 0];
    arrived.find(is_ours).is_some_and(|frame| frame[30..34] == [0xc6, 0x12, 0, 7])
}

#[test]
fn a_bound_program_and_one_at_tcx_read_the_tags_that_the_driver_strips() {
    if !(may_load_programs() && may_run(&["ip", "ethtool"])) {
        return;
    }
    in_namespace(|| {
        bridge();
        for is_observed in [false, true] {
            assert!(forwards_vlan_7(is_observed, |engine, device| engine
                .attach_reading_tags(device)
                .unwrap()));
            // At tcx the tags are beside the frames.
            assert!(forwards_vlan_7(is_observed, |engine, device| engine.attach_at_tcx(device).unwrap()));
        }
        // To another program, the same frames look untagged.
        assert!(!forwards_vlan_7(false, |engine, device| engine.attach(device, XdpPlace::Driver).unwrap()));
    });
}
