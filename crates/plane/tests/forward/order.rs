//! Several egress ports: every packet leaves once, packets of one port keep their order, and each is counted at its interface.

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::verdict::{Reason, Verdict};
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_table::fib::registry;
use fullview_table::{NextHop, Rib};
use proptest::prelude::*;
use proptest::sample::select;

use crate::frames::*;

/// Port 0 receives the packets; interfaces 1 to 5 are the ports of these numbers, interface 6 a VLAN of port 1.
const PORTS: u16 = 6;
const VLAN: u16 = 100;
const TAGGED: u16 = 6;
/// A next hop without adjacency.
const BLACKHOLE: u16 = 7;

/// The destination of a packet.
#[derive(Clone, Copy, Debug)]
struct Way {
    hop: u16,
    inet6: bool,
    ttl: u8,
}

impl Way {
    fn port(self) -> usize {
        match self.hop {
            TAGGED => 1,
            BLACKHOLE => 0,
            hop => usize::from(hop),
        }
    }

    fn frame(self) -> Vec<u8> {
        match self.inet6 {
            true => inet6(SRC6, &format!("2001:2:0:{}::7", self.hop), self.ttl),
            false => inet(SRC, &format!("198.18.{}.7", self.hop), self.ttl),
        }
    }

    /// Its verdict, if it is rejected even with enough room.
    fn rejection(self) -> Option<Reason> {
        match (self.hop, self.ttl) {
            (BLACKHOLE, _) => Some(Reason::Blackhole),
            (_, 0..=1) if self.inet6 => Some(Reason::HopLimitExpired),
            (_, 0..=1) => Some(Reason::TtlExpired),
            _ => None,
        }
    }

    /// The length of the sent frame in bytes.
    fn sent_len(self) -> u64 {
        (self.frame().len() + if self.hop == TAGGED { 4 } else { 0 }) as u64
    }
}

/// A router with tables that prefetch their memory.
fn parts() -> ViewParts {
    let (mut inet, mut inet6) = (Rib::<u32>::default(), Rib::<u128>::default());
    let mut adjacencies = Adjacencies::new();
    for hop in 1..=BLACKHOLE {
        inet.announce(format!("198.18.{hop}.0/24").parse().unwrap(), NextHop(hop));
        inet6.announce(format!("2001:2:0:{hop}::/64").parse().unwrap(), NextHop(hop));
        adjacencies.set(NextHop(hop), Adjacency::Neighbor { interface: hop, mac: neighbor(hop) });
    }
    adjacencies.set(NextHop(BLACKHOLE), Adjacency::Blackhole);
    let mut interfaces: Vec<_> = (0..PORTS).map(|port| Interface::new(port, OURS)).collect();
    interfaces.push(Interface { vlan: Some(VLAN), ..Interface::new(1, OURS) });
    let inet = registry::find("dir18").unwrap().compile(&inet).unwrap().fib();
    let inet6 = registry::find("btree6").unwrap().compile(&inet6).unwrap().fib();
    ViewParts::new(interfaces, adjacencies, TableReaders::fixed(inet, inet6))
}

/// Positions in the burst.
type Places = Vec<usize>;

/// The model: sent packets by port, rejected packets, and counters, computed packet by packet.
fn expected(ways: &[Way], room: &[usize]) -> (Vec<Places>, Vec<(usize, Reason)>, Counters) {
    let mut counters = Counters::new(usize::from(PORTS) + 1);
    let (mut out, mut back) = (vec![Places::new(); PORTS.into()], Vec::new());
    for (place, way) in ways.iter().enumerate() {
        let leaving = &mut out[way.port()];
        counters.interfaces[0].received.count(way.frame().len());
        let full = || (leaving.len() == room[way.port()]).then_some(Reason::EgressFull);
        let Some(reason) = way.rejection().or_else(full) else {
            leaving.push(place);
            let sent = &mut counters.interfaces[usize::from(way.hop)].sent;
            (sent.packets, sent.bytes) = (sent.packets + 1, sent.bytes + way.sent_len());
            continue;
        };
        back.push((place, reason));
        counters.drops[reason.index()] += 1;
        let interface = if reason == Reason::EgressFull { way.hop } else { 0 };
        counters.interface_drops[usize::from(interface)][reason.index()] += 1;
    }
    (out, back, counters)
}

/// The same by the loop, with this room at each port.
fn forwarded_by_the_loop(ways: &[Way], room: &[usize]) -> (Vec<Places>, Vec<(usize, Reason)>, Counters) {
    let (mut arena, mut filler) = (Arena::new(ways.len()), Arena::new(BURST * usize::from(PORTS)));
    let (mut burst, mut rejected, mut filler) = (Burst::new(), Burst::new(), filler.packets());
    for (packet, way) in arena.packets().zip(ways) {
        assert!(packet.set_frame(&way.frame()));
        packet.port = 0;
        burst.push(packet).unwrap();
    }
    let mut out: Vec<Burst<'_>> = (0..PORTS).map(|_| Burst::new()).collect();
    for (burst, room) in out.iter_mut().zip(room) {
        burst.fill(filler.by_ref().take(BURST - room));
    }
    let order: Vec<*const u8> = burst.iter().map(|packet| packet.frame().as_ptr()).collect();
    let place = |frame: &[u8]| order.iter().position(|at| *at == frame.as_ptr()).unwrap();
    let mut forwarder = Forwarder::new(ViewReader::fixed(View::new(parts()).unwrap()));
    forwarder.process(&mut burst, &mut *out, &mut rejected);
    assert!(burst.is_empty(), "the burst is empty");
    let out = out.iter().zip(room).map(|(out, room)| &out[BURST - room..]);
    let out = out.map(|out| out.iter().map(|packet| place(packet.frame())).collect()).collect();
    let back = rejected.iter().map(|packet| match packet.verdict {
        Verdict::Drop(reason) => (place(packet.frame()), reason),
        other => unreachable!("{other}"),
    });
    (out, back.collect(), forwarder.counters().clone())
}

/// Packets in runs with the same destination, up to this length.
fn bursts(longest_run: usize) -> impl Strategy<Value = Vec<Way>> {
    let way = (1..=BLACKHOLE, any::<bool>(), select(vec![1, 2, 64, 64, 64, 64, 64, 64]));
    let way = way.prop_map(|(hop, inet6, ttl)| Way { hop, inet6, ttl });
    let runs = prop::collection::vec((way, 1..=longest_run), 1..=BURST);
    let packets = |runs: Vec<(Way, usize)>| {
        let packets = runs.into_iter().flat_map(|(way, count)| std::iter::repeat_n(way, count));
        packets.take(BURST).collect()
    };
    runs.prop_map(packets)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_packet_leaves_once_in_the_order_of_its_way_and_is_counted_there(
        ways in prop_oneof![bursts(1), bursts(4), bursts(100)],
        room in prop::collection::vec(select(vec![0, 1, 10, BURST, BURST, BURST]), usize::from(PORTS)),
    ) {
        prop_assert_eq!(forwarded_by_the_loop(&ways, &room), expected(&ways, &room));
    }
}
