//! The curves of delays: one graph for each load, with a curve for each device.

use fullview_lab::report::{CurveTexts, Distribution, Distributions};

use super::delays::Delays;
use super::graph::RatesGraph;
use super::latency_level::LatencyLevel;
use super::latency_sum::{LevelSum, sum};
use super::result::{DeviceRates, RatesReport};

/// Places of a curve for each factor of ten in the share of slower packets.
const STEPS: u32 = 50;

/// The start of the names of a level's files.
pub fn stem(level: LatencyLevel) -> String {
    format!("latency-{}", level.word())
}

/// The graphs of all levels that were measured.
pub fn latency_graphs(report: &RatesReport) -> Vec<RatesGraph> {
    let graph = |level| {
        let curves: Vec<Distribution> =
            report.devices.iter().filter_map(|device| curve(device, level)).collect();
        (!curves.is_empty()).then(|| RatesGraph { stem: stem(level), drawing: drawing(level, curves) })
    };
    LatencyLevel::ALL.into_iter().filter_map(graph).collect()
}

fn drawing(level: LatencyLevel, curves: Vec<Distribution>) -> Distributions {
    let texts = CurveTexts {
        title: format!("Delays at {}", level.title()),
        y_label: "Microseconds".into(),
        x_label: "Share of the packets that are not slower".into(),
        notes: "From the moment at which the schedule wants a packet sent until the receiver's kernel has it; lost probes are left \
                out. Thin, pale lines: the same load over a cable, without the device."
            .into(),
    };
    Distributions { texts, curves }
}

fn curve(device: &DeviceRates, level: LatencyLevel) -> Option<Distribution> {
    let LevelSum { loads, device: through, link } = sum(device, level)?;
    let load = (loads[0] + loads[1]) / 2000.0;
    let name = format!("{}, {load:.1} k packets/s", device.device);
    let points = points(&through.distribution);
    let reference = link.map(|link| self::points(&link.distribution)).unwrap_or_default();
    (!points.is_empty()).then_some(Distribution { name, points, reference })
}

/// Microseconds at shares that come ten times closer to 1 in so many steps, to the last that a packet exceeds.
fn points(delays: &Delays) -> Vec<(f64, f64)> {
    let last = (delays.count() as f64).log10().max(0.0) * f64::from(STEPS);
    let shares = (0..=last as u32).map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(STEPS)));
    let all = shares.map(|share| (share, delays.at(share) as f64 / 1000.0));
    all.filter(|_| delays.count() > 0).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_curve_rises_to_the_last_share_that_is_known() {
        let mut delays = Delays::default();
        (1..=1000).for_each(|micros| delays.record(Duration::from_micros(micros)));
        let points = points(&delays);
        assert_eq!(points.len(), 151);
        assert_eq!(points[0].0, 0.0);
        assert!(points.is_sorted_by(|before, after| before.0 < after.0 && before.1 <= after.1));
        assert!((points[150].0 - 0.999).abs() < 1e-9);
        assert!(super::points(&Delays::default()).is_empty());
    }
}
