//! The latency of a device at one level, over all repetitions.

use super::delays::Delays;
use super::latency_level::LatencyLevel;
use super::path_latency::{LevelLatency, PathLatency};
use super::result::DeviceRates;

/// A device at a level, over all repetitions.
pub struct LevelSum {
    /// The lowest and the highest load.
    pub loads: [f64; 2],
    pub device: PathLatency,
    /// Nothing if no cable was measured.
    pub link: Option<PathLatency>,
}

/// The repetitions of a device at a level, added; nothing if there are none.
pub fn sum(device: &DeviceRates, level: LatencyLevel) -> Option<LevelSum> {
    let all = device.searches.iter().flat_map(|search| &search.latency);
    let measured: Vec<&LevelLatency> = all.filter(|one| one.level == level).collect();
    let loads = || measured.iter().map(|one| one.load);
    let bounds = [loads().reduce(f64::min)?, loads().reduce(f64::max)?];
    let device = add(measured.iter().map(|one| &one.device))?;
    let link = add(measured.iter().filter_map(|one| one.link.as_ref()));
    Some(LevelSum { loads: bounds, device, link })
}

/// Nothing if there is nothing to add.
fn add<'l>(paths: impl Iterator<Item = &'l PathLatency>) -> Option<PathLatency> {
    let paths: Vec<&PathLatency> = paths.collect();
    let mut delays = Delays::default();
    paths.iter().for_each(|path| delays.add(&path.distribution));
    (!paths.is_empty()).then(|| PathLatency::new(paths.iter().map(|path| path.probes).sum(), delays))
}
