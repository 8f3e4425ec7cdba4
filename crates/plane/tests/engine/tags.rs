//! Tags that a driver has removed from frames.

use std::time::Instant;

use aya::programs::xdp::XdpMode;
use fullview_plane::engine::{Engine, XdpConfig, XdpInterface, XdpNextHop, XdpReason};
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

/// Whether the program, attached by this function, forwards tagged frames of VLAN 7.
fn forwards_vlan_7(attach: fn(&mut Engine, u32)) -> bool {
    let mut rib = Rib::default();
    rib.announce(Prefix::default_route(), NextHop(1));
    let mut engine = Engine::load().unwrap();
    attach(&mut engine, Link::named("in").unwrap().index());
    engine.publish(&of_vlan_7(), vec![tables(&rib, &Rib::default())]).unwrap();
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
        assert!(forwards_vlan_7(|engine, device| engine.attach_reading_tags(device).unwrap()));
        // At tcx the tags are beside the frames.
        assert!(forwards_vlan_7(|engine, device| engine.attach_at_tcx(device).unwrap()));
        // To another program, the same frames look untagged.
        assert!(!forwards_vlan_7(|engine, device| engine.attach(device, XdpMode::Driver).unwrap()));
    });
}
