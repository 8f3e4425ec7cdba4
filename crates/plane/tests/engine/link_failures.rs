//! The program passes packets to the kernel that would leave by a failed link.

use std::collections::BTreeSet;

use fullview_plane::engine::XdpReason;
use fullview_table::{NextHop, Prefix, Rib};

use fullview_plane::engine::{Engine, XdpConfig, XdpNextHop};
use fullview_testnet::{Node, current, eventually, in_namespace, may_load_programs, may_run};

use super::dut::{Became, DEVICE, Hook, at_each_hook, count, engine, neighbor, plan, run, tables};
use super::frames::frame;

/// A device that shares the place of the failed one.
const OTHER: u32 = DEVICE + 4096;

#[test]
fn packets_to_a_failed_link_are_passed_without_a_new_table() {
    at_each_hook(|hook| {
        let (mut rib, mut rib6) = (Rib::default(), Rib::default());
        rib.announce(Prefix::default_route(), NextHop(1));
        rib6.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&plan(1), tables(&rib, &rib6));
        let sent =
            [frame(0xc000_0201u32, 0xc612_0001), frame(0x2001_0db8u128 << 96 | 1, 0x2001_0002u128 << 96)];
        let failures = engine.link_failures();
        let cases =
            [(DEVICE, true, false), (OTHER, false, false), (DEVICE, false, true), (OTHER, true, true)];
        for (device, has_failed, is_forwarded) in cases {
            failures.note(device, has_failed);
            // Both generations know it.
            for _ in 0..2 {
                let program = hook.program(&mut engine);
                let became = sent.each_ref().map(|sent| run(&program, sent));
                let passed = sent.clone().map(Became::Passed);
                assert_eq!(became != passed, is_forwarded, "{device} {has_failed}: {became:?}");
                engine.publish(&plan(1), vec![tables(&rib, &rib6)]).unwrap();
            }
        }
        assert_eq!(count(&engine).of(XdpReason::LinkFailed), 8);
    });
}

/// The last bytes of the stations that flows of both families go to; 0 for those of the kernel.
fn stations(engine: &mut Engine, hook: Hook) -> BTreeSet<u8> {
    let program = hook.program(engine);
    let of_flow = |flow: u32| {
        let source6 = 0x2001_0db8u128 << 96 | u128::from(flow);
        [frame(0xc000_0200 + flow, 0xc612_0001), frame(source6, 0x2001_0002u128 << 96)]
    };
    let became = (0..64).flat_map(of_flow).map(|sent| run(&program, &sent));
    became.map(|became| if let Became::Forwarded(frame) = became { frame[5] } else { 0 }).collect()
}

/// A member's slots lie side by side, or in turns with those of others. The fourth next hop has no neighbour.
#[test]
fn flows_leave_a_failed_link_for_another_member_of_their_group() {
    if !may_load_programs() || !may_run(&[]) {
        return;
    }
    in_namespace(|| {
        make_devices();
        for (slots, all, left) in
            [([1, 2, 1, 2], [1, 2], [2]), ([1, 1, 2, 2], [1, 2], [2]), ([1, 4, 4, 1], [0, 1], [0])]
        {
            let (mut rib, mut rib6, mut plan) = (Rib::default(), Rib::default(), plan_by_devices());
            plan.next_hops.push((NextHop(3), XdpNextHop::Group(slots.map(NextHop).to_vec())));
            plan.next_hops.push((NextHop(4), XdpNextHop::Unresolved { interface: 0 }));
            rib.announce(Prefix::default_route(), NextHop(3));
            rib6.announce(Prefix::default_route(), NextHop(3));
            at_each_hook(|hook| {
                let mut engine = engine(&plan, tables(&rib, &rib6));
                let failures = engine.link_failures();
                let mut of = |failed: &[u32]| {
                    failures.forget();
                    failed.iter().for_each(|device| failures.note(*device, true));
                    Vec::from_iter(stations(&mut engine, hook))
                };
                let [first, second] = DEVICES;
                assert_eq!(of(&[]), all, "{hook:?} {slots:?}");
                assert_eq!(of(&[first]), left, "{hook:?} {slots:?}");
                assert_eq!(of(&[first, second]), [0]);
            });
        }
    });
}

/// Devices of a namespace of this test, each the other's peer.
const DEVICES: [u32; 2] = [1007, 1008];

/// Which of both devices the program forwards to.
fn forwards_to(engine: &mut Engine) -> [bool; 2] {
    let program = Hook::Tcx.program(engine);
    [1, 2].map(|hop| {
        let sent = frame(0xc000_0201u32, 0xc612_0000 + hop);
        matches!(run(&program, &sent), Became::Forwarded(_))
    })
}

fn make_devices() {
    let [one, other] = DEVICES;
    current::ip(&format!("link add name one index {one} type veth peer name other index {other}"));
    current::ip("link set one up");
    current::ip("link set other up");
}

/// A configuration with a next hop by each device.
fn plan_by_devices() -> XdpConfig {
    let by = |hop: u16, ifindex: u32| match neighbor(NextHop(hop)) {
        XdpNextHop::Neighbor { interface, vlan, source, destination, mtu, mtu6, .. } => {
            let way = XdpNextHop::Neighbor { interface, ifindex, vlan, source, destination, mtu, mtu6 };
            (NextHop(hop), way)
        }
        other => (NextHop(hop), other),
    };
    XdpConfig { next_hops: vec![by(1, DEVICES[0]), by(2, DEVICES[1])], ..plan(0) }
}

fn engine_by_devices() -> Engine {
    let mut rib = Rib::default();
    for hop in [1, 2] {
        rib.announce(Prefix::new(0xc612_0000 + u32::from(hop), 32).unwrap(), NextHop(hop));
    }
    engine(&plan_by_devices(), tables(&rib, &Rib::default()))
}

#[test]
fn the_kernel_notes_failed_links_itself() {
    if !may_load_programs() || !may_run(&["tc"]) {
        return;
    }
    in_namespace(|| {
        make_devices();
        let mut engine = engine_by_devices();
        let failures = engine.link_failures();
        engine.link_failures().begin(engine.note_failed_links().unwrap());
        assert_eq!(forwards_to(&mut engine), [true, true]);
        // A link whose queue is replaced has not failed.
        current::command("tc qdisc add dev one root pfifo");
        assert_eq!(forwards_to(&mut engine), [true, true]);
        // One is set down, and the other one loses the carrier.
        current::ip("link set one down");
        assert!(!forwards_to(&mut engine)[0]);
        assert!(eventually(|| forwards_to(&mut engine) == [false, false]));
        current::ip("link set one up");
        failures.note(DEVICES[1], false);
        assert_eq!(forwards_to(&mut engine), [false, true]);
        failures.forget();
        assert_eq!(forwards_to(&mut engine), [true, true]);
        failures.end();
        current::ip("link set one down");
        assert_eq!(forwards_to(&mut engine), [true, true]);
    });
}

#[test]
fn the_kernel_notes_no_links_of_other_namespaces() {
    if !may_load_programs() {
        return;
    }
    in_namespace(|| {
        make_devices();
        let mut engine = engine_by_devices();
        engine.link_failures().begin(engine.note_failed_links().unwrap());
        let elsewhere = Node::new();
        elsewhere.run(make_devices);
        elsewhere.ip("link set one down");
        assert_eq!(forwards_to(&mut engine), [true, true]);
    });
}
