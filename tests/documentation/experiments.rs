//! The experiments ask what their pages say.

use std::fs;
use std::path::Path;

use toml::{Table, Value};

/// Packets of known flows meet no rule: what they show of rules without states is shown of packets that meet them, too.
#[test]
fn what_known_flows_show_of_rules_is_asked_of_judged_packets() {
    let experiment = experiment("filters");
    let comparisons: Vec<[&Table; 2]> = comparisons(&experiment);
    let about_rules: Vec<_> =
        comparisons.iter().filter(|pair| pair.iter().all(|one| is_of_known_flows(one))).collect();
    assert_eq!(about_rules.len(), 4, "pf and ipfw, by the number of rules and by a table");
    for pair in about_rules {
        let judged = pair.map(every_packet_judged);
        let is_judged = |other: &&[&Table; 2]| other.map(|one| one["filter"].clone()) == judged;
        assert!(comparisons.iter().any(|other| is_judged(&other)), "{judged:#?} are not compared");
    }
}

fn experiment(name: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(name).with_extension("toml");
    fs::read_to_string(path).unwrap().parse().unwrap()
}

/// What the variants set that are compared, for each comparison.
fn comparisons(experiment: &Table) -> Vec<[&Table; 2]> {
    let variants = experiment["variants"].as_array().unwrap();
    let set = |name: &Value| {
        let variant = variants.iter().find(|variant| variant["name"] == *name).unwrap();
        variant.get("set").map(|set| set.as_table().unwrap())
    };
    let pairs = experiment["analysis"]["comparisons"].as_array().unwrap().iter();
    pairs.filter_map(|pair| Some([set(&pair[0])?, set(&pair[1])?])).collect()
}

/// A filter without states whose flows are known.
fn is_of_known_flows(set: &Table) -> bool {
    let filter = &set["filter"];
    !filter["rules"].as_str().unwrap().contains("keep") && filter.get("known-flows").is_none()
}

fn every_packet_judged(set: &Table) -> Value {
    let mut filter = set["filter"].clone();
    filter.as_table_mut().unwrap().insert("known-flows".into(), 0.into());
    filter
}

#[test]
fn every_experiment_has_a_line_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let files = fs::read_dir(root.join("experiments")).unwrap().map(|file| file.unwrap().path());
    let names = files.filter(|path| path.is_file()).map(|path| path.file_stem().unwrap().to_owned());
    for name in names {
        let quoted = format!("`{}`", name.display());
        let is_line =
            |line: &str| line.starts_with("| `") && line.split(" | ").next().unwrap().contains(&quoted);
        assert!(readme.lines().any(is_line), "README.md has no line for the experiment {quoted}");
    }
}
