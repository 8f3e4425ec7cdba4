//! The tables in `docs/measurements` are those of the summaries beside them: the `report.json` of the campaign that a
//! page's command made. ACCEPT=1 writes the tables again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub const BEGIN: &str = "<!-- the table of ";
pub const END: &str = "<!-- end of the table -->";
/// Fewer blocks make no table of the documentation.
const FEWEST_BLOCKS: usize = 10;

#[test]
fn every_table_is_that_of_its_summary() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let made = with_tables(&text);
        if std::env::var_os("ACCEPT").is_some_and(|accept| accept == "1") {
            fs::write(&page, &made).unwrap();
        } else {
            assert_eq!(text, made, "{}: ACCEPT=1 writes its tables again", page.display());
        }
    }
}

#[test]
fn every_summary_has_a_table_and_enough_trusted_blocks() {
    let texts: String = pages().iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    let shown: BTreeSet<&str> =
        texts.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(" -->")).map(|(name, _)| name).collect();
    let there = files("json");
    let names: BTreeSet<&str> =
        there.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(shown, names);
    for name in names {
        let summary = summary(name);
        assert_eq!((&summary["schema"], &summary["untrusted"]), (&2.into(), &Value::Null), "{name}");
        for cell in items(&summary, "cells") {
            let blocks = items(cell, "values").len();
            let enough = blocks >= FEWEST_BLOCKS || is_refused(cell);
            assert!(enough, "{name}: {} has {blocks} blocks", text(cell, "variant"));
        }
    }
}

#[test]
fn the_turns_of_a_table_are_those_of_its_summary() {
    let turns = |family: &str, slice_us: f64, agreement: Option<&str>| {
        let arms = serde_json::json!([{ "low": -0.0312, "high": 0.001 }, { "low": -0.001, "high": 0.0248 }]);
        let chosen = agreement.map(|found| serde_json::json!({ "agreement": found, "arms": arms }));
        let tried = chosen.map(|chosen| match slice_us {
            500.0 => serde_json::json!({ "tried": [chosen] }),
            _ => serde_json::json!({ "tried": [{}, chosen] }),
        });
        let turns = serde_json::json!({ "slice_us": slice_us, "lead_in_us": 500.0 });
        serde_json::json!({ "family": family, "turns": turns, "calibration": tried })
    };
    let families = [
        turns("inet", 1000.0, Some("proven")),
        turns("inet6", 16000.0, Some("refuted")),
        turns("inet6.few", 1000.0, Some("proven")),
        turns("inet.few", 2000.0, Some("open")),
        turns("inet.one", 500.0, Some("open")),
        turns("tcp", 800.0, None),
    ];
    let summary = serde_json::json!({ "turns": families });
    assert_eq!(
        self::turns(&summary),
        "Turns: inet, inet6.few 1 ms after a lead-in of 0.5 ms (proven fair to all); inet6 16 ms after a lead-in of 0.5 ms \
         (the longest of 2 tried, all refuted: it may change a rate by -3.1 to +2.5 %); inet.few 2 ms after a lead-in of \
         0.5 ms (the first of 2 tried that is not refuted, and not proven: it may change a rate by -3.1 to +2.5 %); \
         inet.one 0.5 ms after a lead-in of 0.5 ms (the shortest tried, not refuted and not proven: it may change a rate by \
         -3.1 to +2.5 %); tcp 0.8 ms after a lead-in of 0.5 ms (set by the experiment)."
    );
}

#[test]
fn a_changed_figure_is_noticed() {
    let page = format!("{BEGIN}x -->\n| 1 |\n{END}\nafter");
    assert_eq!(replaced(&page, |_| "| 2 |\n".into()), format!("{BEGIN}x -->\n| 2 |\n{END}\nafter"));
}

pub fn pages() -> Vec<PathBuf> {
    files("md")
}

fn files(extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|own| own == extension)).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measurements")
}

pub fn summary(name: &str) -> Value {
    let path = folder().join(name).with_extension("json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn with_tables(page: &str) -> String {
    replaced(page, |name| table(&summary(name)))
}

/// The page with what `made` returns between the marks of each table.
fn replaced(page: &str, made: impl Fn(&str) -> String) -> String {
    let mut parts = page.split(BEGIN);
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").unwrap();
        let (_, rest) = rest.split_once(END).unwrap();
        write!(text, "{BEGIN}{name} -->\n{}{END}{rest}", made(name)).unwrap();
    }
    text
}

/// A row for each cell: the rate at the median speed of the machine, and the difference from each variant that this one is
/// compared with.
fn table(summary: &Value) -> String {
    let mut text = "| family | variant | million a second (smallest–largest) | blocks | compared |\n\
                    | --- | --- | ---: | ---: | --- |\n"
        .to_owned();
    for cell in items(summary, "cells") {
        let [family, variant] = ["family", "variant"].map(|key| self::text(cell, key));
        if is_refused(cell) {
            writeln!(text, "| {family} | {variant} | impossible there | | |").unwrap();
            continue;
        }
        let differences = items(summary, "comparisons").iter().filter(|one| is_of(one, cell)).map(difference);
        writeln!(
            text,
            "| {} | {} | {} ({}–{}) | {} | {} |",
            family,
            variant,
            millions(&cell["median"]),
            millions(&cell["min"]),
            millions(&cell["max"]),
            items(cell, "values").len(),
            differences.collect::<Vec<_>>().join("; ")
        )
        .unwrap();
    }
    text + "\n" + &turns(summary) + "\n"
}

/// How long the turns were, and whether that length was found to be fair to all; families of which the same is true are
/// named together.
fn turns(summary: &Value) -> String {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for of_family in items(summary, "turns") {
        let (family, words) = (text(of_family, "family"), length_and_fairness(of_family));
        match said.iter_mut().find(|(same, _)| *same == words) {
            Some((_, families)) => families.push(family),
            None => said.push((words, vec![family])),
        }
    }
    let each = said.iter().map(|(words, families)| format!("{} {words}", families.join(", ")));
    format!("Turns: {}.", each.collect::<Vec<_>>().join("; "))
}

fn length_and_fairness(of_family: &Value) -> String {
    let milliseconds = |key| of_family["turns"][key].as_f64().unwrap() / 1e3;
    let tried = of_family["calibration"]["tried"].as_array().map_or(&[][..], Vec::as_slice);
    let fairness =
        tried.last().map_or_else(|| "set by the experiment".into(), |chosen| fairness(chosen, tried.len()));
    format!(
        "{} ms after a lead-in of {} ms ({fairness})",
        milliseconds("slice_us"),
        milliseconds("lead_in_us")
    )
}

/// What was shown of the last of so many lengths, and by how much some rate may differ from that in long turns.
fn fairness(chosen: &Value, tried: usize) -> String {
    let shown = match text(chosen, "agreement") {
        "proven" => return "proven fair to all".into(),
        "open" if tried == 1 => "the shortest tried, not refuted and not proven".into(),
        "open" => format!("the first of {tried} tried that is not refuted, and not proven"),
        _ => format!("the longest of {tried} tried, all refuted"),
    };
    let ends = |key| items(chosen, "arms").iter().map(move |arm| 100.0 * arm[key].as_f64().unwrap());
    let (low, high) = (ends("low").fold(0.0, f64::min), ends("high").fold(0.0, f64::max));
    format!("{shown}: it may change a rate by {low:+.1} to {high:+.1} %")
}

/// Whether the machine of the measurement could not set it up in any block.
fn is_refused(cell: &Value) -> bool {
    items(cell, "values").is_empty() && cell["invalid"]["refused"] == cell["made"]
}

fn is_of(comparison: &Value, cell: &Value) -> bool {
    ["family", "variant"].iter().all(|key| comparison[key] == cell[key])
}

/// For example "**better** than radix: 4.250 × (4.140–4.360)".
fn difference(comparison: &Value) -> String {
    let times = |key| 1.0 + comparison["whole"][key].as_f64().unwrap();
    let [estimate, low, high] = ["estimate", "low", "high"].map(times);
    let against = text(comparison, "against");
    let verdict = text(comparison, "verdict");
    format!("{against}: **{verdict}**, {estimate:.3} × ({low:.3}–{high:.3})")
}

fn millions(rate: &Value) -> String {
    let millions = rate.as_f64().unwrap() / 1e6;
    let digits = if millions < 10.0 { 2 } else { 1 };
    format!("{millions:.digits$}")
}

pub fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key}"))
}

pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no text {key}"))
}
