//! The record of one run of schema 1: a line of `runs.jsonl`, which campaigns before panels wrote.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::validity::{Reasons, Validity};

/// Version of the fields of the record; a reader refuses any other version.
pub(crate) const SCHEMA: u32 = 1;

/// The record of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// The [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Block, from zero.
    pub block: u32,
    /// Position in the plan of the block, from zero.
    pub position: u32,
    /// Number of earlier runs of the same block and cell.
    pub attempt: u32,
    /// Name of the variant.
    pub variant: String,
    /// Name of the family.
    pub family: String,
    /// Seed of the subject.
    pub seed: u64,
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// Value of the run in the experiment's metric.
    pub value: f64,
    /// Rate in each sample, in order of time.
    pub samples: Vec<f64>,
    /// Counts and secondary rates by name.
    pub counters: BTreeMap<String, f64>,
    /// Whether the run counts, and the reasons if it does not.
    pub validity: Reasons,
    /// Log lines of the subject.
    pub events: Vec<String>,
}

impl RunRecord {
    /// Whether the run enters the statistics.
    pub fn is_valid(&self) -> bool {
        self.validity.is_ok()
    }

    /// Whether the run was stopped early: such a run does not count as a retry.
    pub fn is_interrupted(&self) -> bool {
        self.validity.iter().any(|reason| reason == Validity::Interrupted)
    }
}
