//! Outages on the page.

use std::fmt::Write;

use fullview_lab::stats::median;

use super::convergence::Convergence;
use super::convergence_graph::stem;
use super::failure::Failure;
use super::outage::Outage;
use super::result::{DeviceRates, RatesReport};

/// The section of the page; empty if nothing failed.
pub fn section(report: &RatesReport) -> String {
    let all =
        report.devices.iter().flat_map(|device| &device.searches).flat_map(|search| &search.convergence);
    let Some(load) = all.map(|one| one.load).next() else { return String::new() };
    let parts = Failure::ALL.map(|failure| failure_section(report, failure));
    format!(
        "\n## Failures\n\nMilliseconds in which packets were lost while {load:.0} packets a second came: the lost packets, by \
         the rate of those that used the link before. The span is the time from the first lost packet to the last one. A packet is \
         {:.2} ms. All repetitions together; ≥ if a longer outage is possible, because packets were still lost when a trial \
         ended.\n{}",
        1e3 / load,
        parts.concat()
    )
}

fn failure_section(report: &RatesReport, failure: Failure) -> String {
    let kinds = |device| [false, true].map(|changing| row(device, failure, changing));
    let rows: Vec<String> = report.devices.iter().flat_map(kinds).flatten().collect();
    if rows.is_empty() {
        return String::new();
    }
    let title = failure.title();
    format!(
        "\n### Failure: {title}\n\n| {:15} | {:>9} | {:>8} | {:>10} | {:>10} | {:>10} |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n{}\n![Outages: {title}]({}.png)\n",
        "device",
        "changes/s",
        "failures",
        "median",
        "worst",
        "worst span",
        rows.concat(),
        stem(failure)
    )
}

/// All repetitions of a device, with or without changes of further routes.
fn row(device: &DeviceRates, failure: Failure, changing: bool) -> Option<String> {
    let is_it = |one: &&Convergence| one.failure == failure && one.changes.is_some() == changing;
    let all: Vec<&Convergence> =
        device.searches.iter().flat_map(|search| &search.convergence).filter(is_it).collect();
    let outages: Vec<Outage> = all.iter().flat_map(|one| &one.outages).copied().collect();
    let middle = middle(&outages)?;
    let worst = |of: fn(&Outage) -> f64| {
        let value = outages.iter().map(of).fold(0.0, f64::max);
        figure(value, outages.iter().any(|outage| !outage.recovered))
    };
    let made: Vec<f64> = all.iter().filter_map(|one| Some(one.changes?.made_per_second)).collect();
    let changes = median(&made).map_or("–".into(), |made| format!("{made:.0}"));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "| {:15} | {changes:>9} | {:>8} | {middle:>10} | {:>10} | {:>10} |",
        device.device,
        outages.len(),
        worst(|outage| outage.outage_ms),
        worst(|outage| outage.span_ms)
    );
    Some(text)
}

/// The median. It is a lower limit if an outage that may have been longer is not above the middle.
fn middle(outages: &[Outage]) -> Option<String> {
    let mut times: Vec<f64> = outages.iter().map(|outage| outage.outage_ms).collect();
    times.sort_by(f64::total_cmp);
    let upper = times.get(times.len() / 2)?;
    let is_limit = outages.iter().any(|outage| !outage.recovered && outage.outage_ms <= *upper);
    median(&times).map(|middle| figure(middle, is_limit))
}

fn figure(milliseconds: f64, is_limit: bool) -> String {
    format!("{}{milliseconds:.1}", if is_limit { "≥ " } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_that_rests_on_unrepaired_failures_is_a_limit() {
        let outage = |outage_ms: f64| Outage {
            sent: 1,
            lost: 1,
            share: 1.0,
            outage_ms,
            span_ms: 1.0,
            recovered: outage_ms < 390.0,
        };
        let of = |times: &[f64]| middle(&times.iter().copied().map(outage).collect::<Vec<_>>());
        assert_eq!(of(&[390.0, 390.0, 390.0]).as_deref(), Some("≥ 390.0"));
        assert_eq!(of(&[1.0, 2.0, 390.0]).as_deref(), Some("2.0"));
        assert_eq!(of(&[1.0, 390.0]).as_deref(), Some("≥ 195.5"));
        assert_eq!(of(&[]), None);
    }
}
