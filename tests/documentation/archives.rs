//! The summaries in `docs/measurements` have the variants of their experiments; where one has others, its page says so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fullview_bench::settings::Settings;
use fullview_bench::workload::every;
use fullview_lab::Experiment;

use crate::measurements::{BEGIN, END, items, pages, summary, text};

/// What a page says of variants that the experiment has got since the measurement.
const OLDER: &str = "older than";

#[test]
fn every_summary_has_the_variants_of_its_experiment_or_the_page_says_that_it_is_older() {
    for page in pages() {
        let page = fs::read_to_string(page).unwrap();
        for (name, before) in tables(&page) {
            assert_eq!(fault(name, &before, &measured(name), &asked(name)), None, "the page of {name}");
        }
    }
}

#[test]
fn a_page_names_the_variants_that_a_summary_does_not_have() {
    let variants = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let (one, two) = (variants(&["dxr"]), variants(&["dxr", "radix"]));
    let is_fault = |before, measured, asked| fault("x", before, measured, asked).is_some();
    assert!(!is_fault("`dxr`", &two, &two));
    assert!(is_fault("`dxr`", &one, &two) && is_fault("`dxr`", &two, &one));
    assert!(is_fault("older than `dxr`", &one, &two) && is_fault("older than `dxr`", &two, &two));
    assert!(!is_fault("older than `radix`", &one, &two) && !is_fault("older than `radix`", &two, &one));
    let copy = "a copy of `experiments/x.toml` with the variant `dxr`";
    assert!(!is_fault(copy, &one, &two) && is_fault(copy, &two, &one));
}

/// The tables of a page, each with the words between it and the table before.
fn tables(page: &str) -> Vec<(&str, String)> {
    let parts: Vec<&str> = page.split(BEGIN).collect();
    let names = parts[1..].iter().map(|part| part.split_once(" -->").unwrap().0);
    let words = parts.iter().map(|part| part.split_once(END).map_or(*part, |(_, rest)| rest));
    let on_one_line = words.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
    names.zip(on_one_line).collect()
}

/// What is wrong with the words before a table.
fn fault(
    name: &str,
    before: &str,
    measured: &BTreeSet<String>,
    asked: &BTreeSet<String>,
) -> Option<&'static str> {
    let is_named = |variant: &String| before.contains(&format!("`{variant}`"));
    let is_of_copy = before.contains(&format!("a copy of `experiments/{name}.toml`"));
    match (measured == asked, before.contains(OLDER)) {
        (true, true) => Some("the summary has the variants of the experiment and is not older"),
        (false, true) if !measured.symmetric_difference(asked).all(is_named) => {
            Some("not all variants are named that only the summary or only the experiment has")
        }
        (true, false) | (false, true) => None,
        (false, false) if is_of_copy && measured.is_subset(asked) && measured.iter().all(is_named) => None,
        (false, false) => Some("measure again, or say that the table is older than the variants that differ"),
    }
}

fn measured(name: &str) -> BTreeSet<String> {
    items(&summary(name), "cells").iter().map(|cell| text(cell, "variant").to_owned()).collect()
}

fn asked(name: &str) -> BTreeSet<String> {
    let path = experiment(name);
    let text = fs::read_to_string(&path).unwrap();
    let mut experiment = Experiment::<Settings>::parse(&path.display().to_string(), &text).unwrap();
    every::expand(&mut experiment);
    experiment.variants.into_iter().map(|variant| variant.name).collect()
}

/// The file of the experiment that has the name of a summary.
fn experiment(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let places = [root.join(name), root.join("testbed").join(name)].map(|path| path.with_extension("toml"));
    places.into_iter().find(|path| path.is_file()).unwrap_or_else(|| panic!("{name} has no experiment"))
}
