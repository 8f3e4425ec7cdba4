//! The section of the page about latency.

use std::fmt::Write;

use super::latency_graph::stem;
use super::latency_level::LatencyLevel;
use super::latency_sum::{LevelSum, sum};
use super::path_latency::PathLatency;
use super::result::{DeviceRates, RatesReport};

const CONDITIONS: &str = "\
Microseconds from the moment at which the schedule wants a packet sent until the receiver's kernel has it; probes of all \
repetitions together. A late generator makes a delay longer, not less frequent (no coordinated omission). \"Over a cable\", where \
it is shown, is the same load without a device: what the stamps, the generator and the receiver add themselves. It is subtracted nowhere. PDV is the packet \
delay variation of RFC 5481: p99.9 less the minimum. Lost probes have no delay.\n";

/// The section, or nothing if latency was not measured.
pub fn latency_section(report: &RatesReport) -> String {
    let levels = LatencyLevel::ALL.map(|level| level_section(report, level));
    if levels.iter().all(String::is_empty) {
        return String::new();
    }
    format!("\n## Latency\n\n{CONDITIONS}{}", levels.concat())
}

fn level_section(report: &RatesReport, level: LatencyLevel) -> String {
    let rows: Vec<String> = report.devices.iter().filter_map(|device| rows(device, level)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let title = level.title();
    let picture = format!("{}.png", stem(level));
    format!(
        "\n### At {title}\n\n| device | 1000 packets/s | probes | lost | min | median | p99 | p99.9 | max | PDV |\n\
         | --- |{}\n{}\n![Delays at {title}]({picture})\n",
        " ---: |".repeat(9),
        rows.concat()
    )
}

/// A row for the device and one for the cable in its place.
fn rows(device: &DeviceRates, level: LatencyLevel) -> Option<String> {
    let LevelSum { loads: [lowest, highest], device: through, link } = sum(device, level)?;
    let [low, high] = [lowest, highest].map(|load| format!("{:.1}", load / 1000.0));
    let load = if low == high { low } else { format!("{low}–{high}") };
    let mut rows = String::new();
    let link = link.map(|link| (format!("{}: over a cable", device.device), link));
    for (name, path) in [(device.device.clone(), through)].into_iter().chain(link) {
        let _ = writeln!(rows, "| {name} | {load} | {} | {} | {} |", path.probes, path.lost, figures(&path));
    }
    Some(rows)
}

fn figures(path: &PathLatency) -> String {
    let micros = |nanos: u64| format!("{:.1}", nanos as f64 / 1000.0);
    let cells = match &path.delays {
        None => [None; 6],
        Some(delays) => [
            Some(delays.min),
            Some(delays.median),
            Some(delays.p99),
            delays.p99_9,
            Some(delays.max),
            delays.pdv,
        ],
    };
    cells.map(|cell| cell.map_or_else(|| "–".into(), micros)).join(" | ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::delays::Delays;
    use super::*;

    fn path(micros: u64) -> PathLatency {
        let mut delays = Delays::default();
        (0..1000).for_each(|_| delays.record(Duration::from_micros(micros)));
        PathLatency::new(1001, delays)
    }

    #[test]
    fn figures_are_microseconds_and_missing_ones_dashes() {
        assert_eq!(figures(&path(5)), "5.0 | 5.0 | 5.0 | 5.0 | 5.0 | 0.0");
        assert_eq!(figures(&PathLatency::new(3, Delays::default())), "– | – | – | – | – | –");
        assert_eq!(path(5).lost, 1);
    }
}
