//! Any frames through any router: interfaces, kinds of next hops and checks are drawn from the input too. No packet is
//! lost, what is rejected is as it came, and what is forwarded leaves by the neighbour that its table names.
#![no_main]

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::{Interface, InterfaceAddress, SourceCheck};
use fullview_plane::verdict::Verdict;
use fullview_plane::view::{Policy, TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::{Frame, Mac};
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::{Address, NextHop, Rib};
use libfuzzer_sys::fuzz_target;

const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// Port, VLAN, MTU, whether it is up, which families it forwards, how it checks sources, whether it reports
/// redirect candidates, whether it looks up in the second table.
type Link = (u8, Option<u8>, u16, bool, (bool, bool), u8, bool, bool);

/// Links, routes, and frames, each with its port and whether its destination is set to the router's MAC.
type Input = (Vec<Link>, Routes, Vec<(u8, bool, Vec<u8>)>);

/// What each half of the address space leads to, in the first table and the second one; whether martians are dropped.
type Routes = ([u8; 4], bool);

fn interface((port, vlan, mtu, up, forwards, check, redirects, second_table): &Link) -> Interface {
    let checks = [SourceCheck::Off, SourceCheck::Loose, SourceCheck::Strict];
    Interface {
        vlan: vlan.map(|vlan| u16::from(vlan) + 1),
        mtu: u32::from(*mtu).max(1),
        up: *up,
        table: (*second_table).into(),
        forwards_inet: forwards.0,
        forwards_inet6: forwards.1,
        source_check: checks[usize::from(*check) % 3],
        redirects: *redirects,
        addresses: vec![InterfaceAddress { ip: [10, 0, 0, 1].into(), len: 0 }],
        ..Interface::new((port % 4).into(), OURS)
    }
}

fn adjacency(choice: u8, links: u16) -> Option<Adjacency> {
    let interface = u16::from(choice >> 3) % links;
    match choice % 8 {
        0 => Some(Adjacency::Local),
        1 => Some(Adjacency::Broadcast),
        2 => Some(Adjacency::Blackhole),
        3 => Some(Adjacency::Prohibit),
        4 => Some(Adjacency::Glean { interface }),
        5 => None,
        _ => Some(Adjacency::Neighbor { interface, mac: Mac([4, 0, 0, 0, 0, interface as u8]) }),
    }
}

/// The lower half of all addresses to one next hop, the upper half to the one after it.
fn halves<A: Address>(first: u16) -> Rib<A> {
    let mut rib = Rib::default();
    let texts = if A::BITS == 32 { ["0.0.0.0/1", "128.0.0.0/1"] } else { ["::/1", "8000::/1"] };
    for (hop, text) in (first..).zip(texts) {
        rib.announce(text.parse().expect("half of a family"), NextHop(hop));
    }
    rib
}

fn table(first: u16) -> TableReaders {
    let inet = Linear.compile(&halves::<u32>(first)).expect("two routes fit").fib();
    TableReaders::fixed(inet, Linear.compile(&halves::<u128>(first)).expect("two routes fit").fib())
}

/// `None` if two links take the same frames.
fn view(links: &[Link], (next_hops, drops_martians): Routes) -> Option<View> {
    let interfaces: Vec<_> = links.iter().map(interface).collect();
    let mut adjacencies = Adjacencies::new();
    for (hop, choice) in (1..).zip(next_hops) {
        if let Some(adjacency) = adjacency(choice, interfaces.len() as u16) {
            adjacencies.set(NextHop(hop), adjacency);
        }
    }
    let mut parts = ViewParts::new(interfaces, adjacencies, table(1));
    parts.tables.push(table(3));
    parts.policy = Policy { drops_martians, ..Policy::default() };
    View::new(parts).ok()
}

fn check_sent(view: &View, interface: u16, port: u16, frame: &[u8]) {
    let frame = Frame::new_checked(frame).expect("a forwarded frame is whole");
    let out = view.interface(interface).expect("it leaves by an interface");
    assert!(out.up && out.port == port && frame.source() == out.mac);
    assert_eq!(frame.destination(), Mac([4, 0, 0, 0, 0, interface as u8]));
    assert_eq!(frame.vlan(), out.vlan);
}

fuzz_target!(|input: Input| {
    let (links, routes, frames) = input;
    if links.is_empty() || links.len() > 200 || frames.len() > BURST {
        return;
    }
    let Some(view) = view(&links, routes) else { return };
    let mut arena = Arena::new(frames.len());
    let (mut burst, mut out, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    let mut came = Vec::new();
    for (packet, (port, to_us, frame)) in arena.packets().zip(&frames) {
        packet.set_frame(frame);
        packet.port = u16::from(*port) % 5;
        if *to_us && packet.frame_len() >= 6 {
            packet.frame_mut()[..6].copy_from_slice(&OURS.0);
        }
        came.push((packet.frame().as_ptr(), packet.port, packet.frame().to_vec()));
        burst.fill([packet].into_iter());
    }
    let mut forwarder = Forwarder::new(ViewReader::fixed(view));
    forwarder.process(&mut burst, &mut out, &mut rejected);
    assert_eq!((burst.len(), out.len() + rejected.len()), (0, came.len()), "every packet comes back once");
    for packet in out.iter() {
        check_sent(forwarder.view(), packet.interface, packet.port, packet.frame());
    }
    for packet in rejected.iter() {
        assert_ne!(packet.verdict, Verdict::Forward);
        let before = came.iter().find(|(at, ..)| *at == packet.frame().as_ptr()).expect("one of them");
        assert_eq!((packet.port, packet.frame()), (before.1, &before.2[..]), "as it came");
    }
});
