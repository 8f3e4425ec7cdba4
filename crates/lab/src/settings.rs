//! The settings of a variant as they were in force: those of all variants, and over them its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use toml::Table;

use crate::experiment::leaves;

/// The setting of a variant that says which of two builds serves it, in the record of a comparison of builds.
pub(crate) const OF_BUILD: &str = "build";

/// Every setting by its dotted path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MergedSettings(BTreeMap<String, String>);

/// Lays the settings of a variant over those of all variants.
pub(crate) fn merged(subject: &Table, set: &Table) -> MergedSettings {
    let mut all = leaves(subject.clone());
    all.extend(leaves(set.clone()));
    MergedSettings(all)
}

impl MergedSettings {
    /// The settings of a type of the program.
    pub(crate) fn of(settings: impl Serialize) -> Self {
        Self(Table::try_from(settings).map(leaves).unwrap_or_default())
    }

    /// Lists the settings that differ, as "key: before → now". A file counts by its name, because its folder may have
    /// another name on another machine.
    pub(crate) fn differences(&self, now: &Self, except: &[&str]) -> Vec<String> {
        let keys: BTreeSet<&String> = self.0.keys().chain(now.0.keys()).collect();
        let keys = keys.into_iter().filter(|key| !except.contains(&key.as_str()));
        let differs = |key: &&String| self.get(key) != now.get(key);
        let line = |key: &String| format!("{key}: {} → {}", self.shown(key), now.shown(key));
        keys.filter(differs).map(line).collect()
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| file_name(value))
    }

    fn shown(&self, key: &str) -> &str {
        self.0.get(key).map_or("nothing", String::as_str)
    }
}

/// The last part of an absolute path, which TOML writes in quotes; any other value as it is.
fn file_name(value: &str) -> &str {
    let path = value.strip_prefix("\"/").and_then(|path| path.strip_suffix('"'));
    path.and_then(|path| Path::new(path).file_name()?.to_str()).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn a_variant_wins_over_what_all_have_and_files_count_by_name() {
        let before = merged(&table("flows = 5\ntable.source = \"/a/view.txt\""), &table("flows = 7"));
        let now = MergedSettings::of(table("flows = 7\ntable.source = \"/b/view.txt\""));
        assert_eq!(before.differences(&now, &[]), Vec::<String>::new());
        let other = MergedSettings::of(table("flows = 5\ntable.source = \"/b/other.txt\"\nload.burst = 3"));
        assert_eq!(
            before.differences(&other, &["load.burst"]),
            ["flows: 7 → 5", "table.source: \"/a/view.txt\" → \"/b/other.txt\""]
        );
        assert_eq!(before.differences(&other, &[])[1], "load.burst: nothing → 3");
    }
}
