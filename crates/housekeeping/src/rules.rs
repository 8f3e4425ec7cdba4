//! The file of rules: the order of packages, and the exceptions with their reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Packages from the lowest layer up; those of one layer do not depend on each other.
    layers: Vec<Vec<String>>,
    /// Packages for tests and checks, which nothing that ships depends on.
    tests: Vec<String>,
    /// Type names that a crate may use more than once as `package Name`, each with the reason.
    #[serde(default)]
    pub repeated_types: BTreeMap<String, String>,
    /// Functions above the limit as `package name`, each with the reason.
    #[serde(default)]
    pub long_functions: BTreeMap<String, String>,
}

impl Rules {
    pub fn read(file: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        toml::from_str(&text).with_context(|| format!("cannot parse {}", file.display()))
    }

    pub fn layer(&self, package: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.iter().any(|name| name == package))
    }

    pub fn knows(&self, package: &str) -> bool {
        self.layer(package).is_some() || self.tests.iter().any(|name| name == package)
    }
}

/// The argued exceptions of one kind, and which of them are still needed.
pub struct Exceptions<'a> {
    argued: &'a BTreeMap<String, String>,
    used: BTreeSet<&'a str>,
}

impl<'a> Exceptions<'a> {
    pub fn new(argued: &'a BTreeMap<String, String>) -> Self {
        Self { argued, used: BTreeSet::new() }
    }

    /// Whether the rules give a reason for this one.
    pub fn allow(&mut self, key: &str) -> bool {
        let argued = self.argued.get_key_value(key).filter(|(_, reason)| !reason.is_empty());
        self.used.extend(argued.map(|(key, _)| key.as_str()));
        argued.is_some()
    }

    /// The exceptions that nothing needs any more, one line each.
    pub fn unused(&self) -> Vec<String> {
        let unused = self.argued.keys().filter(|key| !self.used.contains(key.as_str()));
        unused
            .map(|key| format!("{key}: the rules except it, but nothing needs that (or the reason is empty)"))
            .collect()
    }
}
