//! What others published about the same question, beside the figures of the campaign.

use crate::experiment::{Published, PublishedFigure};

use super::super::comparisons::ComparisonResult;
use super::super::number::{grouped, interval, signed_percent};
use super::super::results::Results;
use super::syntax::{escaped, table};

pub(super) fn published(results: &Results) -> String {
    let experiment = &results.campaign.experiment;
    experiment.published.as_ref().map(|published| section(results, published)).unwrap_or_default()
}

fn section(results: &Results, published: &Published) -> String {
    let heading =
        ["Family", "Stands for", "Against", "Published rates", "Published difference", "Difference here"];
    let rows: Vec<Vec<String>> = published.figures.iter().map(|figure| row(results, figure)).collect();
    format!(
        "## Published beside measured\n\n{}\n\nPublished by {}.\n\n{}",
        table(&heading, &rows),
        published.source,
        published.comparable
    )
}

fn row(results: &Results, figure: &PublishedFigure) -> Vec<String> {
    let experiment = &results.campaign.experiment;
    let variant = |name: &str| experiment.variant_index(name);
    let label = |name: &str| variant(name).map_or("–".into(), |at| escaped(&experiment.variants[at].label));
    let family = experiment.families.iter().position(|family| family.name == figure.family);
    let ours = results.judged.comparisons.iter().find(|compared| {
        let pair = (Some(compared.comparison.variant), Some(compared.comparison.against));
        pair == (variant(&figure.variant), variant(&figure.against)) && Some(compared.family) == family
    });
    let rate = |rate: Option<f64>| rate.map_or("–".into(), grouped);
    vec![
        family.map_or("–".into(), |family| escaped(results.family(family))),
        label(&figure.variant),
        label(&figure.against),
        format!("{} against {}", rate(figure.rate), rate(figure.against_rate)),
        difference(figure),
        ours.map_or("not compared".into(), measured),
    ]
}

fn difference(figure: &PublishedFigure) -> String {
    let shown = figure.relative_difference().map_or("–".into(), signed_percent);
    if figure.proven { shown } else { format!("{shown}, no difference proven") }
}

fn measured(compared: &ComparisonResult) -> String {
    match &compared.outcome {
        Ok(judgement) => {
            let effect = &judgement.whole;
            format!("{} ({})", signed_percent(effect.estimate), interval(effect.low, effect.high))
        }
        Err(_) => "not judged".into(),
    }
}
