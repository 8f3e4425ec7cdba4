//! `README.md`: first the form of the published forwarding reports, then what they lack.

mod blocks;
mod cells;
mod copies;
mod log;
mod losses;
mod method;
mod opening;
mod panels;
mod provenance;
mod published;
mod rates;
mod syntax;
mod turns;
mod verdicts;

use super::graph_over::curves;
use super::ratios::forest;
use super::results::Results;
use crate::error::LabError;
pub use syntax::{code, escaped, fenced, table};

pub(super) use blocks::Scale;

/// The ministat blocks alone.
pub(super) fn ministat_blocks(results: &Results, scale: Scale) -> Result<String, LabError> {
    blocks::blocks(results, scale)
}

pub(super) fn readme(results: &Results) -> Result<String, LabError> {
    let sections = [
        opening::opening(results),
        log::log(results),
        pictures(results),
        blocks::blocks(results, Scale::MedianSpeed)?,
        rates::rates(results),
        losses::losses(results),
        verdicts::verdicts(results),
        published::published(results),
        copies::copies(results),
        turns::turns(results),
        if results.has_panels() { panels::validity(results) } else { cells::validity(results) },
        cells::counters(results),
        warnings(results),
        method::method(results),
        provenance::provenance(results),
    ];
    let present: Vec<&str> =
        sections.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
    Ok(present.join("\n\n") + "\n")
}

fn pictures(results: &Results) -> String {
    let graph = format!("![{}](graph.png)", escaped(results.title()));
    let curves =
        curves(results).map(|curves| format!("![By {}](curves.png)", escaped(&curves.texts.x_label)));
    let ratios = forest(results).map(|forest| format!("![{}](ratios.png)", escaped(&forest.x_label)));
    [Some(graph), curves, ratios].into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn warnings(results: &Results) -> String {
    let lines: String =
        results.warnings.iter().map(|warning| format!("  - {}\n", escaped(warning))).collect();
    let text = if lines.is_empty() { "None.\n".into() } else { lines };
    format!("## Warnings\n\n{text}")
}
