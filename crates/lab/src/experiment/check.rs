//! Reads an experiment and checks its values.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::analysis::Analysis;
use super::definition::{Experiment, Source};
use super::error::{ExperimentError, InvalidValue, PathStep};
use super::family::Family;
use super::length::Runs;
use super::published::Published;
use super::variant::Variant;
use super::window::{OLD_KEYS, Window, without_old_keys};

/// One day. A longer phase is a typing error, and the sum of the phases must not exceed the range of a clock.
const LONGEST_PHASE_S: f64 = 86_400.0;
const LONGEST_CAMPAIGN_MIN: f64 = 365.0 * 24.0 * 60.0;
/// TOML integers are signed, and the archive writes the seed as one.
const LARGEST_SEED: u64 = i64::MAX as u64;
const LONGEST_NAME: usize = 64;
/// More than a year of half-hour blocks. A larger number is a typing error.
const MOST_BLOCKS: u32 = 100_000;
const BLOCKS: &str = "runs must be from 1 to 100000, or \"until decided\": a verdict takes at least 2, ministat 3, and 10 are better";

type Checked = Result<(), InvalidValue>;

impl<S: DeserializeOwned + Default> Experiment<S> {
    /// Reads the experiment of an archive, which may have keys of older versions.
    pub(crate) fn parse_archived(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let has_old_keys = OLD_KEYS.iter().any(|(key, _)| text.contains(key));
        let table = text.parse().ok().filter(|_| has_old_keys).map(without_old_keys);
        let cleaned = table.and_then(|table| toml::to_string(&table).ok());
        Self::read(name, cleaned.as_deref().unwrap_or(text))
    }

    /// Reads an experiment and refuses one that cannot be run or judged. Errors contain `name` as the name of the file.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let experiment = Self::read(name, text)?;
        experiment.check_first_look()?;
        Ok(experiment)
    }

    /// Reads an experiment that may end before its first look, as a campaign does that was resumed with fewer blocks.
    pub(crate) fn read(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let mut experiment: Self =
            toml::from_str(text).map_err(|error| ExperimentError::syntax(name, text, &error))?;
        experiment.source = Source { name: name.into(), text: text.into() };
        experiment.variants.iter_mut().for_each(Variant::name_model);
        experiment.check()?;
        Ok(experiment)
    }
}

impl<S> Experiment<S> {
    /// Checks every value again, for a caller that changed a field after reading, for example because of a flag.
    pub fn check(&self) -> Result<(), ExperimentError> {
        check(self).map_err(|value| self.refuse(&value.path, value.message))
    }

    /// Refuses an experiment that ends before its first look, so that nothing would be judged.
    pub fn check_first_look(&self) -> Result<(), ExperimentError> {
        let (first, most) = (self.first_look(), self.most_blocks());
        let message = format!(
            "first_look is more than all blocks, so nothing would be judged ({first}, and {most} blocks are made): leave it \
             out, or make more blocks"
        );
        let at = [PathStep::Key("analysis"), PathStep::Key("first_look")];
        require(first <= most, &at, &message).map_err(|value| self.refuse(&value.path, value.message))
    }

    /// Refuses a length of turns outside the shortest and the longest that the subject can run.
    pub fn check_slice(&self, [shortest, longest]: [Duration; 2]) -> Result<(), ExperimentError> {
        let Some(slice) = self.window.slice() else { return Ok(()) };
        let [slice_ms, least, most] = [slice, shortest, longest].map(|length| length.as_nanos() as f64 / 1e6);
        let message = format!(
            "a slice of {slice_ms} ms is not possible: those of this subject have {least} to {most} ms. Give such a length \
             here or by --slice-ms"
        );
        let at = [PathStep::Key("window"), PathStep::Key("slice_ms")];
        let fits = (shortest..=longest).contains(&slice);
        require(fits, &at, &message).map_err(|value| self.refuse(&value.path, value.message))
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
    let runs = match experiment.runs {
        Runs::UntilDecided => true,
        Runs::Blocks(blocks) => (1..=MOST_BLOCKS).contains(&blocks),
    };
    require(runs, &[PathStep::Key("runs")], BLOCKS)?;
    let seed_fits = experiment.seed <= LARGEST_SEED;
    require(
        seed_fits,
        &[PathStep::Key("seed")],
        "the seed is too large: the largest TOML integer is 9223372036854775807",
    )?;
    families(&experiment.families)?;
    window(&experiment.window)?;
    variants(&experiment.variants)?;
    axis(experiment)?;
    analysis(experiment)?;
    experiment.published.as_ref().map_or(Ok(()), |published| figures(experiment, published))
}

/// Checks the published figures.
fn figures<S>(experiment: &Experiment<S>, published: &Published) -> Checked {
    let table = PathStep::Key("published");
    label(&published.source, &[table, PathStep::Key("source")])?;
    label(&published.comparable, &[table, PathStep::Key("comparable")])?;
    for (index, figure) in published.figures.iter().enumerate() {
        let at = |key| [table, PathStep::Key("figures"), PathStep::Item(index), PathStep::Key(key)];
        known(experiment, &figure.variant, &at("variant"))?;
        known(experiment, &figure.against, &at("against"))?;
        let family = experiment.families.iter().any(|family| family.name == figure.family);
        require(family, &at("family"), "there is no such family: name one of families")?;
        let rates = || [("rate", figure.rate), ("against_rate", figure.against_rate)];
        for (key, rate) in rates() {
            let sensible = rate.is_none_or(|rate| rate.is_finite() && rate > 0.0);
            require(sensible, &at(key), "a rate is above 0: leave it out if it was not published")?;
        }
        let sensible = figure.difference.is_none_or(|difference| difference.is_finite() && difference > -1.0);
        require(sensible, &at("difference"), "a difference is a number above -1: 0.21 is +21 %")?;
        let known = figure.relative_difference().is_some();
        require(known, &at("difference"), "give rate and against_rate, or the difference: 0.21 is +21 %")?;
    }
    Ok(())
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
        if let Some(metric) = &family.metric {
            label(metric, &[list, PathStep::Item(index), PathStep::Key("metric")])?;
        }
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
        let path = [list, PathStep::Item(index), PathStep::Key("label")];
        label(&variant.label, &path)?;
        let message = "the variant is a model: its label must say \"model of\", or be left out";
        require(variant.says_model(), &path, message)?;
    }
    let place = |field| move |index| vec![list, PathStep::Item(index), PathStep::Key(field)];
    distinct("variant name", variants.iter().map(|variant| &variant.name), place("name"))?;
    distinct("variant label", variants.iter().map(|variant| &variant.label), place("label"))
}

/// A second graph has an axis, and positions on it above zero.
fn axis<S>(experiment: &Experiment<S>) -> Checked {
    let key = PathStep::Key;
    let at = |list, index, field| [key(list), PathStep::Item(index), key(field)];
    let has_axis = experiment.analysis.axis.is_some();
    let without = "a position needs an axis: say in analysis.axis what it counts, or remove it";
    for (index, variant) in experiment.variants.iter().enumerate() {
        let place = at("variants", index, "at");
        require(variant.at.is_none() || has_axis, &place, without)?;
        require(variant.at != Some(0), &place, "the axis is logarithmic: a position is at least 1")?;
        let message = "a point of a curve has both: curve names the curve, at says where on the axis it is";
        require(variant.curve.is_some() == variant.at.is_some(), &at("variants", index, "curve"), message)?;
    }
    for (index, family) in experiment.families.iter().enumerate() {
        let place = at("families", index, "at");
        require(family.at.is_none() || has_axis, &place, without)?;
        require(family.at != Some(0), &place, "the axis is logarithmic: a position is at least 1")?;
    }
    Ok(())
}

fn window(window: &Window) -> Checked {
    phase(window.warmup_s, "warmup_s")?;
    phase(window.settle_s, "settle_s")?;
    phase(window.measure_s, "measure_s")?;
    let at = |key| [PathStep::Key("window"), PathStep::Key(key)];
    let measures = window.measure().as_nanos() > 0;
    require(measures, &at("measure_s"), "measure_s must be above zero: give seconds")?;
    let fits = window.slice_ms.is_none_or(|slice| slice >= 0.001 && slice <= window.measure_s * 1e3);
    let message = "a slice is at least 0.001 milliseconds and not longer than the measurement: leave slice_ms out, and \
                   a calibration chooses the length";
    require(fits, &at("slice_ms"), message)
}

fn phase(seconds: f64, key: &'static str) -> Checked {
    let sensible = (0.0..=LONGEST_PHASE_S).contains(&seconds);
    let message = format!("{key} = {seconds:?} is not a duration: give seconds from 0 to {LONGEST_PHASE_S}");
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
    limits(experiment)?;
    comparisons(experiment)
}

fn limits<S>(experiment: &Experiment<S>) -> Checked {
    let Analysis { first_look, max_blocks, max_minutes, .. } = &experiment.analysis;
    let at = |key| [PathStep::Key("analysis"), PathStep::Key(key)];
    let blocks = 1..=MOST_BLOCKS;
    let looks = first_look.is_none_or(|first| blocks.contains(&first));
    require(looks, &at("first_look"), "first_look must be from 1 to 100000 blocks")?;
    require(blocks.contains(max_blocks), &at("max_blocks"), "max_blocks must be from 1 to 100000")?;
    let sensible = *max_minutes > 0.0 && *max_minutes <= LONGEST_CAMPAIGN_MIN;
    require(sensible, &at("max_minutes"), "max_minutes must be above 0, and at most a year: 525600")
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
