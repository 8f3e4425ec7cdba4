//! Any bytes as the states of another process: nothing panics, and what was taken can be used and handed on.
#![no_main]

use std::sync::Arc;

use fullview_filter::address::Address;
use fullview_filter::address_table::AddressTable;
use fullview_filter::handover::{StateImport, StateOwners, export};
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::rule::{
    CompiledRule, FlowMask, NamedTable, RuleAction, SourceLimits, StateOptions, TableId, TableKind,
};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, WorkerLimits};

const STATES: u32 = 16;

fn rules() -> RuleSet {
    let mut parts = RuleSetParts::new(Language::Pf);
    let source = Some(SourceLimits { max_states: Some(8), ..SourceLimits::by(FlowMask::SOURCE) });
    let state = Some(StateOptions { source, ..StateOptions::default() });
    parts.rules = vec![CompiledRule { state, text: "pass".into(), ..CompiledRule::new(RuleAction::Pass) }];
    parts.tables = vec![Arc::new(AddressTable::new([]))];
    let bad = NamedTable {
        name: "bad".into(),
        id: TableId(0),
        kind: TableKind::Addresses,
        is_constant: false,
        is_given: false,
    };
    parts.named_tables = vec![bad];
    RuleSet::new(parts).unwrap()
}

fn worker(set: &RuleSet) -> FilterWorker {
    let limits = WorkerLimits { states: STATES, sources: 4, fragments: 4 };
    FilterWorker::new(limits, set.counted_rules(), 1)
}

/// The rules with the tables that came, if nothing was wrong.
fn take(set: &RuleSet, worker: &mut FilterWorker, bytes: &[u8], piece: usize) -> (RuleSet, bool) {
    let number = |name: &str| (name == "eth0").then_some(0);
    let mut import = StateImport::new(set, StateOwners::only(worker), &number);
    let is_valid = bytes.chunks(piece).all(|piece| import.feed(1000, piece).is_ok());
    let imported = import.finish();
    (set.with_tables(imported.tables), imported.result.is_ok() && is_valid)
}

// The first byte says in how large pieces the others come.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((piece, bytes)) = input.split_first() else { return };
    let set = rules();
    let mut first = worker(&set);
    let (set, _) = take(&set, &mut first, bytes, usize::from(*piece) + 1);
    let pass = Pass { direction: Direction::In, interface: 0, received_on: 0 };
    let ends = [(Address::inet(0x0a00_0001), 5000), (Address::inet(0xc633_6402), 53)];
    set.check(&mut first, 1000, &mut Packet::udp(pass, ends[0], ends[1]));
    let mut handed = Vec::new();
    let send = |chunk: &[u8]| {
        handed.extend_from_slice(chunk);
        Ok::<(), ()>(())
    };
    // Not those that are over.
    let states = export(&set, &mut [&mut first], 1000, &["eth0".to_owned()], send).unwrap();
    let mut second = worker(&set);
    let (taken, is_whole) = take(&rules(), &mut second, &handed, 1000);
    assert!(is_whole);
    assert_eq!(taken.tables()[0].entries(), set.tables()[0].entries());
    assert_eq!(second.states().len(), states as usize);
});
