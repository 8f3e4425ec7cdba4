//! What a well-formed file may still get wrong.

use std::collections::BTreeSet;

use super::error::{Mistake, Step};
use super::{Analysis, Experiment, Family, Variant, Window};

/// A day: longer phases are typing errors, and their sum must stay inside what a clock can add.
const LONGEST_PHASE_S: f64 = 86_400.0;
/// TOML integers are signed, and the archive must be able to write the seed back.
const LARGEST_SEED: u64 = i64::MAX as u64;
const LONGEST_NAME: usize = 64;
/// A year of half-hour blocks is less: more is a typing error, and the plan is kept in memory.
const MOST_RUNS: u32 = 100_000;

type Checked = Result<(), Mistake>;

pub(super) fn check<S>(experiment: &Experiment<S>) -> Checked {
    require(
        !experiment.title.trim().is_empty(),
        &[Step::Key("title")],
        "the title is empty: say what is asked",
    )?;
    one_line(&experiment.title, &[Step::Key("title")])?;
    lines(&experiment.conditions)?;
    require(
        (1..=MOST_RUNS).contains(&experiment.runs),
        &[Step::Key("runs")],
        "zero runs measure nothing, and 100000 are the most: ask for at least 3, better 10",
    )?;
    let seed_fits = experiment.seed <= LARGEST_SEED;
    require(
        seed_fits,
        &[Step::Key("seed")],
        "the seed is too large: TOML integers end at 9223372036854775807",
    )?;
    families(&experiment.families)?;
    window(&experiment.window)?;
    variants(&experiment.variants)?;
    analysis(experiment)
}

fn lines(conditions: &[String]) -> Checked {
    let mut numbered = conditions.iter().enumerate();
    numbered.try_for_each(|(index, line)| one_line(line, &[Step::Key("conditions"), Step::Item(index)]))
}

fn families(families: &[Family]) -> Checked {
    let list = Step::Key("families");
    require(
        !families.is_empty(),
        &[list],
        "no families: name at least one, for example families = [\"inet\"]",
    )?;
    for (index, family) in families.iter().enumerate() {
        usable_name(&family.name, &[list, Step::Item(index)])?;
        label(&family.title, &[list, Step::Item(index)])?;
    }
    distinct("family", families.iter().map(|family| &family.name), |index| vec![list, Step::Item(index)])
}

fn variants<S>(variants: &[Variant<S>]) -> Checked {
    let list = Step::Key("variants");
    require(!variants.is_empty(), &[list], "no variants: give at least one [[variants]] table")?;
    for (index, variant) in variants.iter().enumerate() {
        usable_name(&variant.name, &[list, Step::Item(index), Step::Key("name")])?;
        label(&variant.label, &[list, Step::Item(index), Step::Key("label")])?;
    }
    let place = |field| move |index| vec![list, Step::Item(index), Step::Key(field)];
    distinct("variant name", variants.iter().map(|variant| &variant.name), place("name"))?;
    distinct("variant label", variants.iter().map(|variant| &variant.label), place("label"))
}

fn window(window: &Window) -> Checked {
    phase(window.warmup_s, "warmup_s")?;
    phase(window.settle_s, "settle_s")?;
    phase(window.measure_s, "measure_s")?;
    let at = |key| [Step::Key("window"), Step::Key(key)];
    let measures = window.measure().as_nanos() > 0;
    require(measures, &at("measure_s"), "a measurement of no length: give seconds above zero")?;
    let drains = window.drain().as_secs_f64() <= LONGEST_PHASE_S;
    require(drains, &at("drain_ms"), "the drain is longer than a day: give milliseconds")?;
    let fits = !window.sample().is_zero() && window.sample() <= window.measure();
    require(fits, &at("sample_ms"), "a sample must be longer than zero and no longer than the measurement")
}

fn phase(seconds: f64, key: &'static str) -> Checked {
    let sensible = (0.0..=LONGEST_PHASE_S).contains(&seconds);
    let message = format!("{key} = {seconds} is no duration: give seconds from 0 to {LONGEST_PHASE_S}");
    require(sensible, &[Step::Key("window"), Step::Key(key)], &message)
}

fn analysis<S>(experiment: &Experiment<S>) -> Checked {
    let Analysis { baseline, margin, alpha, metric, .. } = &experiment.analysis;
    let at = |key| [Step::Key("analysis"), Step::Key(key)];
    if let Some(name) = baseline {
        known(experiment, name, &at("baseline"))?;
    }
    let part = |value: f64| (0.0..1.0).contains(&value);
    require(part(*margin), &at("margin"), "the margin lies between 0 and 1: 0.01 is one per cent")?;
    require(
        part(*alpha) && *alpha > 0.0,
        &at("alpha"),
        "alpha lies between 0 and 1: 0.05 is the usual choice",
    )?;
    label(metric, &at("metric"))?;
    comparisons(experiment)
}

fn comparisons<S>(experiment: &Experiment<S>) -> Checked {
    let list = [Step::Key("analysis"), Step::Key("comparisons")];
    let pairs = experiment.analysis.comparisons.as_deref().unwrap_or_default();
    for (index, [variant, against]) in pairs.iter().enumerate() {
        let place = [list[0], list[1], Step::Item(index)];
        known(experiment, variant, &place)?;
        known(experiment, against, &place)?;
        require(variant != against, &place, "a variant is compared with itself: name two different ones")?;
    }
    let written = pairs.iter().map(|pair| pair.join(" against "));
    distinct("comparison", written, |index| vec![list[0], list[1], Step::Item(index)])
}

fn known<S>(experiment: &Experiment<S>, name: &str, path: &[Step<'static>]) -> Checked {
    let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    let message = format!("there is no variant \"{name}\": name one of {}", names.join(", "));
    require(names.contains(&name), path, &message)
}

/// A name becomes part of file names and of command lines.
fn usable_name(name: &str, path: &[Step<'static>]) -> Checked {
    let usable_char = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let message = format!(
        "\"{name}\" cannot be a name: start with a letter or digit, use only letters, digits and - _ . +, \
         at most {LONGEST_NAME} of them"
    );
    require(starts_well && name.len() <= LONGEST_NAME && name.chars().all(usable_char), path, &message)
}

/// A label stands alone on a line of ministat's output and under a bar of the graph.
fn label(text: &str, path: &[Step<'static>]) -> Checked {
    require(!text.trim().is_empty(), path, "empty text: it labels lines of the report, so write something")?;
    one_line(text, path)
}

fn one_line(text: &str, path: &[Step<'static>]) -> Checked {
    let plain = !text.chars().any(char::is_control);
    require(plain, path, "line breaks and control characters cannot stand here: write one plain line")
}

fn distinct<T: Ord + std::fmt::Display>(
    what: &str,
    values: impl Iterator<Item = T>,
    place: impl Fn(usize) -> Vec<Step<'static>>,
) -> Checked {
    let mut seen = BTreeSet::new();
    for (index, value) in values.enumerate() {
        let message = format!("the {what} \"{value}\" stands here a second time: each must differ");
        require(seen.insert(value), &place(index), &message)?;
    }
    Ok(())
}

fn require(holds: bool, path: &[Step<'static>], message: &str) -> Checked {
    if holds { Ok(()) } else { Err(Mistake { path: path.to_vec(), message: message.into() }) }
}
