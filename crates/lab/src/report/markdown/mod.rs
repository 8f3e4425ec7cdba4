//! `README.md`: first the form of the published forwarding reports, then what they lack.

mod blocks;
mod cells;
mod log;
mod opening;
mod provenance;
mod syntax;
mod verdicts;

use super::results::Results;
use crate::error::LabError;
use syntax::escaped;

pub(super) fn readme(results: &Results) -> Result<String, LabError> {
    let sections = [
        opening::opening(results),
        log::log(results),
        format!("![{}](graph.png)\n", escaped(results.title())),
        blocks::blocks(results)?,
        verdicts::verdicts(results),
        cells::validity(results),
        cells::counters(results),
        warnings(results),
        provenance::provenance(results),
    ];
    let present: Vec<&str> =
        sections.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
    Ok(present.join("\n\n") + "\n")
}

fn warnings(results: &Results) -> String {
    let lines: String =
        results.warnings.iter().map(|warning| format!("  - {}\n", escaped(warning))).collect();
    let text = if lines.is_empty() { "None.\n".into() } else { lines };
    format!("## Warnings\n\n{text}")
}
