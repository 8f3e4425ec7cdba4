//! The second graph: rates along the axis of the experiment.

use super::cells::CellRuns;
use super::chart::{Bar, Curve, CurveTexts, Curves};
use super::results::Results;
use crate::experiment::{Experiment, Family, Variant};

/// The curves, if the experiment has an axis and something was measured along it.
pub(super) fn curves(results: &Results) -> Option<Curves> {
    let experiment = &results.campaign.experiment;
    let x_label = experiment.analysis.axis.clone()?;
    let mut curves: Vec<Curve> = Vec::new();
    for cell in results.judged.cells.all() {
        let Some((name, at, bar)) = point(experiment, cell) else { continue };
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push((at, bar)),
            None => curves.push(Curve { name, points: vec![(at, bar)] }),
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by_key(|point| point.0));
    let texts = CurveTexts {
        title: results.title().into(),
        y_label: super::graph::y_label(results),
        x_label,
        notes: super::graph::notes(results),
    };
    let drawn = Curves { texts, curves };
    (!drawn.curves.is_empty()).then_some(drawn)
}

/// The curve of a cell, its place on the axis and its rate.
fn point<S>(experiment: &Experiment<S>, cell: &CellRuns) -> Option<(String, u64, Bar)> {
    let (variant, family) = (&experiment.variants[cell.cell.variant], &experiment.families[cell.cell.family]);
    let runs = cell.description()?;
    let bar = Bar { min: runs.min, median: runs.median, max: runs.max, extension: None };
    let (name, at) = place(variant, family, experiment.families.len())?;
    Some((name, at, bar))
}

/// Either the variants are points of curves, one for each family, or the families are points of the variants' curves.
fn place<S>(variant: &Variant<S>, family: &Family, families: usize) -> Option<(String, u64)> {
    match (&variant.curve, variant.at, family.at) {
        (Some(curve), Some(at), _) if families > 1 => Some((format!("{curve}, {}", family.title), at)),
        (Some(curve), Some(at), _) => Some((curve.clone(), at)),
        (_, _, Some(at)) => Some((variant.label.clone(), at)),
        _ => None,
    }
}
