//! Runs a router from its configuration to its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::config::{self, ConfigError, RouterConfig};
use crate::control::takeover::RunningRouter;
use crate::daemon::{self, DaemonError, EngineChoice, InterfaceLocks, RouterCounts, Shared, WatchHub};
use crate::error::BadInput;
use crate::events::EventKind;
use crate::log;
use crate::notify::{self, Heartbeat};
use crate::operations::{Operations, OperationsError, PreparedOperations};
use crate::options::OperationsOptions;
use crate::privileges::{self, PrivilegeError};
use crate::takeover::{Predecessor, TakeoverError};

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Daemon(#[from] DaemonError),
    #[error("{0}")]
    Operations(#[from] OperationsError),
    #[error("{0}")]
    Privileges(#[from] PrivilegeError),
    #[error("a thread that writes messages cannot be started")]
    Log(#[source] io::Error),
    #[error("the router's queue of queries")]
    Queries(#[source] io::Error),
    #[error("{0}")]
    Takeover(#[from] TakeoverError),
    #[error("{0}")]
    BadInput(#[from] BadInput),
    #[error("signals cannot be handled")]
    Signals(#[source] ctrlc::Error),
}

/// Forwards until the program is asked to end; returns what was counted. `file` is the configuration's file, if a reload
/// may read it again. With `takes_over` the router takes the place of the one at its control socket, if there is one.
pub fn run(
    config: &RouterConfig,
    file: Option<PathBuf>,
    takes_over: bool,
) -> Result<RouterCounts, LaunchError> {
    config::check(config)?;
    log::set_level(config.router.log_level);
    let options = config::router_options(config)?;
    let operations = config::operations_options(config);
    let mut predecessor = if takes_over { find_predecessor(config, &operations)? } else { None };
    let choice = EngineChoice::of(&options, predecessor.as_ref().map(Predecessor::router))?;
    daemon::check_host(&options, &choice)?;
    let mut locks = lock_free(&options.interfaces, predecessor.as_ref())?;
    let reloadable = file.map(|path| (path, config.clone()));
    // From here to `log::start` no thread may start: the signal mask and the confinement hold for threads started later.
    let prepared = PreparedOperations::open(&operations, reloadable, predecessor.as_mut())?;
    privileges::confine(config.confine.user.as_deref(), config.confine.seccomp)?;
    log::start().map_err(LaunchError::Log)?;
    log::line(&choice.line);
    let stop = stop_on_signal().map_err(LaunchError::Signals)?;
    let hub = WatchHub::sampling(operations.export.map(|export| export.sample));
    let shared = Arc::new(Shared { hub: Arc::new(hub), events: Arc::default() });
    let (queue, queries) = daemon::open_query_queue().map_err(LaunchError::Queries)?;
    let router = daemon::start(&options, &choice, queue, &shared, &stop, predecessor.as_mut())?;
    let manager = heartbeat(predecessor.as_ref());
    if let Some(predecessor) = predecessor {
        record_takeover(predecessor.router(), &shared);
        locks.inherit(predecessor.release());
    }
    let _operations = Operations::start(prepared, (&options.interfaces, locks), &queries, &shared)?;
    notify::ready();
    Ok(router.run(&stop, manager)?)
}

/// What tells a service manager that watches the service that it works. A process that takes over knows from the one before
/// whether it does.
fn heartbeat(predecessor: Option<&Predecessor>) -> Option<Heartbeat> {
    let inherited = || predecessor?.router().watchdog_us.map(Duration::from_micros);
    notify::watchdog_timeout().or_else(inherited).and_then(Heartbeat::start)
}

fn find_predecessor(
    config: &RouterConfig,
    operations: &OperationsOptions,
) -> Result<Option<Predecessor>, LaunchError> {
    let socket = operations.control.as_deref().ok_or_else(|| {
        BadInput("--takeover needs the socket of the running router: give both routers the same --name or --control".into())
    })?;
    let found = Predecessor::find(socket, config.confine.user.as_deref())?;
    if found.is_none() {
        log::line(&format!("no router answers at {}: nothing is taken over", socket.display()));
    }
    Ok(found)
}

/// Locks the interfaces whose locks another router does not hand over.
fn lock_free(
    interfaces: &[String],
    predecessor: Option<&Predecessor>,
) -> Result<InterfaceLocks, DaemonError> {
    let is_free = |name: &&String| predecessor.is_none_or(|router| router.interface(name).is_none());
    daemon::lock(interfaces.iter().filter(is_free))
}

fn record_takeover(before: &RunningRouter, shared: &Shared) {
    let text = format!("this router has taken the place of process {}", before.process);
    log::line(&text);
    shared.events.record(EventKind::Router, &text);
}

/// Makes a flag that is set when the program is asked to end (SIGINT, SIGTERM).
fn stop_on_signal() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            log::line("stopping already");
        }
    })?;
    Ok(stop)
}
