//! Statistics: from the slices of the rounds, over the blocks, to a verdict.
//!
//! # Observations
//!
//! The unit of observation is one block, in which all arms are made anew and take turns. Rates are compared as ratios, by
//! their logarithms, because a change of a program acts in percent, and the spread of rates is relative too. The rounds of
//! a block are correlated and share its memory layout, so they are never observations of their own: [`kept_rounds`] leaves
//! out those with which something interfered, by the control alone, and the [`midmean`] of the others' log ratios is the
//! observation of the block. [`control_warnings`] and [`one_sided`] judge the machine and a single arm.
//!
//! # Deciding
//!
//! [`judge`] looks at the blocks at fixed numbers of them ([`Looks`]), until every comparison is settled. Look k spends
//! alpha / (k (k + 1)), divided among the m comparisons, on one interval of Student's t for each: a union bound over looks
//! and comparisons. The alternatives are
//! - Lan and DeMets' alpha spending (Biometrika 70, 1983), which uses the correlation between looks. It has to know the
//!   largest number of blocks from the start: a campaign that is extended beyond it has spent its alpha. Its boundaries are
//!   those of a normal process, and their tails hold for Student's t at a few blocks only approximately.
//! - A confidence sequence for Student's t, which holds at every number of blocks: the mixture martingale of T. L. Lai (Ann.
//!   Statist. 4, 1976) with the normal mixture of H. Wang and A. Ramdas (arXiv 2310.03722, 2023), whose variance v, in
//!   squares of the difference over the standard deviation, is chosen beforehand. With g = 1 + n v and
//!   a = (√g m / alpha)^(2/n), the interval of n blocks reaches √((n − 1) / n · (a − 1) / (1 − a / g)) standard deviations.
//!
//! Half the width of the interval for alpha = 5 % and six comparisons, in standard deviations of one block's observation:
//!
//! | blocks | 5 | 10 | 20 | 40 |
//! | --- | --- | --- | --- | --- |
//! | union bound, looks at 5, 7, 10, 14, 20, 28, 40 | 2.63 | 1.60 | 0.99 | 0.66 |
//! | confidence sequence, v = 4 | 4.76 | 1.66 | 0.99 | 0.66 |
//! | confidence sequence, v = 25 | 3.96 | 1.80 | 1.07 | 0.71 |
//! | Lan and DeMets as Pocock, at most 40 blocks | 3.39 | 1.48 | 0.81 | 0.51 |
//! | Lan and DeMets as O'Brien and Fleming, at most 40 | > 100 | 4.66 | 1.03 | 0.44 |
//! | one look, planned for this number | 2.17 | 1.06 | 0.66 | 0.44 |
//!
//! The union bound is the narrowest at the first look, where a campaign with few disturbances ends. The level of each
//! interval is exact for normal observations, however few; there is nothing to tune, no maximum, and an extension costs
//! nothing. A boundary that knows its maximum would be a quarter to a third narrower there. A sequence that holds at every
//! number of blocks, and not only at looks that become rarer, is wider before 20 blocks and no narrower after.
//!
//! Runs of archives without panels, and those of two folders, are judged by [`judge_runs`] at one look, paired by block or
//! as two sets (Welch). [`judge_copy`] judges the hidden copy of the baseline.
//!
//! ```
//! use fullview_lab::stats::{Looks, Observed, Rules, Verdict, judge};
//!
//! let faster = Observed { whole: vec![0.135, 0.131, 0.138, 0.134, 0.136], share: None };
//! let judged = judge(&[faster], &Rules { margin: 0.01, alpha: 0.05, looks: Looks::starting_at(5) });
//! assert_eq!(judged[0].map(|one| one.verdict), Some(Verdict::Better));
//! ```

mod advice;
mod contrast;
mod control;
mod copy;
mod description;
mod difference;
mod judge;
mod looks;
mod midmean;
mod rounds;
pub(crate) mod student;
mod trimmed;
mod verdict;
mod warning;

pub use advice::{Advice, advise, interval_reach, runs_needed, smallest_difference, spread_at_most};
pub use contrast::{Contrast, Design};
pub use control::{ControlWarning, control_warnings};
pub use copy::{COPY_ALPHA, CopyJudgement, judge_copy};
pub use description::{Description, median};
pub use difference::Effect;
pub use judge::{Judgement, Observed, Rules, judge, judge_runs};
pub use looks::{Look, Looks};
pub use midmean::midmean;
pub use rounds::{ControlSlice, NOTABLE_ONE_SIDED, kept_rounds, one_sided};
pub use trimmed::trimmed_interval;
pub use verdict::Verdict;
pub use warning::{Warning, warnings_of_runs, warnings_of_spreads};
