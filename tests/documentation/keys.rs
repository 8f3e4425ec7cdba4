//! docs/experiments.md and docs/configuration.md list every key of their files, and no other, each with an example.

use std::collections::{BTreeMap, BTreeSet};

use fullview_bench::settings::Settings;
use fullview_lab::Experiment;
use fullview_router::config::RouterConfig;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::schema::{self, Words};

const EXPERIMENTS: &str = include_str!("../../docs/experiments.md");
const CONFIGURATION: &str = include_str!("../../docs/configuration.md");

#[test]
fn every_key_of_an_experiment_is_documented() {
    check::<Experiment<Settings>>(EXPERIMENTS);
}

#[test]
fn every_key_of_the_configuration_is_documented() {
    check::<RouterConfig>(CONFIGURATION);
}

#[test]
fn the_examples_of_experiments_are_one_experiment_together() {
    let text: Vec<&str> = examples(EXPERIMENTS).collect();
    Experiment::<Settings>::parse("docs/experiments.md", &text.join("\n")).unwrap();
}

#[test]
fn each_example_of_the_configuration_is_valid() {
    for example in examples(CONFIGURATION) {
        let router = if example.contains("[router]") { "" } else { "[router]\ninterfaces = [\"eth1\"]\n" };
        toml::from_str::<RouterConfig>(&format!("{example}\n{router}")).unwrap();
    }
}

fn check<T: DeserializeOwned>(page: &str) {
    let keys = schema::keys::<T>();
    let rows = rows(page);
    assert_eq!(missing(keys.keys(), rows.keys()), [""; 0], "keys without a line");
    assert_eq!(missing(rows.keys(), keys.keys()), [""; 0], "lines without a key");
    for (key, words) in &keys {
        let unnamed: Vec<_> =
            words.iter().filter(|word| !rows[key].contains(&format!("`\"{word}\"`"))).collect();
        assert!(unnamed.is_empty(), "the line of {key} does not name {unnamed:?}");
    }
    let shown = shown(page, &keys);
    assert_eq!(missing(keys.keys(), shown.iter()), [""; 0], "keys without an example");
    assert_eq!(missing(shown.iter(), keys.keys()), [""; 0], "examples of what is no key");
}

fn missing<'a>(
    these: impl Iterator<Item = &'a String>,
    those: impl Iterator<Item = &'a String>,
) -> Vec<&'a str> {
    let those: BTreeSet<&String> = those.collect();
    these.filter(|key| !those.contains(key)).map(String::as_str).collect()
}

/// The lines of all tables whose first column is `key`, by that key.
fn rows(page: &str) -> BTreeMap<String, &str> {
    let mut rows = BTreeMap::new();
    let mut is_of_keys = false;
    for line in page.lines() {
        is_of_keys = line.starts_with("| key |") || is_of_keys && line.starts_with('|');
        let row = line.strip_prefix("| `").filter(|_| is_of_keys).and_then(|rest| rest.split_once("` |"));
        if let Some((key, rest)) = row {
            assert!(rows.insert(key.to_owned(), rest).is_none(), "{key} has two lines");
        }
    }
    rows
}

fn examples(page: &str) -> impl Iterator<Item = &str> {
    page.split("```toml\n").skip(1).filter_map(|part| part.split("```").next())
}

/// The keys that the page's examples set.
fn shown(page: &str, keys: &BTreeMap<String, Words>) -> BTreeSet<String> {
    let mut shown = BTreeSet::new();
    for example in examples(page) {
        let table: Table = toml::from_str(example).unwrap();
        collect("", &Value::Table(table), keys, &mut shown);
    }
    shown
}

fn collect(path: &str, value: &Value, keys: &BTreeMap<String, Words>, shown: &mut BTreeSet<String>) {
    let is_on_the_way = |path: &str| {
        let below = |key: &&String| key.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']));
        keys.contains_key(path) || keys.keys().any(|key| below(&key))
    };
    match value {
        _ if keys.contains_key(path) => drop(shown.insert(path.to_owned())),
        Value::Table(table) => {
            for (key, value) in table {
                let separator = if path.is_empty() { "" } else { "." };
                let (named, any) = (format!("{path}{separator}{key}"), format!("{path}.NAME"));
                collect(if is_on_the_way(&any) { &any } else { &named }, value, keys, shown);
            }
        }
        Value::Array(items) if is_on_the_way(&format!("{path}[]")) => {
            items.iter().for_each(|item| collect(&format!("{path}[]"), item, keys, shown));
        }
        _ => drop(shown.insert(path.to_owned())),
    }
}
