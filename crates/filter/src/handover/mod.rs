//! The states of workers as bytes, with which those of another process go on.
//!
//! The bytes are messages, each with its kind and its length: first the version of the format, then the rules and interfaces
//! that states refer to, the tables of addresses, the sources, then the states, at last the end. The receiver maps each of them
//! as it comes, so that both sides need memory for one message, for the numbers of rules, interfaces and sources, and for the
//! tables. Rules are found by their texts, as in a reload; interfaces and tables by their names. Fragments and known flows are
//! not among it: packets make them again.

mod export;
mod import;
mod message;
mod rules;
mod tables;

pub use export::export;
pub use import::{ImportSummary, Imported, StateImport, StateOwners};
pub use message::MAX_MESSAGE;

/// The version of the format. Another one is needed whenever a message, or the meaning of a field, changes.
pub const FORMAT: u32 = 6;

/// Why states cannot be taken from another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error(
        "its states and tables have format {0}, and this version reads {FORMAT}; have both processes run the same version"
    )]
    OtherFormat(u32),
    #[error("what it sends makes no sense at byte {0}; this is a bug")]
    Damaged(u64),
    #[error("what it sends ends early, at byte {0}")]
    EndsEarly(u64),
}
