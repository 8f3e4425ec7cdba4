//! Whether published graphs show the series that they name.

use fullview_lab::ministat::general;
use fullview_lab::stats::Description;

use crate::plotted::PlottedRow;
use crate::series::Series;

/// What is wrong with the row, if anything is.
pub fn mistake(row: &PlottedRow, series: &[Series]) -> Option<String> {
    let place = format!("{}, line {}", row.file, row.line);
    let shown: Vec<&Series> = series.iter().filter(|series| shows(row, series)).collect();
    let is_named = |series: &Series| series.name == row.name || series.column.as_ref() == Some(&row.name);
    let Some(first) = shown.first() else {
        return Some(format!("{place}: no series has the figures of {:?}", row.name));
    };
    let family = series.iter().map(|series| &series.family).find(|family| is_of(&row.file, family));
    if series.iter().any(is_named) && !shown.iter().any(|series| is_named(series)) {
        return Some(format!("{place}: {:?} has the figures of {}", row.name, first.name));
    }
    let family = family.filter(|family| shown.iter().all(|series| series.family != **family))?;
    Some(format!("{place}: {:?} has the figures of {}, in the file of {family}", row.name, first.name))
}

fn shows(row: &PlottedRow, series: &Series) -> bool {
    let drawn = Description::of(&series.values).map(|of| [of.median, of.min, of.max].map(printed));
    drawn == Some(row.figures.map(printed))
}

/// ministat prints eight digits.
fn printed(figure: f64) -> String {
    general(figure, 8)
}

/// Whether the file has the family in its name, as `gnuplot-inet4.data` does.
fn is_of(file: &str, family: &str) -> bool {
    file.strip_suffix(".data")
        .and_then(|stem| stem.strip_suffix(family))
        .is_some_and(|rest| rest.ends_with('-'))
}
