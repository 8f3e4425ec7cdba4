//! Hands the router over to a process that takes its place. A session belongs to one client: if the client's connection ends
//! before the client forwards, the router takes back what it handed over and goes on; afterwards, the router ends.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fullview_plane::counters::{InterfaceCounters, Traffic};
use rustix::process::geteuid;

use super::inspect::describe_error;
use crate::control::takeover::{
    HandOverQuery, HandedOver, PROTOCOL, ProgramCounts, RunningInterface, RunningRouter, TakeoverQuery,
};
use crate::daemon::{InterfaceLocks, NamedCounts, QueryError, QueryHandle, RouterState, total};
use crate::events::{EventKind, RecentEvents};
use crate::log;
use crate::service::SharedListener;
use crate::takeover;

/// How long a query waits before it is repeated while the router's thread is busy.
const PAUSE: Duration = Duration::from_millis(50);

/// What another process takes over beside the data path.
pub struct Inheritance {
    /// The names of the interfaces, by port.
    pub ports: Vec<String>,
    pub locks: InterfaceLocks,
    pub sockets: Vec<SharedListener>,
}

/// A takeover that has begun.
pub struct HandoverSession {
    queries: QueryHandle,
    inheritance: Arc<Inheritance>,
    events: Arc<RecentEvents>,
    process: u32,
    progress: Progress,
}

/// How far a takeover has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Begun,
    /// The other process forwards, and has not been answered yet.
    Finishing,
    /// The other process forwards, and was answered.
    Done,
    /// This router ends.
    Ended,
}

impl HandoverSession {
    /// Begins to hand over to a process of this user; returns what the process needs to know, and descriptors of the sockets.
    pub fn begin(
        queries: &QueryHandle,
        (inheritance, events): (&Arc<Inheritance>, &Arc<RecentEvents>),
        user: Option<u32>,
        query: &TakeoverQuery,
    ) -> Result<(HandoverSession, RunningRouter, Vec<OwnedFd>), String> {
        check(user, query)?;
        let namespace = takeover::namespace().map_err(|error| error.to_string())?;
        let sockets = inheritance.sockets.iter().map(|shared| shared.socket.try_clone());
        let sockets: Vec<OwnedFd> = sockets.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let ports = Arc::clone(inheritance);
        let router = ask(queries, move |state| describe(state, &ports, &namespace))??;
        let (inheritance, events) = (Arc::clone(inheritance), Arc::clone(events));
        let process = query.process;
        let session = HandoverSession {
            queries: queries.clone(),
            inheritance,
            events,
            process,
            progress: Progress::Begun,
        };
        session.record(&format!("process {process} is about to take this router's place"));
        Ok((session, router, sockets))
    }

    /// The lock and the link of an interface.
    pub fn interface(&self, query: &HandOverQuery) -> Result<(HandedOver, Vec<OwnedFd>), String> {
        let port = self.inheritance.ports.iter().position(|name| *name == query.interface);
        let port = port.and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| format!("there is no interface {}", query.interface))?;
        let lock = self.inheritance.locks.share(&query.interface).map_err(|error| error.to_string())?;
        let link = ask(&self.queries, move |state| state.hand_over(port).map_err(describe_error))??;
        let (index, link) = link.unzip();
        let handed = HandedOver { lock: lock.is_some(), link: link.is_some(), index: index.unwrap_or(0) };
        Ok((handed, lock.into_iter().chain(link).collect()))
    }

    /// The other process forwards: returns what this one's programs counted. If that cannot be sent, the other process ends.
    pub fn finish(&mut self) -> Result<Vec<ProgramCounts>, String> {
        let counts = ask(&self.queries, final_counts)??;
        self.progress = Progress::Finishing;
        Ok(counts)
    }

    /// The answer to the last request was sent.
    pub fn sent(&mut self) {
        if self.progress == Progress::Finishing {
            self.inheritance.sockets.iter().for_each(SharedListener::leave);
            self.progress = Progress::Done;
        }
    }

    /// The other process waits for the end of this one, and for states on `connection`.
    pub fn end(mut self, connection: Option<UnixStream>) {
        self.progress = Progress::Ended;
        self.end_router(connection);
    }

    fn end_router(&self, connection: Option<UnixStream>) {
        self.record(&format!("process {} has taken this router's place; this one ends", self.process));
        let connection = connection.map(Arc::new);
        // If it cannot be asked, it ends already.
        let _ = ask(&self.queries, move |state| state.end_handover(connection));
    }

    /// Whether the router ends with this session.
    pub fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    fn record(&self, text: &str) {
        log::line(text);
        self.events.record(EventKind::Router, text);
    }
}

impl Drop for HandoverSession {
    fn drop(&mut self) {
        match self.progress {
            Progress::Ended => return,
            Progress::Done => return self.end_router(None),
            Progress::Begun | Progress::Finishing => {}
        }
        let process = self.process;
        self.record(&format!("process {process} has not taken this router's place; this one goes on"));
        if let Ok(Err(error)) = ask(&self.queries, |state| state.take_back().map_err(describe_error)) {
            log::warning(&error);
        }
    }
}

/// Only root and the user that the router runs as may take its place.
fn check(user: Option<u32>, query: &TakeoverQuery) -> Result<(), String> {
    if !user.is_some_and(|user| user == 0 || user == geteuid().as_raw()) {
        return Err("only root and the router's own user may take its place".into());
    }
    if query.protocol != PROTOCOL {
        let theirs = query.protocol;
        return Err(format!(
            "it hands over by exchange {PROTOCOL}, and the new version takes over by {theirs}"
        ));
    }
    Ok(())
}

/// Asks the router's thread, as often as it is too busy.
fn ask<T: Send + 'static>(
    queries: &QueryHandle,
    query: impl FnOnce(&mut RouterState<'_>) -> T + Clone + Send + 'static,
) -> Result<T, String> {
    loop {
        match queries.ask(query.clone()) {
            Err(QueryError::Busy) => thread::sleep(PAUSE),
            Err(error) => return Err(error.to_string()),
            Ok(answer) => return Ok(answer),
        }
    }
}

fn describe(
    state: &mut RouterState<'_>,
    inheritance: &Inheritance,
    namespace: &str,
) -> Result<RunningRouter, String> {
    if !state.begin_handover() {
        return Err("another process is taking its place".into());
    }
    let interface = |(port, name): (u16, &String)| RunningInterface {
        name: name.clone(),
        engine: state.engine(port).name.to_owned(),
    };
    Ok(RunningRouter {
        process: std::process::id(),
        namespace: namespace.to_owned(),
        kernel: state.statistics().is_some(),
        filters: state.filter().is_some(),
        interfaces: (0..).zip(&inheritance.ports).map(interface).collect(),
        sockets: inheritance.sockets.iter().map(|shared| shared.address.clone()).collect(),
        watchdog_us: state.watchdog_timeout().map(|timeout| timeout.as_micros() as u64),
    })
}

/// What programs in the kernel counted; nothing of workers.
fn final_counts(state: &mut RouterState<'_>) -> Result<Vec<ProgramCounts>, String> {
    state.settle().map_err(describe_error)?;
    let mut of_none = state.program_counts().map_err(describe_error)?;
    let by_interface = state.program_counts_by_interface().map_err(describe_error)?;
    let traffic = total(&state.snapshots().map_err(describe_error)?).interfaces;
    let view = state.mirror().views().current();
    let names = view.parts().interfaces.iter().map(|interface| interface.name.clone());
    let mut counts = Vec::new();
    for ((name, refused), traffic) in names.zip(by_interface).zip(traffic) {
        of_none.iter_mut().for_each(|(reason, count)| *count -= count_of(&refused, reason).min(*count));
        counts.push(interface_counts(Some(name), &traffic, &refused));
    }
    counts.push(interface_counts(None, &InterfaceCounters::default(), &of_none));
    Ok(counts)
}

fn count_of(counts: &NamedCounts, name: &str) -> u64 {
    counts.iter().find(|(of, _)| *of == name).map_or(0, |(_, count)| *count)
}

fn interface_counts(
    interface: Option<String>,
    traffic: &InterfaceCounters,
    refused: &NamedCounts,
) -> ProgramCounts {
    let pair = |traffic: &Traffic| [traffic.packets, traffic.bytes];
    let refused = refused.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
    ProgramCounts { interface, received: pair(&traffic.received), sent: pair(&traffic.sent), refused }
}
