//! The record of one panel: a line of the journal. Its slices are in a file of their own.

use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::panel::Findings;
use crate::validity::{Reasons, Validity};

/// Version of the fields of a record; a reader refuses any other version.
pub const SCHEMA: u32 = 2;

/// The record of one panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelRecord {
    /// The [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Block, from zero.
    pub block: u32,
    /// Name of the family.
    pub family: String,
    /// Number of earlier panels of the same block and family.
    pub attempt: u32,
    /// Seed of the subjects and of the order of turns.
    pub seed: u64,
    /// Start of the panel, UTC, RFC 3339.
    pub started: String,
    /// Seconds from the start to the end, preparation and verification included.
    pub seconds: f64,
    /// How long the turns were.
    pub turns: Turns,
    /// How that was found out; absent where the experiment sets the length or an earlier panel found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Number of controls; the arms of the slices are these, then the members.
    pub controls: usize,
    /// Whether a member's time contains the time of its control.
    pub subtracts: bool,
    /// Whether a schedule offered the load. Absent where none did, and in archives of older versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paced: bool,
    /// The variants in the order of the experiment, then the copy of the baseline.
    pub members: Vec<MemberRecord>,
    /// What the bed reported.
    pub bed: Findings,
    /// Name of the file of slices in the folder `slices`.
    pub slices: String,
    /// Complete rounds in that file.
    pub rounds: usize,
    /// Whether the panel counts, and the reasons if it does not.
    pub validity: Reasons,
}

/// The lengths of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// Microseconds at the beginning of each turn that are discarded.
    pub lead_in_us: f64,
    /// Microseconds of each turn that count.
    pub slice_us: f64,
    /// Whole rounds at the beginning that were discarded.
    pub warm_up_rounds: usize,
}

/// One member of a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRecord {
    /// Name of the variant; the copy of the baseline has the baseline's.
    pub variant: String,
    /// The control whose bed is the same.
    pub control: usize,
    /// Why the member took no turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<Validity>,
    /// What it reported.
    pub findings: Findings,
}

impl PanelRecord {
    /// Whether the panel enters the statistics.
    pub fn is_valid(&self) -> bool {
        self.validity.is_ok()
    }

    /// Whether the panel was stopped early: such a panel does not count as a repeat.
    pub fn is_interrupted(&self) -> bool {
        self.validity.iter().any(|reason| reason == Validity::Interrupted)
    }

    /// The arm of a member in the slices.
    pub fn arm_of(&self, member: usize) -> usize {
        self.controls + member
    }
}
