//! Lists the states of a running filter. These functions run in the threads of clients, which ask the filter's workers.

use fullview_filter::address::Address;
use fullview_filter::address_table::TableEntry;
use fullview_filter::packet::protocol::{ICMP, ICMP6, TCP};
use fullview_filter::pf::names::protocols;
use fullview_filter::rule::Side;
use fullview_filter::ruleset::{RuleSet, StateRecord};
use fullview_filter::state::{PassBinding, Phase};
use fullview_plane::forward::{FilterPiece, MOST_REMOVED, PieceOf};

use super::filter::{UNFILLED, in_force, rule};
use crate::control::filter::{
    FlowEnd, MAX_LIMIT, RuleReference, StateStatus, StatesPage, StatesQuery, StatesRemoved,
};
use crate::daemon::{FilterHandle, FilterUnanswered, QueryHandle, RouterState};
use crate::filter::MOST_STATES;

/// A page looks at so many pieces of the workers' tables at most, so that its client does not wait for long.
const MOST_PIECES: usize = 64;

/// An entry of a worker's table.
#[derive(Clone, Copy)]
struct Place {
    worker: usize,
    entry: u32,
}

/// The bits of an entry's number. Those of the worker's are above them.
const ENTRY_BITS: u32 = 24;
const _: () = assert!(MOST_STATES <= 1 << ENTRY_BITS);

impl Place {
    fn of(number: u32) -> Place {
        Place { worker: (number >> ENTRY_BITS) as usize, entry: number % (1 << ENTRY_BITS) }
    }

    fn number(self) -> u32 {
        (self.worker as u32) << ENTRY_BITS | self.entry
    }
}

/// The states from `next` on, which becomes where the piece after them begins. `None` behind the last one.
fn next_piece(
    handle: &FilterHandle,
    next: &mut Option<u32>,
) -> Result<Option<(Place, Box<FilterPiece>)>, FilterUnanswered> {
    let is_there = |place: &Place| handle.workers().contains(&place.worker);
    let Some(place) = next.take().map(Place::of).filter(is_there) else { return Ok(None) };
    let piece = handle.piece(place.worker, PieceOf::States(place.entry))?;
    let after = match piece.next {
        Some(entry) => Place { entry, ..place },
        None => Place { worker: place.worker + 1, entry: 0 },
    };
    *next = Some(after).filter(is_there).map(Place::number);
    Ok(Some((place, piece)))
}

/// A page of states.
pub fn page(queries: &QueryHandle, query: &StatesQuery) -> Result<StatesPage, String> {
    let filter = in_force(queries)?;
    let names = queries.ask(|state| interface_names(state)).map_err(|error| error.to_string())?;
    let wanted = WantedStates::of(query)?;
    let (limit, mut page) =
        (query.limit.clamp(1, MAX_LIMIT), StatesPage { states: Vec::new(), next: Some(query.from) });
    for _ in 0..MOST_PIECES {
        let piece = next_piece(&filter.handle, &mut page.next).map_err(|error| error.to_string())?;
        let Some((place, piece)) = piece else { break };
        wanted.add(place, &piece, &names, limit, &mut page)?;
        if page.states.len() == limit {
            break;
        }
    }
    Ok(page)
}

/// Removes the wanted states among as many entries as a page looks at.
pub fn remove(queries: &QueryHandle, query: &StatesQuery) -> Result<StatesRemoved, String> {
    let handle = in_force(queries)?.handle;
    let wanted = WantedStates::of(query)?;
    let mut done = StatesRemoved { removed: 0, next: Some(query.from) };
    for _ in 0..MOST_PIECES {
        let piece = next_piece(&handle, &mut done.next).map_err(|error| error.to_string())?;
        let Some((place, piece)) = piece else { break };
        let (rules, _) = piece.rules.as_ref().ok_or(UNFILLED)?;
        let chosen: Vec<_> = piece.states.iter().filter(|state| wanted.includes(rules, state)).collect();
        for states in chosen.chunks(MOST_REMOVED) {
            let states = states.iter().map(|state| **state).collect();
            done.removed += handle.remove(place.worker, states).map_err(|error| error.to_string())?;
        }
    }
    Ok(done)
}

fn interface_names(state: &RouterState<'_>) -> Vec<String> {
    let view = state.mirror().views().current();
    view.parts().interfaces.iter().map(|interface| interface.name.clone()).collect()
}

/// Which states are listed.
struct WantedStates {
    /// The first and the last address, of one family.
    host: Option<(Address, Address)>,
    protocol: Option<u8>,
    rule: Option<u32>,
}

impl WantedStates {
    fn of(query: &StatesQuery) -> Result<WantedStates, String> {
        let host = query.host.as_deref().map(TableEntry::prefix).transpose();
        let host = host.map_err(|error| error.to_string())?.map(|entry| entry.ends());
        Ok(WantedStates { host, protocol: query.protocol, rule: query.rule })
    }

    /// Adds the wanted states of a piece to a page, which has at most so many.
    fn add(
        &self,
        place: Place,
        piece: &FilterPiece,
        names: &[String],
        limit: usize,
        page: &mut StatesPage,
    ) -> Result<(), String> {
        let (rules, _) = piece.rules.as_ref().ok_or(UNFILLED)?;
        for state in piece.states.iter().filter(|state| self.includes(rules, state)) {
            if page.states.len() == limit {
                page.next = Some(Place { entry: state.entry, ..place }.number());
                break;
            }
            page.states.push(status(rules, names, state));
        }
        Ok(())
    }

    fn includes(&self, rules: &RuleSet, state: &StateRecord) -> bool {
        let translated = state.translation.map(|to| to.address);
        let mut ends = [state.flow.source, state.flow.destination].into_iter().chain(translated);
        let number = || state.rule.and_then(|index| rule(rules, index)).map(|rule| rule.number);
        let is_within = |end: Address, (first, last): (Address, Address)| {
            // IPv4's addresses are among the numbers of IPv6's.
            end.family() == first.family() && (first..=last).contains(&end)
        };
        self.host.is_none_or(|host| ends.any(|end| is_within(end, host)))
            && self.protocol.is_none_or(|protocol| state.flow.protocol == protocol)
            && self.rule.is_none_or(|wanted| number() == Some(wanted))
    }
}

fn status(rules: &RuleSet, names: &[String], state: &StateRecord) -> StateStatus {
    let StateRecord { flow, translation, .. } = state;
    let translated = |side| translation.filter(|to| to.side == side).map(|to| end(to.address, to.port));
    let seconds = |milliseconds: u32| f64::from(milliseconds) / 1000.0;
    let maker = state.rule.and_then(|index| rule(rules, index));
    StateStatus {
        protocol: protocols::name(flow.protocol).map_or_else(|| flow.protocol.to_string(), str::to_owned),
        source: end(flow.source, flow.source_port),
        destination: end(flow.destination, flow.destination_port),
        translated_source: translated(Side::Source),
        translated_destination: translated(Side::Destination),
        direction: direction(state.binding).into(),
        interface: names.get(usize::from(state.interface)).map_or("unknown", String::as_str).to_owned(),
        bound: state.if_bound,
        phases: state.phases.map(|phase| word(flow.protocol, phase).to_owned()),
        age_seconds: seconds(state.age),
        expires_seconds: seconds(state.expires_in),
        packets: state.packets,
        bytes: state.bytes,
        rule: maker.map(|rule| RuleReference { number: rule.number, text: rule.text.clone() }),
    }
}

fn end(address: Address, port: u16) -> FlowEnd {
    FlowEnd { address: address.into(), port }
}

fn direction(binding: PassBinding) -> &'static str {
    match binding {
        PassBinding::In => "in",
        PassBinding::Out => "out",
        PassBinding::Both => "both",
    }
}

/// What `pfctl -ss` calls a phase.
fn word(protocol: u8, phase: Phase) -> &'static str {
    match (protocol, phase) {
        (TCP, Phase::Silent) => "CLOSED",
        (TCP, Phase::Opened) => "SYN_SENT",
        (TCP, Phase::Established) => "ESTABLISHED",
        (_, Phase::Closing) => "CLOSING",
        (_, Phase::Finished) => "FIN_WAIT_2",
        (_, Phase::Reset) => "TIME_WAIT",
        (ICMP | ICMP6, _) => "0",
        (_, Phase::Silent) => "NO_TRAFFIC",
        (_, Phase::Opened) => "SINGLE",
        (_, Phase::Established) => "MULTIPLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullview_filter::rule::{CompiledRule, RuleAction};
    use fullview_filter::ruleset::{Language, RuleSetParts};
    use fullview_filter::state::FlowKey;
    use fullview_filter::verdict::Rewrite;

    fn address(text: &str) -> Address {
        text.parse::<std::net::IpAddr>().unwrap().into()
    }

    fn state() -> StateRecord {
        let flow = FlowKey {
            source: address("10.0.0.1"),
            destination: address("192.0.2.1"),
            source_port: 1000,
            destination_port: 80,
            protocol: TCP,
        };
        let rewrite =
            Rewrite { side: Side::Source, address: address("203.0.113.1"), port: 50_000, quoted: false };
        StateRecord {
            entry: 0,
            flow,
            binding: PassBinding::Out,
            interface: 1,
            if_bound: true,
            phases: [Phase::Established, Phase::Opened],
            translation: Some(rewrite),
            age: 1500,
            expires_in: 30_000,
            packets: 2,
            bytes: 100,
            rule: Some(1),
        }
    }

    fn rules() -> RuleSet {
        let mut parts = RuleSetParts::new(Language::Pf);
        let rule = |number| CompiledRule { number, ..CompiledRule::new(RuleAction::Pass) };
        parts.rules = vec![rule(7), rule(9)];
        RuleSet::new(parts).unwrap()
    }

    #[test]
    fn states_are_chosen_by_every_condition() {
        let query = StatesQuery::default();
        let chosen =
            |query: StatesQuery| WantedStates::of(&query).map(|wanted| wanted.includes(&rules(), &state()));
        let by_host = |host: &str| chosen(StatesQuery { host: Some(host.into()), ..query.clone() });
        for host in ["10.0.0.1", "192.0.2.0/24", "203.0.113.1", "0.0.0.0/0"] {
            assert_eq!(by_host(host), Ok(true), "{host}");
        }
        assert_eq!((by_host("10.0.0.2"), by_host("::/0")), (Ok(false), Ok(false)));
        assert!(by_host("everywhere").unwrap_err().contains("'everywhere'"));
        for (protocol, rule, expected) in
            [(Some(TCP), Some(9), true), (Some(17), None, false), (None, Some(7), false), (None, None, true)]
        {
            assert_eq!(chosen(StatesQuery { protocol, rule, ..query.clone() }), Ok(expected));
        }
    }

    #[test]
    fn a_state_is_described() {
        let names = ["left".to_owned(), "right".to_owned()];
        let described = status(&rules(), &names, &state());
        assert_eq!((described.interface.as_str(), described.direction.as_str()), ("right", "out"));
        assert_eq!(described.phases, ["ESTABLISHED", "SYN_SENT"]);
        assert_eq!(described.translated_source, Some(end(address("203.0.113.1"), 50_000)));
        assert_eq!((described.age_seconds, described.expires_seconds), (1.5, 30.0));
        assert_eq!(described.rule.map(|rule| rule.number), Some(9));
        let of_gone_rule = status(&rules(), &[], &StateRecord { rule: None, ..state() });
        assert_eq!((of_gone_rule.rule, of_gone_rule.interface.as_str()), (None, "unknown"));
    }
}
