//! What happens to modules and tables. An event's text uses the words of FreeBSD's `sys/net/route/fib_algo.c`, so that
//! readers of its log recognise it.

use std::fmt::{self, Display, Formatter};

use crate::addr::Family;
use crate::fib::CompileError;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A module was offered to tables, or taken away from them.
    Module {
        /// The family of the tables.
        family: Family,
        /// The name of the module.
        module: &'static str,
        /// Which of the two.
        change: ModuleChange,
    },
    /// The FIB of a table was changed, or could not be.
    Table {
        /// The table, and what served it at that moment.
        table: TableLabel,
        /// What happened to it.
        what: TableEvent,
    },
}

/// What happened to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleChange {
    /// It can be chosen from now on.
    Registered,
    /// It can no longer be chosen.
    Unregistered,
}

/// The table that an event concerns, as the kernel names it: `inet.0`, or `inet.0 (bsearch4#7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLabel {
    /// The family of the table.
    pub family: Family,
    /// The number of the table.
    pub number: u32,
    /// The module that served it and the number of its compiled table, if there was one.
    pub attached: Option<(&'static str, u64)>,
}

/// What happened to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableEvent {
    /// The table has to be compiled again.
    RebuildScheduled(RebuildReason),
    /// The table is compiled without delay, because of a change that does not wait.
    SyncRebuild,
    /// Another algorithm serves the table from now on.
    Switched {
        /// The algorithm that takes over.
        to: &'static str,
    },
    /// A compiled table was dropped, because the one that serves knows more changes.
    Stale {
        /// The algorithm that compiled it.
        module: &'static str,
    },
    /// An algorithm could not compile the table. It is tried again later.
    CompileFailed {
        /// The algorithm that failed.
        module: &'static str,
        /// How many of its compiles have failed, one after the other.
        failures: u32,
        /// Why this one failed.
        error: CompileError,
    },
    /// A compiled table could not take the changes made since, and its algorithm is banned from this table.
    SetupFailed {
        /// The algorithm that failed.
        module: &'static str,
        /// What it reported.
        reason: String,
    },
    /// The algorithm that serves the table reported an error and is banned from this table.
    Banned {
        /// What it reported.
        reason: String,
    },
    /// No algorithm may be tried any more; the last compiled table serves on without new changes.
    NoneUsable,
}

/// Why a table has to be compiled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebuildReason {
    /// The algorithm cannot take the change.
    Requested,
    /// The algorithm did not take a batch that it had asked for.
    BatchFailed,
    /// The algorithm reported an error.
    AlgorithmError,
    /// The RIB changed while the table was compiled, and the algorithm cannot take these changes.
    Changed,
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("[fib_algo] ")?;
        match self {
            Event::Module { family, module, change: ModuleChange::Registered } => {
                write!(f, "fib_module_register: attaching {module} to {family}")
            }
            Event::Module { family, module, change: ModuleChange::Unregistered } => {
                write!(f, "fib_module_unregister: detaching {module} from {family}")
            }
            Event::Table { table, what } => write!(f, "{table} {}: {what}", what.function()),
        }
    }
}

impl Display for TableLabel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.family, self.number)?;
        self.attached.map_or(Ok(()), |(module, instance)| write!(f, " ({module}#{instance})"))
    }
}

impl TableEvent {
    /// The function of `fib_algo.c` that logs such an event.
    fn function(&self) -> &'static str {
        match self {
            TableEvent::RebuildScheduled(_) => "schedule_fd_rebuild",
            TableEvent::SyncRebuild => "rebuild_fd",
            TableEvent::Switched { .. } | TableEvent::Stale { .. } => "rebuild_fd_flm",
            TableEvent::CompileFailed { .. } | TableEvent::SetupFailed { .. } => "setup_fd_instance",
            TableEvent::Banned { .. } => "handle_rtable_change_cb",
            TableEvent::NoneUsable => "fib_check_best_algo",
        }
    }
}

impl Display for TableEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TableEvent::RebuildScheduled(reason) => write!(f, "Scheduling rebuild: {reason}"),
            TableEvent::SyncRebuild => f.write_str("running sync rebuild: rtable change type enforced sync"),
            TableEvent::Switched { to } => write!(f, "switching algo to {to}"),
            TableEvent::Stale { module } => write!(f, "{module} is stale, dropped"),
            TableEvent::CompileFailed { module, failures, error } => {
                write!(f, "{module} algo instance setup failed, failures={failures}: {error}")
            }
            TableEvent::SetupFailed { module, reason } => {
                write!(f, "{module} algo instance setup failed: {reason}")
            }
            TableEvent::Banned { reason } => write!(f, "algo reported non-recoverable error: {reason}"),
            TableEvent::NoneUsable => {
                f.write_str("no algo selected: what was compiled last serves on, unsynced")
            }
        }
    }
}

impl Display for RebuildReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RebuildReason::Requested => "algo requested rebuild",
            RebuildReason::BatchFailed => "batch sync failed",
            RebuildReason::AlgorithmError => "algo reported non-recoverable error",
            RebuildReason::Changed => "rtable changed while it was compiled",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_the_kernel() {
        let label = TableLabel { family: Family::Inet, number: 0, attached: Some(("bsearch4", 7)) };
        assert_eq!(label.to_string(), "inet.0 (bsearch4#7)");
        assert_eq!(TableLabel { family: Family::Inet6, attached: None, ..label }.to_string(), "inet6.0");
    }

    #[test]
    fn every_event_has_its_text() {
        let table = TableLabel { family: Family::Inet6, number: 3, attached: Some(("radix", 2)) };
        let error = CompileError::Limit { algorithm: "dxr", what: "chunks", needed: 2, limit: 1 };
        let reason = || "out of groups".to_owned();
        let texts = [
            (
                TableEvent::RebuildScheduled(RebuildReason::Requested),
                "schedule_fd_rebuild: Scheduling rebuild: algo requested rebuild",
            ),
            (
                TableEvent::RebuildScheduled(RebuildReason::BatchFailed),
                "schedule_fd_rebuild: Scheduling rebuild: batch sync failed",
            ),
            (
                TableEvent::RebuildScheduled(RebuildReason::AlgorithmError),
                "schedule_fd_rebuild: Scheduling rebuild: algo reported non-recoverable error",
            ),
            (
                TableEvent::RebuildScheduled(RebuildReason::Changed),
                "schedule_fd_rebuild: Scheduling rebuild: rtable changed while it was compiled",
            ),
            (TableEvent::SyncRebuild, "rebuild_fd: running sync rebuild: rtable change type enforced sync"),
            (TableEvent::Switched { to: "dxr" }, "rebuild_fd_flm: switching algo to dxr"),
            (TableEvent::Stale { module: "dxr" }, "rebuild_fd_flm: dxr is stale, dropped"),
            (
                TableEvent::CompileFailed { module: "dxr", failures: 3, error: error.clone() },
                "setup_fd_instance: dxr algo instance setup failed, failures=3: dxr cannot hold this table: 2 chunks needed, 1 possible",
            ),
            (
                TableEvent::SetupFailed { module: "dxr", reason: reason() },
                "setup_fd_instance: dxr algo instance setup failed: out of groups",
            ),
            (
                TableEvent::Banned { reason: reason() },
                "handle_rtable_change_cb: algo reported non-recoverable error: out of groups",
            ),
            (
                TableEvent::NoneUsable,
                "fib_check_best_algo: no algo selected: what was compiled last serves on, unsynced",
            ),
        ];
        for (what, text) in texts {
            let event = Event::Table { table, what };
            assert_eq!(event.to_string(), format!("[fib_algo] inet6.3 (radix#2) {text}"));
        }
        let module = |change| Event::Module { family: Family::Inet, module: "dxr", change }.to_string();
        assert_eq!(module(ModuleChange::Registered), "[fib_algo] fib_module_register: attaching dxr to inet");
        assert_eq!(
            module(ModuleChange::Unregistered),
            "[fib_algo] fib_module_unregister: detaching dxr from inet"
        );
    }
}
