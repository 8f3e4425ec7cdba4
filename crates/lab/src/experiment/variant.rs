//! A variant and its settings.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The settings of a subject. Every field is optional, so that a variant names only what it changes.
pub trait Settings: DeserializeOwned + Serialize + Clone + Default {
    /// Merges these settings with `base`: a field set here takes precedence over the same field of `base`.
    fn over(self, base: &Self) -> Self;
}

/// One of the variants that an experiment compares.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(serialize = "S: Serialize", deserialize = "S: DeserializeOwned + Default")
)]
pub struct Variant<S> {
    /// Short name for the command line and the records.
    pub name: String,
    /// The name in reports and graphs.
    pub label: String,
    /// The settings that this variant changes.
    #[serde(default)]
    pub set: S,
}
