//! In what two experiments differ, and how a changed one is written down.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toml::{Table, Value};

use super::{Experiment, Settings};

impl<S: Settings> Experiment<S> {
    /// The text to archive: the file as it was written, or, when something was changed after reading it, the
    /// experiment as it is run, with the changes named on top.
    pub(crate) fn to_text(&self) -> Result<String, toml::ser::Error> {
        let run = toml::to_string(self)?;
        // Without a readable source, the experiment did not come from `parse`, and there is no text to keep.
        let Ok(written) = Self::parse(&self.source.name, &self.source.text) else { return Ok(run) };
        let changes = written.differences(self)?;
        if changes.is_empty() {
            return Ok(self.source.text.clone());
        }
        let heading: String = changes.iter().map(|change| format!("#   {change}\n")).collect();
        Ok(format!("# {} with these changes:\n{heading}\n{run}", self.source.name))
    }

    /// Each setting in which `now` differs from this experiment, as "key: before → now".
    pub(crate) fn differences(&self, now: &Self) -> Result<Vec<String>, toml::ser::Error> {
        let (before, now) = (settings(self)?, settings(now)?);
        let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let changed = keys.into_iter().filter(|key| before.get(*key) != now.get(*key));
        let said = |value: Option<&String>| value.cloned().unwrap_or_else(|| "nothing".into());
        Ok(changed.map(|key| format!("{key}: {} → {}", said(before.get(key)), said(now.get(key)))).collect())
    }
}

/// Every value of an experiment by its dotted path.
fn settings<S: Serialize>(experiment: &Experiment<S>) -> Result<BTreeMap<String, String>, toml::ser::Error> {
    Ok(leaves(Table::try_from(experiment)?))
}

/// Every value of a table by its dotted path.
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
