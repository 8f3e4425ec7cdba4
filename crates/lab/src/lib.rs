//! The lab: experiment → plan → panels → records → observations → statistics → report.
//!
//! The lab measures *subjects* and does not know what they are. An [`Experiment`] names the variants that are compared. A
//! block of a family is a [`Panel`]: a [`Bench`] makes all variants ready together, and they take turns of about a
//! millisecond, beside a control. [`run()`] verifies and measures panel after panel, appends each to the [`Archive`], and
//! ends when every comparison is decided. [`report()`] makes every figure and graph from that archive alone.
//!
//! Read the modules in this order: `experiment`, `plan`, `panel`, `turns`, `calibration`, `panel_run`, `run`, `record`,
//! `archive`, `observations`, `stats`, `decision`, `report`. Beside the report, `compare` judges two archives, `beds` finds
//! beds that differ, `noise` finds out how precise a machine is, and `forecast` what a campaign will see there. `search`
//! finds the highest loads that a device carries.

pub mod archive;
pub mod beds;
pub mod calibration;
mod campaign;
pub mod compare;
mod decision;
pub mod error;
pub mod experiment;
pub mod forecast;
pub mod host;
mod journal;
pub mod ministat;
mod misrouted;
pub mod noise;
mod observations;
pub mod panel;
mod panel_run;
pub mod plan;
pub mod progress;
pub mod record;
pub mod report;
pub mod run;
mod run_record;
mod schedule;
pub mod search;
mod settings;
mod shuffled;
pub mod slices;
pub mod stats;
mod turns;
pub mod validity;

pub use archive::{Archive, MeasuredPanel, Opening};
pub use error::{ArchiveError, LabError, SubjectError};
pub use experiment::{
    Analysis, Experiment, ExperimentError, Family, PathStep, Published, PublishedFigure, Runs, Settings,
    Variant, Window,
};
pub use panel::{Arm, Bench, Findings, Panel, PanelError, PanelWork, Slice, SliceLimits, Verified};
pub use plan::{Cell, PlannedPanel, block};
pub use progress::{PanelStart, Progress};
pub use record::PanelRecord;
pub use report::{Report, ReportStatus, UnknownCounter, report};
pub use run::{Outcome, run};
pub use validity::{Reasons, Validity};
