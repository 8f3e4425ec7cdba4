//! The file of measured preferences: `fullview table calibrate` writes it, `router.preferences` reads it.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use fullview_table::Family;
use fullview_table::fib::preference::{Curve, CurveError, Measured, Preferences};
use fullview_table::fib::registry;
use serde::Deserialize;
use toml::Spanned;

use crate::error::BadInput;
use crate::text_file;

/// The file: what a calibration measured, and on which machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PreferencesFile {
    /// The processor's name for itself.
    pub machine: String,
    /// UTC, RFC 3339.
    pub date: String,
    /// How the preferences follow from the figures beside them.
    pub formula: String,
    /// Whether this was a smoke run, whose figures mean nothing.
    pub smoke: bool,
    /// The share of the core's time that the measurement had, 0 to 1.
    pub core_share: f64,
    #[serde(default)]
    pub inet: AlgorithmPoints,
    #[serde(default)]
    pub inet6: AlgorithmPoints,
}

/// The points of each algorithm, by the algorithm's name.
pub type AlgorithmPoints = BTreeMap<Spanned<String>, Points>;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Points {
    pub points: Spanned<Vec<Point>>,
}

/// One algorithm on a table of one size: its preference, and the figures that the preference follows from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Point {
    pub prefixes: Spanned<usize>,
    pub preference: u8,
    pub batch_ns: f64,
    pub independent_ns: f64,
    pub update_us: f64,
    pub bytes: usize,
}

/// Preferences, and how a report describes them.
pub struct LoadedPreferences {
    pub preferences: Preferences,
    pub description: String,
}

/// Reads a file. An error names the line and column.
pub fn load(path: &Path) -> Result<LoadedPreferences, BadInput> {
    let name = path.display().to_string();
    let text = text_file::read(path).map_err(|error| {
        BadInput(format!(
            "{name}: cannot read the preferences: {error}; make them with `fullview table calibrate`"
        ))
    })?;
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<LoadedPreferences, BadInput> {
    let place =
        |offset: usize, message: &dyn Display| BadInput(format!("{}: {message}", at(name, text, offset)));
    let file: PreferencesFile = toml::from_str(text)
        .map_err(|error| place(error.span().map_or(0, |span| span.start), &error.message()))?;
    let mut measured = Measured::default();
    for (family, algorithms) in [(Family::Inet, &file.inet), (Family::Inet6, &file.inet6)] {
        for (algorithm, points) in algorithms {
            let known = known(family, algorithm.get_ref());
            known.map_err(|message| place(algorithm.span().start, &message))?;
            let curve = curve(points).map_err(|(offset, error)| place(offset, &error))?;
            measured.insert(family, algorithm.get_ref(), curve);
        }
    }
    let smoke = if file.smoke { ", a smoke run: they mean nothing" } else { "" };
    let description = format!("preferences: {name}, measured on {} on {}{smoke}", file.machine, file.date);
    Ok(LoadedPreferences { preferences: Preferences::Measured(Arc::new(measured)), description })
}

fn known(family: Family, algorithm: &str) -> Result<(), String> {
    let names = match family {
        Family::Inet => registry::names::<u32>(),
        Family::Inet6 => registry::names::<u128>(),
    };
    let message =
        || format!("there is no algorithm {algorithm:?} for {family}; there are {}", names.join(", "));
    if names.contains(&algorithm) { Ok(()) } else { Err(message()) }
}

/// Makes the curve of an algorithm. An error has the offset of the mistake in the file.
fn curve(points: &Points) -> Result<Curve, (usize, CurveError)> {
    let all = points.points.get_ref();
    let curve = all.iter().map(|point| (*point.prefixes.get_ref(), point.preference)).collect();
    Curve::new(curve).map_err(|error| match error {
        CurveError::Empty => (points.points.span().start, error),
        CurveError::Order { point, .. } => (all[point].prefixes.span().start, error),
    })
}

/// The place of a byte as `file:line:column`. Columns count characters, from one.
fn at(name: &str, text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    format!("{name}:{}:{}", before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Writes the text of the file.
impl Display for PreferencesFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| toml::Value::String(text.to_owned());
        writeln!(
            f,
            "# How well each lookup algorithm suits tables of different sizes on one machine, 0 to 255. Between"
        )?;
        writeln!(
            f,
            "# the points preferences lie on straight lines over the logarithm of the number of prefixes."
        )?;
        writeln!(f, "machine = {}\ndate = {}", quoted(&self.machine), quoted(&self.date))?;
        writeln!(f, "formula = {}", quoted(&self.formula))?;
        writeln!(f, "smoke = {}\ncore-share = {:.3}", self.smoke, self.core_share)?;
        for (family, algorithms) in [(Family::Inet, &self.inet), (Family::Inet6, &self.inet6)] {
            for (name, points) in algorithms {
                writeln!(f, "\n[{family}.{}]\npoints = [", name.get_ref())?;
                points.points.get_ref().iter().try_for_each(|point| writeln!(f, "    {point},"))?;
                writeln!(f, "]")?;
            }
        }
        Ok(())
    }
}

impl Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { prefixes, preference, batch_ns, independent_ns, update_us, bytes } = self;
        let prefixes = prefixes.get_ref();
        write!(f, "{{ prefixes = {prefixes}, preference = {preference}, batch-ns = {batch_ns:.3}, ")?;
        write!(f, "independent-ns = {independent_ns:.3}, update-us = {update_us:.3}, bytes = {bytes} }}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "machine = \"m\"\ndate = \"d\"\nformula = \"f\"\nsmoke = false\ncore-share = 1.0\n";

    fn point(prefixes: &str, preference: &str) -> String {
        format!(
            "{{ prefixes = {prefixes}, preference = {preference}, batch-ns = 1.0, independent-ns = 1.0, \
             update-us = 1.0, bytes = 1 }}"
        )
    }

    fn with(algorithm: &str, points: &[String]) -> String {
        format!("{HEAD}[inet.{algorithm}]\npoints = [{}]\n", points.join(", "))
    }

    fn refused(text: &str, words: &[&str]) {
        let Err(error) = parse("p.toml", text) else { panic!("accepted: {text}") };
        words.iter().for_each(|word| assert!(error.0.contains(word), "{word:?} is missing in: {}", error.0));
    }

    #[test]
    fn mistakes_are_reported_with_line_and_column() {
        refused("", &["p.toml:1:1", "machine"]);
        refused(&format!("{HEAD}x = 1\n"), &["p.toml:6:1", "x"]);
        refused(&with("radixx", &[point("2", "1")]), &["p.toml:6:7", "radixx", "dpdk_lpm4"]);
        refused(&with("radix", &[]), &["p.toml:7:10", "no points"]);
        refused(&with("radix", &[point("2", "256")]), &["p.toml:7:", "256"]);
        refused(
            &with("radix", &[point("2", "1"), point("2", "1")]),
            &["p.toml:7:124", "2 prefixes follow 2"],
        );
        let unknown = point("2", "1").replace("bytes", "bits");
        refused(&with("radix", &[unknown]), &["p.toml:7:", "bits"]);
        refused(&with("radix", &[point("0", "1")]), &["p.toml:7:24", "from 1 up"]);
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let text = with("radix", &[point("2", "7"), point("200", "9")]);
        let file: PreferencesFile = toml::from_str(&text).unwrap();
        let again = file.to_string();
        let Ok(LoadedPreferences { preferences: Preferences::Measured(measured), description }) =
            parse("p.toml", &again)
        else {
            panic!("{again}")
        };
        assert_eq!(
            measured.curve(Family::Inet, "radix").map(|curve| (curve.at(1), curve.at(20))),
            Some((7, 8))
        );
        assert_eq!(description, "preferences: p.toml, measured on m on d");
    }
}
