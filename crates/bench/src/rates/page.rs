//! The answer as a table, and the page of a folder.

use std::collections::BTreeMap;
use std::fmt::Write;

use fullview_lab::search::SearchEnd;
use fullview_lab::stats::median;

use fullview_table::Family;

use super::blocks;
use super::burst_page;
use super::convergence_page;
use super::latency_page::latency_section;
use super::result::{DeviceRates, DeviceSearch, RateRange, RatesReport};
use super::route_page;

/// The medians of all devices with their ranges, as a table of Markdown.
pub fn table(report: &RatesReport) -> String {
    let mut text = format!("| {:15} | {:>24} | {:>24} | {:>24} |\n", "device", "NDR", "PDR 0.5 %", "MRR");
    text.push_str("| --- | ---: | ---: | ---: |\n");
    for device in &report.devices {
        let rates: [fn(&DeviceSearch) -> Option<f64>; 3] =
            [|search| search.ndr, |search| search.pdr, |search| Some(search.mrr)];
        let [ndr, pdr, mrr] = rates.map(|rate| cell(device.range(rate), report.largest_load));
        let _ = writeln!(text, "| {:15} | {ndr:>24} | {pdr:>24} | {mrr:>24} |", device.device);
    }
    text
}

/// A rate that is the generator's limit is a lower bound of the device's.
fn cell(range: Option<RateRange>, largest: f64) -> String {
    let Some(RateRange { median, lowest, highest }) = range else { return "–".into() };
    let limit = if median >= largest { "≥ " } else { "" };
    let [median, lowest, highest] = [median, lowest, highest].map(|rate| rate / 1000.0);
    format!("{limit}{median:.1} ({lowest:.1}–{highest:.1})")
}

/// The page: the table, what may be compared, and the loss at each load.
pub fn page(report: &RatesReport) -> String {
    let mut text = format!("# The highest loads\n\n{}", conditions(report));
    let _ = writeln!(text, "\n{}", table(report));
    for note in notes(report) {
        let _ = writeln!(text, "- {note}");
    }
    text.push_str(&latency_section(report));
    text.push_str(&answers(report));
    text.push_str(&report.lab.sections);
    text.push_str("\n## Loss at each load\n");
    report.devices.iter().for_each(|device| text.push_str(&losses(device)));
    text
}

/// What was asked beside the rates, as sections of the page.
pub fn answers(report: &RatesReport) -> String {
    [blocks::section, route_page::section, burst_page::section, convergence_page::section]
        .map(|section| section(report))
        .concat()
}

fn conditions(report: &RatesReport) -> String {
    let RatesReport { repetitions, trial_seconds, seed, .. } = report;
    let searches = if *repetitions == 1 { "one search".into() } else { format!("{repetitions} searches") };
    let [smallest, largest] = [report.smallest_load, report.largest_load].map(|load| load / 1000.0);
    format!(
        "Thousands of UDP packets a second ({}{}) in 4096 flows, median and range of {searches} with trials of \
         {trial_seconds} s, devices in a random order (seed {seed}). Comparable are the rows of this table. {} Loads from {smallest:.1} to \
         {largest:.1} were searched. The upper one is what the generator itself holds: a device with that rate carries as \
         much or more (≥).\n",
        if report.family == Family::Inet6.name() { "IPv6, " } else { "" },
        sizes(&report.frame_bytes),
        report.lab.conditions
    )
}

/// How many frames of each length a cycle has, as in 7 × 60, 4 × 590, 1 × 1514.
fn sizes(lengths: &[usize]) -> String {
    if let [length] = lengths {
        return format!("{length} bytes without FCS");
    }
    let mut counts = BTreeMap::<usize, usize>::new();
    lengths.iter().for_each(|length| *counts.entry(*length).or_default() += 1);
    let parts: Vec<String> = counts.iter().map(|(length, count)| format!("{count} × {length}")).collect();
    format!("{} bytes without FCS", parts.join(", "))
}

/// What a reader has to know about the figures.
pub fn notes(report: &RatesReport) -> Vec<String> {
    let mut notes = Vec::new();
    if report.debug_build {
        notes.push(
            "A debug build: rates of this program's threads, and of the generator, mean nothing.".into(),
        );
    }
    if report.repetitions == 1 {
        notes.push(
            "One search for each device: nothing shows how much the rates differ from search to search."
                .into(),
        );
    }
    if report.interrupted {
        notes.push("Interrupted: searches are missing.".into());
    }
    for device in &report.devices {
        let word = &device.device;
        notes.extend(device.description.iter().map(|text| format!("{word} is {text}")));
        notes.extend(device.repeated.iter().map(|repeated| {
            format!("{word}, repetition {}, was measured again: {}", repeated.repetition, repeated.reason)
        }));
        let failed = device.failed.iter();
        notes.extend(
            failed.map(|failed| format!("{word}, repetition {}: {}", failed.repetition, failed.reason)),
        );
        let unanswered = device.searches.iter().flat_map(|search| {
            search
                .unanswered
                .iter()
                .map(|reason| format!("{word}, repetition {}, {reason}", search.repetition))
        });
        notes.extend(unanswered);
        let early = device.searches.iter().filter(|search| search.end != SearchEnd::Complete);
        notes.extend(
            early.map(|search| format!("{word}, repetition {}: {}", search.repetition, early_end(search))),
        );
    }
    notes
}

/// Why rates of a search without an end are missing or there.
fn early_end(search: &DeviceSearch) -> String {
    let rates = [("NDR", search.ndr), ("PDR", search.pdr)];
    let missing: Vec<&str> = rates.iter().filter(|(_, rate)| rate.is_none()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return "the search took all its time, after it had found its rates".into();
    }
    let missing = missing.join(" and ");
    format!("the search took all its time before it found {missing}; its bounds are in report.json (goals)")
}

/// The trials of all searches of a device, by load.
fn losses(device: &DeviceRates) -> String {
    let mut loads: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for trial in device.searches.iter().flat_map(|search| &search.trials) {
        loads.entry(trial.request.load.round() as u64).or_default().push(trial.result.loss_ratio * 100.0);
    }
    let mut text = format!("\n### {}\n\n", device.device);
    text.push_str("| packets/s | trials | median loss % | highest loss % |\n| ---: | ---: | ---: | ---: |\n");
    for (load, losses) in loads {
        let highest = losses.iter().copied().fold(0.0, f64::max);
        let middle = median(&losses).unwrap_or_default();
        let _ = writeln!(text, "| {load} | {} | {middle:.4} | {highest:.4} |", losses.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use fullview_lab::search::{ReceiveRate, SearchResults};

    use super::*;

    #[test]
    fn sizes_are_counted() {
        assert_eq!(sizes(&[60]), "60 bytes without FCS");
        assert_eq!(sizes(&[60, 590, 60]), "2 × 60, 1 × 590 bytes without FCS");
    }

    #[test]
    fn the_generators_limit_is_marked() {
        let range = |median| Some(RateRange { median, lowest: 900.0, highest: 2000.0 });
        assert_eq!(cell(range(1500.0), 2000.0), "1.5 (0.9–2.0)");
        assert_eq!(cell(range(2000.0), 2000.0), "≥ 2.0 (0.9–2.0)");
        assert_eq!(cell(None, 2000.0), "–");
    }

    #[test]
    fn a_search_without_an_end_says_which_rates_are_missing() {
        let results = SearchResults { end: SearchEnd::Stopped, goals: vec![], trials: vec![] };
        let receive = ReceiveRate { mean: 1.0, standard_deviation: None, trials: vec![] };
        let mut search = DeviceSearch::new(1, results, receive, 2000.0);
        assert!(early_end(&search).contains("found NDR and PDR;"), "{}", early_end(&search));
        search.ndr = Some(1000.0);
        assert!(early_end(&search).contains("found PDR;"), "{}", early_end(&search));
        search.pdr = Some(1000.0);
        assert!(early_end(&search).ends_with("after it had found its rates"), "{}", early_end(&search));
    }
}
