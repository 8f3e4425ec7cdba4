//! Which algorithm serves a table, how its FIB follows the RIB, and the switch from one algorithm to another:
//! everything in D27401 except the algorithms. `docs/explanation/framework.md` describes what FreeBSD does and what differs here.
//!
//! Nothing here reads a clock or starts a thread: the caller passes the time, asks when something is next due, and may
//! compile tables elsewhere ([`Job`]).
//!
//! ```
//! use std::sync::Arc;
//! use fullview_table::fib::framework::{Attachment, Origin, Time};
//! use fullview_table::fib::registry::Registered;
//! use fullview_table::{Change, NextHop, Rib};
//!
//! let mut rib = Arc::new(Rib::<u32>::default());
//! let mut table = Attachment::new(Time::ZERO, 0, u32::ALGORITHMS.into(), Arc::default());
//! let mut reader = table.reader();
//!
//! let change = Change { prefix: "198.18.0.0/15".parse()?, next_hop: Some(NextHop(1)) };
//! Arc::make_mut(&mut rib).apply(change);
//! table.changed(Time::from_secs(1), &rib, &[change], Origin::Protocol);
//! assert_eq!(reader.fib().lookup(0xc612_0001), NextHop(1));
//! assert_eq!(reader.generation(), rib.generation());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attachment;
mod delay;
mod evaluation;
mod event;
mod job;
mod log;
mod modules;
mod outcome;
mod publish;
mod rebuild;
mod retry;
mod settings;
mod tables;

#[cfg(test)]
mod tests;

pub use attachment::{Attachment, Origin};
pub use event::{Event, ModuleChange, RebuildReason, TableEvent, TableLabel};
pub use job::{Built, Job};
pub use log::{Log, LogEntry};
pub use modules::{Module, ModuleError, Modules};
pub use publish::{Reader, SharedReader};
pub use settings::{Compile, Settings, Time};
pub use tables::{FamilyTables, NoSuchTable, TableError, Tables};
