//! The third flow: experiment → plan → runs → samples → statistics → report.
//!
//! The lab measures *subjects* and knows nothing of what they are. An [`Experiment`] names the variants compared; the
//! [`plan`](plan::plan) puts their runs in random order, block by block; [`run()`] makes each subject ready through a
//! [`Bench`], verifies it, measures it and appends the run to the [`Archive`]; [`report()`] rebuilds every figure and
//! graph from that archive alone.
//!
//! Read in this order: `experiment`, `plan`, `subject`, `run`, `sample`, `archive`, `stats`, `report`.

pub mod archive;
pub mod error;
pub mod experiment;
pub mod host;
pub mod ministat;
pub mod plan;
pub mod report;
pub mod run;
pub mod sample;
mod schedule;
pub mod stats;
pub mod subject;
pub mod validity;

pub use archive::{Archive, Opening};
pub use error::{ArchiveError, LabError};
pub use experiment::{Analysis, Experiment, ExperimentError, Family, Settings, Step, Variant, Window};
pub use plan::{Cell, Planned, plan};
pub use report::{Report, Standing, UnknownCounter, report};
pub use run::{Outcome, Progress, Starting, run};
pub use sample::RunRecord;
pub use subject::{Bench, Measurement, Subject, SubjectError};
pub use validity::{Reasons, Validity};
