//! Runs a router from its configuration to its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::{self, ConfigError, RouterConfig};
use crate::daemon::{self, DaemonError, EngineChoice, RouterCounts, Shared, WatchHub};
use crate::log;
use crate::operations::{Operations, OperationsError, PreparedOperations};
use crate::privileges::{self, PrivilegeError};

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
    #[error("signals cannot be handled")]
    Signals(#[source] ctrlc::Error),
}

/// Forwards until the program is asked to end; returns what was counted. `file` is the configuration's file, if a reload
/// may read it again.
pub fn run(config: &RouterConfig, file: Option<PathBuf>) -> Result<RouterCounts, LaunchError> {
    config::check(config)?;
    log::set_level(config.router.log_level);
    let options = config::router_options(config)?;
    let choice = EngineChoice::of(&options)?;
    daemon::check_host(&options, &choice)?;
    let _locks = daemon::lock(&options.interfaces)?;
    let reloadable = file.map(|path| (path, config.clone()));
    // From here to `log::start` no thread may start: the signal mask and the confinement hold for threads started later.
    let operations = config::operations_options(config);
    let prepared = PreparedOperations::open(&operations, reloadable)?;
    privileges::confine(config.confine.user.as_deref(), config.confine.seccomp)?;
    log::start().map_err(LaunchError::Log)?;
    log::line(&choice.line);
    let stop = stop_on_signal().map_err(LaunchError::Signals)?;
    let hub = WatchHub::sampling(operations.export.map(|export| export.sample));
    let shared = Arc::new(Shared { hub: Arc::new(hub), events: Arc::default() });
    let (queue, queries) = daemon::open_query_queue().map_err(LaunchError::Queries)?;
    let router = daemon::start(&options, &choice, queue, &shared, &stop)?;
    let _operations = Operations::start(prepared, &options.interfaces, &queries, &shared)?;
    Ok(router.run(&stop)?)
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
