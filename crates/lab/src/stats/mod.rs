//! From the figures of the runs to a verdict.
//!
//! The unit is one run: the seconds inside a run are correlated and share their state, so they are evidence about the
//! run ([`doubts_of_series`]), never observations of their own. Rates are compared as ratios, by the logarithms,
//! because a change of a program acts in percent and the spread of rates does too. Runs of the same block are
//! compared with each other, so that what drifts from block to block does not count as spread.
//!
//! ```
//! use fullview_lab::stats::{Contrast, Verdict, judge};
//!
//! let before = [713_234.0, 715_001.0, 712_870.0, 714_410.0, 713_900.0];
//! let after = [817_063.0, 815_930.0, 818_240.0, 816_400.0, 817_700.0];
//! let judged = judge(&[Contrast::paired(&before, &after)], 0.01, 0.05);
//! assert_eq!(judged[0].as_ref().map(|one| &one.verdict), Some(&Verdict::Better));
//! ```

mod compare;
mod describe;
mod doubt;
mod multiple;
mod power;
pub(crate) mod student;
mod verdict;

pub use compare::{Contrast, Design, Effect};
pub use describe::{Description, median};
pub use doubt::{Doubt, doubts_of_runs, doubts_of_series, doubts_of_spreads};
pub use multiple::holm;
pub use power::smallest_effect;
pub use verdict::{Judgement, Verdict, judge};
