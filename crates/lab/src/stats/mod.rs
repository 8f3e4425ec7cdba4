//! Statistics: from the values of the runs to a verdict.
//!
//! The unit of observation is one run. The samples within a run are correlated and share its state, so they only serve
//! to judge that run ([`warnings_of_series`]) and are never observations of their own. Rates are compared as ratios, by
//! their logarithms, because a change of a program acts in percent, and the spread of rates is relative too. Where two
//! variants have a run in each of the same blocks, the runs of a block are compared with each other, so that drift from
//! block to block does not count as spread.
//!
//! ```
//! use fullview_lab::stats::{Contrast, Verdict, judge};
//!
//! let before = [713_234.0, 715_001.0, 712_870.0, 714_410.0, 713_900.0];
//! let after = [817_063.0, 815_930.0, 818_240.0, 816_400.0, 817_700.0];
//! let judged = judge(&[Contrast::paired(&before, &after)], 0.01, 0.05);
//! assert_eq!(judged[0].as_ref().map(|one| &one.verdict), Some(&Verdict::Better));
//! ```

mod contrast;
mod description;
mod holm;
mod power;
pub(crate) mod student;
mod verdict;
mod warning;

pub use contrast::{Contrast, Design, Effect};
pub use description::{Description, median};
pub use holm::holm;
pub use power::smallest_effect;
pub(crate) use verdict::MOST_RUNS;
pub use verdict::{Judgement, Verdict, judge};
pub use warning::{Warning, warnings_of_runs, warnings_of_series, warnings_of_spreads};
