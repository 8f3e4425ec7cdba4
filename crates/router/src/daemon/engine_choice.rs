//! Which engine forwards the packets of a router, and why.

use super::error::DaemonError;
use super::program_choice::{self, ProgramChoice};
use crate::control::takeover::RunningRouter;
use crate::options::{EngineName, PortName, RouterOptions};
use crate::takeover::TakeoverError;

/// What forwards.
pub enum ChosenEngine {
    /// Threads of this process.
    Threads,
    /// A program in the kernel.
    Program(ProgramChoice),
}

/// The engine of a router.
pub struct EngineChoice {
    pub engine: ChosenEngine,
    /// The line of the log that names the engine and the reason for it.
    pub line: String,
    /// The reason for threads.
    pub why: String,
    /// Whether packets leave without the queueing discipline of their interface.
    pub leaves_unqueued: bool,
}

/// The engine of an interface, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineInUse {
    pub name: &'static str,
    pub why: String,
}

const THREADS: &str = "threads";
/// Of an interface that does not exist, or that workers cannot use.
pub const NONE: &str = "none";

impl EngineInUse {
    pub fn threads(why: &str) -> EngineInUse {
        EngineInUse { name: THREADS, why: why.to_owned() }
    }

    /// Whether an engine of this name is a program in the kernel.
    pub fn is_program(name: &str) -> bool {
        ![THREADS, NONE].contains(&name)
    }

    /// Whether workers see the packets.
    pub fn is_threads(&self) -> bool {
        self.name == THREADS
    }
}

impl EngineChoice {
    /// The operator's choice, or the best one. `running` is the router whose place is taken.
    ///
    /// # Errors
    /// The operator chose a program, and this build has none; or the running router forwards by another engine.
    pub fn of(options: &RouterOptions, running: Option<&RunningRouter>) -> Result<EngineChoice, DaemonError> {
        let choice = EngineChoice::alone(options, running)?;
        running.map_or(Ok(()), |running| choice.check(options, running))?;
        Ok(choice)
    }

    /// Refuses to take the place of a router that forwards in another way.
    fn check(&self, options: &RouterOptions, running: &RunningRouter) -> Result<(), DaemonError> {
        let has_threads = matches!(self.engine, ChosenEngine::Threads);
        let other = running
            .interfaces
            .iter()
            .find(|one| one.engine != NONE && (one.engine == THREADS) != has_threads);
        let different = match other {
            _ if running.kernel == options.standalone.is_some() => {
                "only one of the two has a kernel behind it".to_owned()
            }
            Some(one) => {
                format!("engine {} forwards for {}, and this one: {}", one.engine, one.name, self.line)
            }
            // The running router would leave its fence to this one.
            None if running.kernel && running.filters && options.filter.is_none() => {
                "it has a filter, and this one has none".to_owned()
            }
            None => return Ok(()),
        };
        Err(TakeoverError::Different(different).into())
    }

    fn alone(options: &RouterOptions, running: Option<&RunningRouter>) -> Result<EngineChoice, DaemonError> {
        let reason = match options.engine {
            _ if options.standalone.is_some() => Some("there is no kernel behind this router".to_owned()),
            EngineName::Threads => Some("as configured".to_owned()),
            EngineName::Auto => reason_for_threads(options),
            EngineName::Tc | EngineName::Xdp | EngineName::XdpGeneric => None,
        };
        match reason {
            Some(why) => Ok(EngineChoice::threads(options, why)),
            None => Ok(EngineChoice::program(ProgramChoice::of(options, running)?)),
        }
    }

    fn threads(options: &RouterOptions, why: String) -> EngineChoice {
        let by_packets = options.ports.kinds.iter().all(|kind| *kind == PortName::Packet);
        let line = format!("engine threads: {why}");
        EngineChoice { engine: ChosenEngine::Threads, line, why, leaves_unqueued: !by_packets }
    }

    fn program(choice: ProgramChoice) -> EngineChoice {
        let (line, leaves_unqueued) = (choice.describe(), choice.leaves_unqueued());
        EngineChoice { engine: ChosenEngine::Program(choice), line, why: String::new(), leaves_unqueued }
    }
}

/// Why `auto` chooses threads, if it does.
fn reason_for_threads(options: &RouterOptions) -> Option<String> {
    let only = options.threads_only.map(|key| format!("`{key}` is a setting of threads"));
    only.or_else(program_choice::refusal)
}
