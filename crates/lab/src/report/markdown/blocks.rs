//! The ministat blocks of the families.

use crate::error::LabError;
use crate::ministat::{MinistatError, Set, Style, render, split};

use super::super::cells::{CellRuns, FEWEST_RUNS};
use super::super::number::counted;
use super::super::results::Results;
use super::syntax::{escaped, fenced};

/// Which values the blocks have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Scale {
    /// Those at the median machine speed.
    MedianSpeed,
    /// Those that were measured.
    Raw,
}

pub(super) fn blocks(results: &Results, scale: Scale) -> Result<String, LabError> {
    let families = 0..results.campaign.experiment.families.len();
    let blocks = families.map(|family| of_family(results, family, scale)).collect::<Result<String, _>>()?;
    let note = match scale {
        _ if !results.has_panels() => "",
        _ if results.is_paced() => {
            "The values are rates of the whole loop as they were measured, one for each block.\n"
        }
        Scale::MedianSpeed => {
            "The values are rates of the whole loop at the median speed that the machine had during the campaign, one for \
             each block; `fullview report --raw .` shows them as they were measured.\n"
        }
        Scale::Raw => {
            "The values are rates of the whole loop as they were measured, one for each block. The machine's speed changes \
             from block to block, and this comparison does not allow for it.\n"
        }
    };
    Ok(blocks + note)
}

fn of_family(results: &Results, family: usize, scale: Scale) -> Result<String, LabError> {
    let (enough, short): (Vec<&CellRuns>, Vec<&CellRuns>) =
        baseline_first(results, family).into_iter().partition(|cell| cell.enough());
    let sets: Vec<Set> = enough.into_iter().map(|cell| ministat_set(results, cell, scale)).collect();
    let mut text = format!("{}:\n", escaped(results.family(family)));
    for block in split(&sets) {
        let drawn = render(&block, &Style { separate_bars: true, ..Style::default() });
        let refused = |error: MinistatError| LabError::Ministat {
            family: results.family(family).into(),
            message: error.to_string(),
        };
        text.push_str(&fenced(&drawn.map_err(refused)?));
    }
    text.extend(short.into_iter().map(|cell| missing(results, cell)));
    Ok(text + "\n")
}

/// Puts the baseline first, because ministat compares with the first set.
fn baseline_first(results: &Results, family: usize) -> Vec<&CellRuns> {
    let baseline = results.campaign.experiment.baseline();
    let mut cells: Vec<&CellRuns> = results.judged.cells.of_family(family).collect();
    cells.sort_by_key(|cell| cell.cell.variant != baseline);
    cells
}

fn ministat_set(results: &Results, cell: &CellRuns, scale: Scale) -> Set {
    let values = match scale {
        Scale::MedianSpeed => &cell.values,
        Scale::Raw => &cell.raw,
    };
    let experiment = &results.campaign.experiment;
    let (family, metric) = (&experiment.families[cell.cell.family].name, experiment.metric(cell.cell.family));
    Set { label: format!("{}: {family} {metric}", results.label(cell)), values: values.clone() }
}

fn missing(results: &Results, cell: &CellRuns) -> String {
    let (label, runs) = (escaped(results.label(cell)), counted(cell.values.len() as u32, "valid run"));
    format!("\n{label} is not in this block: it has {runs}, and at least {FEWEST_RUNS} are needed.\n")
}
