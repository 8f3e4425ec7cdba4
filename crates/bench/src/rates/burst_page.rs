//! The longest bursts on the page.

use std::fmt::Write;

use super::bursts::LongestBurst;
use super::result::{DeviceRates, DeviceSearch, RatesReport};

/// The section of the page; empty if no bursts were sent.
pub fn section(report: &RatesReport) -> String {
    let rows: Vec<String> = report.devices.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## The longest bursts\n\nPackets of the longest burst at {:.1} thousand packets a second of which none was lost \
         (RFC 9004), and the buffer that it says: packets that the device does not forward meanwhile, by its NDR, and their \
         time at that rate. ≥ is the longest burst that was tried, without a loss.\n\n\
         | {:15} | {:>24} | {:>24} | {:>16} |\n| --- | ---: | ---: | ---: |\n",
        report.largest_load / 1000.0,
        "device",
        "longest burst, packets",
        "buffer, packets",
        "buffer, ms"
    );
    text.extend(rows);
    text
}

fn row(device: &DeviceRates) -> Option<String> {
    let bursts = device.searches.iter().filter_map(|search| search.burst);
    let is_bounded = bursts.clone().all(|burst| burst.lost.is_some());
    let packets = device.range(|search| search.burst.map(|burst| burst.packets as f64))?;
    let limit = if is_bounded { "" } else { "≥ " };
    let longest = format!("{limit}{:.0} ({:.0}–{:.0})", packets.median, packets.lowest, packets.highest);
    let buffer = |of: fn(LongestBurst) -> Option<f64>| {
        device.range(move |search: &DeviceSearch| search.burst.and_then(of))
    };
    let held = buffer(|burst| burst.buffer?.corrected_packets);
    let time = buffer(|burst| Some(burst.buffer?.corrected_seconds? * 1e3));
    let held = held
        .map_or("–".into(), |held| format!("{:.0} ({:.0}–{:.0})", held.median, held.lowest, held.highest));
    let time = time.map_or("–".into(), |time| format!("{:.3}", time.median));
    let mut text = String::new();
    let _ = writeln!(text, "| {:15} | {longest:>24} | {held:>24} | {time:>16} |", device.device);
    Some(text)
}
