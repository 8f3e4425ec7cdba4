//! The compiled form of a rule, which both languages are lowered into.
//!
//! A rule matches if each of its [`Clause`]s does, and a clause if any of its [`Literal`]s does. So a list in braces that a
//! language does not expand into several rules is one clause, and `not` stands at each literal.

mod action;
mod lookup_key;
mod ranges;
mod state_options;
mod table;
mod test;
mod translation;

pub use action::{CompiledRule, RejectWith, RuleAction};
pub use lookup_key::LookupKey;
pub use ranges::{AddressMatch, ByteSet, InterfaceSet, PortRange, TableId};
pub use state_options::{FlowMask, FlowName, SourceLimits, StateOptions, Tracking};
pub use table::{NamedTable, TableKind};
pub use test::{Clause, FragmentTest, Literal, Test};
pub use translation::{AddressPool, PoolOrder, PortChoice, Side, Translation};
