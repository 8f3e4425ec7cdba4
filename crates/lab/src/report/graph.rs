//! The graph of the report: a bar for each cell.

use super::cells::CellRuns;
use super::chart::{Bar, Chart, Group};
use super::number::counted;
use super::results::Results;

pub(super) fn chart(results: &Results) -> Chart {
    let experiment = &results.campaign.experiment;
    let groups = experiment.variants.iter().enumerate();
    Chart {
        title: results.title().into(),
        y_label: y_label(results),
        y_detail: detail(results),
        notes: notes(results),
        families: experiment.families.iter().map(|family| family.title.clone()).collect(),
        extension: has_shares(results).then(|| EXTENSION.into()),
        groups: groups.map(|(at, variant)| group(results, at, &variant.label)).collect(),
        // The values of campaigns without panels may be the subject's share, which is no throughput.
        imix_axis: experiment.analysis.imix_axis && results.has_panels(),
    }
}

/// The text under a graph: the experiment's note and the conditions.
pub(super) fn notes(results: &Results) -> String {
    let note = results.campaign.experiment.note.clone().into_iter();
    let conditions: Vec<String> = results.conditions().into_iter().chain(results.changed_names()).collect();
    note.chain([without_links(&conditions.join(", "))]).collect::<Vec<_>>().join(" — ")
}

/// What the pale part of a bar is.
const EXTENSION: &str = "pale: up to the rate without the time of the bed";

fn has_shares(results: &Results) -> bool {
    results.judged.cells.all().iter().any(|cell| !cell.shares.is_empty())
}

/// Which statistics the bars show.
fn detail(results: &Results) -> String {
    let bars = format!("minimum, median, maximum of {}", runs_per_bar(results));
    if results.has_panels() { format!("whole loop: {bars}") } else { bars }
}

/// The number of valid runs per bar, which may differ from the number that was asked for.
fn runs_per_bar(results: &Results) -> String {
    let counts = || results.judged.cells.all().iter().map(|cell| cell.values.len() as u32);
    let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let most_runs = counted(most, if results.has_panels() { "block" } else { "run" });
    if fewest == most { most_runs } else { format!("{fewest} to {most_runs}") }
}

fn group(results: &Results, variant: usize, label: &str) -> Group {
    let bar = |cell: &CellRuns| {
        let runs = cell.description().ok_or_else(|| cell.absence())?;
        let unit = unit(results, cell.cell.family).ok_or("no scale: the baseline has no rate")?;
        let [min, median, max] = [runs.min, runs.median, runs.max].map(|rate| rate / unit);
        Ok(Bar { min, median, max, extension: cell.share().map(|share| share / unit) })
    };
    Group { label: label.into(), bars: results.judged.cells.of_variant(variant).map(bar).collect() }
}

pub(super) fn y_label(results: &Results) -> String {
    let experiment = &results.campaign.experiment;
    let multiple = || format!("Multiple of {}", experiment.variants[experiment.baseline()].label);
    experiment.only_metric().map_or_else(multiple, axis_label)
}

/// What a bar of 1 stands for: one per second, or the baseline's rate if families count different things.
fn unit(results: &Results, family: usize) -> Option<f64> {
    let experiment = &results.campaign.experiment;
    if experiment.only_metric().is_some() {
        return Some(1.0);
    }
    let baseline = results.judged.cells.of_variant(experiment.baseline());
    let of_family = baseline.into_iter().find(|cell| cell.cell.family == family)?;
    of_family.description().map(|runs| runs.median)
}

/// Makes a heading of the metric: "packets-per-second forwarded" becomes "Packets per second forwarded".
pub(super) fn axis_label(metric: &str) -> String {
    let spaced = metric.replace('-', " ");
    let mut letters = spaced.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Replaces Markdown links with their words, because nothing in a picture can be clicked.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, words, after)) = next_link(rest) {
        plain.push_str(before);
        plain.push_str(words);
        rest = after;
    }
    plain + rest
}

/// Returns the text before the first `[words](address)`, its words, and the text after it.
fn next_link(text: &str) -> Option<(&str, &str, &str)> {
    let (words_end, address) = text.split_once("](")?;
    let (before, words) = words_end.rsplit_once('[')?;
    let (_, after) = address.split_once(')')?;
    Some((before, words, after))
}

#[cfg(test)]
mod tests {
    use super::{axis_label, without_links};

    #[test]
    fn only_links_lose_their_address() {
        assert_eq!(without_links("a, [the script](https://x.y/z), b"), "a, the script, b");
        assert_eq!(without_links("[a](b) [c](d)"), "a c");
        for text in ["no link", "half [a](b", "f(x)[0]", "](", ""] {
            assert_eq!(without_links(text), text);
        }
    }

    #[test]
    fn a_metric_becomes_a_heading() {
        assert_eq!(axis_label("packets-per-second forwarded"), "Packets per second forwarded");
        assert_eq!(axis_label(""), "");
    }
}
