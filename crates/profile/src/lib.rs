//! Profiles of this process, or of a core: perf(1) samples stacks while a piece of work runs, and nothing of what comes before or after.
//!
//! Read the modules in this order: `event` (what is sampled), `attached` (perf, switched on and off), `window` (the work), `recorder`,
//! `script` (perf's text), `image` (the program in memory), `symbols` (names, with inlined functions), `stacks`, `quality` (whether a profile can be
//! trusted), `stages` (a table of where the time goes), `graph` (flame graphs), `counters` (events a packet). A core: `core_tasks` (whose a sample is), `core_quality`, `core_recorder`.

mod attached;
mod control;
pub mod core_quality;
mod core_recorder;
mod core_tasks;
pub mod counters;
mod error;
pub mod event;
pub mod graph;
mod image;
pub mod quality;
mod recorder;
mod script;
pub mod stacks;
pub mod stages;
pub mod symbols;
mod window;

pub use attached::check;
pub use core_quality::CoreQuality;
pub use core_recorder::{CoreProfile, CoreRecorder, ProfiledCore};
pub use core_tasks::{CoreTasks, TaskScope, begins};
pub use error::ProfileError;
pub use event::Event;
pub use quality::Quality;
pub use recorder::{Profile, Recorder};
pub use stacks::Stacks;
