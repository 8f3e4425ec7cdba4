//! The answer in plain sentences.

use fullview_lab::stats::Verdict;

use crate::import::{Import, SeriesComparison};
use crate::published::PublishedMedians;
use crate::reproduction::Reproduced;
use crate::series::{Series, counted};

/// The last lines of the terminal, and the first of the report.
pub fn sentences(import: &Import) -> Vec<String> {
    let mut lines: Vec<String> = import.comparisons.iter().map(|one| compared(import, one)).collect();
    let exact = |outcome: &Reproduced| matches!(outcome, Reproduced::Exact | Reproduced::TabsAsBlanks);
    let same = import.blocks.iter().filter(|block| exact(&block.outcome)).count();
    lines.push(format!("{same} of {} published ministat blocks come out byte for byte", import.blocks.len()));
    let sum = |of: fn(&PublishedMedians) -> usize| -> usize {
        import.series.iter().map(|series| of(&series.medians)).sum()
    };
    let [differing, all] = [sum(|medians| medians.differing.len()), sum(|medians| medians.compared)];
    lines.push(format!("{differing} of {all} published medians differ from those of the raw logs"));
    let contradicted =
        import.claims.iter().filter_map(|claim| claim.contradiction.as_ref().map(|why| (claim, why)));
    lines.extend(
        contradicted
            .map(|(claim, why)| format!("README.md, line {}, \"{}\": {why}", claim.line, claim.prose)),
    );
    if !import.skipped.is_empty() {
        lines.push(format!("files that were skipped: {}; the report names them", import.skipped.len()));
    }
    lines
}

fn compared(import: &Import, compared: &SeriesComparison) -> String {
    let SeriesComparison { family, variant, against, generator_limited, difference, verdict, runs_needed } =
        compared;
    if *generator_limited {
        return format!(
            "{family}: {variant} against {against} is not judged: both carried all that the generator sent in all runs \
             with a log of it"
        );
    }
    let (Some(effect), Some(verdict)) = (difference, verdict) else {
        let why = without_effect(import, compared);
        return format!("{family}: {variant} against {against} is not judged: {why}");
    };
    let [estimate, low, high] = [effect.estimate, effect.low, effect.high].map(|part| 100.0 * part);
    let more = match (verdict, runs_needed) {
        (Verdict::Undecided, Some(runs)) => format!("; {runs} runs of each would tell 1 % apart"),
        (Verdict::Undecided, None) => "; no number of runs tells 1 % apart in this noise".into(),
        _ => String::new(),
    };
    format!(
        "{family}: {variant} is {verdict} against {against}, {estimate:+.2} % ({low:+.2} … {high:+.2} %){more}{}",
        limit(&pair(import, compared))
    )
}

/// Runs that the generator limits say what it sends, and hide by how much the routers differ beyond that.
fn limit(pair: &[&Series]) -> String {
    let sum = |of: fn(&Series) -> usize| -> usize { pair.iter().map(|series| of(series)).sum() };
    match sum(|series| series.generator_limited) {
        0 => String::new(),
        limited => format!(
            "; {limited} of {} with a log of the generator carried all that was sent, so that the routers may differ by more",
            counted(sum(|series| series.offered.len()))
        ),
    }
}

fn pair<'i>(import: &'i Import, compared: &SeriesComparison) -> Vec<&'i Series> {
    let variants = [&compared.against, &compared.variant];
    let is_of = |series: &&Series| series.family == compared.family && variants.contains(&&series.variant);
    import.series.iter().filter(is_of).collect()
}

/// Why a comparison has no difference. It is one of logarithms.
fn without_effect(import: &Import, compared: &SeriesComparison) -> String {
    let pair = pair(import, compared);
    if let Some(series) = pair.iter().find(|series| series.interrupted() > 0) {
        let runs = counted(series.interrupted());
        return format!("no packet came in some seconds of {runs} of {}", series.variant);
    }
    match pair.iter().any(|series| series.values.iter().any(|value| *value <= 0.0)) {
        true => "the values of all runs must be above zero".into(),
        false => "too few runs".into(),
    }
}
