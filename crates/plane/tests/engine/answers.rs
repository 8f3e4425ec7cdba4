//! The program finds the same next hops as the RIB: at the edges of all prefixes, at random, for groups and for VLANs.

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::engine::{XdpConfig, XdpDevice, XdpNextHop};
use fullview_plane::flow_hash::{FlowFields, FlowHash};
use fullview_plane::interface::Interface;
use fullview_plane::view::{Policy, View, ViewParts};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::registry::Registered;
use fullview_table::group::{Groups, Member, flow_hash};
use fullview_table::{Address, NextHop, NextHops, Prefix, Rib, Target, probe};

use super::dut::{Became, DEVICE, Program, at_each_hook, engine, neighbor, plan, run, station, tables};
use super::frames::{OWN, forwarded, frame, tagged};

/// Nested and adjacent prefixes of all lengths.
fn table<A: Registered>(routes: usize, hops: u16) -> Rib<A> {
    let mut rib = Rib::default();
    for (n, draw) in probe::uniform::<u128>(5).take(routes).enumerate() {
        let near = if n % 3 == 0 { 0 } else { A::BITS / 3 };
        let addr = A::from(draw >> (128 - u32::from(A::BITS))).unwrap() & !A::mask(near);
        let addr = addr | (A::from(0x2a).unwrap() << usize::from(A::BITS - 8) & A::mask(near));
        let len = (draw as u8) % (A::BITS + 1);
        rib.announce(Prefix::containing(addr, len), NextHop((draw >> 16) as u16 % hops + 1));
    }
    rib
}

/// Whether the program looks the address up, instead of leaving it to the kernel.
fn is_plain<A: Address>(addr: A) -> bool {
    let top = addr.bits(0, 16);
    match A::BITS {
        32 => !matches!(top >> 8, 0 | 127 | 224..) && top != 0xa9fe,
        _ => top >> 8 != 0 && top < 0xfe00,
    }
}

fn answers<A: Registered>(rib: &Rib<A>, source: A, program: &Program<'_>) {
    let random = probe::uniform::<A>(1).take(2_000).chain(probe::in_prefix(rib, 2).take(4_000));
    let mut answered = 0;
    for addr in probe::edges(rib).chain(random).filter(|addr| is_plain(*addr)) {
        let sent = frame(source, addr);
        let wanted = match rib.longest_match(addr) {
            Some(route) => Became::Forwarded(forwarded(&sent, station(route.next_hop), OWN)),
            None => Became::Passed(sent.clone()),
        };
        assert_eq!(run(program, &sent), wanted, "{}", addr.to_ip());
        answered += 1;
    }
    assert!(answered > 8_000, "{answered} only");
}

#[test]
fn next_hops_equal_the_ribs_at_every_edge_and_at_random() {
    at_each_hook(|hook| {
        // With few next hops dir18's leaves are one byte wide, with many two.
        for hops in [40, 1_000] {
            let (inet, inet6) = (table::<u32>(3_000, hops), table::<u128>(3_000, hops));
            let mut engine = engine(&plan(hops), tables(&inet, &inet6));
            let program = &hook.program(&mut engine);
            answers(&inet, 0xc612_0001, program);
            answers(&inet6, 0x2001_0002 << 96, program);
        }
    });
}

/// A default route for both families.
fn all_to(hop: NextHop) -> (Rib<u32>, Rib<u128>) {
    let (mut inet, mut inet6) = (Rib::default(), Rib::default());
    inet.announce(Prefix::default_route(), hop);
    inet6.announce(Prefix::default_route(), hop);
    (inet, inet6)
}

/// Sets the ports of an untagged frame.
fn with_ports(mut frame: Vec<u8>, source: u16) -> Vec<u8> {
    let at = if frame[12] == 0x08 { 34 } else { 54 };
    frame[at..at + 2].copy_from_slice(&source.to_be_bytes());
    frame
}

/// Checks packets to a group, in whose hash `rest` is what these fields have besides the addresses: of UDP with this port, of its
/// fragments, and of UDP over IPv6 without and with a label.
fn group_picks(fields: FlowFields, rest: impl Fn(u16) -> [(u8, (u16, u16)); 4]) {
    at_each_hook(|hook| {
        let (mut next_hops, mut groups) = (NextHops::default(), Groups::default());
        for number in 0..5 {
            next_hops.intern(Target::Number(number)).unwrap();
        }
        let members: Vec<_> = [1, 2, 5].map(|hop| Member { next_hop: NextHop(hop), weight: hop }).into();
        let group = groups.acquire(&mut next_hops, &members).unwrap();
        groups.publish();
        let mut adjacencies = Adjacencies::new();
        for hop in [1, 2, 5].map(NextHop) {
            adjacencies.set(hop, Adjacency::Neighbor { interface: 0, mac: Mac(station(hop)) });
        }
        let (inet, inet6) = all_to(group);
        let parts = ViewParts {
            interfaces: vec![Interface::new(0, Mac(OWN))],
            adjacencies,
            tables: vec![tables(&inet, &inet6)],
            groups: groups.shared_reader(),
            policy: Policy {
                flow_hash: FlowHash { seed: 99, inet: fields, inet6: fields },
                ..Policy::default()
            },
        };
        let view = View::new(parts).unwrap();
        let mut engine =
            engine(&XdpConfig::from_view(&view, &[XdpDevice::able(DEVICE)]), tables(&inet, &inet6));
        let program = &hook.program(&mut engine);
        let mut reader = groups.reader();
        let view = reader.groups();
        let check = |sent: Vec<u8>, hash: u32| {
            let wanted = forwarded(&sent, station(view.select(group, hash)), OWN);
            assert_eq!(run(program, &sent), Became::Forwarded(wanted));
        };
        for n in 0..200u16 {
            let [udp, of_fragment, udp6, of_labelled] = rest(n);
            let (source, destination) = (0xc612_0000 + u32::from(n % 7), 0xc613_0000 + u32::from(n % 3));
            let sent = with_ports(frame(source, destination), n);
            check(sent.clone(), flow_hash(99, source.into(), destination.into(), udp.0, udp.1));
            let mut fragment = sent;
            fragment[20] = 0x20;
            let mut ip = fullview_plane::wire::ipv4::Ipv4Packet::new_unchecked(&mut fragment[14..]);
            ip.set_checksum(0);
            ip.fill_checksum();
            check(fragment, flow_hash(99, source.into(), destination.into(), of_fragment.0, of_fragment.1));
            let (source, destination) = (0x2001_0002 << 96 | u128::from(n % 7), 0x2001_0003 << 96);
            let sent = with_ports(frame(source, destination), n);
            check(sent.clone(), flow_hash(99, source, destination, udp6.0, udp6.1));
            let mut labelled = sent;
            labelled[15..18].copy_from_slice(&[3, 1, n as u8]);
            check(labelled, flow_hash(99, source, destination, of_labelled.0, of_labelled.1));
        }
    });
}

#[test]
fn groups_pick_the_member_that_the_loop_in_user_space_picks() {
    let (none, label) = ((0, (0, 0)), |n: u16| (3, 0x100 | n & 0xff));
    group_picks(FlowFields::Layer3, |n| [none, none, (17, (0, 0)), (17, label(n))]);
    group_picks(FlowFields::Layer4, |n| [(17, (n, 53)), none, (17, (n, 53)), (17, (n, 53))]);
    group_picks(FlowFields::LabelOrLayer4, |n| [(17, (n, 53)), none, (17, (n, 53)), (0, label(n))]);
}

#[test]
fn tags_are_removed_and_inserted() {
    at_each_hook(|hook| {
        let mut plan = plan(2);
        let tagged_port = fullview_plane::engine::XdpInterface { vlan: 7, ..plan.interfaces[0] };
        plan.interfaces.push(tagged_port);
        let XdpNextHop::Neighbor { interface, ifindex, source, destination, mtu, mtu6, .. } =
            neighbor(NextHop(2))
        else {
            panic!("a neighbour")
        };
        plan.next_hops[1].1 =
            XdpNextHop::Neighbor { interface, ifindex, vlan: 300, source, destination, mtu, mtu6 };
        let (mut inet, mut inet6) = all_to(NextHop(1));
        inet.announce("198.18.0.0/16".parse().unwrap(), NextHop(2));
        inet6.announce("2001:2::/48".parse().unwrap(), NextHop(2));
        let mut engine = engine(&plan, tables(&inet, &inet6));
        let program = &hook.program(&mut engine);
        let plain = [frame(0xc000_0201u32, 0xc613_0001), frame(1u128 << 125, 3 << 124)];
        let to_vlan = [frame(0xc000_0201u32, 0xc612_0001), frame(1u128 << 125, 0x2001_0002 << 96)];
        for (sent, hop) in plain.iter().map(|sent| (sent, 1)).chain(to_vlan.iter().map(|sent| (sent, 2))) {
            let mut wanted = forwarded(sent, station(NextHop(hop)), OWN);
            if hop == 2 {
                wanted = hook.shows(&wanted, [0x81, 0, 1, 44]); // VLAN 300, priority 0
            }
            for sent in [sent.clone(), tagged(sent, 7)] {
                assert_eq!(run(program, &sent), Became::Forwarded(wanted.clone()));
            }
            let stray = tagged(sent, 8);
            assert_eq!(run(program, &stray), Became::Passed(stray));
        }
    });
}

#[test]
fn frames_are_sent_to_a_device_that_the_map_does_not_have() {
    at_each_hook(|hook| {
        let mut plan = plan(1);
        let XdpNextHop::Neighbor { interface, vlan, source, destination, mtu, mtu6, .. } =
            neighbor(NextHop(2))
        else {
            panic!("a neighbour")
        };
        let ifindex = i32::MAX as u32;
        plan.next_hops.push((
            NextHop(2),
            XdpNextHop::Neighbor { interface, ifindex, vlan, source, destination, mtu, mtu6 },
        ));
        let mut rib = Rib::default();
        rib.announce("198.18.0.0/16".parse().unwrap(), NextHop(1));
        rib.announce("198.19.0.0/16".parse().unwrap(), NextHop(2));
        let mut engine = engine(&plan, tables(&rib, &Rib::default()));
        for (to, hop) in [(0xc612_0001, NextHop(1)), (0xc613_0001, NextHop(2))] {
            let sent = frame(0xc000_0201_u32, to);
            let wanted = Became::Forwarded(forwarded(&sent, station(hop), OWN));
            assert_eq!(run(&hook.program(&mut engine), &sent), wanted);
        }
    });
}
