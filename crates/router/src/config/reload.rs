//! Reading the file again while the router runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use nix::sys::signal::{SigSet, Signal};

use nix::sys::signalfd::SignalFd;

use super::Config;
use crate::daemon::desk::Asker;
use crate::error::message;
use crate::log;
use crate::telemetry::events::{Events, Kind};

/// What who asks for a reload is told where there is nothing to read.
pub const NO_FILE: &str = "the router was started without --config: there is nothing to read again";

/// The file, and what of it is in force.
pub struct Reloader {
    path: PathBuf,
    current: Mutex<Config>,
}

impl Reloader {
    pub fn new(path: PathBuf, current: Config) -> Reloader {
        Reloader { path, current: Mutex::new(current) }
    }

    /// Puts in force what the file says now, all of it or nothing. The words say which.
    pub fn reload(&self, asker: &Asker, events: &Events) -> Result<String, String> {
        let result = self.try_reload(asker);
        match &result {
            Ok(text) => events.note(Kind::Reload, text.as_str()),
            Err(text) => events.note(Kind::Reload, format!("refused: {text}")),
        }
        result
    }

    fn try_reload(&self, asker: &Asker) -> Result<String, String> {
        // One reload after the other; a panic in one leaves what is in force.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Config::load(&self.path).map_err(|error| message(&error))?;
        let frozen = current.frozen_differences(&new);
        if !frozen.is_empty() {
            return Err(format!(
                "{}: {} cannot change while the router runs; nothing was changed, restart it or undo that",
                self.path.display(),
                frozen.join(", ")
            ));
        }
        if new == *current {
            // A file of preferences may have changed all the same.
            log::line("reload: the file says what it said before");
        }
        let live = new.live().map_err(|error| message(&error))?;
        asker.ask(move |inside| inside.reconfigure(live)).map_err(|error| error.to_string())?;
        *current = new;
        Ok(format!("{} is in force", self.path.display()))
    }
}

/// Keeps SIGHUP from ending the program, for this thread and all that it will start: to be called before them.
pub fn block_hangup() -> anyhow::Result<SignalFd> {
    let mut hangup = SigSet::empty();
    hangup.add(Signal::SIGHUP);
    hangup.thread_block()?;
    Ok(SignalFd::new(&hangup)?)
}

/// Reloads at every SIGHUP, until the program ends; says that there is nothing to reload, if there is no file.
pub fn on_hangup(
    signals: SignalFd,
    reloader: Option<Arc<Reloader>>,
    asker: Asker,
    events: Arc<Events>,
) -> anyhow::Result<()> {
    let wait = move || {
        while let Ok(Some(_)) = signals.read_signal() {
            match reloader
                .as_ref()
                .ok_or_else(|| NO_FILE.to_owned())
                .and_then(|file| file.reload(&asker, &events))
            {
                Ok(text) => log::line(&format!("reload: {text}")),
                Err(text) => log::line(&format!("reload refused: {text}")),
            }
        }
    };
    Builder::new().name("reload".into()).spawn(wait)?;
    Ok(())
}
