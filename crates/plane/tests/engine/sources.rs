//! Source checks: packets whose source cannot be on their ingress interface are dropped, or left to the kernel where only
//! it uses the way back.

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::engine::{XdpConfig, XdpDevice, XdpReason};
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::view::{View, ViewParts};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::group::{Groups, Member};
use fullview_table::{Address, NextHop, NextHops, Rib, Target};

use super::dut::{Became, DEVICE, Hook, at_each_hook, count, engine, run, since, station, tables};
use super::frames::{OWN, frame};

/// Next hop 1 leaves by interface 0, 2 by interface 1, whose link is down, 3 has no neighbour yet on interface 0, 4 is
/// this host or a way that only the kernel uses, 5 a black hole, 6 all stations of a network; the groups are of 1 and 2,
/// and of 2 and 4.
fn view(check: SourceCheck) -> (View, [NextHop; 2]) {
    let (mut next_hops, mut groups) = (NextHops::default(), Groups::default());
    (0..6).for_each(|number| _ = next_hops.intern(Target::Number(number)).unwrap());
    let both = [[1, 2], [2, 4]].map(|members| {
        let members = members.map(|hop| Member { next_hop: NextHop(hop), weight: 1 });
        groups.acquire(&mut next_hops, &members).unwrap()
    });
    groups.publish();
    let mut adjacencies = Adjacencies::new();
    let neighbor = |interface, hop| Adjacency::Neighbor { interface, mac: Mac(station(NextHop(hop))) };
    let all = [
        neighbor(0, 1),
        neighbor(1, 2),
        Adjacency::Glean { interface: 0 },
        Adjacency::Local,
        Adjacency::Blackhole,
        Adjacency::Broadcast,
    ];
    (1..).zip(all).for_each(|(hop, to)| adjacencies.set(NextHop(hop), to));
    let own = Interface { source_check: check, ..Interface::new(0, Mac(OWN)) };
    let other = Interface { vlan: Some(7), up: false, ..own.clone() };
    let table = tables(&Rib::default(), &Rib::default());
    let parts = ViewParts::new(vec![own, other], adjacencies, table);
    (View::new(ViewParts { groups: groups.shared_reader(), ..parts }).unwrap(), both)
}

/// Why packets from the network of each next hop and from an unknown network are not forwarded to a neighbour on interface
/// 0.
fn objections<A: Address>(
    hook: Hook,
    check: SourceCheck,
    sources: [A; 9],
    to: A,
    add: impl Fn(&mut Ribs, A, NextHop),
) -> [Option<XdpReason>; 9] {
    let (view, groups) = view(check);
    let mut ribs = Ribs::default();
    let hops = (1..=6).map(NextHop).chain(groups);
    sources.iter().zip(hops).for_each(|(source, hop)| add(&mut ribs, *source, hop));
    add(&mut ribs, to, NextHop(1));
    let mut engine =
        engine(&XdpConfig::from_view(&view, &[XdpDevice::able(DEVICE)]), tables(&ribs.0, &ribs.1));
    sources.map(|source| {
        let (before, sent) = (count(&engine), frame(source, to));
        let became = run(&hook.program(&mut engine), &sent);
        let reasons = since(&before, &count(&engine));
        match became {
            Became::Forwarded(_) => assert_eq!(reasons, []),
            Became::Dropped => assert_eq!(reasons, [(XdpReason::SourceCheck, 1)]),
            Became::Passed(frame) => {
                assert_eq!((frame, &reasons[..]), (sent, &[(XdpReason::WayBack, 1)][..]))
            }
        }
        reasons.first().map(|(reason, _)| *reason)
    })
}

#[derive(Default)]
struct Ribs(Rib<u32>, Rib<u128>);

fn both(hook: Hook, check: SourceCheck) -> [[Option<XdpReason>; 9]; 2] {
    use fullview_table::Prefix;
    let inet = [1u32, 2, 3, 4, 5, 6, 7, 8, 9].map(|net| 0x0a00_0001 | net << 8);
    let inet6 = [1u128, 2, 3, 4, 5, 6, 7, 8, 9].map(|net| 0x2001_0db8 << 96 | net << 64 | 1);
    [
        objections(hook, check, inet, 0xc612_0001, |ribs, at, hop| {
            ribs.0.announce(Prefix::containing(at, 24), hop);
        }),
        objections(hook, check, inet6, 0x2001_0002 << 96, |ribs, at, hop| {
            ribs.1.announce(Prefix::containing(at, 64), hop);
        }),
    ]
}

#[test]
fn sources_are_checked_as_the_loop_in_user_space_checks_them() {
    at_each_hook(|hook| {
        let (drop, kernel) = (Some(XdpReason::SourceCheck), Some(XdpReason::WayBack));
        for family in both(hook, SourceCheck::Off) {
            assert_eq!(family, [None; 9]);
        }
        for family in both(hook, SourceCheck::Loose) {
            assert_eq!(family, [None, None, None, kernel, drop, drop, None, None, drop]);
        }
        for family in both(hook, SourceCheck::Strict) {
            assert_eq!(family, [None, drop, None, kernel, drop, drop, None, kernel, drop]);
        }
    });
}

/// The kernel checks packets for this host itself. It also judges packets to all stations of a network.
#[test]
fn packets_for_this_host_are_passed_whatever_their_source() {
    at_each_hook(|hook| {
        let (view, _) = view(SourceCheck::Strict);
        let mut rib = Rib::default();
        rib.announce("10.0.4.0/24".parse().unwrap(), NextHop(4));
        rib.announce("10.0.4.255/32".parse().unwrap(), NextHop(6));
        let mut engine =
            engine(&XdpConfig::from_view(&view, &[XdpDevice::able(DEVICE)]), tables(&rib, &Rib::default()));
        for (to, reason) in [(0x0a00_0401, XdpReason::Local), (0x0a00_04ff, XdpReason::Broadcast)] {
            let (before, sent) = (count(&engine), frame(0x0b00_0001u32, to));
            assert_eq!(run(&hook.program(&mut engine), &sent), Became::Passed(sent.clone()));
            assert_eq!(since(&before, &count(&engine)), [(reason, 1)]);
        }
    });
}
