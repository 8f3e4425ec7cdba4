//! The section of the page about profiles.

use std::fmt::Write;

use fullview_profile::ProfileError;
use fullview_profile::stages::OTHER;

use super::document::{DeviceProfile, ProfilesDocument};

const TITLE: &str = "\n## Where the time goes\n\n";
const CONDITIONS: &str = "\
Stacks of the device's core, in one more trial after all rates were measured; it counts as none of them. The load is the PDR, or the \
largest load of a device that has none. Stages are shares of the device's samples: a sample belongs to the stage of its innermost \
function that is of one. In this test bed the right host receives on the device's core, whatever the number of cores; its part is a \
stage of its own, and in the graphs it is what `net_rx_action` calls.\n\n";

/// The section of a report for which perf is missing.
pub fn without(error: &ProfileError) -> String {
    format!("{TITLE}No profiles: {error}.\n")
}

pub fn section(document: &ProfilesDocument) -> String {
    let mut text = format!("{TITLE}{} {CONDITIONS}", document.event.describe());
    if !document.profiles.is_empty() {
        text.push_str(&table(&document.profiles));
    }
    for note in document.notes() {
        let _ = writeln!(text, "- {note}");
    }
    document.profiles.iter().for_each(|one| text.push_str(&pictures(one)));
    text
}

/// A row's name and its cells.
type Fact = (&'static str, fn(&DeviceProfile) -> String);

fn table(profiles: &[DeviceProfile]) -> String {
    let mut text = row("", profiles, |one| Some(one.device.clone()));
    let _ = writeln!(text, "| --- |{}", " ---: |".repeat(profiles.len()));
    for stage in stages_of(profiles) {
        text.push_str(&row(&stage, profiles, |one| {
            one.stages.iter().find(|known| known.stage == stage).map(|known| percent(known.share))
        }));
    }
    let facts: [Fact; 7] = [
        ("**samples of the device**", |one| one.quality.samples.to_string()),
        ("**of the core**: the device", |one| percent(one.quality.device)),
        ("idle", |one| percent(one.quality.idle)),
        ("other programs", |one| percent(one.quality.of_others())),
        ("the measurement itself", |one| percent(one.quality.measurement)),
        ("**load**, 1000 packets/s", |one| format!("{:.1}", one.load / 1000.0)),
        ("lost packets", |one| percent(one.lost())),
    ];
    facts.iter().for_each(|(name, fact)| text.push_str(&row(name, profiles, |one| Some(fact(one)))));
    text.push('\n');
    text
}

fn row(name: &str, profiles: &[DeviceProfile], cell: impl Fn(&DeviceProfile) -> Option<String>) -> String {
    let cells = profiles.iter().map(|one| cell(one).unwrap_or_else(|| "–".into()));
    format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// All stages: those of the first device by their size, then those that only others have; what no stage has stands last.
fn stages_of(profiles: &[DeviceProfile]) -> Vec<String> {
    let mut stages: Vec<String> = Vec::new();
    for stage in profiles.iter().flat_map(|one| &one.stages) {
        if !stages.contains(&stage.stage) {
            stages.push(stage.stage.clone());
        }
    }
    stages.sort_by_key(|stage| stage == OTHER);
    stages
}

/// The graphs are shown, and can be searched and enlarged when they are opened.
fn pictures(one: &DeviceProfile) -> String {
    let DeviceProfile { device, graph, stacks, difference, .. } = one;
    let mut text = format!(
        "\n### Where {device} spends its time\n\n[![Flame graph of {device}]({graph})]({graph})\n\nStacks: [{stacks}]({stacks})\n"
    );
    if let Some(file) = difference {
        let _ = writeln!(text, "\n[![Difference of {device}]({file})]({file})");
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
