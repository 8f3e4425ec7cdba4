//! Answers the requests of one client of the control socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::mirror::Mirror;
use fullview_filter::ruleset::RuleSet;
use fullview_plane::explain::{Explanation, LoopOutcome, explain};
use fullview_plane::trace::{PacketFilter, TraceRequest, TracedPacket};
use fullview_plane::verdict::{Punt, Verdict};
use serde::Serialize;

use super::filter_trace::TracedSteps;
use super::handover::{HandoverSession, Inheritance};
use super::kernel_names::{KernelNames, interface_name};
use super::reload::{NO_FILE, ReloadError, Reloader};
use super::tables::{self, CollectedChange};
use super::undelivered::Undelivered;
use super::{filter, inspect, program_trace, states, translated};
use crate::control::filter::FilterQuery;
use crate::control::request::{self, Request};
use crate::control::server::Responder;
use crate::control::takeover::TakeoverQuery;
use crate::control::{Answer, status};
use crate::daemon::{QueryHandle, RouterState, Shared, WatchHub, WatchSession, WatchedPacket};
use crate::events::{RecentEvent, RecentEvents, micros};
use crate::service::Timed;
use crate::telemetry::metrics::{self, Scrape};

/// How long the process that takes over may take for each piece of the states.
const TIME_FOR_STATES: Duration = Duration::from_secs(10);

/// Answers one client. The client's watch ends with it.
pub struct ClientResponder {
    queries: QueryHandle,
    hub: Arc<WatchHub>,
    events: Arc<RecentEvents>,
    reloader: Option<Arc<Reloader>>,
    session: Option<WatchSession>,
    table_change: CollectedChange,
    noted: Undelivered<FetchedNotes>,
    /// The user of the client's process.
    user: Option<u32>,
    inheritance: Arc<Inheritance>,
    handover: Option<HandoverSession>,
    descriptors: Vec<OwnedFd>,
}

/// Notes that a client asked for.
struct FetchedNotes {
    notes: Vec<WatchedPacket>,
    missed: u64,
    finished: bool,
}

impl ClientResponder {
    /// Makes the responder of a client that watches nothing yet.
    pub fn new(
        queries: &QueryHandle,
        shared: &Shared,
        reloader: Option<&Arc<Reloader>>,
        (user, inheritance): (Option<u32>, &Arc<Inheritance>),
    ) -> ClientResponder {
        ClientResponder {
            queries: queries.clone(),
            hub: Arc::clone(&shared.hub),
            events: Arc::clone(&shared.events),
            reloader: reloader.cloned(),
            session: None,
            table_change: CollectedChange::default(),
            noted: Undelivered::default(),
            user,
            inheritance: Arc::clone(inheritance),
            handover: None,
            descriptors: Vec::new(),
        }
    }

    fn ask<T: Serialize + Send + 'static>(
        &self,
        query: impl FnOnce(&mut RouterState<'_>) -> Result<T, String> + Send + 'static,
    ) -> Result<serde_json::Value, String> {
        ask(&self.queries, query)
    }

    fn try_answer(&mut self, request: Request) -> Result<serde_json::Value, String> {
        match request {
            Request::Interfaces => self.ask(|state| inspect::interfaces(state)),
            Request::Routes(query) => self.ask(move |state| inspect::routes(state, &query)),
            Request::Path(query) => self.ask(move |state| inspect::path(state, &query)),
            Request::Fib => self.ask(|state| Ok(inspect::fibs(state))),
            Request::Neighbors => self.ask(|state| Ok(inspect::neighbors(state))),
            Request::Counters => self.ask(|state| inspect::counters(state)),
            Request::Filter(query) => value(&filter::status(&self.queries, &query)?),
            Request::States(query) => value(&states::page(&self.queries, &query)?),
            Request::RemoveStates(query) => value(&states::remove(&self.queries, &query)?),
            Request::FilterTable(query) => value(&tables::page(&self.queries, &query)?),
            Request::FilterTableTest(query) => value(&tables::test(&self.queries, &query)?),
            Request::FilterTableChange(part) => value(&self.table_change.take(&self.queries, part)?),
            Request::Events(query) => {
                value(&self.events.last(query.last).into_iter().map(event).collect::<Vec<_>>())
            }
            Request::Watch(watch) => self.watch(watch),
            Request::Noted => self.noted(),
            Request::Reload => self.reload(),
            Request::TakeOver(query) => self.begin_handover(&query),
            Request::HandOver(query) => {
                let (handed, descriptors) = self.handover()?.interface(&query)?;
                self.descriptors = descriptors;
                value(&handed)
            }
            Request::TakenOver => value(&self.handover()?.finish()?),
        }
    }

    fn begin_handover(&mut self, query: &TakeoverQuery) -> Result<serde_json::Value, String> {
        let shared = (&self.inheritance, &self.events);
        let (session, router, descriptors) = HandoverSession::begin(&self.queries, shared, self.user, query)?;
        (self.handover, self.descriptors) = (Some(session), descriptors);
        value(&router)
    }

    fn handover(&mut self) -> Result<&mut HandoverSession, String> {
        self.handover
            .as_mut()
            .ok_or_else(|| "nothing is handed over by this connection; ask for that first".into())
    }

    fn watch(&mut self, watch: request::WatchQuery) -> Result<serde_json::Value, String> {
        let text = watch.matching.as_deref().unwrap_or_default();
        let mut matching: PacketFilter = text.parse().map_err(|error| format!("{error}"))?;
        if let Some(name) = watch.interface {
            matching.ingress = Some(
                self.queries.ask(move |state| place(state, &name)).map_err(|error| error.to_string())??,
            );
        }
        let watch = Arc::new(TraceRequest::new(matching, watch.drops_only, watch.count));
        // The client's earlier watch ends first: otherwise, while all places are taken, it could not begin another one.
        (self.session, self.noted) = (None, Undelivered::default());
        self.session = Some(self.hub.watch(watch).ok_or("too many watch packets already; try again")?);
        value(&())
    }

    fn reload(&self) -> Result<serde_json::Value, String> {
        let reloader = self.reloader.as_ref().ok_or(NO_FILE)?;
        match reloader.reload(&self.queries, &self.events) {
            Ok(text) => value(&status::Reloaded::InForce(text)),
            Err(ReloadError::Refused(text)) => value(&status::Reloaded::Refused(text)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn noted(&mut self) -> Result<serde_json::Value, String> {
        let session =
            self.session.as_ref().ok_or("nothing is watched on this connection; ask for that first")?;
        let fetch = || {
            // This is asked before the notes are fetched: a note that comes in between is fetched the next time.
            let finished = session.watch().is_finished();
            let (notes, missed) = session.fetch();
            FetchedNotes { notes, missed, finished }
        };
        let queries = &self.queries;
        self.noted.deliver(fetch, |fetched| ask(queries, move |state| Ok(noted(state, &fetched))))
    }
}

fn ask<T: Serialize + Send + 'static>(
    queries: &QueryHandle,
    query: impl FnOnce(&mut RouterState<'_>) -> Result<T, String> + Send + 'static,
) -> Result<serde_json::Value, String> {
    let answer = queries.ask(query).map_err(|error| error.to_string())??;
    value(&answer)
}

fn noted(state: &RouterState<'_>, fetched: &FetchedNotes) -> status::NotedPackets {
    let FetchedNotes { notes, missed, finished } = fetched;
    let filter = state.filter();
    let rules = filter.as_ref().map(|filter| &**filter.rules.rules());
    let packets = notes.iter().map(|note| match note {
        WatchedPacket::Loop(note) => packet(state.mirror(), rules, note),
        WatchedPacket::Program(note) => program_trace::packet(state.mirror(), note),
    });
    status::NotedPackets { packets: packets.collect(), missed: *missed, finished: *finished }
}

impl Responder for ClientResponder {
    fn answer(&mut self, request: Request) -> Answer {
        match self.try_answer(request) {
            Ok(value) => Answer::Ok(value),
            Err(error) => Answer::refused(error),
        }
    }

    fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }

    fn sent(&mut self) {
        self.handover.iter_mut().for_each(HandoverSession::sent);
    }

    fn is_patient(&self) -> bool {
        self.handover.is_some()
    }

    /// The process that takes over sees the end of this one by the end of the connection.
    fn end(&mut self, connection: &Timed<'_>) {
        if let Some(session) = self.handover.take().filter(HandoverSession::is_done) {
            session.end(connection.share(TIME_FOR_STATES).ok());
            loop {
                thread::park();
            }
        }
    }
}

fn value(answer: &impl Serialize) -> Result<serde_json::Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn event(event: RecentEvent) -> status::EventStatus {
    status::EventStatus { number: event.number, at: micros(event.at), kind: event.kind, text: event.text }
}

/// The port and the VLAN of the interface of that name.
fn place(state: &RouterState<'_>, name: &str) -> Result<(u16, u16), String> {
    let view = state.mirror().views().current();
    let found = view.parts().interfaces.iter().find(|interface| interface.name == name);
    let known = || {
        view.parts().interfaces.iter().map(|interface| interface.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let interface = found.ok_or_else(|| format!("there is no interface {name}; there are {}", known()))?;
    Ok((interface.port, interface.vlan.unwrap_or(0)))
}

/// Explains a packet by the router's present state, which may have changed since the packet came in.
fn packet(mirror: &Mirror, rules: Option<&RuleSet>, note: &TracedPacket) -> status::NotedPacket {
    let view = mirror.views().current();
    let explanation = explain(&view, &KernelNames(mirror), note.port, note.before.frame());
    let TracedSteps { mut steps, names_drop } = TracedSteps::of(rules, &view, note, &explanation);
    let was_resolved = was_resolved(&explanation, note);
    if was_resolved {
        steps.push("this is the path now; when the packet came in its neighbour was not known, and the kernel was asked for it".into());
    }
    let was_filtered = match note.verdict {
        Verdict::Drop(reason) => reason.is_of_filter(),
        Verdict::Reject(_) => true,
        Verdict::Forward | Verdict::Punt(_) => false,
    };
    if was_filtered && !names_drop {
        steps.push(format!(
            "these steps are those without the filter, which dropped the packet: {}",
            note.verdict
        ));
    } else if note.is_translated {
        steps.push(translated::describe(note));
    }
    status::NotedPacket {
        at: micros(note.at),
        interface: interface_name(&view, note.port, note.before.frame()),
        frame: note.before.frame().iter().map(|byte| format!("{byte:02x}")).collect(),
        frame_len: note.before.frame().len() as u32,
        verdict: note.verdict.to_string(),
        disagreement: disagreement(&explanation, note)
            .filter(|_| !was_resolved && !was_filtered && !note.is_translated),
        steps,
    }
}

/// Whether the loop lacked a neighbour that is known by now: the first packet to a neighbour has it resolved.
fn was_resolved(explanation: &Explanation, note: &TracedPacket) -> bool {
    note.verdict == Verdict::Punt(Punt::Glean) && explanation.verdict == Verdict::Forward
}

fn disagreement(explanation: &Explanation, note: &TracedPacket) -> Option<String> {
    let departure = note.departure.as_ref().map(|(port, copied)| (*port, copied.frame()));
    explanation.disagreement(&LoopOutcome { verdict: note.verdict, departure })
}

/// The text of one scrape of the metrics.
pub fn metrics(queries: &QueryHandle, events: &RecentEvents) -> Result<String, String> {
    let scrape = |state: &mut RouterState<'_>| {
        let filter = state.filter().map(|filter| Ok::<_, String>((filter, filter::drops(state)?)));
        let scrape = Scrape {
            interfaces: inspect::interfaces(state)?,
            counters: inspect::counters(state)?,
            fibs: inspect::fibs(state),
            neighbors: inspect::neighbors(state),
            ..Scrape::default()
        };
        Ok::<_, String>((scrape, filter.transpose()?))
    };
    let (scrape, filter) = queries.ask(scrape).map_err(|error| error.to_string())??;
    let first_page = FilterQuery { from: 0, limit: filter::MOST_METRICS };
    let filter = filter.map(|(filter, drops)| filter::page(&filter, drops, &first_page));
    Ok(metrics::encode(Scrape { events: events.count(), filter, ..scrape }))
}
