//! What blocks say about a device and a control.

use serde::{Deserialize, Serialize};

/// A rate of a device by that of the control.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockContrast {
    pub device: String,
    pub rate: String,
    /// Those in which both have the rate, and it is above 0.
    pub blocks: usize,
    /// The relative difference; nothing of fewer than two blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<BlockDifference>,
}

/// With its interval of 95 %.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BlockDifference {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}
