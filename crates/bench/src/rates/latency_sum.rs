//! The latency of a device at one level, over all repetitions.

use super::delays::Delays;
use super::latency::{LevelLatency, PathLatency};
use super::latency_level::LatencyLevel;
use super::result::DeviceRates;

/// A device at a level, over all repetitions.
pub struct LevelSum {
    /// The lowest and the highest load.
    pub loads: [f64; 2],
    pub device: PathLatency,
    pub link: PathLatency,
}

/// The repetitions of a device at a level, added; nothing if there are none.
pub fn sum(device: &DeviceRates, level: LatencyLevel) -> Option<LevelSum> {
    let all = device.searches.iter().flat_map(|search| &search.latency);
    let measured: Vec<&LevelLatency> = all.filter(|one| one.level == level).collect();
    let loads = || measured.iter().map(|one| one.load);
    let bounds = [loads().reduce(f64::min)?, loads().reduce(f64::max)?];
    let add = |path: fn(&LevelLatency) -> &PathLatency| {
        let mut delays = Delays::default();
        measured.iter().for_each(|one| delays.add(&path(one).distribution));
        PathLatency::new(measured.iter().map(|one| path(one).probes).sum(), delays)
    };
    Some(LevelSum { loads: bounds, device: add(|one| &one.device), link: add(|one| &one.link) })
}
