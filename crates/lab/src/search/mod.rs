//! Searches for the highest loads that a device carries: MLRsearch ("Multiple Loss Ratio Search",
//! draft-ietf-bmwg-mlrsearch), of which the throughput of RFC 2544 is a special case, and the maximum receive rate.
//!
//! A search is a state machine without a clock and without random choices: [`MlrSearch::request`] names the next trial,
//! [`MlrSearch::record`] takes its result. [`search`] drives it with a [`Measurer`].
//!
//! Read the modules in this order: `goal`, `config`, `trial`, `grid`, `target`, `bounds`, `history`, `spacing`,
//! `expansion`, `strategy`, `goal_search`, `initial`, `controller`, `result`.

mod bounds;
mod config;
mod controller;
mod error;
mod expansion;
mod goal;
mod goal_search;
mod grid;
mod history;
mod initial;
mod receive_rate;
mod result;
mod run;
mod spacing;
mod strategy;
mod target;
mod trial;

pub use config::SearchConfig;
pub use controller::MlrSearch;
pub use error::SearchError;
pub use goal::SearchGoal;
pub use receive_rate::{ReceiveRate, receive_rate};
pub use result::{GoalResult, SearchEnd, SearchResults};
pub use run::search;
pub use trial::{Measurer, Trial, TrialPurpose, TrialRequest, TrialResult};
