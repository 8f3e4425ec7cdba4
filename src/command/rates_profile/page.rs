//! The section of the page about profiles.

use std::fmt::Write;

use fullview_bench::rates::RatesError;
use fullview_lab::report::escaped;
use fullview_profile::Event;

use super::document::{DeviceProfile, ProfilesDocument};
use crate::command::profile_parts::{percent, row, rule, share_of, stages_of};

const TITLE: &str = "\n## Where the time goes\n\n";
const CONDITIONS: &str = "\
Stacks of the device's core, in one more trial after all rates were measured; it counts as none of them. The load is the PDR, or the \
largest load of a device that has none. Stages are shares of the device's samples: a sample belongs to the stage of its innermost \
function that is of one.";
const WITH_RECEIVER: &str = " In this test bed the right host receives on the device's core, whatever the number of cores; \
                             its part is a stage of its own, and in the graphs it is what `net_rx_action` calls.";
const OF_BUSIEST: &str =
    " The core is the busiest one of the device under test, unless its inventory names one.";

/// The section of a report for which perf is missing.
pub fn without(error: &RatesError) -> String {
    format!("{TITLE}No profiles: {error}.\n")
}

pub fn section(document: &ProfilesDocument) -> String {
    let event = document.event.map_or("", Event::describe);
    let beside = if document.has_receiver { WITH_RECEIVER } else { OF_BUSIEST };
    let mut text = format!("{TITLE}{event} {CONDITIONS}{beside}\n\n");
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
    let mut text = row("", profiles.iter().map(|one| Some(one.device.clone())));
    text.push_str(&rule(profiles.len()));
    for stage in stages_of(profiles.iter().map(|one| &one.stages[..])) {
        text.push_str(&row(&escaped(&stage), profiles.iter().map(|one| share_of(&one.stages, &stage))));
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
    for (name, fact) in facts {
        text.push_str(&row(name, profiles.iter().map(|one| Some(fact(one)))));
    }
    text.push('\n');
    text
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
