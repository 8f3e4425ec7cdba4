//! The graph: a bar for each series, as in the lab's own reports.

use fullview_lab::report::{Bar, Chart, Group};
use fullview_lab::stats::Description;

use crate::import::Import;
use crate::series::{Series, counted};

pub(crate) fn chart(import: &Import) -> Chart {
    let families: Vec<&str> = import.families().into_iter().collect();
    let mut variants: Vec<&str> = Vec::new();
    for series in &import.series {
        if !variants.contains(&series.variant.as_str()) {
            variants.push(&series.variant);
        }
    }
    let bar = |variant: &str, family: &str| {
        let of = |series: &&Series| series.variant == variant && series.family == family;
        let series = import.series.iter().find(of).ok_or("not measured")?;
        let described = Description::of(&series.values).ok_or("no valid run")?;
        Ok(Bar { min: described.min, median: described.median, max: described.max, extension: None })
    };
    let group = |variant: &&str| Group {
        label: if variant.is_empty() { "all".into() } else { (*variant).into() },
        bars: families.iter().map(|family| bar(variant, family)).collect(),
    };
    let pps = import.series.iter().all(|series| series.unit == "pps");
    let runs: Vec<usize> = import.series.iter().map(|series| series.values.len()).collect();
    let (fewest, most) = (runs.iter().min().copied().unwrap_or(0), runs.iter().max().copied().unwrap_or(0));
    let fewest = if fewest == most { String::new() } else { format!("{fewest} to ") };
    Chart {
        title: import.title.clone(),
        y_label: if pps {
            "Packets per second forwarded".into()
        } else {
            "Rate in the unit of the series".into()
        },
        y_detail: format!("minimum, median, maximum of {fewest}{}", counted(most)),
        notes: import.conditions.join(", "),
        families: families.iter().map(|family| (*family).to_owned()).collect(),
        extension: None,
        groups: variants.iter().map(group).collect(),
        imix_axis: pps,
    }
}
