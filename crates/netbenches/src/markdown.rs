//! The report as Markdown.

use fullview_lab::ministat::{FEWEST_VALUES, Set, Style, general, render, split};
use fullview_lab::report::{escaped, fenced, table};

use crate::answer::sentences;
use crate::import::Import;
use crate::reproduction::Reproduced;
use crate::series::{Series, counted};

pub(crate) fn markdown(import: &Import) -> String {
    let sections = [
        list("", &sentences(import)),
        format!("{}:\n{}", escaped(&import.title), items(&import.conditions)),
        format!("![{}](graph.png)", escaped(&import.title)),
        ministat(import),
        section("Published blocks", &blocks(import)),
        section("Medians", &medians(import)),
        section("Order of runs", &order(import)),
        list("## Warnings", &import.warnings),
        list("## Claims of the prose", &claims(import)),
        list("## Call graphs", &graphs(import)),
        list("## Skipped files", &import.skipped),
        METHOD.into(),
    ];
    sections
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .map(|text| text.trim_end().to_owned() + "\n\n")
        .collect::<String>()
        .trim_end()
        .to_owned()
        + "\n"
}

const METHOD: &str = "## Method\n\nThe value of a run is the median of its seconds without the first 15 and the last 10 lines of the \
                      log and without seconds in which no packet came, as netbenches takes it. Verdicts compare each series with the first one of its family by Welch's \
                      interval of the log ratio, with a margin of ±1 % and 5 % for all comparisons together. netbenches \
                      makes all runs of a series before those of the next one, so that a drift of the machine looks like a \
                      difference: only runs that take turns can tell them apart. The number of runs that would be needed \
                      follows from the upper confidence limit of the spread at 80 %.";

fn section(title: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("## {title}\n\n{text}") }
}

fn list(title: &str, lines: &[String]) -> String {
    let heading = if title.is_empty() { String::new() } else { format!("{title}\n\n") };
    if lines.is_empty() { String::new() } else { heading + &items(lines) }
}

fn items(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  - {}\n", escaped(line))).collect()
}

/// The blocks of each family, and the series that are in none.
fn ministat(import: &Import) -> String {
    import.families().into_iter().map(|family| ministat_of(import, family)).collect()
}

fn ministat_of(import: &Import, family: &str) -> String {
    let of_family = import.series.iter().filter(|series| series.family == family);
    let (enough, short): (Vec<&Series>, Vec<&Series>) =
        of_family.partition(|series| series.values.len() >= FEWEST_VALUES);
    let set = |series: &Series| Set { label: series.name.clone(), values: series.values.clone() };
    let sets: Vec<Set> = enough.into_iter().map(set).collect();
    let style = Style { separate_bars: true, ..Style::default() };
    let drawn = split(&sets).into_iter().filter_map(|block| render(&block, &style).ok());
    let blocks: String = drawn.map(|block| fenced(&block)).collect();
    let missing: String = short.into_iter().map(missing).collect();
    format!("{}:\n{blocks}{missing}\n", escaped(family))
}

fn missing(series: &Series) -> String {
    let runs = counted(series.values.len());
    format!(
        "\n{} is not in this block: it has {runs}, and at least {FEWEST_VALUES} are needed.\n",
        escaped(&series.name)
    )
}

fn blocks(import: &Import) -> String {
    let rows = import.blocks.iter().map(|block| {
        let outcome = match &block.outcome {
            Reproduced::Exact => "byte for byte".into(),
            Reproduced::TabsAsBlanks => "byte for byte; published with tabs as blanks".into(),
            Reproduced::WithoutLines(lines) => format!("as far as it goes; published without \"{lines}\""),
            Reproduced::NoColumn(label) => {
                format!("not reproduced: no file here or beside has the figures of \"{label}\"")
            }
            Reproduced::Different(line) => format!("differs from line {line} on"),
        };
        vec![block.line.to_string(), escaped(&block.files.join(", ")), escaped(&outcome)]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() { String::new() } else { table(&["Line", "Made from", "Printed again"], &rows) }
}

fn medians(import: &Import) -> String {
    let rows = import.series.iter().flat_map(|series| {
        series.medians.differing.iter().map(|median| {
            let relative = 100.0 * (median.published / median.raw - 1.0);
            let name = escaped(&series.name);
            vec![
                name,
                median.run.to_string(),
                general(median.published, 8),
                general(median.raw, 8),
                format!("{relative:+.4} %"),
            ]
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    match rows.is_empty() {
        true if import.series.iter().all(|series| series.clocks.is_empty()) => {
            "There are no raw logs.".into()
        }
        true if import.series.iter().any(|series| series.medians.unequal.is_some()) => {
            "Every published median whose run is known is that of its raw log.".into()
        }
        true => "Every published median is that of its raw log.".into(),
        false => table(&["Series", "Run", "Published", "From RAW", "Published against RAW"], &rows),
    }
}

fn order(import: &Import) -> String {
    let rows = import.series.iter().map(|series| {
        let steps: Vec<String> = series
            .clocks
            .windows(2)
            .map(|pair| format!("{:.0}", (pair[1] - pair[0]).rem_euclid(1000.0)))
            .collect();
        let trend = series.trend.map_or("unknown".into(), |p| format!("{p:.4}"));
        vec![escaped(&series.name), series.values.len().to_string(), steps.join(", "), trend]
    });
    let text = table(
        &["Series", "Runs", "Seconds between starts, modulo 1000", "p without a trend"],
        &rows.collect::<Vec<_>>(),
    );
    if import.times.is_empty() { text } else { format!("{text}\n\n{}", items(&import.times)) }
}

fn claims(import: &Import) -> Vec<String> {
    let said = import.claims.iter().map(|claim| {
        let judged = claim.contradiction.clone().unwrap_or_else(|| {
            format!("not contradicted: the block's means differ by {:+.2} %", 100.0 * claim.difference)
        });
        format!("line {}, \"{}\": {judged}", claim.line, claim.prose)
    });
    said.collect()
}

fn graphs(import: &Import) -> Vec<String> {
    let said = import.graphs.iter().map(|(name, graph)| {
        let part = |count: u64| 100.0 * count as f64 / graph.samples.max(1) as f64;
        let hottest: Vec<String> =
            graph.hottest.iter().map(|(name, count)| format!("{name} {:.1} %", part(*count))).collect();
        format!("{name}: {} samples of {}: {}", graph.samples, graph.event, hottest.join(", "))
    });
    said.collect()
}
