//! Answers the requests of one client of the control socket.

use std::sync::Arc;

use crate::mirror::Mirror;
use fullview_plane::explain::{Explanation, LoopOutcome, RouteNames, explain};
use fullview_plane::trace::{PacketFilter, TraceRequest, TracedPacket};
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::view::View;
use fullview_table::{Address, NextHop};
use serde::Serialize;
use std::net::IpAddr;

use super::inspect;
use super::reload::{NO_FILE, Reloader};
use super::translated;
use super::undelivered::Undelivered;
use crate::control::request::{self, Request};
use crate::control::server::Responder;
use crate::control::{Answer, status};
use crate::daemon::{QueryHandle, RouterState, Shared, WatchHub, WatchSession};
use crate::events::{RecentEvent, RecentEvents, micros};
use crate::telemetry::metrics::{self, Scrape};

/// Answers one client. The client's watch ends with it.
pub struct ClientResponder {
    queries: QueryHandle,
    hub: Arc<WatchHub>,
    events: Arc<RecentEvents>,
    reloader: Option<Arc<Reloader>>,
    session: Option<WatchSession>,
    noted: Undelivered<FetchedNotes>,
}

/// Notes that a client asked for.
struct FetchedNotes {
    notes: Vec<TracedPacket>,
    missed: u64,
    finished: bool,
}

impl ClientResponder {
    /// Makes the responder of a client that watches nothing yet.
    pub fn new(queries: &QueryHandle, shared: &Shared, reloader: Option<&Arc<Reloader>>) -> ClientResponder {
        ClientResponder {
            queries: queries.clone(),
            hub: Arc::clone(&shared.hub),
            events: Arc::clone(&shared.events),
            reloader: reloader.cloned(),
            session: None,
            noted: Undelivered::default(),
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
            Request::Events(query) => {
                value(&self.events.last(query.last).into_iter().map(event).collect::<Vec<_>>())
            }
            Request::Watch(watch) => self.watch(watch),
            Request::Noted => self.noted(),
            Request::Reload => self.reload(),
        }
    }

    fn watch(&mut self, watch: request::WatchQuery) -> Result<serde_json::Value, String> {
        let text = watch.matching.as_deref().unwrap_or_default();
        let mut matching: PacketFilter = text.parse().map_err(|error| format!("{error}"))?;
        if let Some(name) = watch.interface {
            matching.ingress = Some(
                self.queries.ask(move |state| place(state, &name)).map_err(|error| error.to_string())??,
            );
        }
        self.check_traces()?;
        let watch = Arc::new(TraceRequest::new(matching, watch.drops_only, watch.count));
        // The client's earlier watch ends first: otherwise, while all places are taken, it could not begin another one.
        (self.session, self.noted) = (None, Undelivered::default());
        self.session = Some(self.hub.watch(watch).ok_or("too many watch packets already; try again")?);
        value(&())
    }

    /// Only workers trace packets: without them, a client would wait for ever.
    fn check_traces(&self) -> Result<(), String> {
        let engine = self.queries.ask(|state| state.engine(0)).map_err(|error| error.to_string())?;
        if engine.is_threads() {
            return Ok(());
        }
        let name = engine.name;
        Err(format!(
            "engine {name} forwards in the kernel, where no packet can be traced; `--engine threads` traces them"
        ))
    }

    fn reload(&self) -> Result<serde_json::Value, String> {
        let reloader = self.reloader.as_ref().ok_or(NO_FILE)?;
        value(&reloader.reload(&self.queries, &self.events)?)
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
    let packets = notes.iter().map(|note| packet(state.mirror(), note)).collect();
    status::NotedPackets { packets, missed: *missed, finished: *finished }
}

impl Responder for ClientResponder {
    fn answer(&mut self, request: Request) -> Answer {
        match self.try_answer(request) {
            Ok(value) => Answer::Ok(value),
            Err(error) => Answer::refused(error),
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

/// Names routes and next hops as the kernel does.
struct KernelNames<'a>(&'a Mirror);

impl RouteNames for KernelNames<'_> {
    fn table(&self, place: u16) -> u32 {
        self.0.table_number(place).unwrap_or_else(|| place.into())
    }

    fn route(&self, table: u16, addr: IpAddr) -> Option<(String, NextHop)> {
        let (tables, table) = (self.0.tables(), self.0.table_number(table)?);
        match addr {
            IpAddr::V4(ip) => {
                let route = tables.inet.rib(table)?.longest_match(u32::from_ip(ip))?;
                Some((route.prefix.to_string(), route.next_hop))
            }
            IpAddr::V6(ip) => {
                let route = tables.inet6.rib(table)?.longest_match(u128::from_ip(ip))?;
                Some((route.prefix.to_string(), route.next_hop))
            }
        }
    }

    fn next_hop(&self, hop: NextHop) -> Option<String> {
        self.0.next_hop(hop)
    }
}

/// Explains a packet by the router's present state, which may have changed since the packet came in.
fn packet(mirror: &Mirror, note: &TracedPacket) -> status::NotedPacket {
    let view = mirror.views().current();
    let explanation = explain(&view, &KernelNames(mirror), note.port, note.before.frame());
    let mut steps: Vec<String> = explanation.steps.iter().map(ToString::to_string).collect();
    let was_resolved = was_resolved(&explanation, note);
    if was_resolved {
        steps.push("this is the path now; when the packet came in its neighbour was not known, and the kernel was asked for it".into());
    }
    let was_filtered = match note.verdict {
        Verdict::Drop(reason) => reason.is_of_filter(),
        Verdict::Reject(_) => true,
        Verdict::Forward | Verdict::Punt(_) => false,
    };
    if was_filtered {
        steps.push(format!(
            "these steps are those without the filter, which dropped the packet: {}",
            note.verdict
        ));
    } else if note.is_translated {
        steps.push(translated::describe(note));
    }
    status::NotedPacket {
        at: micros(note.at),
        interface: interface_name(&view, note),
        frame: note.before.frame().iter().map(|byte| format!("{byte:02x}")).collect(),
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

/// The interface that the packet came in by. For a frame that no interface takes, it is the first interface of the port.
fn interface_name(view: &View, note: &TracedPacket) -> String {
    let vlan = fullview_plane::wire::ethernet::Frame::new_checked(note.before.frame());
    let vlan = vlan.ok().and_then(|frame| frame.vlan()).unwrap_or(0);
    let number = view.port(note.port).and_then(|port| port.interface(vlan).or_else(|| port.interface(0)));
    let interface = number.and_then(|number| view.interface(number));
    interface.map_or_else(|| format!("port {}", note.port), |interface| interface.name.clone())
}

/// The text of one scrape of the metrics.
pub fn metrics(queries: &QueryHandle, events: &RecentEvents) -> Result<String, String> {
    let scrape = |state: &mut RouterState<'_>| {
        Ok::<_, String>(Scrape {
            interfaces: inspect::interfaces(state)?,
            counters: inspect::counters(state)?,
            fibs: inspect::fibs(state),
            neighbors: inspect::neighbors(state),
            events: 0,
        })
    };
    let scrape = queries.ask(scrape).map_err(|error| error.to_string())??;
    Ok(metrics::encode(Scrape { events: events.count(), ..scrape }))
}
