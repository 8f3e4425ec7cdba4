//! Packets of a VRF's interface use the VRF's table and no other.

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::engine::{Engine, EngineError, XdpConfig, XdpDevice, XdpInterface};
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::view::{TableReaders, View, ViewParts};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::registry::Registered;
use fullview_table::{NextHop, Prefix, Rib, probe};

use super::dut::{Became, DEVICE, Program, at_each_hook, plan, run, station, tables};
use super::frames::{OWN, forwarded, frame, tagged};

const HOPS: u16 = 300;

/// VLAN `n` looks up in table `n`, untagged frames in the main one.
fn vlans(count: u16) -> XdpConfig {
    let mut plan = plan(HOPS);
    let main = plan.interfaces[0];
    plan.interfaces.extend((1..=count).map(|n| XdpInterface { number: n, vlan: n, table: n, ..main }));
    plan
}

/// Different routes of all lengths for each table; tables with few routes have leaves of one byte, others of two.
fn rib<A: Registered>(table: u16, routes: usize) -> Rib<A> {
    let hops = if table.is_multiple_of(2) { 30 } else { HOPS };
    let mut rib = Rib::default();
    for draw in probe::uniform::<u128>(u64::from(table) + 7).take(routes) {
        let addr = A::from(draw >> (128 - u32::from(A::BITS))).unwrap();
        let addr =
            addr & !A::mask(8) | A::from(0x2a + u32::from(table % 2)).unwrap() << usize::from(A::BITS - 8);
        let len = 9 + (draw as u8) % (A::BITS - 8);
        rib.announce(Prefix::containing(addr, len), NextHop((draw >> 16) as u16 % hops + 1));
    }
    rib
}

struct Ribs(Rib<u32>, Rib<u128>);

fn ribs(routes: &[usize]) -> Vec<Ribs> {
    let one = |(table, routes): (u16, &usize)| Ribs(rib(table, *routes), rib(table, *routes));
    (0..).zip(routes).map(one).collect()
}

fn readers(ribs: &[Ribs]) -> Vec<TableReaders> {
    ribs.iter().map(|Ribs(inet, inet6)| tables(inet, inet6)).collect()
}

fn check<A: Registered>(program: &Program<'_>, table: u16, rib: &Rib<A>, others: &[&Rib<A>], source: A) {
    let own = probe::in_prefix(rib, 3).take(if rib.is_empty() { 0 } else { 150 });
    let others = others.iter().filter(|rib| !rib.is_empty());
    for addr in own.chain(others.flat_map(|rib| probe::in_prefix(rib, 4).take(30))) {
        let plain = frame(source, addr);
        let sent = if table == 0 { plain } else { tagged(&plain, table) };
        let went = match run(program, &sent) {
            Became::Forwarded(out) => Some(NextHop(u16::from_be_bytes([out[4], out[5]]))),
            Became::Passed(out) => (out != sent).then(|| panic!("it was changed")),
            Became::Dropped => panic!("it was dropped"),
        };
        let wanted = rib.longest_match(addr).map(|route| route.next_hop);
        assert_eq!(went, wanted, "{} in table {table}", addr.to_ip());
    }
}

fn check_all(program: &Program<'_>, ribs: &[Ribs]) {
    let inet: Vec<_> = ribs.iter().map(|ribs| &ribs.0).collect();
    let inet6: Vec<_> = ribs.iter().map(|ribs| &ribs.1).collect();
    for (table, Ribs(own, own6)) in (0..).zip(ribs) {
        check(program, table, own, &inet, 0xc612_0001);
        check(program, table, own6, &inet6, 0x2001_0002 << 96);
    }
}

#[test]
fn each_vrf_uses_its_own_table() {
    at_each_hook(|hook| {
        let ribs = ribs(&[2_000, 1_500, 1_500, 0, 1]);
        let mut engine = Engine::with_room(4).unwrap();
        engine.publish(&vlans(4), readers(&ribs)).unwrap();
        check_all(&hook.program(&mut engine), &ribs);
    });
}

/// The ranges of tables in shared arrays move, whichever generation is written.
#[test]
fn vrfs_are_added_grow_and_are_removed() {
    at_each_hook(|hook| {
        let mut engine = Engine::with_room(3).unwrap();
        let states: [&[usize]; 8] = [
            &[100],
            &[100, 3_000],
            &[6_000, 10, 2_000],
            &[6_000, 4_000, 2_000, 50],
            &[10, 0, 2_500, 3_000],
            &[8_000],
            &[50, 9_000, 1],
            &[50, 0, 0],
        ];
        for routes in states {
            let ribs = ribs(routes);
            engine.publish(&vlans(routes.len() as u16 - 1), readers(&ribs)).unwrap();
            check_all(&hook.program(&mut engine), &ribs);
        }
    });
}

#[test]
fn sources_are_looked_up_in_the_vrfs_table() {
    at_each_hook(|hook| {
        let mut plan = vlans(1);
        plan.interfaces[1].source_check = SourceCheck::Loose;
        let (source, to) = (0x0a00_0001u32, 0xc612_0001);
        let with = |routes: &[u32]| {
            let mut rib = Rib::default();
            routes.iter().for_each(|addr| _ = rib.announce(Prefix::containing(*addr, 24), NextHop(1)));
            rib
        };
        let became = |main: &[u32], vrf: &[u32]| {
            let mut engine = Engine::with_room(1).unwrap();
            let empty = Rib::default();
            engine.publish(&plan, vec![tables(&with(main), &empty), tables(&with(vrf), &empty)]).unwrap();
            run(&hook.program(&mut engine), &tagged(&frame(source, to), 1))
        };
        assert!(matches!(became(&[], &[source, to]), Became::Forwarded(_)));
        assert_eq!(became(&[source, to], &[to]), Became::Dropped);
    });
}

#[test]
fn a_views_vrf_is_looked_up_in_its_own_table() {
    at_each_hook(|hook| {
        let empty = Rib::<u128>::default();
        let all_to = |hop| {
            let mut rib = Rib::default();
            rib.announce(Prefix::default_route(), NextHop(hop));
            tables(&rib, &empty)
        };
        let mut adjacencies = Adjacencies::new();
        for hop in [1, 2].map(NextHop) {
            adjacencies.set(hop, Adjacency::Neighbor { interface: 0, mac: Mac(station(hop)) });
        }
        let main = Interface::new(0, Mac(OWN));
        let vrf = Interface { vlan: Some(3), table: 1, ..main.clone() };
        let parts = ViewParts::new(vec![main, vrf], adjacencies, all_to(1));
        let view = View::new(ViewParts { tables: vec![all_to(1), all_to(2)], ..parts }).unwrap();
        let mut engine = Engine::with_room(1).unwrap();
        engine
            .publish(&XdpConfig::from_view(&view, &[XdpDevice::able(DEVICE)]), view.parts().tables.clone())
            .unwrap();
        let plain = frame(0xc000_0201u32, 0xc612_0001);
        for (sent, hop) in [(plain.clone(), 1), (tagged(&plain, 3), 2)] {
            let wanted = forwarded(&plain, station(NextHop(hop)), OWN);
            assert_eq!(run(&hook.program(&mut engine), &sent), Became::Forwarded(wanted));
        }
    });
}

#[test]
fn more_tables_than_there_is_room_for_are_refused() {
    at_each_hook(|_| {
        let mut engine = Engine::with_room(1).unwrap();
        let refused = engine.publish(&vlans(2), readers(&ribs(&[1, 1, 1]))).unwrap_err();
        assert!(matches!(refused, EngineError::TooLarge { needed: 2, limit: 1, .. }), "{refused}");
        assert!(Engine::with_room(256).err().unwrap().to_string().contains("255 tables of VRFs"));
    });
}
