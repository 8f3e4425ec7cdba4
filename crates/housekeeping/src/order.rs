//! Packages may depend only on packages below them; the program's own source is glue.

use std::path::Path;

use anyhow::Result;
use toml::{Table, Value};

use crate::rules::Rules;
use crate::workspace::Package;

/// One line for each dependency that points upwards, and for each package that has no place in the order.
pub fn upward(packages: &[&Package], rules: &Rules) -> Vec<String> {
    packages.iter().flat_map(|package| of(package, packages, rules)).collect()
}

fn of(package: &Package, packages: &[&Package], rules: &Rules) -> Vec<String> {
    if !rules.knows(&package.name) {
        return vec![format!(
            "{}: a package without a layer; add it to `layers` in the file of rules",
            package.name
        )];
    }
    let own = |name: &str| packages.iter().any(|other| other.name == name);
    let dependencies = dependencies(&package.manifest).into_iter().filter(|(_, name)| own(name));
    dependencies.filter_map(|(section, name)| verdict(&package.name, section, &name, rules)).collect()
}

fn verdict(from: &str, section: &str, to: &str, rules: &Rules) -> Option<String> {
    let dev = section == "dev-dependencies";
    let wrong = match (rules.layer(from), rules.layer(to)) {
        // What serves tests only may depend on everything, and tests may depend on it.
        (None, _) => return None,
        (_, None) => !dev,
        (Some(own), Some(other)) => own <= other && from != to,
    };
    wrong.then(|| {
        format!("{from} -> {to}: [{section}] points upwards; `layers` in the file of rules is the order")
    })
}

/// Each dependency with its section, those for one target included, by the names of the packages.
fn dependencies(manifest: &Table) -> Vec<(&'static str, String)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut found = Vec::new();
    for table in tables.chain([manifest]) {
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let entries = table.get(section).and_then(Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(key, value)| (section, package_name(key, value))));
        }
    }
    found
}

fn package_name(key: &str, value: &Value) -> String {
    value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()
}

/// Files of the program that are neither `main`, `args` nor `command`.
pub fn strangers(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if !root.join("src/main.rs").is_file() {
        return Ok(found);
    }
    for entry in std::fs::read_dir(root.join("src"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !["main", "args", "command"].contains(&name.trim_end_matches(".rs")) {
            found.push(format!(
                "src/{name}: the program is only main, args and command; the rest belongs to a crate"
            ));
        }
    }
    found.sort();
    Ok(found)
}
