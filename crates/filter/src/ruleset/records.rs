//! States as people see them.

use super::parts::RuleSet;
use crate::state::{FilterWorker, FlowKey, PassBinding, Phase, known_rule};
use crate::verdict::Rewrite;

/// A state at one moment. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRecord {
    /// The number of its entry in the worker's table.
    pub entry: u32,
    /// The first packet, before translation.
    pub flow: FlowKey,
    pub binding: PassBinding,
    /// The interface that the first packet passed.
    pub interface: u16,
    /// The state holds on that interface only.
    pub if_bound: bool,
    /// How far both ends have come: first the one that sent the first packet.
    pub phases: [Phase; 2],
    /// What the first packet's end became.
    pub translation: Option<Rewrite>,
    pub age: u32,
    /// How long it lives without another packet.
    pub expires_in: u32,
    /// The packets of both directions.
    pub packets: u32,
    pub bytes: u64,
    /// The rule that made it; `None` if it is gone.
    pub rule: Option<u32>,
}

/// Adds the states among so many entries of the worker's table to a list, from the entry with number `from` on, as far as
/// the list has room without growing. Returns the number of the entry to go on with; `None` at the end of the table.
pub fn records(
    set: &RuleSet,
    worker: &mut FilterWorker,
    now: u64,
    entries: std::ops::Range<u32>,
    list: &mut Vec<StateRecord>,
) -> Option<u32> {
    let used = worker.states.used_entries();
    for id in entries.start..entries.end.min(used) {
        if list.len() == list.capacity() {
            return Some(id);
        }
        if worker.states.get(id).0.is_used() {
            worker.settle(id);
            worker.count_known(id);
            // The sweep removes it soon.
            let is_over = set.has_expired(worker, id, now as u32);
            list.extend((!is_over).then(|| record(set, worker, now as u32, id)));
        }
    }
    (entries.end < used).then_some(entries.end)
}

/// Removes a state, unless another one has its entry by now. Says whether it did.
pub fn remove(worker: &mut FilterWorker, state: &StateRecord) -> bool {
    if state.entry >= worker.states.used_entries() {
        return false;
    }
    let (hot, cold) = worker.states.get(state.entry);
    let is_it = hot.is_used()
        && hot.key() == state.flow
        && hot.binding() == state.binding
        && cold.interface == state.interface;
    if is_it {
        // The last sweep is recent enough for the timeout of its source.
        worker.forget(state.entry, worker.swept);
    }
    is_it
}

fn record(set: &RuleSet, worker: &FilterWorker, now: u32, id: u32) -> StateRecord {
    let (hot, cold) = worker.states.get(id);
    let translated =
        |side| Rewrite { side, address: cold.translated, port: cold.translated_port, quoted: false };
    // A clock that went back makes no age.
    let since = |then: u32| (now.wrapping_sub(then) as i32).max(0) as u32;
    StateRecord {
        entry: id,
        flow: hot.key(),
        binding: hot.binding(),
        interface: cold.interface,
        if_bound: hot.is_if_bound(),
        phases: hot.phases(),
        translation: hot.translation().side().map(translated),
        age: since(cold.created),
        expires_in: lifetime(set, worker, id).saturating_sub(since(hot.last)),
        packets: cold.packets,
        bytes: cold.bytes,
        rule: known_rule(cold.rule),
    }
}

/// How long a state lives after its last packet.
pub(super) fn lifetime(set: &RuleSet, worker: &FilterWorker, id: u32) -> u32 {
    let (hot, cold) = worker.states.get(id);
    let timeouts = set.timeouts.get(usize::from(cold.timeouts)).unwrap_or(&set.timeouts[0]);
    let whole = timeouts.of(hot.protocol, hot.phases());
    ((u64::from(whole) * u64::from(worker.timeout_scale)) >> 16) as u32
}
