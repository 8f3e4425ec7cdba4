//! The lab: experiment → plan → runs → records → statistics → report.
//!
//! The lab measures *subjects* and does not know what they are. An [`Experiment`] names the variants that are compared.
//! The [`plan`](plan::plan) puts their runs in random order, block by block. [`run()`] prepares each subject with a
//! [`Bench`], verifies it, measures it and appends the run to the [`Archive`]. [`report()`] makes every figure and graph
//! from that archive alone.
//!
//! Read the modules in this order: `experiment`, `plan`, `subject`, `run`, `record`, `archive`, `stats`, `report`.

pub mod archive;
mod campaign;
pub mod error;
pub mod experiment;
pub mod host;
pub mod journal;
pub mod measurement;
pub mod ministat;
pub mod plan;
pub mod progress;
pub mod record;
pub mod report;
pub mod run;
mod schedule;
pub mod stats;
pub mod subject;
pub mod validity;

pub use archive::{Archive, Opening};
pub use error::{ArchiveError, LabError};
pub use experiment::{Analysis, Experiment, ExperimentError, Family, PathStep, Settings, Variant, Window};
pub use measurement::Measurement;
pub use plan::{Cell, PlannedRun, plan};
pub use progress::{Progress, RunStart};
pub use record::RunRecord;
pub use report::{Report, ReportStatus, UnknownCounter, report};
pub use run::{Outcome, run};
pub use subject::{Bench, Subject, SubjectError};
pub use validity::{Reasons, Validity};
