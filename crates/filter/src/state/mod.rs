//!
//! All of it belongs to one worker, is bounded, and is allocated when the worker starts. A state has two parts: the 64
//! bytes that a lookup reads, and 48 bytes that a new or translated packet needs. With two index slots of 7.7 bytes at
//! most (a translated flow is found by two keys), and a bit for whether it gives way in a full table, a state takes 127.5 bytes.
//!
//! Times are milliseconds of the caller's clock. States keep the lower 32 bits, so no timeout may exceed 24 days.

mod counters;
mod entry;
pub mod flow;
mod flow_key;
mod fragments;
mod hash;
mod image;
mod index;
mod number_list;
mod number_set;
mod phase;
mod reload;
mod sources;
mod table;
mod tcp;
mod timeouts;
mod windows;
mod worker;

pub use counters::RuleCounters;
pub use entry::{ColdState, HotState, PassBinding, StateTranslation};
pub use flow_key::FlowKey;
pub use fragments::FragmentCache;
pub use hash::FlowHasher;
pub use phase::Phase;
pub use reload::{Adoption, RuleMap};
pub use sources::{SourceKey, SourceTable};
pub use table::{Hit, StateTable, TableFull};
pub use tcp::Tracked;
pub use timeouts::{MAX_TIMEOUT, Timeouts};
pub use windows::{Comparison, FlowWindows, WindowEnd};
pub use worker::{FilterWorker, StateSummary, WorkerLimits};

pub(crate) use entry::{CONNECTED, StateFlags};
pub(crate) use image::StateImage;
pub(crate) use reload::{GONE, GONE_WITH_STATES, NO_RULE, known_rule};
pub(crate) use sources::{NewSourceState, SourceImage};
pub(crate) use table::NewState;
pub(crate) use worker::{decrement, increment};
