//! The curves of outages: one graph for each failure, with a curve for each device.

use fullview_lab::report::{CurveTexts, Distribution, Distributions};

use super::failure::Failure;
use super::graph::RatesGraph;
use super::outage::Outage;
use super::result::{DeviceRates, RatesReport};

/// The start of the names of a failure's files.
pub fn stem(failure: Failure) -> String {
    format!("convergence-{}", failure.word())
}

/// The graphs of all failures that were measured.
pub fn convergence_graphs(report: &RatesReport) -> Vec<RatesGraph> {
    let graph = |failure| {
        let curves: Vec<Distribution> =
            report.devices.iter().flat_map(|device| curves(device, failure)).collect();
        (!curves.is_empty()).then(|| RatesGraph { stem: stem(failure), drawing: drawing(failure, curves) })
    };
    Failure::ALL.into_iter().filter_map(graph).collect()
}

fn drawing(failure: Failure, curves: Vec<Distribution>) -> Distributions {
    let texts = CurveTexts {
        title: format!("Outages: {}", failure.title()),
        y_label: "Milliseconds".into(),
        x_label: "Share of the failures with no longer outage".into(),
        notes: "The packets that were lost, by the rate of those that used the link before it failed. A failure that lost none \
                is at the lower edge; an outage is cut off if packets were still lost when its trial ended."
            .into(),
    };
    Distributions { texts, curves }
}

/// A curve without changes of further routes, and one with them.
fn curves(device: &DeviceRates, failure: Failure) -> Vec<Distribution> {
    let curve = |changing: bool| {
        let all = device.searches.iter().flat_map(|search| &search.convergence);
        let kind = all.filter(|one| one.failure == failure && one.changes.is_some() == changing);
        let outages: Vec<&Outage> = kind.flat_map(|one| &one.outages).collect();
        let name = if changing { format!("{}, changes", device.device) } else { device.device.clone() };
        (name + &cut(&outages), points(outages.iter().map(|outage| outage.outage_ms).collect()))
    };
    let curves = [false, true].map(curve).into_iter().filter(|(_, points)| !points.is_empty());
    curves.map(|(name, points)| Distribution { name, points, reference: Vec::new() }).collect()
}

/// How many outages are longer than the curve shows; nothing if none is.
fn cut(outages: &[&Outage]) -> String {
    let longer = outages.iter().filter(|outage| !outage.recovered).count();
    if longer == 0 { String::new() } else { format!(" ({longer} of {} cut off)", outages.len()) }
}

/// Each outage at the share of those before it.
fn points(mut outages: Vec<f64>) -> Vec<(f64, f64)> {
    outages.sort_by(f64::total_cmp);
    let count = outages.len() as f64;
    outages.into_iter().enumerate().map(|(place, outage)| (place as f64 / count, outage)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_that_no_repair_ended_are_counted() {
        let outage =
            |recovered| Outage { sent: 1, lost: 1, share: 1.0, outage_ms: 9.0, span_ms: 9.0, recovered };
        let [repaired, unrepaired] = [true, false].map(outage);
        assert_eq!(cut(&[&repaired, &unrepaired, &repaired]), " (1 of 3 cut off)");
        assert_eq!(cut(&[&repaired]), "");
    }

    #[test]
    fn outages_stand_at_the_share_of_those_before_them() {
        assert_eq!(points(vec![7.0, 2.0]), [(0.0, 2.0), (0.5, 7.0)]);
    }
}
