//! Reads an experiment and checks its values.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use super::analysis::Analysis;
use super::definition::{Experiment, Source};
use super::error::{ExperimentError, InvalidValue, PathStep};
use super::family::Family;
use super::variant::Variant;
use super::window::Window;

/// One day. A longer phase is a typing error, and the sum of the phases must not exceed the range of a clock.
const LONGEST_PHASE_S: f64 = 86_400.0;
/// TOML integers are signed, and the archive writes the seed as one.
const LARGEST_SEED: u64 = i64::MAX as u64;
const LONGEST_NAME: usize = 64;
/// More than a year of half-hour blocks. A larger number is a typing error, and the plan is kept in memory.
const MOST_RUNS: u32 = 100_000;

type Checked = Result<(), InvalidValue>;

impl<S: DeserializeOwned + Default> Experiment<S> {
    /// Reads an experiment and refuses one that cannot be run or judged. Errors contain `name` as the name of the file.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let mut experiment: Self =
            toml::from_str(text).map_err(|error| ExperimentError::syntax(name, text, &error))?;
        experiment.source = Source { name: name.into(), text: text.into() };
        experiment.check()?;
        Ok(experiment)
    }
}

impl<S> Experiment<S> {
    /// Checks every value again, for a caller that changed a field after reading, for example because of a flag.
    pub fn check(&self) -> Result<(), ExperimentError> {
        check(self).map_err(|value| self.refuse(&value.path, value.message))
    }

    /// Returns the error that refuses the value at `path`, for checks that only the program of the subject can make.
    pub fn refuse(&self, path: &[PathStep<'_>], message: String) -> ExperimentError {
        ExperimentError::at_path(&self.source.name, &self.source.text, path, message)
    }
}

fn check<S>(experiment: &Experiment<S>) -> Checked {
    require(
        !experiment.title.trim().is_empty(),
        &[PathStep::Key("title")],
        "the title is empty: write what the experiment compares",
    )?;
    one_line(&experiment.title, &[PathStep::Key("title")])?;
    lines(&experiment.conditions)?;
    require(
        (1..=MOST_RUNS).contains(&experiment.runs),
        &[PathStep::Key("runs")],
        "runs must be from 1 to 100000: a verdict takes at least 3, and 10 are better",
    )?;
    let seed_fits = experiment.seed <= LARGEST_SEED;
    require(
        seed_fits,
        &[PathStep::Key("seed")],
        "the seed is too large: the largest TOML integer is 9223372036854775807",
    )?;
    families(&experiment.families)?;
    window(&experiment.window)?;
    variants(&experiment.variants)?;
    analysis(experiment)
}

fn lines(conditions: &[String]) -> Checked {
    let mut numbered = conditions.iter().enumerate();
    numbered
        .try_for_each(|(index, line)| one_line(line, &[PathStep::Key("conditions"), PathStep::Item(index)]))
}

fn families(families: &[Family]) -> Checked {
    let list = PathStep::Key("families");
    require(
        !families.is_empty(),
        &[list],
        "no families: name at least one, for example families = [\"inet\"]",
    )?;
    for (index, family) in families.iter().enumerate() {
        usable_name(&family.name, &[list, PathStep::Item(index)])?;
        label(&family.title, &[list, PathStep::Item(index)])?;
    }
    distinct("family", families.iter().map(|family| &family.name), |index| vec![list, PathStep::Item(index)])
}

fn variants<S>(variants: &[Variant<S>]) -> Checked {
    let list = PathStep::Key("variants");
    require(!variants.is_empty(), &[list], "no variants: give at least one [[variants]] table")?;
    for (index, variant) in variants.iter().enumerate() {
        usable_name(&variant.name, &[list, PathStep::Item(index), PathStep::Key("name")])?;
        label(&variant.label, &[list, PathStep::Item(index), PathStep::Key("label")])?;
    }
    let place = |field| move |index| vec![list, PathStep::Item(index), PathStep::Key(field)];
    distinct("variant name", variants.iter().map(|variant| &variant.name), place("name"))?;
    distinct("variant label", variants.iter().map(|variant| &variant.label), place("label"))
}

fn window(window: &Window) -> Checked {
    phase(window.warmup_s, "warmup_s")?;
    phase(window.settle_s, "settle_s")?;
    phase(window.measure_s, "measure_s")?;
    let at = |key| [PathStep::Key("window"), PathStep::Key(key)];
    let measures = window.measure().as_nanos() > 0;
    require(measures, &at("measure_s"), "measure_s must be above zero: give seconds")?;
    let drains = window.drain().as_secs_f64() <= LONGEST_PHASE_S;
    require(drains, &at("drain_ms"), "the drain is longer than a day: the unit is milliseconds")?;
    let fits = !window.sample().is_zero() && window.sample() <= window.measure();
    require(fits, &at("sample_ms"), "a sample must be longer than zero and not longer than the measurement")
}

fn phase(seconds: f64, key: &'static str) -> Checked {
    let sensible = (0.0..=LONGEST_PHASE_S).contains(&seconds);
    let message = format!("{key} = {seconds} is not a duration: give seconds from 0 to {LONGEST_PHASE_S}");
    require(sensible, &[PathStep::Key("window"), PathStep::Key(key)], &message)
}

fn analysis<S>(experiment: &Experiment<S>) -> Checked {
    let Analysis { baseline, margin, alpha, metric, .. } = &experiment.analysis;
    let at = |key| [PathStep::Key("analysis"), PathStep::Key(key)];
    if let Some(name) = baseline {
        known(experiment, name, &at("baseline"))?;
    }
    let part = |value: f64| (0.0..1.0).contains(&value);
    require(part(*margin), &at("margin"), "the margin must be between 0 and 1: 0.01 is one per cent")?;
    require(
        part(*alpha) && *alpha > 0.0,
        &at("alpha"),
        "alpha must be between 0 and 1: 0.05 is the usual choice",
    )?;
    label(metric, &at("metric"))?;
    comparisons(experiment)
}

fn comparisons<S>(experiment: &Experiment<S>) -> Checked {
    let list = [PathStep::Key("analysis"), PathStep::Key("comparisons")];
    let pairs = experiment.analysis.comparisons.as_deref().unwrap_or_default();
    for (index, [variant, against]) in pairs.iter().enumerate() {
        let place = [list[0], list[1], PathStep::Item(index)];
        known(experiment, variant, &place)?;
        known(experiment, against, &place)?;
        require(variant != against, &place, "a variant is compared with itself: name two different ones")?;
    }
    let written = pairs.iter().map(|pair| pair.join(" against "));
    distinct("comparison", written, |index| vec![list[0], list[1], PathStep::Item(index)])
}

fn known<S>(experiment: &Experiment<S>, name: &str, path: &[PathStep<'static>]) -> Checked {
    let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    let message = format!("there is no variant \"{name}\": name one of {}", names.join(", "));
    require(names.contains(&name), path, &message)
}

/// Checks a name, which becomes part of file names and command lines.
fn usable_name(name: &str, path: &[PathStep<'static>]) -> Checked {
    let usable_char = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let message = format!(
        "\"{name}\" cannot be a name: start with a letter or digit, use only letters, digits and - _ . +, \
         and at most {LONGEST_NAME} characters"
    );
    require(starts_well && name.len() <= LONGEST_NAME && name.chars().all(usable_char), path, &message)
}

/// Checks a label, which is a line of ministat's output and the text under a bar of the graph.
fn label(text: &str, path: &[PathStep<'static>]) -> Checked {
    require(
        !text.trim().is_empty(),
        path,
        "the text is empty: it labels lines of the report, so write a label",
    )?;
    one_line(text, path)
}

fn one_line(text: &str, path: &[PathStep<'static>]) -> Checked {
    let plain = !text.chars().any(char::is_control);
    require(plain, path, "line breaks and control characters are not allowed here: write one line of text")
}

fn distinct<T: Ord + std::fmt::Display>(
    what: &str,
    values: impl Iterator<Item = T>,
    place: impl Fn(usize) -> Vec<PathStep<'static>>,
) -> Checked {
    let mut seen = BTreeSet::new();
    for (index, value) in values.enumerate() {
        let message = format!("the {what} \"{value}\" is used a second time: each must be unique");
        require(seen.insert(value), &place(index), &message)?;
    }
    Ok(())
}

fn require(holds: bool, path: &[PathStep<'static>], message: &str) -> Checked {
    if holds { Ok(()) } else { Err(InvalidValue { path: path.to_vec(), message: message.into() }) }
}
