//! Rules of policy routing: the program looks packets up as the explanation says.

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::engine::{Engine, EngineError, XdpConfig, XdpDevice, XdpReason};
use fullview_plane::explain::explain;
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::policy::{
    InterfaceRules, MOST_RULES, PolicyAction, PolicyRule, RulePrefix, RuleTransport,
};
use fullview_plane::view::{TableReaders, View, ViewParts};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::registry::Registered;
use fullview_table::{NextHop, Prefix, Rib, probe};

use super::dut::{Became, DEVICE, Program, at_each_hook, count, run, since, station, tables};
use super::frames::{OWN, frame};

const TABLES: u16 = 3;
/// Networks of sources and destinations.
const NETWORKS: u128 = 8;

/// Random choices.
struct Choices(Box<dyn Iterator<Item = u128>>);

impl Choices {
    fn below(&mut self, limit: u128) -> u128 {
        (self.0.next().unwrap() >> 64) % limit
    }
}

/// An address of a network: 198.18.0.0/24 and the 7 after it, 2001:2::/48 and the 7 after it.
fn address<A: Registered>(network: u128) -> A {
    A::from(match A::BITS {
        32 => 0xc612_0009 + (network << 8),
        _ => 0x2001_0002 << 96 | network << 80 | 9,
    })
    .unwrap()
}

/// Some of the networks, each by a next hop that is in no other table.
fn rib<A: Registered>(table: u16, choices: &mut Choices) -> Rib<A> {
    let mut rib = Rib::default();
    for network in (0..NETWORKS).filter(|_| choices.below(2) == 0) {
        let len = if A::BITS == 32 { 24 } else { 48 };
        let hop = NextHop(table * NETWORKS as u16 + network as u16 + 1);
        rib.announce(Prefix::containing(address(network), len), hop);
    }
    rib
}

fn prefix<A: Registered>(choices: &mut Choices) -> Option<RulePrefix> {
    let network = choices.below(2 * NETWORKS);
    let len = u8::try_from(u128::from(A::BITS) - choices.below(u128::from(A::BITS) / 2)).unwrap();
    (network < NETWORKS).then(|| RulePrefix { address: address::<A>(network).to_ip().into(), len })
}

fn rules<A: Registered>(count: u8, choices: &mut Choices) -> Vec<PolicyRule> {
    let mut rule = |place: u8| {
        let action = match choices.below(12) {
            0 => PolicyAction::Punt,
            1 => PolicyAction::SkipTo(place + 1 + choices.below(3) as u8),
            other @ 2..8 => PolicyAction::LookUp(other as u16 % TABLES),
            other => PolicyAction::LookUpSpecific(other as u16 % TABLES),
        };
        let (source, destination) = (prefix::<A>(choices), prefix::<A>(choices));
        let inverted = choices.below(3) == 0;
        let transport = RuleTransport::default();
        PolicyRule { priority: place.into(), source, destination, transport, inverted, action }
    };
    (0..count).map(&mut rule).collect()
}

/// A view of one interface with these rules, and of three tables.
fn view(rules: InterfaceRules, tables: Vec<TableReaders>) -> View {
    let mut adjacencies = Adjacencies::new();
    for hop in (1..=TABLES * NETWORKS as u16).map(NextHop) {
        adjacencies.set(hop, Adjacency::Neighbor { interface: 0, mac: Mac(station(hop)) });
        if hop.0 % 3 == 0 {
            adjacencies.mark_default(hop);
        }
    }
    let interface = Interface { rules, ..Interface::new(0, Mac(OWN)) };
    let parts = ViewParts::new(vec![interface], adjacencies, tables[0].clone());
    View::new(ViewParts { tables, ..parts }).unwrap()
}

fn publish(engine: &mut Engine, view: &View) -> Result<usize, EngineError> {
    let config = XdpConfig::from_view(view, &[XdpDevice::able(DEVICE)]);
    engine.publish(&config, view.parts().tables.clone())
}

/// Compares what becomes of packets from and to all networks. Returns how many were forwarded.
fn compare<A: Registered>(program: &Program<'_>, view: &View) -> usize {
    let mut forwarded = 0;
    for (from, to) in (0..NETWORKS).flat_map(|from| (0..NETWORKS).map(move |to| (from, to))) {
        let sent = frame::<A>(address(from), address(to));
        let explanation = explain(view, &(), 0, &sent);
        let wanted = match &explanation.departure {
            Some((_, frame)) => Became::Forwarded(frame.clone()),
            _ => Became::Passed(sent.clone()),
        };
        forwarded += usize::from(matches!(wanted, Became::Forwarded(_)));
        assert_eq!(run(program, &sent), wanted, "{:#?}", explanation.steps);
    }
    forwarded
}

#[test]
fn the_program_follows_rules_as_explained() {
    at_each_hook(|hook| {
        let mut choices = Choices(Box::new(probe::uniform::<u128>(11)));
        let mut engine = Engine::with_room(usize::from(TABLES) - 1).unwrap();
        let mut forwarded = 0;
        for round in 0..24 {
            let count = if round % 8 == 7 { MOST_RULES as u8 } else { 1 + round % 8 };
            let tables = (0..TABLES)
                .map(|table| tables(&rib::<u32>(table, &mut choices), &rib::<u128>(table, &mut choices)));
            let tables = tables.collect();
            let (inet, inet6) = (rules::<u32>(count, &mut choices), rules::<u128>(count, &mut choices));
            let view = view(InterfaceRules { inet: inet.into(), inet6: inet6.into() }, tables);
            publish(&mut engine, &view).unwrap();
            let program = hook.program(&mut engine);
            forwarded += compare::<u32>(&program, &view) + compare::<u128>(&program, &view);
        }
        assert!(forwarded > 500, "only {forwarded} packets were forwarded");
    });
}

/// A rule for all packets.
fn all(action: PolicyAction) -> PolicyRule {
    let transport = RuleTransport::default();
    PolicyRule { priority: 7, source: None, destination: None, transport, inverted: false, action }
}

fn with_default_routes() -> Vec<TableReaders> {
    let table = |table: u16| {
        let (mut inet, mut inet6) = (Rib::<u32>::default(), Rib::<u128>::default());
        inet.announce(Prefix::default_route(), NextHop(table + 1));
        inet6.announce(Prefix::default_route(), NextHop(table + 1));
        tables(&inet, &inet6)
    };
    (0..TABLES).map(table).collect()
}

#[test]
fn one_family_may_have_rules_and_reasons_are_counted() {
    at_each_hook(|hook| {
        let mut engine = Engine::with_room(usize::from(TABLES) - 1).unwrap();
        let lists = [vec![all(PolicyAction::Punt)], vec![all(PolicyAction::LookUp(2))]];
        for [inet, inet6] in [lists.clone(), [lists[1].clone(), Vec::new()]] {
            let view = view(InterfaceRules { inet: inet.into(), inet6: inet6.into() }, with_default_routes());
            publish(&mut engine, &view).unwrap();
            let before = count(&engine);
            let program = hook.program(&mut engine);
            let forwarded = [compare::<u32>(&program, &view), compare::<u128>(&program, &view)];
            let left = 64 - forwarded[0] as u64;
            let reasons = since(&before, &count(&engine));
            assert_eq!(
                (forwarded[1], left, reasons),
                match view.interface(0).unwrap().rules.inet[0].action {
                    PolicyAction::Punt => (64, 64, vec![(XdpReason::PolicyRule, 64)]),
                    _ => (64, 0, Vec::new()),
                }
            );
        }
    });
}

#[test]
fn sources_are_not_checked_by_rules() {
    at_each_hook(|hook| {
        let mut engine = Engine::with_room(usize::from(TABLES) - 1).unwrap();
        let rules: InterfaceRules = InterfaceRules {
            inet: vec![all(PolicyAction::LookUp(1))].into(),
            inet6: vec![all(PolicyAction::LookUp(1))].into(),
        };
        let mut parts = view(rules, with_default_routes()).parts().clone();
        parts.interfaces[0].source_check = SourceCheck::Loose;
        let view = View::new(parts).unwrap();
        publish(&mut engine, &view).unwrap();
        let program = hook.program(&mut engine);
        assert_eq!([compare::<u32>(&program, &view), compare::<u128>(&program, &view)], [0, 0]);
        assert_eq!(count(&engine).of(XdpReason::WayBack), 128);
    });
}
