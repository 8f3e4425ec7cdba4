//! Reloads the configuration file while the router runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use fullview_filter::pf::files::FileSystem;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;

use super::error::OperationsError;
use crate::config::{self, RouterConfig, frozen_differences, live_options};
use crate::daemon::{FilterUnsettled, QueryError, QueryHandle, ReconfigureError};
use crate::error::message;
use crate::events::{EventKind, RecentEvents};
use crate::filter::{self, CompiledFilter, FilterError};
use crate::log;
use crate::options::LiveOptions;

/// Refuses a reload of a router that has no configuration file.
pub const NO_FILE: &str = "the router was started without --config: there is nothing to read again";

/// Why a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The file, or one that it names, is wrong, or asks for what cannot change while the router runs.
    #[error("{0}")]
    Refused(String),
    /// The router is busy, or ends.
    #[error("{0}")]
    Unavailable(String),
}

impl From<QueryError> for ReloadError {
    fn from(error: QueryError) -> ReloadError {
        ReloadError::Unavailable(error.to_string())
    }
}

/// The file, and the configuration that is in force.
pub struct Reloader {
    path: PathBuf,
    current: Mutex<RouterConfig>,
}

impl Reloader {
    pub fn new(path: PathBuf, current: RouterConfig) -> Reloader {
        Reloader { path, current: Mutex::new(current) }
    }

    /// Applies the file as it is now, all of it or nothing. The text of the result says which.
    pub fn reload(&self, queries: &QueryHandle, events: &RecentEvents) -> Result<String, ReloadError> {
        let result = self.try_reload(queries, events);
        match &result {
            Ok(text) => events.record(EventKind::Reload, text.as_str()),
            Err(text) => events.record(EventKind::Reload, format!("refused: {text}")),
        }
        result
    }

    fn try_reload(&self, queries: &QueryHandle, events: &RecentEvents) -> Result<String, ReloadError> {
        // The lock has one reload run after the other. A panic in one leaves the configuration that is in force.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let new = config::load(&self.path).map_err(|error| ReloadError::Refused(message(&error)))?;
        let frozen = frozen_differences(&current, &new);
        if !frozen.is_empty() {
            return Err(ReloadError::Refused(format!(
                "{}: {} cannot change while the router runs; nothing was changed, restart it or undo that",
                self.path.display(),
                frozen.join(", ")
            )));
        }
        if new == *current {
            log::line(
                "reload: the file has not changed; what it names, such as the rules of a filter, is read again",
            );
        }
        let live = live_options(&new).map_err(|error| ReloadError::Refused(message(&error)))?;
        let filter = queries.ask(|state| state.filter())?;
        let _changing = filter.as_ref().map(|filter| filter.handle.lock_changes());
        let rules = compile_filter(&new, &live, queries)?;
        let unknown = rules.as_ref().map(|rules| rules.unknown.clone()).unwrap_or_default();
        queries
            .ask(move |state| state.reconfigure(live, rules))?
            .map_err(|error| self.not_applied(&error))?;
        *current = new;
        unknown.iter().for_each(|unknown| warn(events, unknown));
        let settled = filter.as_ref().map_or(Ok(()), |filter| filter.handle.settle());
        let late = settled.err();
        late.iter().for_each(|late| warn(events, late));
        Ok(in_force(&self.path, late))
    }

    fn not_applied(&self, error: &ReconfigureError) -> ReloadError {
        let text = format!("{}: {error}", self.path.display());
        match error {
            ReconfigureError::Filter(FilterError::Busy(_)) => ReloadError::Unavailable(text),
            _ => ReloadError::Refused(text),
        }
    }
}

fn warn(events: &RecentEvents, about_filter: impl fmt::Display) {
    let text = format!("filter: {about_filter}");
    log::warning(&text);
    events.record(EventKind::Warning, text);
}

/// The file is in force also while no worker runs to take the rules.
fn in_force(path: &Path, late: Option<FilterUnsettled>) -> String {
    let rules = late.map(|late| format!(", except the rules of the filter: {late}")).unwrap_or_default();
    format!("{} is in force{rules}", path.display())
}

/// Reads the rules of the filter, if there is one. The caller has locked changes of the filter. They are compiled here, not in
/// the router's thread, which has neighbours to answer.
fn compile_filter(
    config: &RouterConfig,
    live: &LiveOptions,
    queries: &QueryHandle,
) -> Result<Option<CompiledFilter>, ReloadError> {
    let Some(options) = config::filter_options(config) else { return Ok(None) };
    let planned = live.plan.as_ref().map(|plan| plan.interfaces.clone());
    let (interfaces, filter) =
        queries.ask(move |state| (state.filtered_interfaces(planned.as_deref()), state.filter()))?;
    let in_force = filter.as_ref().map(|filter| &filter.rules);
    let compiled = filter::compile_after(in_force, &options, &FileSystem::default(), &interfaces);
    compiled.map(Some).map_err(|error| ReloadError::Refused(error.to_string()))
}

/// Blocks SIGHUP for this thread and those that it starts later, and returns a descriptor to read the signals from. It must
/// be called before any thread is started: one that does not block the signal would end the program.
pub fn block_hangup() -> Result<SignalFd, OperationsError> {
    let mut hangup = SigSet::empty();
    hangup.add(Signal::SIGHUP);
    let blocked = hangup.thread_block().and_then(|()| SignalFd::new(&hangup));
    blocked.map_err(OperationsError::Hangup)
}

/// Starts a thread that reloads at every SIGHUP until the program ends. Without a file it logs that a reload is not
/// possible.
pub fn on_hangup(
    signals: SignalFd,
    reloader: Option<Arc<Reloader>>,
    queries: QueryHandle,
    events: Arc<RecentEvents>,
) -> Result<(), OperationsError> {
    let wait = move || {
        while let Ok(Some(_)) = signals.read_signal() {
            match reloader.as_ref().map(|file| file.reload(&queries, &events)) {
                Some(Ok(text)) => log::line(&format!("reload: {text}")),
                Some(Err(error)) => log::warning(&format!("reload refused: {error}")),
                None => log::warning(&format!("reload refused: {NO_FILE}")),
            }
        }
    };
    Builder::new().name("reload".into()).spawn(wait).map_err(OperationsError::Thread)?;
    Ok(())
}
