//! The routes of the devices' kernels on the page.

use std::fmt::Write;

use super::memory::ProgramMemory;
use super::result::{DeviceRates, RatesReport};
use super::table_load::TableLoad;

/// The section of the page; empty if no routes were loaded.
pub fn section(report: &RatesReport) -> String {
    let loads = || report.devices.iter().flat_map(|device| &device.searches);
    let Some(first) = loads().find_map(|search| search.routes) else { return String::new() };
    let changes = loads().find_map(|search| search.changes);
    let changing = changes.map_or("none of which changed".into(), |changes| {
        let how = if changes.traced { ", as in a trace of BGP updates" } else { "" };
        format!("{} of which were to change every second{how}", changes.wanted_per_second)
    });
    let mut text = format!(
        "\n## Routes\n\nAll rates are with {} synthetic routes in the device's kernel, {changing}, and packets to all parts of \
         the table. Medians of all repetitions; memory is that of the device's program, with its BPF maps.\n\n\
         | {:15} | {:>10} | {:>12} | {:>20} | {:>13} | {:>12} |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
        first.routes, "device", "loaded, s", "forwards, s", "memory, MiB", "bytes a route", "changes/s"
    );
    report.devices.iter().filter_map(row).for_each(|row| text.push_str(&row));
    text
}

fn row(device: &DeviceRates) -> Option<String> {
    let of = |value: fn(&TableLoad) -> Option<f64>| {
        device.range(move |search| search.routes.as_ref().and_then(value)).map(|range| range.median)
    };
    let loaded = of(|load| Some(load.load_seconds))?;
    let forwards = of(|load| Some(load.forwards_seconds))?;
    let memory = [of(|load| load.program.map(|[before, _]| mebibytes(before)))]
        .into_iter()
        .chain([of(|load| load.program.map(|[_, after]| mebibytes(after)))]);
    let memory: Vec<String> = memory.flatten().map(|bytes| format!("{bytes:.1}")).collect();
    let memory = if memory.is_empty() { "–".into() } else { memory.join(" → ") };
    let bytes = of(|load| load.bytes_per_route).map_or("–".into(), |bytes| format!("{bytes:.0}"));
    let changes = device.range(|search| search.changes.map(|changes| changes.made_per_second));
    let changes = changes.map_or("–".into(), |changes| format!("{:.0}", changes.median));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "| {:15} | {loaded:>10.2} | {forwards:>12.2} | {memory:>20} | {bytes:>13} | {changes:>12} |",
        device.device
    );
    Some(text)
}

fn mebibytes(memory: ProgramMemory) -> f64 {
    memory.all() as f64 / f64::from(1 << 20)
}
