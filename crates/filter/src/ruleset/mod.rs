//! A rule set in its compiled form, which decides about packets together with what a worker remembers.
//!
//! A rule set does not change: workers share it, and a reload replaces it. Counters and states belong to the workers.

mod check;
mod create;
mod evaluation;
mod explain;
mod flows;
mod ipfw_semantics;
mod list;
mod matching;
mod parts;
mod pf_semantics;
mod records;
mod reject;
mod successors;
mod touched_tables;
mod translate;

pub use explain::TriedRule;
pub use flows::{
    comparison, flow_lifetime, follow_offloaded, follow_segment, learn_flow, may_learn_flow, may_renew_flow,
    recall_flow, renew_flow, share_windows,
};
pub use list::RuleList;
pub use parts::{CompileError, Language, RuleSet, RuleSetParts};
pub use records::{StateRecord, records, remove};
pub(crate) use successors::{FormerRule, successors};
