//! The file of rules: the order of packages, and the exceptions with their reasons.

use std::collections::BTreeMap;
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
    /// Type names that a crate may use more than once, each with the reason.
    #[serde(default)]
    pub repeated_types: BTreeMap<String, String>,
    /// Functions above the limit as `file name`, each with the reason.
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
