//! What is found out about the latency of a device at one level.

use serde::{Deserialize, Serialize};

use super::delays::{DelaySummary, Delays};
use super::latency_level::LatencyLevel;

/// The delays of one level, through the device, and over a cable in its place if the lab has one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LevelLatency {
    pub level: LatencyLevel,
    /// Packets per second.
    pub load: f64,
    pub device: PathLatency,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathLatency>,
}

/// The delays of one path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathLatency {
    pub probes: u64,
    pub lost: u64,
    /// In nanoseconds; nothing if no probe came out.
    pub delays: Option<DelaySummary>,
    #[serde(skip)]
    pub distribution: Delays,
}

impl PathLatency {
    pub fn new(probes: u64, distribution: Delays) -> PathLatency {
        let lost = probes.saturating_sub(distribution.count());
        PathLatency { probes, lost, delays: distribution.summary(), distribution }
    }
}
