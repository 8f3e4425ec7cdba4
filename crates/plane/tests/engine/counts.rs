//! Counters of the program, by interface.

use fullview_plane::counters::Traffic;
use fullview_plane::engine::{Engine, XdpConfig, XdpInterface, XdpNextHop, XdpReason};
use fullview_table::{NextHop, Prefix, Rib};

use super::dut::{Became, DEVICE, Hook, at_each_hook, count, engine, neighbor, plan, run, tables};
use super::frames::{frame, tagged};

/// Interface 0 is untagged and 5 is VLAN 7; next hop 1 leaves by interface 0, next hop 2 by interface 5.
fn two_interfaces() -> XdpConfig {
    let mut plan = plan(1);
    plan.interfaces.push(XdpInterface { number: 5, vlan: 7, ..plan.interfaces[0] });
    let XdpNextHop::Neighbor { ifindex, source, destination, mtu, mtu6, .. } = neighbor(NextHop(2)) else {
        panic!("a neighbour")
    };
    plan.next_hops.push((
        NextHop(2),
        XdpNextHop::Neighbor { interface: 5, ifindex, vlan: 7, source, destination, mtu, mtu6 },
    ));
    plan
}

fn traffic(packets: u64, bytes: u64) -> Traffic {
    Traffic { packets, bytes }
}

#[test]
fn frames_are_counted_at_ingress_and_egress() {
    at_each_hook(|hook| {
        let mut rib = Rib::default();
        rib.announce("198.18.0.0/16".parse().unwrap(), NextHop(1));
        rib.announce("198.19.0.0/16".parse().unwrap(), NextHop(2));
        let mut engine = engine(&two_interfaces(), tables(&rib, &Rib::default()));
        let program = &hook.program(&mut engine);
        let [here, there, nowhere] =
            [0xc612_0001, 0xc613_0001, 0x0b00_0001u32].map(|to| frame(0xc000_0201, to));
        // 60 bytes in; 60 out by interface 0, or 64 with a tag by interface 5, if the tag is in the frame.
        let tagged_len = if hook != Hook::Tcx { 64 } else { 60 };
        for sent in
            [&here, &there, &there, &nowhere, &tagged(&here, 7), &tagged(&nowhere, 7), &tagged(&here, 9)]
        {
            run(program, sent);
        }
        let counters = count(&engine);
        let [first, .., last] = counters.interfaces[..] else { panic!("{counters:?}") };
        assert_eq!(counters.interfaces.len(), 6);
        assert_eq!((first.received, first.sent), (traffic(4, 240), traffic(2, 120)));
        assert_eq!((last.received, last.sent), (traffic(2, 128), traffic(2, 2 * tagged_len)));
        assert_eq!((counters.forwarded(), counters.all_passed()), (4, 3));
        let no_route = [0, 1, 5].map(|number| counters.of_interface(number, XdpReason::NoRoute));
        assert_eq!(no_route, [1, 0, 1]);
        assert_eq!(
            (counters.of(XdpReason::NoInterface), counters.of_interface(5, XdpReason::NoInterface)),
            (1, 0)
        );
    });
}

#[test]
fn counters_continue_after_a_change_of_the_configuration() {
    at_each_hook(|hook| {
        let mut rib = Rib::default();
        rib.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&two_interfaces(), tables(&rib, &Rib::default()));
        run(&hook.program(&mut engine), &tagged(&frame(0xc000_0201u32, 0xc612_0001), 7));
        engine.publish(&plan(1), vec![tables(&rib, &Rib::default())]).unwrap();
        run(&hook.program(&mut engine), &frame(0xc000_0201u32, 0xc612_0001));
        let counters = count(&engine);
        assert_eq!(counters.interfaces[5].received, traffic(1, 64));
        assert_eq!(counters.interfaces[0].sent, traffic(2, 120));
    });
}

/// The most interfaces that have counters, on two devices with the same VLANs. Test runs come in by the first device.
#[test]
fn packets_of_as_many_interfaces_as_can_be_counted_are_forwarded() {
    at_each_hook(|hook| {
        let mut plan = plan(1);
        let interface = |number: u16| XdpInterface {
            number,
            vlan: number / 2,
            ifindex: DEVICE + u32::from(number % 2),
            ..plan.interfaces[0]
        };
        plan.interfaces = (0..Engine::MOST_INTERFACES).map(interface).collect();
        let mut rib = Rib::default();
        rib.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&plan, tables(&rib, &Rib::default()));
        let (plain, program) = (frame(0xc000_0201u32, 0xc612_0001), &hook.program(&mut engine));
        for interface in plan.interfaces.iter().filter(|interface| interface.ifindex == DEVICE) {
            assert!(matches!(run(program, &tagged(&plain, interface.vlan)), Became::Forwarded(_)));
        }
        let received = count(&engine).interfaces.into_iter().map(|interface| interface.received.packets);
        let wanted = plan.interfaces.iter().map(|interface| u64::from(interface.ifindex == DEVICE));
        assert!(received.eq(wanted));
    });
}
