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
use crate::daemon::{FilterUnsettled, QueryHandle};
use crate::error::message;
use crate::events::{EventKind, RecentEvents};
use crate::filter::{self, CompiledFilter};
use crate::log;
use crate::options::LiveOptions;

/// Refuses a reload of a router that has no configuration file.
pub const NO_FILE: &str = "the router was started without --config: there is nothing to read again";

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
    pub fn reload(&self, queries: &QueryHandle, events: &RecentEvents) -> Result<String, String> {
        let result = self.try_reload(queries, events);
        match &result {
            Ok(text) => events.record(EventKind::Reload, text.as_str()),
            Err(text) => events.record(EventKind::Reload, format!("refused: {text}")),
        }
        result
    }

    fn try_reload(&self, queries: &QueryHandle, events: &RecentEvents) -> Result<String, String> {
        // The lock has one reload run after the other. A panic in one leaves the configuration that is in force.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let new = config::load(&self.path).map_err(|error| message(&error))?;
        let frozen = frozen_differences(&current, &new);
        if !frozen.is_empty() {
            return Err(format!(
                "{}: {} cannot change while the router runs; nothing was changed, restart it or undo that",
                self.path.display(),
                frozen.join(", ")
            ));
        }
        if new == *current {
            log::line(
                "reload: the file has not changed; what it names, such as the rules of a filter, is read again",
            );
        }
        let live = live_options(&new).map_err(|error| message(&error))?;
        let filter = queries.ask(|state| state.filter()).map_err(|error| error.to_string())?;
        let _changing = filter.as_ref().map(|filter| filter.handle.lock_changes());
        let rules = compile_filter(&new, &live, queries)?;
        let unknown = rules.as_ref().map(|rules| rules.unknown.clone()).unwrap_or_default();
        let applied = queries.ask(move |state| state.reconfigure(live, rules));
        let applied = applied.map_err(|error| error.to_string())?;
        applied.map_err(|error| format!("{}: {error}", self.path.display()))?;
        *current = new;
        unknown.iter().for_each(|unknown| warn(events, unknown));
        let settled = filter.as_ref().map_or(Ok(()), |filter| filter.handle.settle());
        let late = settled.err();
        late.iter().for_each(|late| warn(events, late));
        Ok(in_force(&self.path, late))
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
) -> Result<Option<CompiledFilter>, String> {
    let Some(options) = config::filter_options(config) else { return Ok(None) };
    let planned = live.plan.as_ref().map(|plan| plan.interfaces.clone());
    let facts = queries.ask(move |state| (state.filtered_interfaces(planned.as_deref()), state.filter()));
    let (interfaces, filter) = facts.map_err(|error| error.to_string())?;
    let in_force = filter.as_ref().map(|filter| &filter.rules);
    filter::compile_after(in_force, &options, &FileSystem::default(), &interfaces)
        .map(Some)
        .map_err(|error| error.to_string())
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
            match reloader
                .as_ref()
                .ok_or_else(|| NO_FILE.to_owned())
                .and_then(|file| file.reload(&queries, &events))
            {
                Ok(text) => log::line(&format!("reload: {text}")),
                Err(text) => log::warning(&format!("reload refused: {text}")),
            }
        }
    };
    Builder::new().name("reload".into()).spawn(wait).map_err(OperationsError::Thread)?;
    Ok(())
}
