//! The program passes every packet that it does not forward to the kernel unchanged, and counts it by reason.

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::engine::{Engine, EngineError, XdpConfig, XdpDevice, XdpNextHop, XdpReason};
use fullview_plane::interface::Interface;
use fullview_plane::view::{TableReaders, View, ViewParts};
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_table::fib::registry;
use fullview_table::{NextHop, Prefix, Rib};
use fullview_testnet::may_load_programs;

use super::dut::{
    Became, DEVICE, Hook, at_each_hook, count, engine, neighbor, plan, run, since, station, tables,
};
use super::frames::{OWN, forwarded, frame, tagged};

fn inet() -> Vec<u8> {
    frame(0xc000_0201u32, 0xc612_0001)
}

fn inet6() -> Vec<u8> {
    frame(0x2001_0db8u128 << 96, 0x2001_0002 << 96)
}

/// A frame with some bytes changed and a correct IPv4 checksum.
fn with(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    if frame[12..14] == [0x08, 0x00] && frame.len() >= 34 {
        let mut ip = Ipv4Packet::new_unchecked(&mut frame[14..]);
        ip.set_checksum(0);
        if ip.header_len() == 20 {
            ip.fill_checksum();
        }
    }
    frame
}

fn to(destination: &str) -> Vec<u8> {
    match destination.parse().unwrap() {
        std::net::IpAddr::V4(addr) => frame(0xc000_0201, addr.to_bits()),
        std::net::IpAddr::V6(addr) => frame(0x2001_0db8u128 << 96, addr.to_bits()),
    }
}

fn from(source: &str) -> Vec<u8> {
    match source.parse().unwrap() {
        std::net::IpAddr::V4(addr) => frame(addr.to_bits(), 0xc612_0001),
        std::net::IpAddr::V6(addr) => frame(addr.to_bits(), 0x2001_0002 << 96),
    }
}

/// Frames, and why they are passed.
pub fn exceptions() -> Vec<(XdpReason, Vec<u8>)> {
    let mut damaged = inet();
    damaged[25] ^= 1;
    let mut cases = vec![
        (XdpReason::TooShort, inet()[..30].to_vec()),
        (XdpReason::TooShort, inet6()[..50].to_vec()),
        (XdpReason::TooShort, with(inet()[..16].to_vec(), 12, &[0x81, 0])),
        (XdpReason::NoInterface, tagged(&inet(), 9)),
        (XdpReason::OtherStation, with(inet(), 5, &[2])),
        (XdpReason::OtherStation, with(inet6(), 0, &[0xff; 6])),
        (XdpReason::NotIp, with(inet(), 12, &[0x08, 0x06])),
        (XdpReason::Header, with(inet(), 14, &[0x46])),
        (XdpReason::Header, with(inet(), 14, &[0x65])),
        (XdpReason::Header, with(inet(), 16, &[0, 19])),
        (XdpReason::Header, with(inet(), 16, &[0, 47])),
        (XdpReason::Header, with(inet6(), 14, &[0x40])),
        (XdpReason::Header, with(inet6(), 18, &[0, 9])),
        (XdpReason::Checksum, damaged),
        (XdpReason::TtlExpired, with(inet(), 22, &[1])),
        (XdpReason::TtlExpired, with(inet6(), 21, &[0])),
        (XdpReason::NoRoute, to("11.0.0.1")),
        (XdpReason::NoRoute, to("3fff::1")),
        (XdpReason::Local, to("198.18.1.1")),
        (XdpReason::NoNeighbor, to("198.18.2.1")),
        (XdpReason::NoNeighbor, to("198.18.5.1")),
        (XdpReason::Discarded, to("198.18.3.1")),
        (XdpReason::TooBig, to("198.18.4.1")),
    ];
    let special =
        ["0.1.2.3", "127.0.0.1", "169.254.0.1", "224.0.0.5", "255.255.255.255", "::1", "fe80::1", "ff02::1"];
    cases.extend(
        special.into_iter().flat_map(|addr| [to(addr), from(addr)]).map(|f| (XdpReason::SpecialAddress, f)),
    );
    cases
}

pub fn exceptional_engine() -> Engine {
    let mut plan = plan(1);
    let XdpNextHop::Neighbor { interface, ifindex, vlan, source, destination, .. } = neighbor(NextHop(6))
    else {
        panic!("a neighbour")
    };
    let narrow = XdpNextHop::Neighbor { interface, ifindex, vlan, source, destination, mtu: 27, mtu6: 1500 };
    plan.next_hops.push((NextHop(2), XdpNextHop::Pass(XdpReason::Local)));
    plan.next_hops.push((NextHop(3), XdpNextHop::Pass(XdpReason::NoNeighbor)));
    plan.next_hops.push((NextHop(4), XdpNextHop::Pass(XdpReason::Discarded)));
    plan.next_hops.push((NextHop(5), narrow));
    let (mut rib, mut rib6) = (Rib::default(), Rib::<u128>::default());
    rib.announce("198.18.0.0/16".parse().unwrap(), NextHop(1));
    // Next hop 6 is not configured.
    for (third, hop) in [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)] {
        rib.announce(Prefix::containing(0xc612_0000 | third << 8, 24), NextHop(hop));
    }
    rib6.announce("2001:2::/48".parse().unwrap(), NextHop(1));
    engine(&plan, tables(&rib, &rib6))
}

#[test]
fn packets_of_a_blackhole_are_dropped_and_counted() {
    at_each_hook(|hook| {
        let mut plan = plan(0);
        plan.next_hops.push((NextHop(1), XdpNextHop::Blackhole));
        let (mut rib, mut rib6) = (Rib::<u32>::default(), Rib::<u128>::default());
        rib.announce(Prefix::default_route(), NextHop(1));
        rib6.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&plan, tables(&rib, &rib6));
        // Linux drops a packet with no hop left too, without an answer.
        for sent in [inet(), inet6(), with(inet(), 22, &[1])] {
            assert_eq!(run(&hook.program(&mut engine), &sent), Became::Dropped);
        }
        let counted = count(&engine);
        assert_eq!((counted.of(XdpReason::Blackhole), counted.all_passed(), counted.forwarded()), (3, 0, 0));
    });
}

#[test]
fn exceptions_are_passed_unchanged_and_counted() {
    at_each_hook(|hook| {
        let mut engine = exceptional_engine();
        // A test run makes no skb of a frame that ends before its headers do.
        let is_run = |reason| hook != Hook::Tcx || reason != XdpReason::TooShort;
        for (reason, sent) in exceptions().into_iter().filter(|(reason, _)| is_run(*reason)) {
            let before = count(&engine);
            let became = run(&hook.program(&mut engine), &sent);
            assert_eq!(became, Became::Passed(sent.clone()), "{reason}");
            let after = count(&engine);
            assert_eq!(since(&before, &after), [(reason, 1)], "{sent:02x?}");
            assert_eq!(after.forwarded(), before.forwarded());
        }
        for sent in [inet(), inet6()] {
            let before = count(&engine).forwarded();
            assert!(matches!(run(&hook.program(&mut engine), &sent), Became::Forwarded(_)));
            assert_eq!(count(&engine).forwarded(), before + 1);
        }
    });
}

/// The frame with bytes behind the packet, one more than fit into this MTU.
fn padded(mut frame: Vec<u8>, mtu: u16) -> Vec<u8> {
    frame.resize(14 + usize::from(mtu) + 1, 0);
    frame
}

/// The frame with a packet of this length.
fn of_length(mut frame: Vec<u8>, length: u16) -> Vec<u8> {
    frame.resize(14 + usize::from(length), 0);
    let is_inet = frame[12..14] == [0x08, 0x00];
    let (at, in_header) = if is_inet { (16, length) } else { (18, length - 40) };
    with(frame, at, &in_header.to_be_bytes())
}

#[test]
fn each_family_has_an_mtu_of_its_own() {
    at_each_hook(|hook| {
        let interface = Interface { mtu6: Some(1280), ..Interface::new(0, Mac(OWN)) };
        let mut adjacencies = Adjacencies::new();
        adjacencies.set(NextHop(1), Adjacency::Neighbor { interface: 0, mac: Mac(station(NextHop(1))) });
        let (mut rib, mut rib6) = (Rib::<u32>::default(), Rib::<u128>::default());
        rib.announce(Prefix::default_route(), NextHop(1));
        rib6.announce(Prefix::default_route(), NextHop(1));
        let tables = tables(&rib, &rib6);
        let view = View::new(ViewParts::new(vec![interface], adjacencies, tables.clone())).unwrap();
        let mut engine = engine(&XdpConfig::from_view(&view, &[XdpDevice::able(DEVICE)]), tables);
        for (frame, mtu) in [(inet(), 1500), (inet6(), 1280)] {
            let fits = run(&hook.program(&mut engine), &of_length(frame.clone(), mtu));
            assert!(matches!(fits, Became::Forwarded(_)), "{mtu}");
            let (before, too_long) = (count(&engine), of_length(frame.clone(), mtu + 1));
            assert_eq!(run(&hook.program(&mut engine), &too_long), Became::Passed(too_long));
            assert_eq!(since(&before, &count(&engine)), [(XdpReason::TooBig, 1)]);
            // Bytes behind the packet, with which the frame is longer than the link takes.
            let (before, padded) = (count(&engine), padded(frame, mtu));
            assert_eq!(run(&hook.program(&mut engine), &padded), Became::Passed(padded));
            assert_eq!(since(&before, &count(&engine)), [(XdpReason::Header, 1)]);
        }
    });
}

#[test]
fn an_interface_that_does_not_forward_passes_everything() {
    at_each_hook(|hook| {
        let mut plan = plan(1);
        plan.interfaces[0].inet = false;
        let (mut rib, mut rib6) = (Rib::<u32>::default(), Rib::<u128>::default());
        rib.announce(Prefix::default_route(), NextHop(1));
        rib6.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&plan, tables(&rib, &rib6));
        assert_eq!(run(&hook.program(&mut engine), &inet()), Became::Passed(inet()));
        assert!(matches!(run(&hook.program(&mut engine), &inet6()), Became::Forwarded(_)));
        assert_eq!(count(&engine).of(XdpReason::NotForwarding), 1);
    });
}

#[test]
fn an_engine_without_tables_passes_everything() {
    at_each_hook(|hook| {
        let mut engine = Engine::load().unwrap();
        assert_eq!(run(&hook.program(&mut engine), &inet()), Became::Passed(inet()));
    });
}

/// Each /24 with a host route takes 256 leaves of its own.
#[test]
fn a_table_that_does_not_fit_is_refused_by_name_and_a_smaller_one_accepted() {
    at_each_hook(|hook| {
        let mut rib = Rib::default();
        for n in 0..66_000u32 {
            rib.announce(Prefix::containing(0x2000_0000 + (n << 8), 32), NextHop(1));
        }
        let empty = Rib::default();
        let mut engine = Engine::load().unwrap();
        let refused = engine.publish(&plan(1), vec![tables(&rib, &empty)]).unwrap_err();
        assert!(matches!(refused, EngineError::TooLarge { .. }), "{refused}");
        assert!(refused.to_string().contains("dir18's leaves"), "{refused}");
        let mut small = Rib::default();
        small.announce(Prefix::default_route(), NextHop(1));
        engine.publish(&plan(1), vec![tables(&small, &empty)]).unwrap();
        assert!(matches!(run(&hook.program(&mut engine), &inet()), Became::Forwarded(_)));
    });
}

#[test]
fn a_table_of_another_algorithm_is_refused_by_name() {
    at_each_hook(|_| {
        let (mut rib, rib6) = (Rib::<u32>::default(), Rib::<u128>::default());
        rib.announce(Prefix::default_route(), NextHop(1));
        let radix = registry::find::<u32>("radix").unwrap().compile(&rib).unwrap().fib();
        let btree6 = registry::find::<u128>("btree6").unwrap().compile(&rib6).unwrap().fib();
        let refused =
            Engine::load().unwrap().publish(&plan(1), vec![TableReaders::fixed(radix, btree6)]).unwrap_err();
        assert!(refused.to_string().contains("by dir18 only"), "{refused}");
    });
}

/// The buffer of a test run has a page.
#[test]
fn frames_in_several_buffers_go_to_devices_that_take_them() {
    if !may_load_programs() {
        return;
    }
    let large = XdpNextHop::Neighbor {
        interface: 0,
        ifindex: DEVICE,
        vlan: 0,
        source: Mac(OWN),
        destination: Mac(station(NextHop(1))),
        mtu: 9000,
        mtu6: 9000,
    };
    let (mut rib, mut rib6) = (Rib::<u32>::default(), Rib::<u128>::default());
    rib.announce(Prefix::default_route(), NextHop(1));
    rib6.announce(Prefix::default_route(), NextHop(1));
    let limited = XdpNextHop::NoMultiBuffer(Box::new(large.clone()));
    for (neighbor, takes_large) in [(large, true), (limited, false)] {
        let config = XdpConfig { next_hops: vec![(NextHop(1), neighbor)], ..plan(0) };
        let mut engine = engine(&config, tables(&rib, &rib6));
        for (frame, length) in
            [inet(), inet6()].into_iter().flat_map(|frame| [(frame.clone(), 500), (frame, 8900)])
        {
            let (before, sent) = (count(&engine), of_length(frame, length));
            let became = run(&Hook::MultiBufferXdp.program(&mut engine), &sent);
            if takes_large || length == 500 {
                let expected = forwarded(&sent, station(NextHop(1)), OWN);
                assert_eq!(became, Became::Forwarded(expected), "{length}");
                let sent = count(&engine).interfaces[0].sent.bytes - before.interfaces[0].sent.bytes;
                assert_eq!(sent, 14 + u64::from(length));
            } else {
                assert_eq!(became, Became::Passed(sent));
                assert_eq!(since(&before, &count(&engine)), [(XdpReason::NoMultiBuffer, 1)]);
            }
        }
    }
}
