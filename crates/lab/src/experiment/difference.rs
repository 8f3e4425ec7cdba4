//! The differences between two experiments, and the text of one that was changed after it was read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toml::{Table, Value};

use super::definition::Experiment;
use super::variant::Settings;

impl<S: Settings> Experiment<S> {
    /// Returns the text to archive: the text of the file or, if a field was changed after reading, the experiment as it
    /// is run with a list of the changes at the top.
    pub(crate) fn to_text(&self) -> Result<String, toml::ser::Error> {
        let run = toml::to_string(self)?;
        // An experiment without a readable source was not made by `parse`, so it has no text of its own.
        let Ok(written) = Self::parse(&self.source.name, &self.source.text) else { return Ok(run) };
        let changes = written.differences(self)?;
        if changes.is_empty() {
            return Ok(self.source.text.clone());
        }
        let heading: String = changes.iter().map(|change| format!("#   {change}\n")).collect();
        Ok(format!("# {} with these changes:\n{heading}\n{run}", self.source.name))
    }

    /// Lists each setting in which `now` differs from this experiment, as "key: before → now".
    pub(crate) fn differences(&self, now: &Self) -> Result<Vec<String>, toml::ser::Error> {
        let (before, now) = (settings(self)?, settings(now)?);
        let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let changed = keys.into_iter().filter(|key| before.get(*key) != now.get(*key));
        let shown = |value: Option<&String>| value.cloned().unwrap_or_else(|| "nothing".into());
        Ok(changed
            .map(|key| format!("{key}: {} → {}", shown(before.get(key)), shown(now.get(key))))
            .collect())
    }
}

/// Returns every value of an experiment by its dotted path.
fn settings<S: Serialize>(experiment: &Experiment<S>) -> Result<BTreeMap<String, String>, toml::ser::Error> {
    Ok(leaves(Table::try_from(experiment)?))
}

/// Returns every value of a table by its dotted path.
pub(crate) fn leaves(table: Table) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![(String::new(), Value::Table(table))];
    while let Some((path, value)) = waiting.pop() {
        match value {
            Value::Table(inner) => {
                waiting.extend(inner.into_iter().map(|(key, value)| (below(&path, &key), value)))
            }
            Value::Array(items) => {
                waiting.extend((0..).zip(items).map(|(index, item)| (element(&path, index), item)))
            }
            // On one line, also a text of several.
            Value::String(text) if text.contains('\n') => {
                found.insert(path, format!("{text:?}"));
            }
            plain => {
                found.insert(path, plain.to_string());
            }
        }
    }
    found
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

fn element(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}
