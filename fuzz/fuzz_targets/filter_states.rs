//! Any packets at any times through a filter that keeps states, translates and limits: nothing panics, no more states than
//! allowed are kept, and all expire.
#![no_main]

use fullview_filter::address::Address;
use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::rule::{
    AddressPool, CompiledRule, FlowMask, PoolOrder, PortChoice, PortRange, RuleAction, Side, SourceLimits,
    StateOptions, Tracking, Translation,
};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, WorkerLimits};

/// The language and how TCP is followed, and for each packet the time since the one before, its direction, and its bytes.
type Input<'a> = (bool, bool, Vec<(u16, bool, &'a [u8])>);

const STATES: u32 = 16;

fn pf(sloppy: bool) -> RuleSetParts {
    let mut parts = RuleSetParts::new(Language::Pf);
    let limits =
        SourceLimits { max_connections: Some(2), max_states: Some(8), ..SourceLimits::by(FlowMask::SOURCE) };
    let tracking = if sloppy { Tracking::Sloppy } else { Tracking::Strict };
    let state = Some(StateOptions { tracking, source: Some(limits), ..StateOptions::default() });
    parts.rules = vec![CompiledRule { state, ..CompiledRule::new(RuleAction::Pass) }];
    let outside = Address::inet(0xcb00_7101);
    let pool = AddressPool { ranges: vec![(outside, outside)], order: PoolOrder::Random };
    let ports = PortChoice::Free(PortRange { first: 50_000, last: 50_007 });
    let to = Translation { side: Side::Source, pool, ports, pass: false };
    parts.translations = vec![CompiledRule::new(RuleAction::Translate(Box::new(to)))];
    parts.adaptive = (STATES / 2, STATES * 2);
    parts
}

fn ipfw() -> RuleSetParts {
    let script = "nat 1 config if wan0 redirect_port udp 10.0.0.1:5 7\nadd check-state\nadd nat 1 udp from any to any out\n\
                  add skipto 500 tcp from any to any limit src-addr 3\nadd allow ip from any to any keep-state\nadd 500 allow ip from any to any\n";
    let wan = FilterInterface {
        name: "wan0".into(),
        addresses: vec![(Address::inet(9), 24)],
        ..FilterInterface::default()
    };
    IpfwConfig::load("rules", script).unwrap().lower(&Interfaces(vec![wan]))
}

libfuzzer_sys::fuzz_target!(|input: Input<'_>| {
    let (is_pf, sloppy, packets) = input;
    let set = RuleSet::new(if is_pf { pf(sloppy) } else { ipfw() }).unwrap();
    let limits = WorkerLimits { states: STATES, sources: 4, fragments: 4 };
    let mut worker = FilterWorker::new(limits, set.counted_rules(), 1);
    let mut now = 0;
    for (pause, inward, bytes) in packets {
        now += u64::from(pause);
        let direction = if inward { Direction::In } else { Direction::Out };
        let pass = Pass { direction, interface: 0, received_on: 0 };
        if let Ok(mut packet) = Packet::parse(bytes, pass) {
            set.check(&mut worker, now, &mut packet);
        }
        set.sweep(&mut worker, now);
        assert!(worker.states().len() <= STATES as usize);
    }
    // A day and a half later all are forgotten, in one visit of the whole table.
    set.sweep(&mut worker, now + 130_000_000);
    assert!(worker.states().is_empty());
});
