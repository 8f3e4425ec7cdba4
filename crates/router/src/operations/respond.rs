//! Answers to one client of the control socket.

use std::sync::Arc;

use crate::mirror::Mirror;
use fullview_plane::explain::{Explanation, LoopOutcome, RouteNames, explain};
use fullview_plane::trace::{PacketFilter, TraceRequest, TracedPacket};
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::view::View;
use fullview_table::{Address, NextHop};
use serde::Serialize;
use std::net::IpAddr;

use super::hub::{Hub, Session};
use super::inspect;
use super::unsaid::Unsaid;
use crate::config::reload::{NO_FILE, Reloader};
use crate::control::request::{self, Request};
use crate::control::server::Responder;
use crate::control::{Answer, status};
use crate::daemon::Inside;
use crate::daemon::desk::Asker;
use crate::telemetry::events::{Event, Events, micros};
use crate::telemetry::metrics::{self, Scrape};

/// Answers one client. What it watches ends with it.
pub struct Respond {
    asker: Asker,
    hub: Arc<Hub>,
    events: Arc<Events>,
    reloader: Option<Arc<Reloader>>,
    session: Option<Session>,
    noted: Unsaid<Fetched>,
}

/// Notes on their way to a client.
struct Fetched {
    notes: Vec<TracedPacket>,
    missed: u64,
    finished: bool,
}

impl Respond {
    pub fn new(asker: Asker, hub: Arc<Hub>, events: Arc<Events>, reloader: Option<Arc<Reloader>>) -> Respond {
        Respond { asker, hub, events, reloader, session: None, noted: Unsaid::default() }
    }

    /// One that watches nothing yet.
    pub fn for_client(&self) -> Respond {
        let (hub, events, reloader) =
            (Arc::clone(&self.hub), Arc::clone(&self.events), self.reloader.clone());
        Respond::new(self.asker.clone(), hub, events, reloader)
    }

    fn ask<T: Serialize + Send + 'static>(
        &self,
        question: impl FnOnce(&mut Inside<'_>) -> Result<T, String> + Send + 'static,
    ) -> Result<serde_json::Value, String> {
        ask(&self.asker, question)
    }

    fn try_answer(&mut self, request: Request) -> Result<serde_json::Value, String> {
        match request {
            Request::Interfaces => self.ask(|inside| inspect::interfaces(inside)),
            Request::Routes(query) => self.ask(move |inside| inspect::routes(inside, &query)),
            Request::Path(query) => self.ask(move |inside| inspect::path(inside, &query)),
            Request::Fib => self.ask(|inside| Ok(inspect::fibs(inside))),
            Request::Neighbors => self.ask(|inside| Ok(inspect::neighbors(inside))),
            Request::Counters => self.ask(|inside| inspect::counters(inside)),
            Request::Events(query) => {
                value(&self.events.last(query.last).into_iter().map(event).collect::<Vec<_>>())
            }
            Request::Watch(watch) => self.watch(watch),
            Request::Noted => self.noted(),
            Request::Reload => self.reload(),
        }
    }

    fn watch(&mut self, watch: request::Watch) -> Result<serde_json::Value, String> {
        let text = watch.matching.as_deref().unwrap_or_default();
        let mut matching: PacketFilter = text.parse().map_err(|error| format!("{error}"))?;
        if let Some(name) = watch.interface {
            matching.ingress = Some(
                self.asker.ask(move |inside| place(inside, &name)).map_err(|error| error.to_string())??,
            );
        }
        let watch = Arc::new(TraceRequest::new(matching, watch.drops_only, watch.count));
        // The one before ends first, or a client could not go from one to another when all places are taken.
        (self.session, self.noted) = (None, Unsaid::default());
        self.session = Some(self.hub.watch(watch).ok_or("too many watch packets already; try again")?);
        value(&())
    }

    fn reload(&self) -> Result<serde_json::Value, String> {
        let reloader = self.reloader.as_ref().ok_or(NO_FILE)?;
        value(&reloader.reload(&self.asker, &self.events)?)
    }

    fn noted(&mut self) -> Result<serde_json::Value, String> {
        let session =
            self.session.as_ref().ok_or("nothing is watched on this connection; ask for that first")?;
        let fetch = || {
            // Before the notes are fetched: one that comes in between is fetched the next time.
            let finished = session.watch().is_finished();
            let (notes, missed) = session.fetch();
            Fetched { notes, missed, finished }
        };
        let asker = &self.asker;
        self.noted.say(fetch, |fetched| ask(asker, move |inside| Ok(noted(inside, &fetched))))
    }
}

fn ask<T: Serialize + Send + 'static>(
    asker: &Asker,
    question: impl FnOnce(&mut Inside<'_>) -> Result<T, String> + Send + 'static,
) -> Result<serde_json::Value, String> {
    let answer = asker.ask(question).map_err(|error| error.to_string())??;
    value(&answer)
}

fn noted(inside: &Inside<'_>, fetched: &Fetched) -> status::Noted {
    let Fetched { notes, missed, finished } = fetched;
    let packets = notes.iter().map(|note| packet(inside.mirror(), note)).collect();
    status::Noted { packets, missed: *missed, finished: *finished }
}

impl Responder for Respond {
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

fn event(event: Event) -> status::Event {
    status::Event { number: event.number, at: micros(event.at), kind: event.kind, text: event.text }
}

/// The port and VLAN of an interface.
fn place(inside: &Inside<'_>, name: &str) -> Result<(u16, u16), String> {
    let view = inside.mirror().views().current();
    let found = view.parts().interfaces.iter().find(|interface| interface.name == name);
    let known = || {
        view.parts().interfaces.iter().map(|interface| interface.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let interface = found.ok_or_else(|| format!("there is no interface {name}; there are {}", known()))?;
    Ok((interface.port, interface.vlan.unwrap_or(0)))
}

/// Routes and next hops by the kernel's names.
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

/// Explains a packet by what holds now, which may be otherwise than when it came by.
fn packet(mirror: &Mirror, note: &TracedPacket) -> status::Packet {
    let view = mirror.views().current();
    let explanation = explain(&view, &KernelNames(mirror), note.port, note.before.frame());
    let mut steps: Vec<String> = explanation.steps.iter().map(ToString::to_string).collect();
    let was_resolved = was_resolved(&explanation, note);
    if was_resolved {
        steps.push("as of now; when it came its neighbour was not known, and was asked for".into());
    }
    status::Packet {
        at: micros(note.at),
        interface: interface_name(&view, note),
        frame: note.before.frame().iter().map(|byte| format!("{byte:02x}")).collect(),
        verdict: note.verdict.to_string(),
        disagreement: disagreement(&explanation, note).filter(|_| !was_resolved),
        steps,
    }
}

/// Whether the loop lacked a neighbour that is known by now: the first packet to anybody has it found.
fn was_resolved(explanation: &Explanation, note: &TracedPacket) -> bool {
    note.verdict == Verdict::Punt(Punt::Glean) && explanation.verdict == Verdict::Forward
}

fn disagreement(explanation: &Explanation, note: &TracedPacket) -> Option<String> {
    let departure = note.departure.as_ref().map(|(port, copied)| (*port, copied.frame()));
    explanation.disagreement(&LoopOutcome { verdict: note.verdict, departure })
}

/// By which interface it came in; of a frame that none takes, the first of its port.
fn interface_name(view: &View, note: &TracedPacket) -> String {
    let vlan = fullview_plane::wire::ethernet::Frame::new_checked(note.before.frame());
    let vlan = vlan.ok().and_then(|frame| frame.vlan()).unwrap_or(0);
    let number = view.port(note.port).and_then(|port| port.interface(vlan).or_else(|| port.interface(0)));
    let interface = number.and_then(|number| view.interface(number));
    interface.map_or_else(|| format!("port {}", note.port), |interface| interface.name.clone())
}

/// The text of one scrape.
pub fn metrics(asker: &Asker, events: &Events) -> Result<String, String> {
    let scrape = |inside: &mut Inside<'_>| {
        Ok::<_, String>(Scrape {
            interfaces: inspect::interfaces(inside)?,
            counters: inspect::counters(inside)?,
            fibs: inspect::fibs(inside),
            neighbors: inspect::neighbors(inside),
            events: 0,
        })
    };
    let scrape = asker.ask(scrape).map_err(|error| error.to_string())??;
    Ok(metrics::encode(Scrape { events: events.count(), ..scrape }))
}
